"""What a shard of the top-k unit gives out, as words of its stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hw.payloads import pack
from hw.units.top_k_layouts import selected_layout

if TYPE_CHECKING:
    import numpy.typing as npt

    from hw.top_k_params import TopKShardParams

__all__ = ["selected_words"]


def selected_words(params: TopKShardParams, base: int, taken: npt.NDArray[np.integer]) -> list[int]:
    """Return a word for each row that has ids taken, ascending, and that of an end without a fault.

    Parameters
    ----------
    params : TopKShardParams
    base : int
        Id given out for id 0 of the shard.
    taken : ndarray of int
        Ids in the shard, each once.
    """
    layout = selected_layout(params.id_bits, params.lanes)
    words = []
    for row in np.unique(taken // params.lanes).tolist():
        lanes = sum(1 << int(lane) for lane in taken[taken // params.lanes == row] % params.lanes)
        words.append(pack(layout, first=base + row * params.lanes, lanes=lanes, end=0, fault=0))
    return [*words, pack(layout, first=0, lanes=0, end=1, fault=0)]
