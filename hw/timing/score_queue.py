"""How many scores can be on their way in a channel, and so how many must find room when the bus takes none.

Cycles of the memory clock.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hw.timing.processing import token_score_cycles

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["READING_LEVEL", "most_underway", "queue_depth", "queued_cycles"]

READING_LEVEL = 3
"""Items in a queue up to which columns are read: what passes through one whose items leave at once."""


def queued_cycles(params: ChannelParams, queries: int = 1) -> int:
    """Return the most cycles from a column read that ends a token to its last score's entry into the queue.

    n_cl, the register in front of the unit, and ``queries`` uses and :func:`token_score_cycles` of the logic.
    """
    logic = queries + token_score_cycles(params.processing)
    return params.timing.n_cl + 1 + math.ceil(logic / params.logic_ratio)


def most_underway(params: ChannelParams) -> int:
    """Return the most scores of a part between the reads of their columns and the queue: tokens of a column each."""
    return max(
        queries * (queued_cycles(params, queries) // params.column_cycles(queries) + 1)
        for queries in range(1, params.processing.queries + 1)
    )


def queue_depth(params: ChannelParams) -> int:
    """Return the items that a group's queue must hold so that none is lost."""
    return READING_LEVEL + most_underway(params)
