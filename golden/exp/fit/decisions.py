"""Estimate of the gates of a table, from its decision diagram."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["table_gates"]

_MULTIPLEXER, _XOR, _AND = 2.4, 2.0, 1.2


@lru_cache(maxsize=1 << 12)
def table_gates(table: tuple[int, ...]) -> float:
    """Estimate the gates, in NAND2, that look up ``table`` by its index in binary.

    Parameters
    ----------
    table : tuple of int
        Not negative; a power of two of them.

    Returns
    -------
    float
        Sum over the nodes of the decision diagram that all bits of the entries share, a function and its inverse being
        one: 2.4 for a multiplexer, 2 where its two inputs are inverses, 1.2 where one is constant, 0 for a bit of the
        index itself.

    Notes
    -----
    A decision diagram asks for the bits of the index from the highest. A synthesiser finds better than that, by about
    the same factor for tables of one kind.
    """
    levels = len(table).bit_length() - 1
    pending = [
        (sum((entry >> bit & 1) << k for k, entry in enumerate(table)), levels)
        for bit in range(max(table).bit_length())
    ]
    seen: set[tuple[int, int]] = set()
    gates = 0.0
    while pending:
        truth, level = pending.pop()
        everything = (1 << (1 << level)) - 1
        truth = min(truth, everything ^ truth)
        if truth == 0 or (truth, level) in seen:
            continue
        seen.add((truth, level))
        half = 1 << (level - 1)
        ones = (1 << half) - 1
        lower, upper = truth & ones, truth >> half
        constant = lower in (0, ones) or upper in (0, ones)
        if lower == ones ^ upper:
            gates += 0.0 if constant else _XOR
            pending.append((lower, level - 1))
        else:
            if lower != upper:
                gates += _AND if constant else _MULTIPLEXER
                pending.append((upper, level - 1))
            pending.append((lower, level - 1))
    return gates
