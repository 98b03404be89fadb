"""The sparse attention of a ``config.json``: DeepSeek's indexer, or blocks as MiniMax selects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sim.config_keys import ConfigKeys
from sim.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["read_roles", "read_selection"]

_FP32_BYTES = 4
_BF16_BYTES = 2
_ROLES = {"full": "owns", "shared": "shares", "owns": "owns", "shares": "shares", "dense": "dense"}


def read_selection(keys: ConfigKeys) -> Selection | None:
    """Return the selection that a model was trained with; None where it attends to everything.

    Raises
    ------
    ConfigError
        If a needed key is missing or unusable.
    """
    if keys.get("index_topk") is not None:
        dim = keys.integer("index_head_dim")
        return Selection(
            index_heads=keys.integer("index_n_heads"),
            index_dim=dim,
            key_bytes=dim,  # fp8
            scale_bytes=_FP32_BYTES,
            block_tokens=1,
            top_k=keys.integer("index_topk"),
            local_blocks=0,
        )
    blocks = _blocks(keys)
    if blocks is None:
        return None
    dim = blocks.integer("sparse_index_dim")
    return Selection(
        index_heads=blocks.integer("sparse_num_index_heads"),
        index_dim=dim,
        key_bytes=_BF16_BYTES * dim,
        scale_bytes=0,
        block_tokens=blocks.integer("sparse_block_size"),
        top_k=blocks.integer("sparse_topk_blocks"),
        local_blocks=blocks.integer("sparse_local_block", low=0, default=0),
    )


def read_roles(keys: ConfigKeys, num_layers: int) -> Sequence[str]:
    """Return what every layer has to do with selection, see :data:`sim.selection.INDEX_ROLES`.

    Raises
    ------
    ConfigError
        If a key is unusable, or the first layer shares a selection that nobody below it makes.
    """
    blocks = _blocks(keys)
    if keys.get("index_topk") is None:
        if blocks is None:
            return ["dense"] * num_layers
        frequencies = blocks.per_layer("sparse_attention_freq", num_layers)
        if frequencies is None:
            return ["owns"] * num_layers
        for entry in frequencies:
            if entry not in (0, 1):
                raise blocks.fail("sparse_attention_freq", "a list of 0 and 1", entry)
        return ["owns" if entry else "dense" for entry in frequencies]
    types = keys.per_layer("indexer_types", num_layers)
    if types is None:
        # The first layers own an index, then every period-th one does.
        period = keys.integer("index_topk_freq", default=1)
        first = keys.integer("index_skip_topk_offset", low=0, default=0)
        types = [
            "full" if index < first or (index - first + 1) % period == 0 else "shared" for index in range(num_layers)
        ]
    for entry in types:
        if not isinstance(entry, str) or entry not in _ROLES:
            raise keys.fail("indexer_types", f"a list of {', '.join(_ROLES)}", entry)
    roles = [_ROLES[entry] for entry in types]
    below = next((role for role in roles if role != "dense"), "dense")
    if below == "shares":
        raise keys.fail("indexer_types", "a list in which the first layer that selects owns an index", types[0])
    return roles


def _blocks(keys: ConfigKeys) -> ConfigKeys | None:
    """Return the keys of block selection, where a model has them."""
    inner: Any = keys.get("sparse_attention_config")
    if inner is None:
        return None
    if not isinstance(inner, dict):
        raise keys.fail("sparse_attention_config", "an object", inner)
    found = ConfigKeys(f"{keys.where}: sparse_attention_config", cast("dict[str, Any]", inner))
    return found if found.flag("use_sparse_attention", default=True) else None
