"""golden.exp.plan: small polynomials by hand."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.plan import Mac, Plan, estrin_plan, horner_plan

F = np.array([0, 1, 2, 3])


def test_horner_by_hand():
    plan = horner_plan([1, 3, 5], frac_bits=2, sum_bits=[2, 2, 2], factor_bits=[2, 2])
    assert [[mac.name for mac in level] for level in plan.levels] == [["h1"], ["h0"]]
    # f = 3/4: (5 * 3 >> 2) + 3 = 6; (6 * 3 >> 2) + 1 = 5.
    assert plan.evaluate(F)[plan.result].tolist() == [1, 2, 3, 5]
    assert plan.ranges() == {"f": (0, 3), "h1": (3, 6), "h0": (1, 5)}


def test_word_length_of_each_step_by_hand():
    plan = horner_plan([8, 3, 5], frac_bits=2, sum_bits=[4, 2, 1], factor_bits=[2, 1])
    # c2 = 5/2, f to one bit is 1/2, product 5/4 = 5 quarters, none dropped; + 3 quarters = 2; * 3/4 = 24 sixteenths.
    assert plan.evaluate(np.array([3]))[plan.result].tolist() == [24 + 8]


def test_rounded_products_by_hand():
    plan = horner_plan([1, 3, 5], frac_bits=2, sum_bits=[2, 2, 2], factor_bits=[2, 2], rounded=True)
    # f = 3/4: (15 + 2 >> 2) + 3 = 7; (21 + 2 >> 2) + 1 = 6.
    assert plan.evaluate(F)["h0"].tolist() == [1, 2, 4, 6]


def test_centred_by_hand():
    plan = horner_plan([1, 3, 5], frac_bits=2, sum_bits=[2, 2, 2], factor_bits=[2, 2], centred=True)
    # f = 0: g = -2; (-10 >> 2) + 3 = 0; 1. f = 1/4: g = -1; (-5 >> 2) + 3 = 1; (-1 >> 2) + 1 = 0.
    assert plan.evaluate(F)["h0"].tolist() == [1, 0, 1, 2]
    assert plan.ranges()["f"] == (-2, 1)


@pytest.mark.parametrize(("degree", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)])
def test_estrin_has_logarithmically_many_levels(degree, levels):
    plan = estrin_plan([1] * (degree + 1), frac_bits=8)
    assert len(plan.levels) == levels
    # At f = 0 all that is left is c0; exactly representable powers give the exact sum.
    assert plan.evaluate(np.array([0]))[plan.result].tolist() == [1]
    wide = estrin_plan([1 << 32] * (degree + 1), frac_bits=8)
    assert wide.evaluate(np.array([128]))[wide.result].tolist() == [sum(1 << 32 - k for k in range(degree + 1))]


def test_estrin_by_hand():
    plan = estrin_plan([1, 3, 5], frac_bits=2)
    assert [[mac.name for mac in level] for level in plan.levels] == [["h0_0", "f2"], ["h1_0"]]
    # f = 3/4: 1 + (9 >> 2) = 3; f^2 = 9 >> 2 = 2; 3 + (5 * 2 >> 2) = 5.
    assert plan.evaluate(F)[plan.result].tolist() == [1, 1, 3, 5]


def test_a_plan_is_a_value():
    mac = Mac(name="h0", left=3, right="f", cut=0, drop=2, add=1)
    plan = Plan(frac_bits=2, levels=((mac,),), rounded=False, centred=False)
    assert plan == horner_plan([1, 3], frac_bits=2, sum_bits=[2, 2], factor_bits=[2])
