"""Cycles in which :class:`hw.devices.selection.Selection` names the selected tokens of an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from golden.selection import TokenRun

__all__ = ["bitmap_cycles", "list_cycles", "runs_cycles"]


def list_cycles(positions: int) -> int:
    """Return the cycles from one request to the next of a list: a position a cycle, one at least."""
    return max(positions, 1)


def bitmap_cycles(word_positions: Sequence[int]) -> int:
    """Return those of a bitmap, given how many positions of each word are wanted.

    ``sum max(n, 1)``: a position a cycle, and a cycle for a word without any; one at least.
    """
    return max(sum(max(positions, 1) for positions in word_positions), 1)


def runs_cycles(runs: Sequence[TokenRun]) -> int:
    """Return those of two runs: a position a cycle, the last of one and the first of the other together if they agree.

    One at least.
    """
    first, second = runs
    shared = bool(
        first.positions and second.positions and first.first_position + first.positions - 1 == second.first_position
    )
    return max(first.positions + second.positions - shared, 1)
