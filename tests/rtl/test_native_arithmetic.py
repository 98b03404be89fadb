"""Promise: native arithmetic gives the bits of the gates, and a device made with it the same run, cycle for cycle."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import BF16, FP16, FP32
from hw.channel_run import run_channel
from hw.cosim import run_streams
from hw.float import FloatAdd, FloatMul
from hw.native_arithmetic import NATIVE, native_cpp, with_native
from hw.presets.devices import DEVICE_PRESETS
from hw.verilog import convert
from tests.helpers.channels import assert_states, make_channel_operation
from tests.helpers.floats import corner_codes


class _Binary(wiring.Component):
    """A two-operand unit behind streams."""

    def __init__(self, make, bits):
        self.make = make
        super().__init__({"i": In(stream.Signature(sum(bits[:2]))), "o": Out(stream.Signature(bits[2]))})
        self.bits = bits

    def elaborate(self, platform):
        from amaranth.hdl import Module

        m = Module()
        m.submodules.unit = unit = self.make()
        m.d.comb += [
            unit.a.eq(self.i.payload[: self.bits[0]]),
            unit.b.eq(self.i.payload[self.bits[0] :]),
            self.o.payload.eq(unit.o),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
        ]
        return m


@pytest.mark.parametrize(
    ("make", "formats", "operation"),
    [
        (lambda: FloatAdd(FP32), (FP32, FP32), np.add),
        (lambda: FloatMul(FP16, FP16, FP32), (FP16, FP16), np.multiply),
        (lambda: FloatMul(FP32, FP16, FP32), (FP32, FP16), np.multiply),
        (lambda: FloatMul(FP32, FP32, FP32), (FP32, FP32), np.multiply),
        (lambda: FloatMul(BF16, BF16, FP32), (BF16, BF16), np.multiply),
        (lambda: FloatMul(BF16, FP32, FP32), (BF16, FP32), np.multiply),
    ],
    ids=["add", "mul-16-16", "mul-32-16", "mul-32-32", "mul-b16-b16", "mul-b16-32"],
)
def test_functions_equal_ieee_754_and_the_gates(make, formats, operation):
    """Specials of both formats in all pairs, and random codes; NumPy is the third opinion."""
    rng = np.random.default_rng(11)
    operands = []
    for fmt in formats:
        drawn = rng.integers(0, 1 << fmt.bits, 20_000, dtype=np.uint64)
        operands.append(np.concatenate([np.array(corner_codes(fmt), np.uint64), drawn]))
    count = min(len(corner_codes(fmt)) for fmt in formats)
    a = np.concatenate([np.repeat(operands[0][:count], count), operands[0]])
    b = np.concatenate([np.tile(operands[1][:count], count), operands[1]])
    a, b = (codes[: min(len(a), len(b))] for codes in (a, b))
    bits = (formats[0].bits, formats[1].bits, 32)
    items = [int(x) | int(y) << bits[0] for x, y in zip(a, b, strict=True)]
    results = []
    for platform in (None, NATIVE):
        text = with_native(convert(_Binary(make, bits), name="binary", platform=platform))
        assert bool(native_cpp(text)) == (platform is NATIVE)
        results.append(run_streams(text, "binary", {"i": items}, {"o": len(items)}).streams["o"].payloads)
    x, y = (fmt.from_codes(codes).astype(np.float32) for fmt, codes in zip(formats, (a, b), strict=True))
    with np.errstate(all="ignore"):
        expected = operation(x, y)
    wanted = np.where(np.isnan(expected), 0x7FC00000, expected.view(np.uint32))
    np.testing.assert_array_equal(np.array(results[1], np.uint64), wanted)
    assert results[0] == results[1]


def test_other_formats_stay_gates():
    text = convert(FloatMul(FP16, FP16, FP16), name="narrow", platform=NATIVE)
    assert "native" not in text
    assert "native" not in convert(FloatAdd(BF16), name="brain", platform=NATIVE)
    assert with_native(text) == text


def test_a_channel_runs_the_same_either_way():
    params = DEVICE_PRESETS["attacc"].channel
    rng = np.random.default_rng(2)
    operations = [
        make_channel_operation(params, rng, head_dim=head_dim, tokens=tokens)
        for head_dim, tokens in [(128, 600), (80, 100), (64, 513), (256, 0), (128, 1)]
    ]
    gates, native = (
        run_channel(params, operations, rows=1024, first_refresh_cycles=900, platform=platform)
        for platform in (None, NATIVE)
    )
    assert_states(native, operations)
    assert gates.commands() == native.commands()
    for one, other in zip(gates.heads + gates.bodies, native.heads + native.bodies, strict=True):
        assert one.payloads == other.payloads
        np.testing.assert_array_equal(one.cycles, other.cycles)
