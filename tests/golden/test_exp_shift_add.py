"""golden.exp.shift_add: figures over all codes, its own definition in fractions, what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp.shift_add import SHIFT_ADD_SPECS
from golden.exp.statistics import measure
from golden.formats import BF16

CODES = np.arange(1 << 16)
SPECS = {spec.name: spec for spec in SHIFT_ADD_SPECS}
FIGURES = {"shift-add11": (0.000881, 0.795), "shift-add14": (0.000519, 0.967)}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_figures_over_every_code(spec):
    found = measure(spec.evaluate_codes(CODES), spec.fmt)
    largest, right = FIGURES[spec.name]
    assert found.max_rel <= largest
    assert right <= found.correctly_rounded < right + 0.001
    assert found.monotone
    assert found.specials


def test_core_in_fractions():
    spec = SPECS["shift-add11"]
    one = 1 << spec.core_bits
    for f in (0, 1, 2, 700, 1023, 1024, 1300, 2046, 2047):
        remainder, product = Fraction(f, 1 << spec.frac_bits), Fraction(one + spec.start, one)
        for k in range(1, spec.iterations + 1):
            logarithm = Fraction(round(math.log2(1 + 2.0**-k) * one), one)
            if remainder >= logarithm:
                remainder -= logarithm
                product += Fraction(math.floor(product / 2**k * one), one)
        assert Fraction(int(spec.core(np.array([f]))[0]), one) == product
    # No factor is wanted twice: what is left is less than the last one's logarithm and the rounding of all.
    assert spec.remainders()[-1] <= spec.logarithms[-1] + spec.iterations


def test_the_method_alone():
    spec = SPECS["shift-add14"]
    x = np.linspace(-8, 8, 4001)
    # Each remainder is smaller than the last factor's logarithm.
    error = spec.evaluate_float(x) / np.exp(x) - 1
    assert -(2.0**-spec.iterations) <= error.min() <= error.max() <= 1e-12
    assert spec.evaluate_float([-np.inf, np.inf]).tolist() == [0, np.inf]


def test_other_formats_and_domains():
    bf16 = SPECS["shift-add11"].replace(name="b", fmt=BF16)
    assert measure(bf16.evaluate_codes(CODES), BF16).max_rel < 0.0043
    lower = SPECS["shift-add11"].replace(name="l", domain="nonpositive", subnormals="flushed")
    found = measure(lower.evaluate_codes(CODES), lower.fmt, "nonpositive")
    assert found.monotone
    assert found.max_rel < 0.0009


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iterations": 0}, "iterations must be from 1 to 14, not 0"),
        ({"guard_bits": 7}, "guard_bits must be from 0 to 6, not 7"),
        ({"start": -1}, "start must be from 0 to 16383, not -1"),
        ({"start": 9}, r"core\(0\) must be from 16384 to 16391 so that exp\(0\) = 1, not 16393"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SPECS["shift-add11"].replace(**changes)
