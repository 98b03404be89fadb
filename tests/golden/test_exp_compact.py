"""golden.exp.compact: statistics over every code against mpmath, the constants' fit, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from golden.exp.compact import CompactSpec
from golden.exp.compact_units import COMPACT_BOUNDS, COMPACT_SPECS
from golden.exp.fit.compact import fit
from golden.formats import BF16, FP16
from tests.helpers.exp_oracle import exact_exp, rounded_exp

ALL = np.arange(1 << 16)
TENTH = COMPACT_SPECS["compact16-0.1"]
SHAPE = TENTH.shape

every = pytest.mark.parametrize("spec", COMPACT_SPECS.values(), ids=COMPACT_SPECS)


def operands(spec):
    """Return which codes count."""
    return (FP16.sign_mask <= ALL) | (ALL == 0) if spec.domain == "nonpositive" else ALL >= 0


def relative_errors(spec):
    """Return the relative error of every normal result of the domain, and whether each is the correctly rounded one."""
    rounded = rounded_exp(FP16)
    normal = operands(spec) & (rounded >= 1 << FP16.significand_bits) & (rounded < FP16.inf_code)
    found = spec.evaluate_codes(ALL)[normal]
    return np.abs(FP16.from_codes(found).astype(np.float64) / exact_exp(FP16)[normal] - 1), found == rounded[normal]


@pytest.mark.parametrize(
    ("name", "largest", "mean", "correct"),
    [
        ("compact16-0.1", 0.000998, 0.000206, 0.82),
        ("compact16-95", 0.000540, 0.000175, 0.95),
        ("compact16-99", 0.000530, 0.000171, 0.99),
    ],
)
def test_accuracy(name, largest, mean, correct):
    errors, right = relative_errors(COMPACT_SPECS[name])
    assert errors.size == 37_479
    assert errors.max() <= largest
    assert errors.mean() <= mean
    assert right.mean() >= correct


@every
def test_bounds_hold_in_every_variant(spec):
    errors, right = relative_errors(spec)
    bound, share = COMPACT_BOUNDS[spec.name.removesuffix("-ftz").removesuffix("-np")]
    assert errors.max() <= bound
    # Half the codes are fewer tiny ones, which are easy.
    assert right.mean() >= share - (0.02 if spec.domain == "nonpositive" else 0)


@every
def test_special_codes(spec):
    found = spec.evaluate_codes(ALL)
    exact = exact_exp(FP16)
    count = operands(spec)
    assert found[0] == found[FP16.sign_mask] == FP16.one_code
    assert set(found[np.isnan(exact)].tolist()) == {FP16.nan_code}
    assert found[FP16.sign_mask | FP16.inf_code] == 0
    assert set(found[count & (exact < 2.0**-25)].tolist()) <= {0, 1}
    assert set(found[count & (exact < 2.0**-26)].tolist()) == {0}
    if spec.domain == "full":
        assert found[FP16.inf_code] == FP16.inf_code
        assert set(found[exact >= 65520].tolist()) == {FP16.inf_code}
        assert found[(exact < 65519) & (exact > 1)].max() < FP16.inf_code


@every
def test_monotone(spec):
    negative = spec.evaluate_codes(np.arange(FP16.sign_mask + FP16.inf_code, FP16.sign_mask - 1, -1))
    positive = spec.evaluate_codes(np.arange(FP16.inf_code + 1))
    results = negative if spec.domain == "nonpositive" else np.concatenate((negative, positive))
    assert (np.diff(results.astype(int)) >= 0).all()


@every
def test_subnormal_results(spec):
    exact = exact_exp(FP16)
    below = operands(spec) & (exact < FP16.min_normal) & (exact >= 0)
    found = FP16.from_codes(spec.evaluate_codes(ALL)[below]).astype(np.float64)
    if spec.subnormals == "flushed":
        # What rounds up to the smallest normal number does.
        assert set(found.tolist()) <= {0.0, FP16.min_normal}
        return
    units = np.abs(found - exact[below]) * 2.0**24
    # Half a unit, a little for rounding twice, and the error of the sum, which is as much as in the binade above.
    depth = np.floor(-np.log2(np.maximum(exact[below], 2.0**-30))) - 14
    assert (units <= 0.55 + 1.1 * 2.0**-depth).all()


def test_nonpositive_does_not_look_at_the_sign():
    found = COMPACT_SPECS["compact16-95-np"].evaluate_codes(ALL)
    assert np.array_equal(found[: FP16.sign_mask], found[FP16.sign_mask :])


@every
def test_variants_are_the_full_unit_where_they_count(spec):
    full = COMPACT_SPECS[spec.name.removesuffix("-ftz").removesuffix("-np")].evaluate_codes(ALL)
    found = spec.evaluate_codes(ALL)
    count = operands(spec) | np.isnan(exact_exp(FP16))
    if spec.subnormals == "flushed":
        count &= full >= 1 << FP16.significand_bits
    assert np.array_equal(found[count], full[count])


@pytest.mark.parametrize(
    ("name", "largest"),
    # 32 segments: (ln 2)^2 / 16 / 32^2 is 2.93e-5, and a table of sixteen entries takes half of it.
    [("compact16-0.1", 3.0e-5), ("compact16-95", 3.0e-5), ("compact16-99", 1.5e-5)],
)
def test_float_model_has_the_error_of_the_method(name, largest):
    x = np.linspace(-80.0, 80.0, 40001)
    relative = np.abs(COMPACT_SPECS[name].evaluate_float(x) / np.exp(x) - 1)
    assert largest / 2 < relative.max() < largest
    assert COMPACT_SPECS[name].evaluate_float([-np.inf, np.inf, 1e4, -1e4]).tolist() == [0, np.inf, np.inf, 0]
    assert np.isnan(COMPACT_SPECS[name].evaluate_float(np.nan))


@pytest.mark.parametrize("name", COMPACT_BOUNDS)
def test_fit_gives_the_constants_that_ship(name):
    spec = COMPACT_SPECS[name]
    bound, share = COMPACT_BOUNDS[name]
    found = fit(spec.shape, bound, share=share)
    assert found.spec(name) == spec
    assert found.beyond == 0
    assert found.correctly_rounded == pytest.approx(relative_errors(spec)[1].mean(), abs=1e-12)


def test_fit_says_when_a_bound_is_out_of_reach():
    assert fit(SHAPE, 0.0005).beyond > 0


def test_parameters():
    assert TENTH.parameters == {
        "segments": 32,
        "frac_bits": 11,
        "core_bits": 12,
        "product_bits": 15,
        "product_rows": 7,
        "slope_rows": 2,
        "parabola": 0,
    }
    assert TENTH.latency_cycles == 0
    assert TENTH.replace(evaluation="pipelined", registers=4).latency_cycles == 4


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"fmt": BF16}, "fmt must be fp16, not 'bf16'"),
        ({"evaluation": "serial"}, "evaluation must be one of combinational, pipelined, not 'serial'"),
        ({"shape": None}, "shape must be a CompactShape, not None"),
        ({"product_constant": 0}, "product_constant must be from 1 to 65535, not 0"),
        ({"offsets": TENTH.offsets[1:]}, "offsets must number 32, not 31"),
        ({"offsets": (600, *TENTH.offsets[1:])}, r"offsets\[0\] must be from -512 to 512, not 600"),
        ({"slopes": TENTH.slopes[1:]}, "slopes must number 32, not 31"),
        ({"slopes": ((1,), *TENTH.slopes[1:])}, r"slopes\[0\] must number 2, not 1"),
        ({"slopes": ((1, 4), *TENTH.slopes[1:])}, r"slopes\[0\]\[1\] must be from 0 to 3, not 4"),
        ({"offsets": (0, *TENTH.offsets[1:])}, r"exp\(\+0\) and exp\(-0\) must be 0x3c00, not 0x3c0\d and 0x3c00"),
        (
            {"offsets": (*TENTH.offsets[:15], -300, *TENTH.offsets[16:])},
            r"the result must not fall as x rises, it does after -?\d+\.\d+",
        ),
    ],
)
def test_refusals(changes, text):
    with pytest.raises((TypeError, ValueError), match=text):
        TENTH.replace(**changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"frac_bits": 10}, "frac_bits must be from 11 to 18, not 10"),
        ({"smallest_field": 5}, "smallest_field must be from 3 to 4, not 5"),
        ({"segment_bits": 8}, "segment_bits must be from 2 to 7, not 8"),
        ({"product_rows": ((0, 0, 15),)}, r"product_rows\[0\] sign must be -1 or 1, not 0"),
        ({"product_rows": ((0, 1, 16),)}, r"product_rows\[0\] kept bits must be from 1 to 15, not 16"),
        ({"product_rows": ((5, 1, 5),)}, r"product_rows\[0\] shift must be from 0 to 4, not 5"),
        ({"slope_rows": (((2, 7), 12),)}, r"slope_rows\[0\] shift must be from 1 to 6, not 7"),
        ({"offset_bits": 13}, "offset_bits must be from 10 to 12, not 13"),
        ({"parabola_index": (7, 0)}, r"parabola_index\[0\] must be from 0 to 6, not 7"),
        ({"parabola_index": (0, 1)}, r"parabola_index\[1\] must be from 0 to 0, not 1"),
        ({"parabola_bits": 13}, "parabola_bits must be from 0 to 12, not 13"),
    ],
)
def test_shape_refusals(changes, text):
    with pytest.raises(ValueError, match=text):
        dataclasses.replace(SHAPE, **changes)


def test_specs_are_compact():
    assert len(COMPACT_SPECS) == 12
    assert {type(spec) for spec in COMPACT_SPECS.values()} == {CompactSpec}
