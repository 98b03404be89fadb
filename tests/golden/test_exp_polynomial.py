"""golden.exp.polynomial with every option: exact fractions, the correctly rounded oracle, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp import POLY6
from golden.exp.fit.polynomial import fit, naive, taylor
from golden.exp.polynomial_specs import POLYNOMIAL_SPECS
from golden.formats import FP16
from tests.helpers.exp_oracle import exact_exp, rounded_exp

CODES = np.arange(1 << 16)
SPECS = {spec.name: spec for spec in POLYNOMIAL_SPECS}

# Over the codes of the domain with a normal result, in percent: the largest relative error, rounded up, and the share
# of correctly rounded results, rounded down.
FIGURES = {
    "poly1-f12": (6.1654, 28.0),
    "poly2-f12": (0.5890, 52.1),
    "poly2-f14": (0.3123, 46.2),
    "poly3-f12": (0.0759, 87.9),
    "poly3-f14": (0.0574, 94.2),
    "poly3-f16": (0.0561, 94.6),
    "poly4-f14": (0.0533, 97.2),
    "poly4-f16": (0.0502, 99.3),
    "poly5-f14": (0.0533, 97.2),
    "poly5-f16": (0.0502, 99.3),
    "poly6-f12": (0.0684, 88.2),
    "poly6-f14": (0.0533, 97.2),
    "poly6-f16": (0.0502, 99.3),
    "poly7-f16": (0.0502, 99.3),
    "poly8-f16": (0.0502, 99.3),
    "poly4-f14-tapered": (0.0533, 96.8),
    "poly6-f14-tapered": (0.0533, 96.8),
    "poly6-f16-tapered": (0.0502, 99.2),
    "poly6-f14-centred": (0.0556, 97.2),
    "poly4-f14-estrin": (0.0564, 97.1),
    "poly6-f14-estrin": (0.0564, 97.1),
    "poly6-f16-estrin": (0.0500, 99.3),
    "poly6-f14-naive": (0.0586, 89.1),
    "poly6-f14-taylor": (0.0586, 89.0),
    "poly6-f14-rounded": (0.0551, 96.9),
    "poly3-f14-up": (0.0574, 94.7),
    "poly3-f14-cut": (0.0574, 94.7),
    "poly6-f14-softmax": (0.0560, 96.7),
    "poly6-f14-serial": (0.0533, 97.2),
    "poly2-f10-bf16": (0.6001, 97.5),
    "poly3-f10-bf16": (0.4651, 99.2),
    "poly4-f11-bf16": (0.4063, 99.6),
}

every = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def in_order(spec):
    """Return the codes of the domain from -infinity up."""
    sign, inf = spec.fmt.sign_mask, spec.fmt.inf_code
    positive = np.arange(1 if spec.domain == "nonpositive" else inf + 1)
    return np.concatenate((np.arange(sign | inf, sign - 1, -1), positive))


def test_every_degree_is_there():
    assert {spec.degree for spec in POLYNOMIAL_SPECS} == set(range(1, 9))
    assert set(FIGURES) == set(SPECS)


@every
def test_figures_of_the_domain(spec):
    fmt, order = spec.fmt, in_order(spec)
    codes = spec.evaluate_codes(order)
    exact, oracle = exact_exp(fmt)[order], rounded_exp(fmt)[order]
    normal = (exact >= fmt.min_normal) & (oracle < fmt.inf_code)
    error = np.abs(fmt.from_codes(codes[normal]).astype(np.float64) / exact[normal] - 1).max()
    largest, right = FIGURES[spec.name]
    assert largest - 1e-4 <= 100 * error <= largest
    assert right <= 100 * np.mean(codes[normal] == oracle[normal]) < right + 0.1


@every
def test_contract_of_every_unit(spec):
    fmt, order = spec.fmt, in_order(spec)
    codes = spec.evaluate_codes(order).astype(int)
    assert np.all(codes[1:] >= codes[:-1])
    assert codes[0] == 0
    assert codes[-1] == (fmt.one_code if spec.domain == "nonpositive" else fmt.inf_code)
    assert spec.evaluate_codes([0, fmt.sign_mask]).tolist() == [fmt.one_code] * 2
    nans = [fmt.inf_code | 1, fmt.sign_mask | fmt.inf_code | 1, fmt.sign_mask - 1, 2 * fmt.sign_mask - 1]
    assert spec.evaluate_codes(nans).tolist() == [fmt.nan_code] * 4


def core_in_fractions(spec, f):
    """Evaluate the polynomial as the Notes of PolynomialCore say; f is a fraction of one."""

    def cut(value, bits):
        half = Fraction(1, 2) if spec.products == "rounded" else 0
        return Fraction(math.floor(value * 2**bits + half), 2**bits)

    g = f - Fraction(1, 2) if spec.centred else f
    c = [Fraction(value, 2**bits) for value, bits in zip(spec.coefficients, spec.sums, strict=True)]
    if spec.scheme == "horner":
        h = c[-1]
        for k in reversed(range(spec.degree)):
            shortened = Fraction(math.floor(g * 2 ** spec.factors[k]), 2 ** spec.factors[k])
            h = cut(h * shortened, spec.sums[k]) + c[k]
        return h
    power = g
    while len(c) > 1:
        pairs = [c[k] + cut(c[k + 1] * power, spec.core_bits) for k in range(0, len(c) - 1, 2)]
        c = pairs + ([c[-1]] if len(c) % 2 else [])
        power = cut(power * power, spec.frac_bits)
    return c[0]


def in_fractions(spec, code):
    """Evaluate one code as the Notes of ReducedSpec say, in exact rational arithmetic."""
    fmt = spec.fmt
    x = Fraction(float(fmt.from_codes(code)))
    grid = 2**spec.frac_bits
    t = math.floor(x * Fraction(spec.log2e, 2**spec.log2e_bits) * grid)
    n, f = t // grid, Fraction(t % grid, grid)
    if spec.subnormals == "flushed" and n < 1 - fmt.bias:
        return 0
    value = core_in_fractions(spec, f) * Fraction(2) ** n
    # The largest power of two that is no more than the value.
    exponent = max(n + (value >= Fraction(2) ** (n + 1)), 1 - fmt.bias)
    scaled = value * Fraction(2) ** (fmt.significand_bits - exponent)
    rounded = {"nearest_even": round, "nearest_up": lambda v: math.floor(v + Fraction(1, 2)), "truncated": math.floor}
    significand = rounded[spec.rounding](scaled)
    return min((exponent + fmt.bias - 1 << fmt.significand_bits) + significand, fmt.inf_code)


OPTIONS = [
    "poly6-f14-tapered",
    "poly6-f14-centred",
    "poly4-f14-estrin",
    "poly6-f14-estrin",
    "poly6-f14-rounded",
    "poly3-f14-up",
    "poly3-f14-cut",
    "poly6-f14-softmax",
    "poly8-f16",
    "poly2-f10-bf16",
]


@pytest.mark.parametrize("spec", [SPECS[name] for name in OPTIONS], ids=OPTIONS)
def test_definition_in_exact_fractions(spec):
    sign = spec.fmt.sign_mask
    limit = int(spec.fmt.to_codes(2.0**spec.range_bits))
    magnitudes = np.unique(np.concatenate((np.arange(0, limit, 53), limit - 1 - np.arange(20))))
    codes = magnitudes | sign
    if spec.domain == "full":
        codes = np.concatenate((magnitudes, codes))
    assert spec.evaluate_codes(codes).tolist() == [in_fractions(spec, int(code)) for code in codes]


@pytest.mark.parametrize("scheme", ["horner", "estrin"])
@pytest.mark.parametrize("centred", [False, True])
def test_rounded_products_of_every_form(scheme, centred):
    spec = SPECS["poly6-f14-centred" if centred else "poly6-f14"]
    coefficients = spec.coefficients
    if centred:  # the coefficients of the tapered one, all in the unit of the first
        finer = [coefficient << 14 - bits for coefficient, bits in zip(spec.coefficients, SIX_BITS, strict=True)]
        coefficients = tuple(finer)
    # Products that are rounded reach higher than those the coefficients were fitted for.
    lower = (coefficients[0], coefficients[1] - 8, *coefficients[2:])
    spec = spec.replace(scheme=scheme, products="rounded", sum_bits=(), factor_bits=(), coefficients=lower)
    f = np.arange(0, 1 << 14, 97)
    assert spec.core(f).tolist() == [core_in_fractions(spec, Fraction(int(value), 1 << 14)) * 2**14 for value in f]


SIX_BITS = (14, 14, 13, 12, 11, 10, 9)


def test_nonpositive_does_not_look_at_the_sign():
    spec = POLY6.replace(domain="nonpositive")
    negative = np.arange(FP16.sign_mask, 1 << 16)
    assert np.array_equal(spec.evaluate_codes(negative), POLY6.evaluate_codes(negative))
    assert np.array_equal(spec.evaluate_codes(negative - FP16.sign_mask), spec.evaluate_codes(negative))


def test_flushed_changes_subnormal_results_alone():
    flushed, rounded = POLY6.replace(subnormals="flushed").evaluate_codes(CODES), POLY6.evaluate_codes(CODES)
    # No fp16 code has a result that is the smallest normal number, which rounding could reach from below.
    smallest = 1 << FP16.significand_bits
    assert not np.any(rounded == smallest)
    assert np.array_equal(flushed, np.where(rounded < smallest, 0, rounded))


def test_float_model_of_every_degree_has_the_error_of_its_polynomial():
    # Minimax bound of the degree, and what coefficients of 16 bits, c0 >= 1 and p(1) < 2 cost.
    x = np.linspace(-20, 20, 20_001)
    for name, largest in {"poly3-f16": 1.2e-4, "poly4-f16": 4e-5, "poly6-f16-estrin": 4e-5}.items():
        assert np.abs(SPECS[name].evaluate_float(x) / np.exp(x) - 1).max() < largest
    centred = SPECS["poly6-f14-centred"].evaluate_float(x)
    assert np.abs(centred / np.exp(x) - 1).max() < 2e-4


@pytest.mark.parametrize("name", ["poly3-f14-cut", "poly3-f10-bf16", "poly2-f14", "poly4-f14-tapered"])
def test_constants_are_the_output_of_the_fit(name):
    assert fit(SPECS[name], "lattice").coefficients == SPECS[name].coefficients


def test_the_fit_beats_coefficients_rounded_with_no_thought():
    spec = SPECS["poly6-f14"]
    assert SPECS["poly6-f14-naive"].coefficients == naive(spec)
    assert SPECS["poly6-f14-taylor"].coefficients == taylor(spec)
    wrong = [
        np.count_nonzero(SPECS[name].evaluate_codes(CODES) != rounded_exp(FP16))
        for name in ("poly6-f14", "poly6-f14-naive", "poly6-f14-taylor")
    ]
    assert wrong == sorted(wrong)
    assert wrong[1] > 1.5 * wrong[0]


def test_taylor_of_a_centred_polynomial():
    spec = SPECS["poly6-f14-centred"]
    assert taylor(spec)[:2] == (round(math.sqrt(2) * 2**14), round(math.sqrt(2) * math.log(2) * 2**14))
    assert naive(spec)[0] == 23170  # sqrt(2) * 2^14 = 23170.5, less the minimax polynomial's error


@pytest.mark.parametrize(
    ("changes", "latency", "interval"),
    [
        ({"evaluation": "combinational"}, 0, 1),
        ({"evaluation": "pipelined"}, 10, 1),
        ({"evaluation": "pipelined", "scheme": "estrin"}, 7, 1),
        ({"evaluation": "pipelined", "registers": 3}, 3, 1),
        ({"evaluation": "serial"}, 10, 8),
    ],
)
def test_cycles_of_every_layout(changes, latency, interval):
    spec = SPECS["poly6-f14"].replace(**changes)
    assert (spec.latency_cycles, spec.interval_cycles) == (latency, interval)


def test_parameters_say_what_sets_a_unit_apart():
    assert SPECS["poly4-f14-tapered"].parameters == {
        "degree": 4,
        "frac_bits": 14,
        "core_bits": 14,
        "sum_bits": "14 14 14 14 14",
        "factor_bits": "14 12 10 8",
        "scheme": "horner",
        "products": "truncated",
        "centred": "false",
        "rounding": "nearest_even",
    }


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"domain": "all"}, ValueError, "domain must be one of full, nonpositive, not 'all'"),
        ({"subnormals": None}, ValueError, "subnormals must be one of rounded, flushed, not None"),
        ({"registers": -1}, ValueError, "registers must be from 0 to 64, not -1"),
        ({"registers": 2}, ValueError, "registers must be 0 of a combinational unit, not 2"),
        ({"rounding": "up"}, ValueError, "rounding must be one of nearest_even, nearest_up, truncated, not 'up'"),
        ({"scheme": "knuth"}, ValueError, "scheme must be one of horner, estrin, not 'knuth'"),
        ({"products": "exact"}, ValueError, "products must be one of truncated, rounded, not 'exact'"),
        ({"centred": 1}, TypeError, "centred must be a bool, not 1"),
        ({"sum_bits": [14]}, TypeError, r"sum_bits must be a tuple, not \[14\]"),
        ({"factor_bits": (14,)}, ValueError, "factor_bits must number 6 or none, not 1"),
        ({"factor_bits": (14,) * 5 + (15,)}, ValueError, r"factor_bits\[5\] must be from 1 to 14, not 15"),
        ({"sum_bits": (14,) * 6}, ValueError, "sum_bits must number 7 or none, not 6"),
        ({"sum_bits": (13,) * 7}, ValueError, r"sum_bits\[0\] must be from 14 to 14, not 13"),
        ({"sum_bits": (14,) * 6 + (15,)}, ValueError, r"sum_bits\[6\] must be from 1 to 14, not 15"),
        (
            {"sum_bits": (14,) * 6 + (9,), "factor_bits": (14,) * 5 + (4,)},
            ValueError,
            r"sum_bits\[6\] must be at least 10, not 9",
        ),
        (
            {"scheme": "estrin", "factor_bits": (14,) * 6},
            ValueError,
            "sum_bits and factor_bits must be empty with scheme 'estrin', which has one word length",
        ),
        (
            {"evaluation": "serial", "scheme": "estrin"},
            ValueError,
            "a serial polynomial must be in Horner form, not centred, with one word length",
        ),
        ({"rounding": "truncated", "coefficients": (16400, 1)}, ValueError, r"core\(0\) must be from 16384 to 16399"),
        (
            {"rounding": "truncated", "coefficients": (16399, 16401)},
            ValueError,
            "the core must stay below 32784, it reaches 32798",
        ),
        (
            {"centred": True, "coefficients": (16380, 0, 16)},
            ValueError,
            "the core must not fall below 16384, it reaches 16380",
        ),
        (
            {"centred": True, "coefficients": (16400, 0, -64)},
            ValueError,
            "results must not fall as operands rise, they do at code 0x",
        ),
    ],
)
def test_bad_specs(changes, error, text):
    with pytest.raises(error, match=text):
        SPECS["poly6-f14"].replace(**changes)


def test_a_core_may_fall_where_no_result_does():
    spec = SPECS["poly6-f14"].replace(centred=True, coefficients=(16384 + 4, -2, 4))
    core = spec.core(np.arange(1 << 14))
    assert np.any(np.diff(core) < 0)
    codes = spec.evaluate_codes(in_order(spec)).astype(int)
    assert np.all(np.diff(codes) >= 0)
