"""golden.exp.direct: what a polynomial without range reduction can do, over its interval and over all operands."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp.direct import DIRECT_SPECS, DirectSpec
from golden.exp.fit.direct import fit, taylor
from golden.formats import BF16, FP16
from tests.helpers.exp_families import CODES, Figures, check_contract, figures
from tests.helpers.exp_oracle import exact_exp

BY_NAME = {spec.name: spec for spec in DIRECT_SPECS}
WIDE, NARROW, TAYLOR = (BY_NAME[name] for name in ("direct-6-8", "direct-6-4", "taylor-6-2"))

# Largest relative error over the operands within the interval, and share correctly rounded over all of the domain.
FIGURES = {"direct-6-8": (6.45e-2, 0.22), "direct-6-4": (8.98e-4, 0.56), "taylor-6-2": (0.1496, 0.74)}

each = pytest.mark.parametrize("spec", DIRECT_SPECS, ids=BY_NAME)


@each
def test_figures_over_the_interval(spec):
    largest, share = FIGURES[spec.name]
    inside = exact_exp(spec.fmt) > math.exp(-(2**spec.interval_bits))
    assert Figures(spec, within=inside).max_rel <= largest
    assert figures(spec).correctly_rounded >= share


@each
def test_below_the_interval_everything_is_lost(spec):
    assert figures(spec).max_rel == 1
    below = (CODES & 0x8000 != 0) & (exact_exp(spec.fmt) <= math.exp(-(2**spec.interval_bits)))
    assert not spec.evaluate_codes(CODES)[below].any()


@each
def test_contract(spec):
    check_contract(spec)


@each
def test_sign_is_not_looked_at(spec):
    results = spec.evaluate_codes(CODES)
    assert np.array_equal(results[:0x8000], results[0x8000:])


@each
def test_definition_in_exact_fractions(spec):
    x = np.concatenate((np.linspace(0, 2**spec.interval_bits - 2**-6, 500), [2.0**-24, 2.0**-15, 1 / 3]))
    codes = FP16.to_codes(-x)
    found = []
    for value in FP16.from_codes(codes).astype(float).tolist():
        u = Fraction(math.floor(Fraction(-value) / 2**spec.interval_bits * 2**spec.frac_bits), 2**spec.frac_bits)
        h = Fraction(spec.coefficients[-1])
        for coefficient in spec.coefficients[-2::-1]:
            h = Fraction(math.floor(h * u) + coefficient)
        exponent = math.frexp(float(h / 2**spec.core_bits))[1] - 1
        significand = round(h / 2**spec.core_bits / Fraction(2) ** (exponent - 10))
        found.append((exponent + 14 << 10) + significand)
    assert spec.evaluate_codes(codes).tolist() == found


def test_degree_6_holds_a_thousandth_on_four_but_not_on_eight():
    def within(spec):
        return Figures(spec, within=exact_exp(spec.fmt) > math.exp(-(2**spec.interval_bits))).max_rel

    assert within(NARROW) < 1e-3 < 3e-2 < within(WIDE)


@pytest.mark.parametrize("spec", [NARROW, WIDE], ids=lambda spec: spec.name)
def test_shipped_coefficients_are_the_output_of_the_fit(spec):
    found = fit(
        degree=6, interval_bits=spec.interval_bits, frac_bits=spec.frac_bits, core_bits=spec.core_bits, fmt=spec.fmt
    )
    assert found.coefficients == spec.coefficients
    inside = Figures(spec, within=exact_exp(spec.fmt) > math.exp(-(2**spec.interval_bits)))
    assert found.error == pytest.approx(inside.max_rel, rel=1e-9)
    # Without p(0) = 1 the bounds are 3.56e-4 on an interval 4 wide and 3.26e-2 on one 8 wide.
    free = {2: 3.56e-4, 3: 3.26e-2}[spec.interval_bits]
    assert free < found.minimax_error < 1.4 * free
    assert found.error > found.minimax_error


def test_taylor_series_by_hand():
    assert taylor(3, interval_bits=0, core_bits=4) == (16, -16, 8, -3)
    assert TAYLOR.coefficients == taylor(6, interval_bits=1, core_bits=16)


def test_float_model():
    x = np.array([0.0, -1.0, -1.9, -2.0, -50.0, -np.inf, np.inf, np.nan])
    found = TAYLOR.evaluate_float(x)
    wanted = [1.0, *(sum(v**k / math.factorial(k) for k in range(7)) for v in (-1.0, -1.9))]
    assert found[:3] == pytest.approx(wanted, abs=2.0**-15)
    assert found[3:7].tolist() == [0.0, 0.0, 0.0, np.inf]
    assert np.isnan(found[7])
    assert NARROW.evaluate_float(np.zeros((2, 0))).shape == (2, 0)


def test_bf16():
    spec = NARROW.replace(fmt=BF16)
    check_contract(spec)
    assert Figures(spec, within=exact_exp(BF16) > math.exp(-4)).max_rel < 2.0**-8 + 1e-3


def test_sum_ranges_are_reached():
    u = NARROW.reduce_codes(np.arange(NARROW.beyond_code))
    assert u.min() == 0
    assert u.max() < 1 << NARROW.frac_bits
    low, high = NARROW.sum_ranges[0]
    assert high == NARROW.coefficients[0]
    assert low / 2**NARROW.core_bits == pytest.approx(math.exp(-4), rel=0.01)


def test_parameters_of_a_row():
    assert dict(WIDE.parameters) == {"degree": 6, "interval": "(-8, 0]", "frac_bits": 14, "core_bits": 20}
    assert (WIDE.family, WIDE.steps, WIDE.domain, WIDE.subnormals) == ("direct", 9, "nonpositive", "flushed")


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"domain": "full"}, ValueError, "domain must be nonpositive without range reduction, .*, not 'full'"),
        ({"subnormals": "rounded"}, ValueError, "subnormals must be flushed, .*, not 'rounded'"),
        ({"interval_bits": 7}, ValueError, "interval_bits must be from 0 to 6, not 7"),
        ({"frac_bits": 10}, ValueError, "frac_bits must be from 11 to 24, not 10"),
        ({"core_bits": 29}, ValueError, "core_bits must be from 11 to 28, not 29"),
        ({"coefficients": [1, 2]}, TypeError, r"coefficients must be a tuple, not \[1, 2\]"),
        ({"coefficients": (65536,)}, ValueError, "coefficients must number from 2 to 9, not 1"),
        ({"coefficients": (65536, 0.5)}, TypeError, r"coefficients\[1\] must be an integer, not 0\.5"),
        ({"coefficients": (65535, -100)}, ValueError, r"coefficients\[0\] must be from 65536 to 65567 .*, not 65535"),
        (
            {"coefficients": (65536, -65536 - 4096)},
            ValueError,
            r"the polynomial must stay from 4 to 65567 on the interval, it leaves at -1\.88",
        ),
        (
            {"coefficients": (65536, 65536)},
            ValueError,
            r"the polynomial must stay from 4 to 65567 on the interval, it leaves at -0\.000976",
        ),
    ],
)
def test_bad_specs(changes, error, text):
    with pytest.raises(error, match=text):
        TAYLOR.replace(**changes)


def spec_with(coefficients, interval_bits):
    return DirectSpec(name="bad", coefficients=coefficients, interval_bits=interval_bits, frac_bits=16, core_bits=20)


def test_taylor_series_that_turns_is_refused():
    # Degree 6 has its minimum at -2.18 and reaches 1 again before -4.
    with pytest.raises(
        ValueError, match=r"the polynomial must stay from 64 to 1049087 on the interval, it leaves at -3"
    ):
        spec_with(taylor(6, interval_bits=2, core_bits=20), 2)
    # Degree 8 turns at -2.8 but stays below 1 up to -4.
    with pytest.raises(ValueError, match=r"the result must not fall as x rises to 0, it does from -2\.\d+ on"):
        spec_with(taylor(8, interval_bits=2, core_bits=20), 2)


def test_words_too_short_for_the_interval():
    with pytest.raises(ValueError, match=r"^(the result must not fall as x rises to 0|the polynomial must stay from)"):
        fit(degree=6, interval_bits=4, frac_bits=12, core_bits=14)
