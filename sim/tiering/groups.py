"""How unevenly the bank groups of a channel share the tokens that a step attends to.

All groups of a channel wait for the fullest one: where not all tokens are attended to, an operation takes as long as if
every group had as many as that (``T_intra`` of arXiv:2602.11521). Tokens of a prompt are dealt to the groups in turn;
those that come or move later go to the group with the fewest reads in ten steps (:mod:`golden.balance`). Where single
tokens are followed their groups are as well. Where they are counted, reads are taken to be strewn over the groups by
chance: greedy placement evens out what lasts, which is little where prompts are longer than answers.

Banks that read in lock step, as those of the RTL's channels do, take longer still where groups want tokens of different
rows: they read what any of them wants (``nearkv study selection``). Groups of different channels that share a request
and KV head are taken to be as full as those of one.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from sim.system import Tier

    Counts = npt.NDArray[np.float64]

__all__ = ["bank_groups", "expected_highest", "fullest_tokens"]


def bank_groups(tier: Tier) -> int:
    """Return the bank groups of a channel; 1 for a memory that is read by pages, whose time follows from these."""
    device = tier.device
    if device.page is not None:
        return 1
    return max(1, device.units_per_channel.integer // device.units_per_group.integer)


@cache
def expected_highest(count: int) -> tuple[float, float]:
    """Return the mean of the highest of so many standard normal numbers, and that of its square.

    They are the integrals over positive z of ``1 - P(z)^n -+ (1 - P(z))^n``, the second one's times ``2 z``.
    """
    places = np.linspace(0.0, 8.0, 4001)
    below = np.array([0.5 * math.erfc(-place / math.sqrt(2.0)) for place in places])
    high, low = 1.0 - below**count, (1.0 - below) ** count
    return float(np.trapezoid(high - low, places)), float(np.trapezoid(2.0 * places * (high + low), places))


def fullest_tokens(read: Counts, always: Counts, held: Counts, groups: npt.NDArray[np.int64]) -> Counts:
    """Return the tokens of the fullest group times the groups, a mean.

    With k tokens read by chance out of n, f = k / n, a group has k / G of them on average and a variance of
    ``k / G (1 - f)`` beside the others'. The fullest of G such numbers is above that by ``z`` deviations, the highest
    of G normal numbers, and by ``(1 - 2 f) (z^2 - 1) / 6`` for their skewness (Cornish and Fisher).

    Parameters
    ----------
    read, always, held : ndarray of float64, shapes that broadcast against ``groups``
        Tokens that a request attends to in a memory, those that every step reads, and all that lie there.
    groups : ndarray of int64
        Bank groups.
    """
    highest, skewness = _normal(tuple(groups.tolist()))
    strewn, others = np.maximum(read - always, 0.0), np.maximum(held - always, 1e-12)
    part = np.minimum(strewn / others, 1.0)
    rest = 1.0 - part
    more = highest * np.sqrt(strewn * rest) + skewness * (rest - part) * (rest > 0.0)
    # Some group has one where any is strewn, and none has more than all of them.
    others_too = groups - 1
    least = others_too * np.minimum(strewn, 1.0) * rest
    return read + np.minimum(np.maximum(more, least), others_too * strewn)


@cache
def _normal(groups: tuple[int, ...]) -> tuple[Counts, Counts]:
    """Return ``sqrt(G) z`` and ``G (z^2 - 1) / 6`` of each number of groups."""
    found = np.array([expected_highest(count) for count in groups])
    counts = np.array(groups, np.float64)
    return np.sqrt(counts) * found[:, 0], counts * (found[:, 1] - 1.0) / 6.0
