"""Statistics of exponential units: the float64 oracle against mpmath, every number against one taken another way."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from golden.exp import POLY6
from golden.exp.oracle import exact_exp, rounded_exp
from golden.exp.statistics import domain_codes, measure
from golden.formats import BF16, FP16, FP32, Q5_10, UQ0_16, UQ1_15
from tests.helpers import exp_oracle

CODES = np.arange(1 << 16)
FORMATS = pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)


def changed(fmt, **results):
    """Correctly rounded results with some of them replaced: operand codes are given as ``c<code>``."""
    codes = rounded_exp(fmt).copy()
    for name, value in results.items():
        codes[int(name[1:])] = value
    return codes


@FORMATS
def test_oracle_equals_mpmath_at_every_code(fmt):
    assert rounded_exp(fmt).tolist() == exp_oracle.rounded_exp(fmt).tolist()
    theirs = exp_oracle.exact_exp(fmt)
    inside = np.isfinite(theirs) & (theirs > 0)
    assert np.abs(exact_exp(fmt)[inside] / theirs[inside] - 1).max() < 2.0**-51


def test_oracle_is_read_only_and_wants_sixteen_bits():
    with pytest.raises(ValueError, match="read-only"):
        rounded_exp(FP16)[0] = 1
    with pytest.raises(ValueError, match="fmt must be of 16 bits, not 'fp32' of 32"):
        exact_exp(FP32)


@FORMATS
def test_the_oracle_has_no_error(fmt):
    found = measure(rounded_exp(fmt), fmt)
    assert found.correctly_rounded == found.correctly_rounded_all == 1
    assert found.max_rel_rounded == found.mean_rel_rounded_uniform == 0
    assert 0.4999 < found.max_ulp <= 0.5
    assert found.max_ulp_all <= 0.5
    assert found.max_rel <= 2.0 ** -(fmt.significand_bits + 1)
    assert found.monotone
    assert found.specials


def test_published_floors():
    # Figures of an independent measurement: bf16 over x uniform in [-87, 88], fp16 over codes with a normal result.
    bf16 = measure(rounded_exp(BF16), BF16)
    assert bf16.normal_codes == 34145
    assert bf16.mean_rel_uniform == pytest.approx(0.001463, rel=2e-3)
    assert bf16.max_rel == pytest.approx(0.0039, rel=1e-2)
    assert measure(rounded_exp(FP16), FP16).max_rel == pytest.approx(0.000488, rel=1e-3)


@pytest.mark.parametrize("domain", ["full", "nonpositive"])
@FORMATS
def test_statistics_of_a_unit_by_long_arithmetic(fmt, domain):
    spec = POLY6.replace(fmt=fmt, frac_bits=12, coefficients=(4097, 2838, 984, 228, 39, 6, 1))
    results = spec.evaluate_codes(CODES).tolist()
    found = measure(results, fmt, domain)
    order = domain_codes(fmt, domain)[1:].tolist()
    rounded = exp_oracle.rounded_exp(fmt).tolist()
    errors, ulps, widths, right = {}, [], [], 0
    with mpmath.workprec(80):
        numbers = {code: mpmath.mpf(float(fmt.from_codes(code))) for code in order}
        numbers[fmt.inf_code] = mpmath.mpf(2) ** (fmt.bias + 1)
        for place, code in enumerate(order):
            if not 1 << fmt.significand_bits <= rounded[code] < fmt.inf_code:
                continue
            exact = mpmath.exp(numbers[code])
            error = abs(mpmath.mpf(float(fmt.from_codes(results[code]))) - exact)
            errors[code] = error / exact
            ulps.append(mpmath.ldexp(error, fmt.significand_bits + 1 - mpmath.frexp(exact)[1]))
            # Half-way to both neighbours in the domain.
            above = order[min(place + 1, len(order) - 1)]
            widths.append((numbers[above] - numbers[order[place - 1]]) / 2)
            right += results[code] == rounded[code]
        weighted = mpmath.fdot(errors.values(), widths) / mpmath.fsum(widths)
        mean = mpmath.fsum(errors.values()) / len(errors)
    assert found.normal_codes == len(errors)
    assert found.max_rel == pytest.approx(float(max(errors.values())), rel=1e-9)
    assert found.mean_rel == pytest.approx(float(mean), rel=1e-9)
    assert found.mean_rel_uniform == pytest.approx(float(weighted), rel=1e-9)
    assert found.max_ulp == pytest.approx(float(max(ulps)), rel=1e-9)
    assert found.correctly_rounded == right / len(errors)
    assert found.worst_code == max(errors, key=errors.get)
    assert found.worst_input == float(numbers[found.worst_code])


def test_one_wrong_result_of_each_kind():
    one = FP16.one_code
    worse = measure(changed(FP16, **{f"c{one}": 0}), FP16)
    assert (worse.max_rel, worse.worst_code, worse.worst_input) == (1.0, one, 1.0)
    assert worse.correctly_rounded == 1 - 1 / worse.normal_codes
    assert not worse.monotone
    assert worse.specials
    # A NaN counts as 131072.
    nan = measure(changed(FP16, **{f"c{one}": FP16.nan_code}), FP16)
    assert nan.max_rel == pytest.approx(131072 / math.e - 1)
    assert not nan.monotone
    # Infinity counts as 65536: exp(11.0859375) = 65,247.8... is the largest finite one.
    last = int(FP16.to_codes(11.0859375))
    assert rounded_exp(FP16)[last + 1] == FP16.inf_code
    beyond = measure(changed(FP16, **{f"c{last}": FP16.inf_code}), FP16)
    assert beyond.max_rel == pytest.approx(65536 / math.exp(float(FP16.from_codes(last))) - 1)
    # A subnormal result shows in the figures over all codes alone.
    low = int(FP16.to_codes(-12.0))
    flushed = measure(changed(FP16, **{f"c{low}": 0}), FP16)
    assert flushed.correctly_rounded == 1
    assert flushed.correctly_rounded_all == 1 - 1 / 65536
    assert flushed.max_ulp_all == pytest.approx(math.exp(-12) * 2**24)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (0x0000, 0x3BFF),  # exp(+0)
        (0x8000, 0x3BFF),  # exp(-0)
        (0x7C00, 0x7BFF),  # exp(+inf)
        (0xFC00, 0x0001),  # exp(-inf)
        (0x7FFF, 0x7C00),  # NaN
        (0xFFFF, 0x7E01),  # NaN with a payload
        (0x7000, 0x7BFF),  # overflow
        (0xF000, 0x0001),  # underflow
        (0xC000, 0x8001),  # a negative result
    ],
)
def test_specials(code, result):
    assert not measure(changed(FP16, **{f"c{code}": result}), FP16).specials


@pytest.mark.parametrize(("result", "one"), [(UQ0_16, 65535), (UQ1_15, 32768)], ids=["uq0.16", "uq1.15"])
def test_fixed_point(result, one):
    numbers = [mpmath.mpf(code - (code >> 15 << 16)) / 1024 for code in CODES.tolist()]
    with mpmath.workprec(80):
        exact = [mpmath.exp(x) for x in numbers]
        rounded = [min(65535, int(mpmath.nint(mpmath.ldexp(y, result.fraction_bits)))) for y in exact]
    assert rounded_exp(Q5_10, result).tolist() == rounded
    found = measure(rounded, Q5_10, "full", result)
    # From 1024 codes up: as many bits as fp16 has.
    normal = [code for code in range(65536) if rounded[code] >= 1024 and exact[code] <= result.max_finite]
    assert found.normal_codes == len(normal)
    largest = max(abs(mpmath.ldexp(rounded[code], -result.fraction_bits) / exact[code] - 1) for code in normal)
    assert found.max_rel == pytest.approx(float(largest), rel=1e-9)
    assert found.mean_rel_uniform == pytest.approx(found.mean_rel)
    assert (found.correctly_rounded_all, found.monotone, found.specials) == (1, True, True)
    for code, wrong in ((0, one - 1), (0x7FFF, 65534), (0x8000, 1)):
        assert not measure(np.where(code == CODES, wrong, rounded), Q5_10, "full", result).specials
    halved = measure(np.where(CODES == 1, 0, rounded), Q5_10, "nonpositive", result)
    assert halved == measure(rounded, Q5_10, "nonpositive", result)


def test_operands_outside_the_domain_do_not_matter():
    results = rounded_exp(FP16).copy()
    results[1:0x7C01] = 0x1234
    assert measure(results, FP16, "nonpositive") == measure(rounded_exp(FP16), FP16, "nonpositive")
    results[0x7C01] = 0x1234
    assert not measure(results, FP16, "nonpositive").specials


def test_domain_codes_rise():
    full, lower = domain_codes(FP16, "full"), domain_codes(FP16, "nonpositive")
    assert full.size == 2 * 0x7C01
    values = FP16.from_codes(full).astype(np.float64)
    assert (np.diff(values[1:-1]) >= 0).all()
    assert values[[0, -1]].tolist() == [-math.inf, math.inf]
    assert full[: lower.size].tolist() == lower.tolist()
    assert lower[-2:].tolist() == [0x8000, 0]


def test_results_must_be_one_a_code():
    with pytest.raises(ValueError, match=r"results must have shape \(65536,\), not \(3,\)"):
        measure([1, 2, 3], FP16)
