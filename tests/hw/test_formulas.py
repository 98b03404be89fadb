"""Promise: the formula a manifest prints gives the number that the timing module gives, at every preset."""

from __future__ import annotations

import math

import pytest

from golden.exp import POLY6_SERIAL
from hw.params import ReductionParams
from hw.presets import UNIT_PRESETS
from hw.timing.formulas import interval_formula, latency_formula

_PARAMS = [params for preset in UNIT_PRESETS.values() for params in preset.units.values()]
_PARAMS += [POLY6_SERIAL, ReductionParams(num_sources=1), ReductionParams(head_dim=32, exp=POLY6_SERIAL)]


@pytest.mark.parametrize("params", _PARAMS, ids=lambda params: type(params).__name__)
@pytest.mark.parametrize("formula", [latency_formula, interval_formula])
def test_text_and_number_agree(params: object, formula: object) -> None:
    said = formula(params)  # type: ignore[operator]
    assert set(said.variables) == set(said.values)
    names = {**said.values, "ceil": math.ceil, "max": max, "__builtins__": {}}
    assert eval(said.formula, names) == said.cycles


def test_worked_numbers() -> None:
    units = UNIT_PRESETS["pam-hbm"].units
    # One d = 128 partial each 8 cycles; four of them an operation.
    assert interval_formula(units["reduction"]).cycles == 32
    # 2,048 tokens of K and V, 8 beats each, and no exponential in the way but the first ones of the tail.
    assert 32768 <= interval_formula(units["processing"]).cycles <= 32768 + 32
    assert interval_formula(units["exp"]).cycles == 1
    assert interval_formula(units["finish"]).cycles == 14


def test_a_stranger_is_refused() -> None:
    for formula in (latency_formula, interval_formula):
        with pytest.raises(TypeError, match=r"^params must be those of a unit, not 3$"):
            formula(3)
