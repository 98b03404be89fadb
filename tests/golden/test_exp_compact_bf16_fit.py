"""The search for the tables of compact bf16 units: its parts by hand, and the shipped tables as its fixed point."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.compact_bf16_units import COMPACT_BF16, COMPACT_BF16_SPECS
from golden.exp.fit.compact_bf16 import RECIPES, fit, refit, settle, start
from golden.exp.fit.compact_bf16_budget import Bounds, Budget, estimate_gates
from golden.exp.fit.decisions import table_gates
from golden.exp.statistics import measure
from golden.formats import BF16

each = pytest.mark.parametrize("spec", COMPACT_BF16_SPECS, ids=lambda spec: spec.name)
SEARCHED = [spec for spec in COMPACT_BF16_SPECS if RECIPES[spec.name].steps]
STARTS = [spec for spec in COMPACT_BF16_SPECS if not RECIPES[spec.name].steps]
BOUNDS = RECIPES[COMPACT_BF16.name].bounds


@pytest.mark.parametrize(
    ("table", "gates"),
    [
        ((0, 0), 0),
        ((3, 3, 3, 3), 0),
        ((0, 1), 0),
        ((1, 0), 0),
        ((0, 1, 2, 3), 0),
        ((0, 0, 0, 1), 1.2),
        ((0, 1, 1, 0), 2.0),
        ((1, 0, 0, 1), 2.0),
        # Its inverse costs nothing more.
        ((1, 1, 1, 2), 1.2),
        # A multiplexer of two literals that differ takes three bits of index.
        ((0, 0, 1, 1, 0, 1, 0, 1), 2.4),
        # Carry and sum of three bits share nothing: OR and AND under a multiplexer, XOR under an XOR.
        ((0, 1, 1, 2, 1, 2, 2, 3), 2.4 + 1.2 + 1.2 + 2.0 + 2.0),
    ],
)
def test_table_gates(table, gates):
    assert table_gates(table) == pytest.approx(gates)


def test_estimate_counts_the_adder():
    # Bits 0 of both tables vary: a half adder there; further up ``low`` has nothing and ``high`` takes the carry.
    wide = COMPACT_BF16.replace(name="wide")
    columns = wide.product_bits + 2
    full = max(wide.low).bit_length() - 1
    tables = table_gates(wide.high) + table_gates(wide.low) + table_gates(wide.correction)
    half = columns - full
    assert estimate_gates(wide) == pytest.approx(tables + 7.0 * full + 3.25 * half, abs=3.25 * 3)


@each
def test_recipe_bounds_hold(spec):
    bounds = RECIPES[spec.name].bounds
    found = measure(spec.evaluate_codes(np.arange(1 << 16)), BF16, spec.domain)
    assert found.max_rel <= bounds.max_rel
    # The search weighs each code by the reals nearest to it, measure() cuts the outermost ones in half.
    assert found.mean_rel_uniform <= bounds.mean_rel * 1.005
    assert found.correctly_rounded >= bounds.correctly_rounded


@pytest.mark.parametrize("spec", SEARCHED, ids=lambda spec: spec.name)
def test_shipped_tables_are_where_the_search_ends(spec):
    bounds = RECIPES[spec.name].bounds
    found = settle(spec, bounds, (spec.high, spec.low, spec.correction))
    assert found.within
    assert (found.high, found.low, found.correction) == (spec.high, spec.low, spec.correction)
    assert found.gates == estimate_gates(spec)


@pytest.mark.parametrize("spec", STARTS, ids=lambda spec: spec.name)
def test_refit_gives_the_shipped_tables(spec):
    found = refit(spec.name)
    assert found.within
    assert (found.high, found.low, found.correction) == (spec.high, spec.low, spec.correction)


@each
def test_budget_agrees_with_the_bit_exact_model(spec):
    budget = Budget(spec, Bounds(max_rel=0.0, mean_rel=0.0, correctly_rounded=1.0))
    found = measure(spec.evaluate_codes(np.arange(1 << 16)), BF16, spec.domain)
    expected = 30_000 * found.max_rel + 300_000 * found.mean_rel_uniform + 10_000 * (1 - found.correctly_rounded)
    assert budget.excess((spec.high, spec.low, spec.correction)) == pytest.approx(expected, rel=0.005)


def test_start_is_accurate_and_allowed():
    first = start(COMPACT_BF16, BOUNDS)
    spec = COMPACT_BF16.replace(high=first.high, low=first.low, correction=first.correction)
    found = measure(spec.evaluate_codes(np.arange(1 << 16)), BF16)
    assert first.within
    assert found.monotone
    assert found.mean_rel_uniform <= 0.0017
    assert first.gates > estimate_gates(COMPACT_BF16) + 50


def test_search_saves_gates_within_the_bounds_and_repeats():
    runs = [fit(COMPACT_BF16, BOUNDS, seed=5, steps=400) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].within
    assert runs[0].gates < start(COMPACT_BF16, BOUNDS).gates - 10
    assert runs[0] != fit(COMPACT_BF16, BOUNDS, seed=6, steps=400)


def test_bounds_out_of_reach_are_reported():
    narrow = Bounds(max_rel=0.001, mean_rel=0.0001, correctly_rounded=1.0)
    assert not fit(COMPACT_BF16, narrow, seed=1, steps=20).within
