"""What the cells of a simulated channel hold before its first operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hw.memory.kv_rows import row_images

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hw.channel_operation import KvHead
    from hw.device_params import ChannelParams

__all__ = ["load_items"]


def load_items(params: ChannelParams, heads: Sequence[KvHead], *, groups: int, rows: int) -> Iterator[int]:
    """Yield the items that fill the cells of the simulated banks, row by row, column by column.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    heads : sequence of KvHead
        What it holds, in the order of rows.
    groups : int
        Bank groups simulated, the first ones.
    rows : int
        Rows of a bank with cells.

    Yields
    ------
    int
        Payload of :func:`hw.devices.memory_model.load_layout`: a column of every simulated bank.

    Raises
    ------
    ValueError
        If a head has keys or values for another number of parts.
    """
    organisation = params.organisation
    row_bits = (rows - 1).bit_length()
    column_bits = (organisation.columns - 1).bit_length()
    turns = params.turn_banks
    used_rows = -(-heads[-1].end_row // turns) if heads else 0
    cells = np.zeros(
        (used_rows, organisation.columns, groups * organisation.banks, params.processing.lanes), dtype="<u2"
    )
    used_columns = np.zeros(used_rows, int)
    for head in heads:
        kinds = ((head.key_row, head.keys), (head.value_row, head.values))
        for first, vectors in kinds if head.values else kinds[:1]:
            if len(vectors) != groups * params.parts_per_group:
                raise ValueError(
                    f"keys and values must be those of {groups * params.parts_per_group} parts, not {len(vectors)}"
                )
            images = [
                row_images(head.rows, part, lanes=params.processing.lanes, slices=params.processing.slices)
                for part in vectors
            ]
            # Axes: tile, column, bank or group of banks in turn, element.
            image = np.concatenate(images).transpose(1, 2, 0, 3)
            for tile in range(head.rows.tiles):
                row, turn = divmod(first + tile, turns)
                cells[row, : head.rows.tile_columns, turn::turns] = image[tile]
                used_columns[row] = max(used_columns[row], head.rows.tile_columns)
    for row in range(used_rows):
        for column in range(used_columns[row]):
            held = int.from_bytes(cells[row, column].tobytes(), "little")
            yield row | column << row_bits | held << (row_bits + column_bits)
