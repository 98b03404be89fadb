"""Promise: the benches see what a broken unit does; a test harness that passes everything is worth nothing."""

from __future__ import annotations

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tests.helpers.pysim import run_pysim
from tests.helpers.rtl import run_cocotb
from tests.helpers.streams import StreamBench, StreamRuleError


class Buffer(wiring.Component):
    """A one-item buffer that follows the rules."""

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        return m


class Withdrawing(Buffer):
    """Takes its offer back after one cycle."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        m.d.sync += self.o.valid.eq(self.i.valid)
        return m


class Changing(Buffer):
    """Counts its payload up while it waits."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.i.ready.eq(1), self.o.valid.eq(1)]
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.d.comb += self.o.payload.eq(count)
        return m


async def _stalled(bench: StreamBench) -> None:
    bench.send("i", range(20), idle=0.5)
    bench.stall("o", 0.7)
    await bench.until(o=20, timeout_cycles=500)
    assert bench.items("o") == list(range(20))
    assert list(bench.trace("o").transfers) == sorted(bench.trace("o").transfers)
    assert len(bench.trace("i").presented) == 20


def test_a_sound_unit_passes() -> None:
    run_pysim(Buffer(), _stalled)


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (Withdrawing, r"o\.valid must hold until the transfer, it fell"),
        (Changing, r"o\.payload must hold until the transfer, 0x\w+ became 0x\w+"),
    ],
)
def test_a_broken_rule_is_seen(unit: type[Buffer], said: str) -> None:
    with pytest.raises(StreamRuleError, match=said):
        run_pysim(unit(), _stalled)


def test_a_missing_item_is_told_with_its_count() -> None:
    async def scenario(bench: StreamBench) -> None:
        bench.send("i", [1, 2])
        await bench.until(o=3, timeout_cycles=10)

    with pytest.raises(StreamRuleError, match="items must come within 10 cycles, got o 2 of 3"):
        run_pysim(Buffer(), scenario)


def test_cocotb_runs_the_same_bench_and_demands_the_number_of_tests() -> None:
    run_cocotb(Buffer(), module="tests.rtl.tb_buffer", expected=2, case={"items": 50})
    with pytest.raises(AssertionError, match=r"3 cocotb tests of tests\.rtl\.tb_buffer must run, 2 did"):
        run_cocotb(Buffer(), module="tests.rtl.tb_buffer", expected=3, case={"items": 50})


def test_cocotb_reports_a_failing_test() -> None:
    with pytest.raises(AssertionError, match=r"tests\.rtl\.tb_buffer"):
        run_cocotb(Withdrawing(), module="tests.rtl.tb_buffer", expected=2, case={"items": 50})
