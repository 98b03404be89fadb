"""What a channel is sent for its operations: the operation itself, its queries and its new tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP32
from hw.channel_selection import selection_streams
from hw.devices.layouts import operation_layout
from hw.memory.kv_rows import token_places
from hw.payloads import pack_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hw.channel_operation import PlacedOperation
    from hw.device_params import ChannelParams

__all__ = ["operation_streams"]


def operation_streams(params: ChannelParams, placed: Sequence[PlacedOperation]) -> dict[str, list[int]]:
    """Return the items of the streams by which a channel is told of its operations, in their order.

    The ids of queries count over all operations, modulo ``2**op_id_bits``.
    """
    queries = [len(item.operation.queries) for item in placed]
    first_queries = np.cumsum([0, *queries])
    selections = [selection_streams(params, item) for item in placed]
    return {
        "operation": [_operation(params, item, int(first)) for item, first in zip(placed, first_queries, strict=False)],
        "query": [
            beat for item in placed for query in item.operation.queries for beat in _columns(params, item, query)
        ],
        "append": [column for item in placed for column in _append(params, item)],
        "selection": [item for request, _ in selections for item in request],
        "words": [word for _, words in selections for word in words],
    }


def _operation(params: ChannelParams, item: PlacedOperation, number: int) -> int:
    """Return the payload of one operation, whose first query has this number among all."""
    op, walk, head = item.operation, item.walk, item.head
    last_query = len(op.queries) - 1
    word = operation_layout(params).const(
        {
            "unit": {
                "op_id": number % (1 << params.processing.op_id_bits),
                "scale": int(FP32.to_codes(op.scale)),
                "kind": op.kind.value,
                "beats": walk.beats,
                # Scores are not kept in tiles, so that a row may hold more than one.
                "tile_tokens": min(walk.tile_tokens, params.processing.tile_tokens),
                "walk_tokens": walk.walk_tokens,
                "last_query": last_query,
            },
            "rows": {
                "key_row": head.key_row,
                "value_row": head.value_row,
                "tiles": walk.tiles,
                "tile_columns": walk.tile_columns,
                "last_columns": walk.last_columns,
                "token_columns": walk.beats,
                "last_query": last_query,
                "kind": op.kind.value,
                "selected": op.positions is not None,
                "append": _append_place(params, item),
            },
            "tokens": [int(count) for count in op.counted_tokens],
        }
    )
    return word.as_bits()


def _append_place(params: ChannelParams, item: PlacedOperation) -> dict[str, Any]:
    """Return where the new token of an operation is written."""
    part = item.operation.append_part
    if part is None:
        return {}
    tile, column = token_places(item.walk, item.operation.tokens[part : part + 1] - 1)
    organisation = params.organisation
    group, bank = divmod(part, params.parts_per_group)
    rank, bankgroup = divmod(group, organisation.bankgroups)
    pseudochannel, rank = divmod(rank, organisation.ranks)
    return {
        "valid": 1,
        "place": {"tile": int(tile[0]), "column": int(column[0])},
        "pseudochannel": pseudochannel,
        "rank": rank,
        "bankgroup": bankgroup,
        "bank": bank,
    }


def _append(params: ChannelParams, item: PlacedOperation) -> list[int]:
    """Return the columns of the new token: its key's in every bank, then its value's; zeros where it is not known.

    Of keys without values there is no second.
    """
    op = item.operation
    if op.append_part is None:
        return []
    kinds = (op.keys, op.values) if op.values else (op.keys,)
    if op.append_part >= len(op.keys):
        return [0] * (len(kinds) * item.walk.beats * params.processing.slices)
    return [column for kind in kinds for column in _columns(params, item, kind[op.append_part][-1])]


def _columns(params: ChannelParams, item: PlacedOperation, vector: npt.NDArray[np.uint16]) -> list[int]:
    """Return the columns of a vector, bank by bank, filled with zeros to whole ones in every bank."""
    lanes = params.processing.lanes
    filled = np.zeros(item.walk.beats * lanes * params.processing.slices, np.uint16)
    filled[: len(vector)] = vector
    return pack_vectors(filled, lanes)
