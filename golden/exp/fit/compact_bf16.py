"""Tables for a :class:`golden.exp.compact_bf16.CompactBf16Spec`: the least gates that keep its errors in bounds.

The three tables share one budget of error, so they are searched together, on every operand and with every cut in
place:

1. start from the products rounded to nearest and, by dynamic programming over the pieces, the correction of least
   error among those that leave the result monotone;
2. anneal: change an entry, shift a few, make two equal; keep what lowers an estimate of the gates
   (:func:`golden.exp.fit.compact_bf16_budget.estimate_gates`) and, for a while, some of what does not; errors beyond
   the bounds cost more than any gate;
3. try every small change of the best found until none helps.

The estimate follows a synthesiser to within a few per cent. That ranks tables well enough to search by; of a handful
of seeds the best is chosen by synthesis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.compact_bf16_units import COMPACT_BF16_SPECS
from golden.exp.fit.compact_bf16_budget import Bounds, Budget, Tables
from golden.formats import BF16

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from golden.exp.compact_bf16 import CompactBf16Spec

__all__ = ["RECIPES", "CompactFit", "Recipe", "fit", "refit", "settle", "start"]

_TEMPERATURES = (5.0, 0.25)
"""First and last, in gates."""
_BITS = BF16.significand_bits


@dataclass(frozen=True, kw_only=True)
class CompactFit:
    """Result of a search: tables, their estimate of gates, and whether they keep the bounds."""

    high: tuple[int, ...]
    low: tuple[int, ...]
    correction: tuple[int, ...]
    gates: float
    within: bool


def start(spec: CompactBf16Spec, bounds: Bounds) -> CompactFit:
    """Return the products rounded to nearest, less a quarter of a unit, and the best correction for them.

    A quarter lies between what the largest operands want, whose t keeps every bit of the product, and the others,
    whose t is rounded down and has half a unit of its own.

    Parameters
    ----------
    spec : CompactBf16Spec
        Word lengths and numbers of entries are used, not the entries.
    bounds : Bounds
        Corrections that exceed the largest error are taken only if a piece has no other.
    """
    unit = float(np.log2(np.e)) * 2.0 ** (spec.product_bits - _BITS)
    low_entries, high_entries = len(spec.low), len(spec.high)
    high = tuple(math.floor((k * low_entries + (1 << _BITS)) * unit + 0.25) for k in range(high_entries))
    low = tuple(math.floor(k * unit + 0.5) for k in range(low_entries))
    budget = Budget(spec, bounds)
    tables = high, low, _best_correction(budget, high, low)
    return _result(budget, tables)


def _best_correction(budget: Budget, high: tuple[int, ...], low: tuple[int, ...]) -> tuple[int, ...]:
    """Return the correction of least error that keeps the result monotone: the cheapest path through the pieces."""
    spec = budget.spec
    pieces, piece = len(spec.correction), 1 << spec.frac_bits - spec.correction_bits
    # 2^f - 1 is at most 0.0861 below f.
    values = range(math.ceil(0.0875 * (1 << spec.frac_bits)) + spec.rounding + 1)
    t, f = budget.reduce((high, low, spec.correction))
    index = f >> (spec.frac_bits - spec.correction_bits)
    cost = np.zeros((pieces, len(values)))
    for c in values:
        error, wrong = budget.errors(t, f, c)
        terms = error * budget.weight + 3e-3 * wrong / wrong.size + 1.0 * (error > budget.bounds.max_rel)
        cost[:, c] = np.bincount(index, weights=terms, minlength=pieces)
        cost[:, c] += np.where(np.arange(pieces) * piece + spec.rounding < c, np.inf, 0.0)
    total = cost[0]
    choices: list[npt.NDArray[np.int64]] = []
    for k in range(1, pieces):
        allowed = np.array([[budget.rises(k - 1, before, after) for after in values] for before in values])
        paths = np.where(allowed, total[:, None], np.inf)
        choices.append(paths.argmin(axis=0))
        total = paths.min(axis=0) + cost[k]
    path = [int(total.argmin())]
    for choice in reversed(choices):
        path.append(int(choice[path[-1]]))
    return tuple(reversed(path))


def fit(spec: CompactBf16Spec, bounds: Bounds, *, seed: int, steps: int) -> CompactFit:
    """Search tables for ``spec``; the same arguments give the same tables.

    Parameters
    ----------
    spec : CompactBf16Spec
        Everything but its tables is used; of these only the numbers of entries.
    bounds : Bounds
        What the result has to keep.
    seed : int
        Of the annealing.
    steps : int
        Changes tried; 3,000 a second.

    Returns
    -------
    CompactFit
        The tables of fewest gates found within the bounds, or the start if none are.
    """
    budget = Budget(spec, bounds)
    random = Random(seed)
    first = start(spec, bounds)
    tables: Tables = (first.high, first.low, first.correction)
    energy = budget.gates(tables) + budget.excess(tables)
    best, least = tables, math.inf
    hot, cold = _TEMPERATURES
    for step in range(steps):
        temperature = hot * (cold / hot) ** (step / steps)
        changed = _change(tables, random)
        if changed == tables or not budget.possible(changed):
            continue
        # Only what random() returns is the same in every Python.
        ceiling = energy - temperature * math.log(1 - random.random())
        gates = budget.gates(changed)
        if gates > ceiling:
            continue
        excess = budget.excess(changed)
        if gates + excess <= ceiling:
            tables, energy = changed, gates + excess
            if excess == 0 and energy < least:
                best, least = tables, energy
    return settle(spec, bounds, best)


def settle(spec: CompactBf16Spec, bounds: Bounds, tables: Tables) -> CompactFit:
    """Return what is left when every small change has been tried and none saves gates within the bounds."""
    budget = Budget(spec, bounds)
    if budget.excess(tables):
        return _result(budget, tables)
    gates = budget.gates(tables)
    improved = True
    while improved:
        improved = False
        for changed in _neighbours(tables):
            fewer = budget.gates(changed)
            if fewer < gates and budget.possible(changed) and not budget.excess(changed):
                tables, gates, improved = changed, fewer, True
                break
    return _result(budget, tables)


def _result(budget: Budget, tables: Tables) -> CompactFit:
    high, low, correction = tables
    within = budget.excess(tables) == 0
    return CompactFit(high=high, low=low, correction=correction, gates=budget.gates(tables), within=within)


def _change(tables: Tables, random: Random) -> Tables:
    """Return the tables with one random change."""

    def below(number: int) -> int:
        return int(random.random() * number)

    def step(largest: int) -> int:
        return (1 + below(largest)) * (1 if random.random() < 0.5 else -1)

    high, low, correction = (list(table) for table in tables)
    kind = random.random()
    if kind < 0.3:
        correction[below(len(correction))] += step(1)
    elif kind < 0.45:
        # A few neighbours that differ in the lowest bits of their index alone.
        run = 2 << below(2)
        first, by = below(len(correction) // run) * run, step(1)
        for k in range(first, first + run):
            correction[k] += by
    elif kind < 0.6:
        k = below(len(correction))
        correction[k] = correction[k ^ 1]
    elif kind < 0.78:
        low[below(len(low))] += step(2)
    elif kind < 0.92:
        high[below(len(high))] += step(4)
    else:
        # From one table to the other; the sums stay.
        by = step(2)
        high, low = [entry - by for entry in high], [entry + by for entry in low]
    return tuple(high), tuple(low), tuple(correction)


def _neighbours(tables: Tables) -> Iterator[Tables]:
    """Yield the tables with one entry changed by one."""
    for which, table in enumerate(tables):
        for k in range(len(table)):
            for by in (-1, 1):
                entries = (*table[:k], table[k] + by, *table[k + 1 :])
                changed = [*tables]
                changed[which] = entries
                yield changed[0], changed[1], changed[2]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Arguments of the :func:`fit` that gave the tables of a unit; with no steps, it has those of :func:`start`."""

    bounds: Bounds
    seed: int
    steps: int


_SMALL = Bounds(max_rel=0.0087, mean_rel=0.00195, correctly_rounded=0.9665)
_ACCURATE = Bounds(max_rel=0.0045, mean_rel=0.0016, correctly_rounded=0.99)

RECIPES = {
    "compact-bf16": Recipe(bounds=_SMALL, seed=1, steps=40_000),
    "compact-bf16-balanced": Recipe(
        bounds=Bounds(max_rel=0.0065, mean_rel=0.00175, correctly_rounded=0.98), seed=1, steps=30_000
    ),
    # With 128 pieces the start is as regular as tables get: all that a search took for gates saved, synthesis lost.
    "compact-bf16-accurate": Recipe(bounds=_ACCURATE, seed=0, steps=0),
    "compact-bf16-nonpositive": Recipe(bounds=_SMALL, seed=1, steps=40_000),
    "compact-bf16-accurate-nonpositive": Recipe(bounds=_ACCURATE, seed=0, steps=0),
}
"""How each of :data:`golden.exp.compact_bf16_units.COMPACT_BF16_SPECS` was found, by name."""


def refit(name: str) -> CompactFit:
    """Search the tables of a unit anew; takes up to a minute and gives the very tables that the unit has.

    Raises
    ------
    KeyError
        If no unit has that name.
    """
    specs = {spec.name: spec for spec in COMPACT_BF16_SPECS}
    recipe = RECIPES[name]
    if not recipe.steps:
        return start(specs[name], recipe.bounds)
    return fit(specs[name], recipe.bounds, seed=recipe.seed, steps=recipe.steps)
