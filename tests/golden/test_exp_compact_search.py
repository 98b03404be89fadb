"""golden.exp.fit.compact_search and the command that runs it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from golden.exp.compact_units import COMPACT_SPECS
from golden.exp.fit.compact import fit
from golden.exp.fit.compact_estimate import estimate
from golden.exp.fit.compact_search import STARTS, search, steps
from hw.exp_search import FitCache

TARGET = STARTS["compact16-0.1"]


def test_search_goes_down_and_repeats():
    path = []
    found = search(TARGET, fits=6, report=lambda one, area: path.append((one.shape, area)))
    areas = [area for _, area in path]
    assert areas == sorted(areas, reverse=True)
    assert len(areas) > 1
    assert path[-1] == (found.shape, estimate(found.shape, found))
    assert found.beyond == 0
    assert search(TARGET, fits=6) == found
    # A unit comes out, which checks itself.
    assert found.spec("found").shape == found.shape


@pytest.mark.parametrize("name", STARTS)
def test_shipped_shapes_are_smaller_than_the_starts(name):
    shape = COMPACT_SPECS[name].shape
    assert estimate(shape) < estimate(STARTS[name].shape) - 20


def test_steps_are_valid_and_one_change_each():
    found = list(steps(TARGET.shape))
    assert TARGET.shape not in found
    # Fewer fraction bits than a result has are no shape.
    assert {shape.frac_bits for shape in found} == {11}
    assert {shape.core_bits for shape in found} == {11, 12}
    assert {len(shape.slope_rows) for shape in found} == {2, 3}


def test_estimate_counts_what_is_taken_away():
    shape = TARGET.shape
    shift, sign, kept = shape.product_rows[-1]
    shorter = replace(shape, product_rows=(*shape.product_rows[:-1], (shift, sign, kept - 1)))
    # One bit of one row less: one full adder, give or take a bit of the constant.
    assert estimate(shape) - estimate(shorter) == pytest.approx(6.2, abs=3.2)


def test_start_that_misses_its_bounds():
    with pytest.raises(ValueError, match=r"the start must meet the bounds, \d+ operands are beyond and 0\.8\d+ of the"):
        search(replace(TARGET, share=0.9))


def test_cache_goes_on_where_it_was(tmp_path):
    first = FitCache(TARGET, tmp_path)
    expected = fit(TARGET.shape, TARGET.max_rel)
    assert first(TARGET.shape) == expected
    with first.path.open("a") as file:
        file.write('\n["half a')
    again = FitCache(TARGET, tmp_path)
    assert again(TARGET.shape) == expected
    assert (first.fitted, again.fitted) == (1, 0)
    other = replace(TARGET.shape, offset_bits=11)
    assert again(other) == FitCache(TARGET, tmp_path)(other)
    assert FitCache(replace(TARGET, share=0.5), tmp_path).path != first.path
