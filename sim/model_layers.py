"""The layers of a ``config.json``: which are sparse, which see a window or a selection, and how wide each is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sim.model_selection import read_roles
from sim.models import FeedForward, Layer

if TYPE_CHECKING:
    from sim.config_keys import ConfigKeys

__all__ = ["read_layers"]

# Families whose feed-forward part has no gate beside the up projection.
_UNGATED = {
    "bert",
    "bloom",
    "codegen",
    "falcon",
    "gpt2",
    "gpt3",
    "gpt_bigcode",
    "gpt_neox",
    "gptj",
    "mpt",
    "opt",
    "phi",
    "starcoder2",
}
_MAX_LAYERS = 10_000
_EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
_PER_TOKEN = ("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k")


def read_layers(keys: ConfigKeys, hidden: int) -> tuple[Layer, ...]:
    """Return one entry a layer.

    Raises
    ------
    ConfigError
        If a needed key is missing or unusable, or a layer keeps no KV cache.
    """
    depth_names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    num_layers = keys.integer(*depth_names)
    if num_layers > _MAX_LAYERS:
        raise keys.fail(keys.name_of(*depth_names), f"at most {_MAX_LAYERS}", num_layers)
    matrices = keys.integer("ffn_matrices", default=2 if keys.text("model_type") in _UNGATED else 3)
    if matrices not in (2, 3):
        raise keys.fail("ffn_matrices", "2 or 3", matrices)
    windows = _windows(keys, num_layers)
    sparse = _sparse_layers(keys, num_layers)
    roles = read_roles(keys, num_layers)
    networks = {is_sparse: _network(keys, hidden, matrices, sparse=is_sparse) for is_sparse in set(sparse)}
    return tuple(
        Layer(feed_forward=networks[is_sparse], window=window, index_role=role)
        for is_sparse, window, role in zip(sparse, windows, roles, strict=True)
    )


def _network(keys: ConfigKeys, hidden: int, matrices: int, *, sparse: bool) -> FeedForward:
    """Return the feed-forward part of the sparse or of the dense layers."""
    width_names = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
    if not sparse:
        # GPT-2 and its kin leave the width null where it is four times the hidden size.
        default = 4 * hidden if "n_inner" in keys.data else None
        width = keys.integer("dense_intermediate_size", "intermediate_size_mlp", *width_names, default=default)
        return FeedForward(hidden=hidden, matrices=matrices, dense_width=width)
    num_experts = keys.integer(*_EXPERTS)
    per_token = keys.integer(*_PER_TOKEN)
    if per_token > num_experts:
        raise keys.fail(keys.name_of(*_PER_TOKEN), f"at most the {num_experts} experts", per_token)
    width = keys.integer("moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size", *width_names)
    num_shared = keys.integer("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", low=0, default=0)
    shared = keys.integer(
        "shared_intermediate_size", "shared_expert_intermediate_size", low=0, default=num_shared * width
    )
    return FeedForward(
        hidden=hidden,
        matrices=matrices,
        dense_width=shared,
        expert_width=width,
        num_experts=num_experts,
        experts_per_token=per_token,
    )


def _sparse_layers(keys: ConfigKeys, num_layers: int) -> list[bool]:
    """Return for every layer whether it has routed experts."""
    if (keys.optional_integer(*_EXPERTS, low=0) or 0) <= 1:
        return [False] * num_layers
    types = keys.per_layer("mlp_layer_types", num_layers)
    if types is not None:
        _check_entries(keys, "mlp_layer_types", types, ("dense", "sparse"))
        return [entry == "sparse" for entry in types]
    frequencies = keys.per_layer("moe_layer_freq", num_layers)
    if frequencies is not None:
        _check_entries(keys, "moe_layer_freq", frequencies, (0, 1))
        return [entry == 1 for entry in frequencies]
    first_dense = keys.integer("first_k_dense_replace", "moe_layer_start_index", low=0, default=0)
    if keys.get("decoder_sparse_step", "interleave_moe_layer_step") is not None:
        step = keys.integer("decoder_sparse_step", "interleave_moe_layer_step")
        sparse = [(index + 1) % step == 0 for index in range(num_layers)]
    else:
        step = keys.integer("moe_layer_freq", default=1)
        sparse = [index >= first_dense and index % step == 0 for index in range(num_layers)]
    dense: Any = keys.get("mlp_only_layers")
    if dense is not None and not isinstance(dense, list):
        raise keys.fail("mlp_only_layers", "a list of layer numbers", dense)
    for index in cast("list[Any]", dense or []):
        if not isinstance(index, int) or not 0 <= index < num_layers:
            raise keys.fail("mlp_only_layers", f"a list of layer numbers below {num_layers}", index)
        sparse[index] = False
    return sparse


def _windows(keys: ConfigKeys, num_layers: int) -> list[int]:
    """Return the window of every layer, 0 where it attends to all tokens."""
    softmax = keys.per_layer("attn_type_list", num_layers)
    if softmax is not None and any(entry != 1 for entry in softmax):
        raise keys.fail("attn_type_list", "1 (a growing KV cache) in every layer", next(e for e in softmax if e != 1))
    types = keys.per_layer("layer_types", num_layers)
    if types is not None:
        _check_entries(
            keys, "layer_types", types, ("full_attention", "sliding_attention", "chunked_attention", "attention")
        )
        names = ("attention_chunk_size", "sliding_window")
        window = keys.integer(*names) if {"sliding_attention", "chunked_attention"} & set(types) else 0
        return [window if entry in ("sliding_attention", "chunked_attention") else 0 for entry in types]
    window = keys.optional_integer("sliding_window")
    if window is None or not keys.flag("use_sliding_window", default=True):
        return [0] * num_layers
    pattern = keys.optional_integer("sliding_window_pattern", "_sliding_window_pattern")
    if pattern is not None:
        # Every pattern-th layer sees everything.
        return [0 if (index + 1) % pattern == 0 else window for index in range(num_layers)]
    # With a switch of its own, the window starts above the layer it names; without one it holds everywhere.
    first = keys.integer("max_window_layers", low=0, default=0) if keys.get("use_sliding_window") is not None else 0
    return [window if index >= first else 0 for index in range(num_layers)]


def _check_entries(keys: ConfigKeys, name: str, entries: list[Any], allowed: tuple[Any, ...]) -> None:
    """Raise unless every entry of a per-layer list is one of ``allowed``."""
    for entry in entries:
        if entry not in allowed:
            raise keys.fail(name, f"a list of {', '.join(str(item) for item in allowed)}", entry)
