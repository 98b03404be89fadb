# amaranth: UnusedElaboratable=no
"""hw.float against NumPy's float16 and float32 arithmetic, in Amaranth's simulator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from amaranth.hdl import Cat
from amaranth.sim import Simulator

from golden.formats import BF16, FP8_E4M3, FP16, FP32
from hw.float import FloatAdd, FloatMax, FloatMul, FloatRound
from tests.helpers.floats import corner_codes, random_codes


def evaluate(component, **operands):
    """Drive every row of ``operands`` through a combinational component; return its outputs by name."""
    outputs = [name for name in component.signature.members if name not in operands]
    rows = len(next(iter(operands.values())))
    results = {name: np.zeros(rows, np.uint64) for name in outputs}

    async def testbench(ctx):
        # The simulator settles the whole design after every write.
        written = Cat(getattr(component, name) for name in operands)
        reads = [(getattr(component, name), results[name]) for name in outputs]
        places = np.cumsum([0, *(len(getattr(component, name)) for name in operands)]).tolist()
        for row, codes in enumerate(zip(*operands.values(), strict=True)):
            ctx.set(written, sum(int(code) << place for code, place in zip(codes, places, strict=False)))
            for port, found in reads:
                found[row] = ctx.get(port)

    simulator = Simulator(component)
    simulator.add_testbench(testbench)
    simulator.run()
    return results


def pairs(fmt_a, fmt_b, rng, count):
    """Return a fifth of all pairs of corner codes, then ``count`` random pairs, half with exponents near each other.

    ``tests/rtl/test_float.py`` runs all pairs of corners and a million others at Verilator's speed.
    """
    corners_a, corners_b = corner_codes(fmt_a), corner_codes(fmt_b)
    chosen = rng.permutation(len(corners_a) * len(corners_b))[: len(corners_a) * len(corners_b) // 5]
    near_a, near_b = (random_codes(fmt, count // 2, rng, near=0) for fmt in (fmt_a, fmt_b))
    random_a, random_b = (random_codes(fmt, count - count // 2, rng) for fmt in (fmt_a, fmt_b))
    a = np.concatenate((corners_a[chosen // len(corners_b)], random_a, near_a))
    b = np.concatenate((corners_b[chosen % len(corners_b)], random_b, near_b))
    return a, b


def assert_codes(found, expected, *operands):
    wrong = np.flatnonzero(found.astype(np.uint64) != expected.astype(np.uint64))
    first = [hex(int(column[wrong[0]])) for column in (*operands, found, expected)] if wrong.size else []
    assert not wrong.size, f"{wrong.size} of {found.size} differ; operands, found, expected of the first: {first}"


def arithmetic(operation, *values):
    with np.errstate(all="ignore"):
        return operation(*values)


@pytest.mark.parametrize("fmt", [FP32, FP16, BF16], ids=lambda fmt: fmt.name)
def test_add(fmt):
    a, b = pairs(fmt, fmt, np.random.default_rng(1), 400)
    found = evaluate(FloatAdd(fmt), a=a, b=b)["o"]
    expected = fmt.to_codes(arithmetic(np.add, fmt.from_codes(a), fmt.from_codes(b)))
    assert_codes(found, expected, a, b)


@pytest.mark.parametrize(
    "formats",
    [(FP32, FP32, FP32), (FP32, FP16, FP32), (FP16, FP16, FP32), (FP16, FP16, FP16), (BF16, BF16, FP32)],
    ids=lambda formats: "-".join(fmt.name for fmt in formats),
)
def test_mul(formats):
    fmt_a, fmt_b, fmt_out = formats
    a, b = pairs(fmt_a, fmt_b, np.random.default_rng(2), 400)
    found = evaluate(FloatMul(*formats), a=a, b=b)["o"]
    # fp16 and bf16 operands are exact in float32, where NumPy then rounds the product once.
    left, right = (fmt.from_codes(codes).astype(np.float32) for fmt, codes in ((fmt_a, a), (fmt_b, b)))
    product = arithmetic(np.multiply, left, right)
    assert_codes(found, fmt_out.to_codes(product), a, b)


def test_mul_rounds_once():
    """fp32 * fp32 to fp16 is not what rounding to fp32 first gives; the product is exact in float64, the oracle."""
    rng = np.random.default_rng(3)
    a = np.concatenate((random_codes(FP32, 400, rng, near=0), FP32.to_codes([1 + 2.0**-11, 1 + 2.0**-11, 2.0**-20])))
    b = np.concatenate((random_codes(FP32, 400, rng, near=0), FP32.to_codes([1 + 2.0**-23, 1.0, 2.0**-5 + 2.0**-28])))
    found = evaluate(FloatMul(FP32, FP32, FP16), a=a, b=b)["o"]
    exact = FP32.from_codes(a).astype(np.float64) * FP32.from_codes(b).astype(np.float64)
    assert_codes(found, FP16.to_codes(exact), a, b)


@pytest.mark.parametrize(
    ("src", "dst"),
    [(FP32, FP16), (FP16, FP32), (FP32, BF16), (BF16, FP32), (FP16, BF16), (BF16, FP16), (FP16, FP16)],
    ids=lambda fmt: fmt.name,
)
def test_round(src, dst):
    rng = np.random.default_rng(4)
    codes = np.concatenate((corner_codes(src), random_codes(src, 600, rng), random_codes(src, 600, rng, near=-13)))
    found = evaluate(FloatRound(src, dst), i=codes)["o"]
    with np.errstate(over="ignore", under="ignore"):
        expected = dst.to_codes(src.from_codes(codes).astype(np.float32))
    assert_codes(found, expected, codes)


def test_round_ties_to_even_at_every_place():
    """Halfway cases of fp16, subnormal ones too, one fp32 step below, at and above."""
    halves = (np.arange(0, 0x7C00, 97, dtype=np.uint32)).astype(np.uint16)
    low, high = FP16.from_codes(halves).astype(np.float64), FP16.from_codes(halves + np.uint16(1)).astype(np.float64)
    high = np.where(np.isinf(high), 65536.0, high)
    ties = ((low + high) / 2).astype(np.float32)
    codes = FP32.to_codes(ties).astype(np.int64)
    codes = np.concatenate((codes - 1, codes, codes + 1)).astype(np.uint32)
    found = evaluate(FloatRound(FP32, FP16), i=codes)["o"]
    even = halves + (halves & np.uint16(1))
    assert_codes(found, np.concatenate((halves, even, halves + np.uint16(1))), codes)


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=lambda fmt: fmt.name)
def test_max(fmt):
    a, b = pairs(fmt, fmt, np.random.default_rng(5), 400)
    found = evaluate(FloatMax(fmt), a=a, b=b)
    left, right = fmt.from_codes(a), fmt.from_codes(b)
    greater = left > right
    nan = np.isnan(left) | np.isnan(right)
    assert_codes(found["gt"], greater, a, b)
    assert_codes(found["o"], np.where(nan, fmt.nan_code, np.where(greater, a, b)), a, b)


def test_max_of_equal_zeros_is_b():
    minus = FP32.sign_mask
    found = evaluate(FloatMax(FP32), a=[0, minus, 0, minus], b=[minus, 0, 0, minus])
    assert found["o"].tolist() == [minus, 0, 0, minus]
    assert not found["gt"].any()


def test_corners_are_what_they_claim():
    """The corner list holds both signs of zero, infinity, NaN with payloads, and every exponent's ends."""
    codes = set(corner_codes(FP16).tolist())
    assert {0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF, 0x3C00} <= codes
    assert FP16.to_codes(np.float16(1.0)) == 0x3C00
    assert BF16.dtype == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: FloatAdd("fp32"), TypeError, "fmt must be a FloatFormat, not 'fp32'"),
        (lambda: FloatAdd(FP8_E4M3), ValueError, "fmt must be a format with an infinity, not 'fp8_e4m3'"),
        (lambda: FloatMul(FP16, 16, FP32), TypeError, "fmt_b must be a FloatFormat, not 16"),
        (lambda: FloatMul(FP16, FP16, FP8_E4M3), ValueError, "fmt_out must be a format with an infinity"),
        (lambda: FloatRound(None, FP16), TypeError, "src must be a FloatFormat, not None"),
        (lambda: FloatRound(FP32, FP8_E4M3), ValueError, "dst must be a format with an infinity"),
        (lambda: FloatMax(FP8_E4M3), ValueError, "fmt must be a format with an infinity"),
    ],
)
def test_bad_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make()
