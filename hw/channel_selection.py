"""What a channel is told of the tokens that an operation selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from golden.selection import Selected, SelectionForm, bitmap_words, token_runs
from hw.devices.layouts import selected_layout
from hw.devices.selection import request_layout, word_positions
from hw.memory.kv_rows import token_places

if TYPE_CHECKING:
    from hw.channel_operation import PlacedOperation
    from hw.device_params import ChannelParams
    from hw.memory.kv_rows import KvRows

__all__ = ["selection_payloads", "selection_streams"]


def selection_streams(params: ChannelParams, item: PlacedOperation) -> tuple[list[int], list[int]]:
    """Return the requests and the words of one operation: none where it attends to all tokens.

    Raises
    ------
    ValueError
        If the operation's form cannot say what it selects.
    """
    operation = item.operation
    if operation.positions is None:
        return [], []
    request, words = selection_payloads(
        params, item.walk, Selected(operation.positions, operation.marks), operation.form
    )
    return [request], words


def selection_payloads(
    params: ChannelParams, rows: KvRows, selected: Selected, form: SelectionForm
) -> tuple[int, list[int]]:
    """Return the request and the words of :class:`hw.devices.selection.Selection` for a selection in some form.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    rows : KvRows
        How tokens lie in rows.
    selected : Selected
        Positions and marks.
    form : SelectionForm
        How they are told.

    Raises
    ------
    ValueError
        If they are not two runs of tokens, and that is the form.
    """
    words: list[int] = []
    runs: list[dict[str, Any]] = []
    match form:
        case SelectionForm.LIST:
            words = _items(params, rows, selected)
        case SelectionForm.BITMAP:
            count = word_positions(params)
            words = bitmap_words(selected, row_positions=rows.tile_tokens, word_positions=count)
        case SelectionForm.RUNS:
            for run in token_runs(selected):
                tile, column = token_places(rows, np.array([run.first_position]))
                place = {"tile": int(tile[0]), "column": int(column[0])}
                sizes = {"positions": run.positions, "first_part": run.first_part, "end_part": run.end_part}
                runs.append({"place": place, **sizes})
    fields: dict[int | str, Any] = {
        "form": form.value,
        "words": len(words),
        "token_columns": rows.beats,
        "tile_columns": rows.tile_columns,
        "runs": runs or [{}, {}],
    }
    return request_layout(params).const(fields).as_bits(), words


def _items(params: ChannelParams, rows: KvRows, selected: Selected) -> list[int]:
    """Return the items of a list."""
    layout = selected_layout(params)
    tiles, columns = token_places(rows, selected.positions)
    marks = [int.from_bytes(np.packbits(one, bitorder="little").tobytes(), "little") for one in selected.wanted.T]
    return [
        layout.const({"place": {"tile": int(tile), "column": int(column)}, "wanted": wanted}).as_bits()
        for tile, column, wanted in zip(tiles, columns, marks, strict=True)
    ]
