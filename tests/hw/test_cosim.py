"""Promise: the native run delivers every item with its cycle, and says so when one does not come."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.cosim import CosimError, Port, run_streams, stream_ports
from hw.toolchain import ToolError
from hw.verilog import convert


class Twice(wiring.Component):
    """Registers two copies of a 100-bit word, so that a payload is wider than a machine word."""

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(100)), "o": Out(stream.Signature(200))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload.replicate(2))]
        return m


@pytest.fixture(scope="module")
def verilog() -> str:
    return convert(Twice(), name="twice")


def test_the_ports_are_read_from_the_text(verilog: str) -> None:
    assert stream_ports(verilog, "twice") == {"i": Port("i", True, 100), "o": Port("o", False, 200)}


@pytest.mark.parametrize(
    ("bits", "size"), [(1, 1), (8, 1), (9, 2), (16, 2), (17, 4), (33, 8), (64, 8), (65, 12), (97, 16)]
)
def test_payload_storage_is_verilators(bits: int, size: int) -> None:
    assert Port("p", True, bits).storage_bytes == size


def test_every_item_comes_with_its_cycle(verilog: str) -> None:
    words = [(1 << 99) | 5, 0, (1 << 100) - 1]
    run = run_streams(verilog, "twice", {"i": words}, {"o": 3})
    assert run.streams["o"].payloads == [word << 100 | word for word in words]
    np.testing.assert_array_equal(run.streams["i"].cycles, [0, 1, 2])
    np.testing.assert_array_equal(run.streams["o"].cycles, [1, 2, 3])
    assert run.cycles == 4


def test_items_are_offered_from_their_cycles_on(verilog: str) -> None:
    # The fourth may come in cycle 4, when its predecessor is still waiting.
    run = run_streams(verilog, "twice", {"i": [1, 2, 3, 4]}, {"o": 4}, earliest={"i": [2, 2, 7, 4]})
    np.testing.assert_array_equal(run.streams["i"].cycles, [2, 3, 7, 8])
    assert run.streams["o"].payloads == [word << 100 | word for word in (1, 2, 3, 4)]


def test_cycles_that_do_not_fit_the_items_are_refused(verilog: str) -> None:
    with pytest.raises(ValueError, match=r"^earliest must have a cycle for each of the 2 items of i, not 1$"):
        run_streams(verilog, "twice", {"i": [1, 2]}, {"o": 2}, earliest={"i": [0]})
    with pytest.raises(ValueError, match=r"^earliest of i must be at least 0, not -1$"):
        run_streams(verilog, "twice", {"i": [1]}, {"o": 1}, earliest={"i": [-1]})
    with pytest.raises(ValueError, match=r"^input stream must be one of i, not 'x'$"):
        run_streams(verilog, "twice", {"i": [1]}, {"o": 1}, earliest={"x": [0]})


def test_no_items_are_asked_for(verilog: str) -> None:
    run = run_streams(verilog, "twice", {"i": []}, {"o": 0})
    assert run.streams["o"].payloads == []


def test_a_missing_item_is_told_with_the_counts(verilog: str) -> None:
    with pytest.raises(
        CosimError,
        match=r"^outputs must come within 50 cycles: i 1 o 1 items transferred$|"
        r"^outputs must come within 50 cycles: o 1 i 1 items transferred$",
    ):
        run_streams(verilog, "twice", {"i": [1]}, {"o": 2}, max_cycles=50)


def test_unknown_and_reversed_streams_are_refused(verilog: str) -> None:
    with pytest.raises(ValueError, match=r"^input stream must be one of i, not 'x'$"):
        run_streams(verilog, "twice", {"x": [1]}, {"o": 1})
    with pytest.raises(ValueError, match=r"^output stream must be one of o, not 'i'$"):
        run_streams(verilog, "twice", {"i": [1]}, {"i": 1})


def test_a_payload_that_does_not_fit_is_refused(verilog: str) -> None:
    with pytest.raises(ValueError, match=r"^payload of i must fit 100 bits, not "):
        run_streams(verilog, "twice", {"i": [1 << 100]}, {"o": 1})


def test_a_text_without_the_module_is_refused(verilog: str) -> None:
    with pytest.raises(ValueError, match=r"^Verilog text must have a module 'thrice', it has none$"):
        run_streams(verilog, "thrice", {}, {})


def test_text_that_verilator_refuses_is_told_in_one_line_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from hw.builds import build_root
    from hw.verilate import Harness, build_model

    runtime = build_root() / "runtime"
    folder = tmp_path_factory.mktemp("build")
    if runtime.exists():
        (folder / "runtime").symlink_to(runtime)
    monkeypatch.setenv("NEARKV_BUILD", str(folder))
    with pytest.raises(ToolError, match=r"^verilator_bin must succeed, it ended with status 1: %Error"):
        build_model("module broken(; endmodule\n", "broken", Harness(source=""))
    assert list((folder / "rtl").iterdir()) == []
