"""golden.exp.fixed and the fixed-point formats, against mpmath over all codes."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
import pytest

from golden.exp.fit.polynomial import fit
from golden.exp.polynomial_specs import FIXED_SPECS
from golden.formats import FP16, Q5_10, UQ0_16, UQ1_15, FixedFormat

CODES = np.arange(1 << 16)
SPECS = {spec.name: spec for spec in FIXED_SPECS}
every = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)

# Largest error in units of the result's last bit, and correctly rounded results in percent of those that are neither 0
# nor the largest code.
FIGURES = {"poly3-f17-q1.15": (10.1, 82.9), "poly4-f18-q1.15": (0.71, 99.0), "poly4-f18-q0.16": (0.9, 99.0)}


@cache
def exact(fmt):
    """Return the exponential of every Q5.10 code in units of the result's last bit."""
    x = CODES - (CODES >> 15 << 16)
    with mpmath.workprec(80):
        return np.array([float(mpmath.ldexp(mpmath.exp(mpmath.mpf(int(v)) / 1024), fmt.fraction_bits)) for v in x])


@every
def test_every_code_against_the_oracle(spec):
    result = spec.result
    found = spec.evaluate_codes(CODES).astype(int)
    clipped = np.minimum(exact(result), result.max_code)
    expected = np.minimum(np.rint(exact(result)), result.max_code)
    largest, right = FIGURES[spec.name]
    assert np.abs(found - clipped).max() < largest
    inside = (expected > 0) & (expected < result.max_code)
    assert right <= 100 * np.mean(found[inside] == expected[inside]) < right + 0.1


@every
def test_monotone_and_special_codes(spec):
    in_order = spec.evaluate_codes(np.roll(CODES, 1 << 15)).astype(int)
    assert np.all(np.diff(in_order) >= 0)
    assert in_order[0] == 0
    assert in_order[-1] == spec.result.max_code
    assert spec.evaluate_codes(0) == min(1 << spec.result.fraction_bits, spec.result.max_code)


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_up", "truncated"])
def test_rounding_of_the_result(rounding):
    spec = SPECS["poly4-f18-q1.15"].replace(rounding=rounding)
    n, f = spec.reduce_codes(CODES)
    value = np.ldexp(spec.core(f).astype(np.float64), n - spec.core_bits + spec.result.fraction_bits)
    rounded = {"nearest_even": np.rint, "nearest_up": lambda v: np.floor(v + 0.5), "truncated": np.floor}[rounding]
    expected = np.minimum(rounded(value), spec.result.max_code)
    assert np.array_equal(spec.evaluate_codes(CODES), expected)


def test_constants_are_the_output_of_the_fit():
    spec = SPECS["poly3-f17-q1.15"]
    found = fit(spec, "lattice")
    assert found.coefficients == spec.coefficients
    assert found.operands == 12_066  # codes from -11.09 = -ln(2) * 16 up to ln(2)


def test_float_model():
    x = np.array([-8.0, -1.0, 0.0, 0.5, -np.inf, np.inf])
    assert SPECS["poly4-f18-q1.15"].evaluate_float(x) == pytest.approx(np.exp(x), rel=2e-5)
    assert np.isnan(SPECS["poly4-f18-q1.15"].evaluate_float(np.nan))


def test_cycles():
    spec = SPECS["poly4-f18-q1.15"]
    assert (spec.latency_cycles, spec.interval_cycles) == (0, 1)
    assert spec.replace(evaluation="pipelined").latency_cycles == 4 + 3
    assert spec.parameters["result"] == "uq1.15"
    assert (spec.fmt, spec.result_fmt) == (Q5_10, UQ1_15)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"fmt": FP16}, ValueError, r"fmt must be q5\.10, not 'fp16'"),
        ({"result": Q5_10}, ValueError, r"result must be uq0\.16 or uq1\.15, not FixedFormat"),
        ({"subnormals": "flushed"}, ValueError, "subnormals must be rounded in fixed point, which has none to flush"),
        ({"evaluation": "serial"}, ValueError, "evaluation must be one of combinational, pipelined, not 'serial'"),
        (
            {"frac_bits": 15, "coefficients": (32768, 22000)},
            ValueError,
            "frac_bits . guard_bits must be at least 16, not 15",
        ),
        ({"frac_bits": 7}, ValueError, "frac_bits must be from 8 to 20, not 7"),
        ({"log2e": 1}, ValueError, "log2e must be from 189096 to 189097, not 1"),
        ({"rounding": None}, ValueError, "rounding must be one of nearest_even, nearest_up, truncated, not None"),
        ({"coefficients": (262143, 1)}, ValueError, r"core\(0\) must be from 262144 to 262147 .*, not 262143"),
        (
            {"coefficients": (262144, 262148)},
            ValueError,
            "the core must be from 262144 to 524287, it is from 262144 to 524290",
        ),
        ({"coefficients": (262148, 0, -8), "centred": True}, ValueError, "the core must not fall as f rises"),
    ],
)
def test_bad_specs(changes, error, text):
    with pytest.raises(error, match=text):
        SPECS["poly4-f18-q1.15"].replace(**changes)


@pytest.mark.parametrize(
    ("fmt", "bits", "largest"),
    [(Q5_10, 16, 32 - 2.0**-10), (UQ0_16, 16, 1 - 2.0**-16), (UQ1_15, 16, 2 - 2.0**-15)],
    ids=lambda value: getattr(value, "name", None),
)
def test_formats(fmt, bits, largest):
    assert (fmt.bits, fmt.bytes, fmt.max_finite, fmt.code_dtype) == (bits, 2, largest, np.uint16)
    values = fmt.from_codes(CODES)
    assert values.dtype == np.float64
    assert np.array_equal(fmt.to_codes(values), CODES)
    assert values.max() == largest
    assert values.min() == (-32.0 if fmt.signed else 0.0)


def test_conversion_to_codes():
    unit = 2.0**-10
    assert Q5_10.to_codes([0.5 * unit, 1.5 * unit, -0.5 * unit, -1.5 * unit]).tolist() == [0, 2, 0, 0xFFFE]
    assert Q5_10.to_codes([40.0, -40.0, np.inf, -np.inf]).tolist() == [0x7FFF, 0x8000, 0x7FFF, 0x8000]
    assert UQ1_15.to_codes([-1.0, 1.0, 3.0]).tolist() == [0, 0x8000, 0xFFFF]
    assert UQ0_16.to_codes(np.zeros((2, 0))).shape == (2, 0)
    assert Q5_10.integers([0xFFFF, 0x8000, 1]).tolist() == [-1, -32768, 1]
    narrow = FixedFormat(name="q1.6", integer_bits=1, fraction_bits=6, signed=True)
    assert narrow.to_codes(-0.5).dtype == np.uint8
    assert narrow.from_codes(0xE0) == -0.5


def test_conversion_refuses():
    with pytest.raises(ValueError, match=r"values must be numbers for q5\.10, not NaN"):
        Q5_10.to_codes([0.0, np.nan])
    with pytest.raises(ValueError, match="codes must be from 0 to 65535, not from 0 to 65536"):
        Q5_10.from_codes([0, 65536])
    with pytest.raises(TypeError, match="codes must be integers, not float64"):
        UQ1_15.from_codes([0.5])
