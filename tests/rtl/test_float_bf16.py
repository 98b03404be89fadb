"""Promise: the units' bf16 arithmetic is the exact result rounded once, for every bf16 number.

All 65,536 codes meet sixteen others as factors; as upper halves of fp32 numbers, with sixteen lower halves, they are
rounded and multiplied. float64 holds every product exactly, so that the oracle rounds once.
"""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import BF16, FP32
from hw.cosim import run_streams
from hw.float import FloatMul, FloatRound
from hw.verilog import convert

_OUTPUTS = {"mul": 32, "mul_word": 32, "word_mul": 32, "round": 16, "widen": 32}
_ONE, _SMALLEST, _LARGEST_SUBNORMAL, _SMALLEST_NORMAL = 0x3F80, 0x0001, 0x007F, 0x0080
_FACTORS = (
    *(0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFFF),  # zeros, infinities, NaNs
    *(_ONE, _SMALLEST, 0x8000 | _LARGEST_SUBNORMAL, _SMALLEST_NORMAL, 0x7F7F),  # the ends, the largest number
    *(0x3FFF, 0xBFA5),  # full and mixed significands
    *(0x34B3, 0x2CAB, 0xC4D5),  # about 2^-22, 2^-38, -2^10: products with ties among fp32's subnormals
)
_LOW_HALVES = (
    *(0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF),  # below, at and above a tie
    *(2, 3, 0x0100, 0x1234, 0x4000, 0x5555, 0x8080, 0xAAAA, 0xC000, 0xFFFE),
)


class _Bank(wiring.Component):
    """Every primitive on bf16 numbers a and b, and on the fp32 number of upper half a and lower half ``low``."""

    def __init__(self):
        operands = data.StructLayout({"low": 16, "a": 16, "b": 16})
        outputs = {name: Out(stream.Signature(bits)) for name, bits in _OUTPUTS.items()}
        super().__init__({"i": In(stream.Signature(operands)), **outputs})

    def elaborate(self, platform):
        m = Module()
        payload = self.i.payload
        word = Cat(payload.low, payload.a)
        m.submodules.u_mul = mul = FloatMul(BF16, BF16, FP32)
        m.submodules.u_mul_word = mul_word = FloatMul(BF16, FP32, FP32)
        m.submodules.u_word_mul = word_mul = FloatMul(FP32, BF16, FP32)
        m.submodules.u_round = rounder = FloatRound(FP32, BF16)
        m.submodules.u_widen = widen = FloatRound(BF16, FP32)
        m.d.comb += [
            *(mul.a.eq(payload.a), mul.b.eq(payload.b)),
            *(mul_word.a.eq(payload.b), mul_word.b.eq(word)),
            *(word_mul.a.eq(word), word_mul.b.eq(payload.b)),
            *(rounder.i.eq(word), widen.i.eq(payload.a)),
        ]
        units = {"mul": mul, "mul_word": mul_word, "word_mul": word_mul, "round": rounder, "widen": widen}
        ready = Cat(getattr(self, name).ready for name in units).all()
        m.d.comb += self.i.ready.eq(ready)
        for name, unit in units.items():
            port = getattr(self, name)
            m.d.comb += [port.valid.eq(self.i.valid), port.payload.eq(unit.o)]
        return m


@pytest.fixture(scope="module")
def bank():
    """Operands and results, a row for each of the sixteen partners."""
    every = np.arange(1 << 16, dtype=np.uint64)
    words = [
        every << np.uint64(16) | np.uint64(factor << 32 | low)
        for factor, low in zip(_FACTORS, _LOW_HALVES, strict=True)
    ]
    count = len(words) << 16
    inputs = {"i": np.concatenate(words)}
    run = run_streams(convert(_Bank(), name="bank"), "bank", inputs, dict.fromkeys(_OUTPUTS, count))
    return {name: np.array(run.streams[name].payloads, dtype=np.uint32).reshape(len(words), -1) for name in _OUTPUTS}


with np.errstate(invalid="ignore"):  # signalling NaNs among the codes
    _A = BF16.from_codes(np.arange(1 << 16)).astype(np.float64)
    _B = BF16.from_codes(np.array(_FACTORS)).astype(np.float64)[:, None]
    _WORD_CODES = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16) | np.array(_LOW_HALVES, np.uint32)[:, None]
    _WORDS = FP32.from_codes(_WORD_CODES).astype(np.float64)


@pytest.mark.parametrize(
    ("name", "fmt", "a", "b"),
    [("mul", FP32, _A, _B), ("mul_word", FP32, _B, _WORDS), ("word_mul", FP32, _WORDS, _B)],
)
def test_products(bank, name, fmt, a, b):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bank[name], fmt.to_codes(a * b))


def test_roundings(bank):
    np.testing.assert_array_equal(bank["round"], BF16.to_codes(_WORDS))
    np.testing.assert_array_equal(bank["widen"], np.broadcast_to(FP32.to_codes(_A), (len(_FACTORS), 1 << 16)))


def test_operands_reach_every_end(bank):
    """Products of finite numbers that overflow, become subnormal, vanish, and tie between two subnormals."""
    finite = np.isfinite(_A) & np.isfinite(_B)
    exact = np.where(finite, _A, 0.0) * np.where(finite, _B, 0.0)
    magnitude = np.where(finite, bank["mul"] & 0x7FFFFFFF, 0x7FC00000)
    assert np.count_nonzero(magnitude == 0x7F800000) > 1000
    assert np.count_nonzero((magnitude > 0) & (magnitude < 0x800000)) > 1000
    assert np.count_nonzero((magnitude == 0) & (exact != 0)) > 1000
    steps = np.abs(exact) * 2.0**149
    assert np.count_nonzero((steps < 2**23) & (steps % 1 == 0.5)) > 100
