"""The fp32 and fp16 primitives of the units at Verilator's speed: all pairs of corners and a million others.

The oracle is NumPy, whose float32 arithmetic is the processor's: IEEE 754, round to nearest even.
"""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP16, FP32
from hw.cosim import run_streams
from hw.float import FloatAdd, FloatMax, FloatMul, FloatRound
from hw.verilog import convert
from tests.helpers.floats import corner_codes, random_codes

_PAIRS = 1_000_000
_OUTPUTS = {"add": 32, "mul": 32, "mul_half": 32, "mul_halves": 32, "round": 16, "max": 33, "add_half": 16}


class _Bank(wiring.Component):
    """Every primitive on the same operand pair, each behind a stream of its own; b's low half is also an fp16."""

    def __init__(self):
        operands = data.StructLayout({"a": 32, "b": 32})
        outputs = {name: Out(stream.Signature(bits)) for name, bits in _OUTPUTS.items()}
        super().__init__({"i": In(stream.Signature(operands)), **outputs})

    def elaborate(self, platform):
        m = Module()
        a, b = self.i.payload.a, self.i.payload.b
        m.submodules.u_add = add = FloatAdd(FP32)
        m.submodules.u_add_half = add_half = FloatAdd(FP16)
        m.submodules.u_mul = mul = FloatMul(FP32, FP32, FP32)
        m.submodules.u_mul_half = mul_half = FloatMul(FP32, FP16, FP32)
        m.submodules.u_mul_halves = mul_halves = FloatMul(FP16, FP16, FP32)
        m.submodules.u_max = greater = FloatMax(FP32)
        m.submodules.u_round = rounder = FloatRound(FP32, FP16)
        for unit in (add, mul, mul_half, greater):
            m.d.comb += [unit.a.eq(a), unit.b.eq(b[: len(unit.b)])]
        for unit in (add_half, mul_halves):
            m.d.comb += [unit.a.eq(a[:16]), unit.b.eq(b[:16])]
        m.d.comb += rounder.i.eq(a)
        results = {
            "add": add.o,
            "mul": mul.o,
            "mul_half": mul_half.o,
            "mul_halves": mul_halves.o,
            "round": rounder.o,
            "max": Cat(greater.o, greater.gt),
            "add_half": add_half.o,
        }
        ports = [getattr(self, name) for name in results]
        free = Cat(~port.valid | port.ready for port in ports).all()
        m.d.comb += self.i.ready.eq(free)
        for port, value in zip(ports, results.values(), strict=True):
            with m.If(port.ready):
                m.d.sync += port.valid.eq(0)
            with m.If(free):
                m.d.sync += [port.valid.eq(self.i.valid), port.payload.eq(value)]
        return m


def _pairs():
    """All pairs of corners, then thirds: anything; exponents within reach of each other; products at the ends."""
    rng = np.random.default_rng(11)
    corners = corner_codes(FP32)
    corner_a, corner_b = np.repeat(corners, len(corners)), np.tile(corners, len(corners))
    third = (_PAIRS - len(corner_a)) // 3
    a = random_codes(FP32, 3 * third, rng)
    b = random_codes(FP32, 3 * third, rng)
    exponent = (a >> 23 & 0xFF).astype(np.int64)
    near = exponent + rng.integers(-27, 28, len(a))
    # Products whose biased exponent lies about 0, so subnormal or nearly so, or about 255.
    wanted = np.where(rng.random(len(a)) < 0.7, rng.integers(-26, 4, len(a)), rng.integers(250, 258, len(a)))
    ends = wanted + 127 - exponent
    chosen = np.concatenate((near[:third], ends[third : 2 * third]))
    b[: 2 * third] = b[: 2 * third] & 0x807FFFFF | np.clip(chosen, 0, 254).astype(np.uint32) << 23
    # Sums that cancel, wholly or down to the last bits.
    b[:30_000] = (a[:30_000] ^ FP32.sign_mask) + rng.integers(0, 4, 30_000).astype(np.uint32)
    # The low halves are random already, but for the sparse ones; give fp16 its own corners.
    halves = corner_codes(FP16).astype(np.uint32)
    a[-100_000:] = a[-100_000:] & 0xFFFF0000 | rng.choice(halves, 100_000)
    b[-50_000:] = b[-50_000:] & 0xFFFF0000 | rng.choice(halves, 50_000)
    return np.concatenate((corner_a, a)), np.concatenate((corner_b, b))


@pytest.fixture(scope="module")
def bank():
    """Operands and the results of every primitive on them."""
    a, b = _pairs()
    inputs = {"i": a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)}
    run = run_streams(convert(_Bank(), name="bank"), "bank", inputs, dict.fromkeys(_OUTPUTS, len(a)))
    assert run.cycles == len(a) + 1
    return a, b, {name: np.array(run.streams[name].payloads, dtype=np.uint64) for name in _OUTPUTS}


def _check(found, expected, a, b):
    wrong = np.flatnonzero(found != expected.astype(np.uint64))
    first = [hex(int(column[wrong[0]])) for column in (a, b, found, expected)] if wrong.size else []
    assert not wrong.size, f"{wrong.size} differ; a, b, found, expected of the first: {first}"


def _low_halves(codes):
    return FP16.from_codes((codes & 0xFFFF).astype(np.uint16))


@pytest.mark.parametrize(
    ("name", "fmt", "operation"),
    [
        ("add", FP32, lambda a, b: FP32.from_codes(a) + FP32.from_codes(b)),
        ("mul", FP32, lambda a, b: FP32.from_codes(a) * FP32.from_codes(b)),
        ("mul_half", FP32, lambda a, b: FP32.from_codes(a) * _low_halves(b).astype(np.float32)),
        ("mul_halves", FP32, lambda a, b: _low_halves(a).astype(np.float32) * _low_halves(b).astype(np.float32)),
        ("round", FP16, lambda a, b: FP32.from_codes(a)),
        # A sum of two fp16 numbers is exact in float64, so it is rounded once.
        ("add_half", FP16, lambda a, b: _low_halves(a).astype(np.float64) + _low_halves(b).astype(np.float64)),
    ],
)
def test_arithmetic(bank, name, fmt, operation):
    a, b, results = bank
    with np.errstate(all="ignore"):
        expected = fmt.to_codes(operation(a, b))
    _check(results[name], expected, a, b)


def test_max(bank):
    a, b, results = bank
    left, right = FP32.from_codes(a), FP32.from_codes(b)
    greater = left > right
    value = np.where(np.isnan(left) | np.isnan(right), FP32.nan_code, np.where(greater, a, b)).astype(np.uint64)
    _check(results["max"], greater.astype(np.uint64) << np.uint64(32) | value, a, b)


def test_operands_reach_every_case(bank):
    """What the random pairs are for: results of every kind, and roundings that tie."""
    a, b, results = bank
    for name in ("add", "mul", "mul_half"):
        magnitude = results[name] & np.uint64(0x7FFFFFFF)
        for kind in (magnitude == 0, magnitude == 0x7F800000, magnitude == 0x7FC00000, magnitude < 0x800000):
            assert np.count_nonzero(kind) > 1000, name
    with np.errstate(invalid="ignore", over="ignore"):
        exact = FP32.from_codes(a).astype(np.float64) * FP32.from_codes(b).astype(np.float64)
        rounded = FP32.from_codes(results["mul"].astype(np.uint32)).astype(np.float64)
        half = np.spacing(np.abs(rounded).astype(np.float32)).astype(np.float64) / 2
        assert np.count_nonzero(np.abs(exact - rounded) == half) > 500
