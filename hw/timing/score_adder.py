"""Latency of :class:`hw.units.score_adder.ScoreAdder`: it equals the RTL (``tests/rtl/test_score_adder.py``)."""

from __future__ import annotations

from golden.checks import require_int

__all__ = ["latency_cycles"]


def latency_cycles(slices: int) -> int:
    """Cycles from the partial scores of a token to their sum: ``log2(slices)``, one register a level of the tree.

    Parameters
    ----------
    slices : int
        Partial scores of a token.

    Raises
    ------
    TypeError, ValueError
        If ``slices`` is not a power of two from 2 to 16.
    """
    require_int("slices", slices, 2, 16)
    if slices & (slices - 1):
        raise ValueError(f"slices must be a power of two, not {slices!r}")
    return slices.bit_length() - 1
