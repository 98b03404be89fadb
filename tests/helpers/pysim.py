"""Runs a scenario in Amaranth's own simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Const, ValueCastable
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from tests.helpers.streams import Drive, Sample, StreamBench

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from amaranth.lib.wiring import Component

__all__ = ["PysimBench", "component_streams", "run_pysim"]


def component_streams(component: Component) -> dict[str, tuple[bool, Any]]:
    """Return the streams of a component: name as in its Verilog -> (is input, interface)."""
    found = {}
    for path, member, _ in component.signature.flatten(component):
        if path[-1] == "valid":
            name = "__".join(str(part) for part in path[:-1])
            parent = component
            for part in path[:-1]:
                parent = getattr(parent, part) if isinstance(part, str) else parent[part]
            found[name] = (member.flow == In, parent)
    return found


class PysimBench(StreamBench):
    """The bench in Amaranth's simulator, inside one testbench."""

    def __init__(self, component: Component, context: Any, reset: Any, seed: int) -> None:
        streams = component_streams(component)
        super().__init__(
            [name for name, (is_input, _) in streams.items() if is_input],
            [name for name, (is_input, _) in streams.items() if not is_input],
            seed,
        )
        self._ports = {name: interface for name, (_, interface) in streams.items()}
        self._bits = {name: _as_bits(interface.payload) for name, interface in self._ports.items()}
        self._context = context
        self._reset = reset

    async def _step(self, drive: Drive) -> Mapping[str, Sample]:
        context = self._context
        context.set(self._reset, int(drive.reset))
        for name, (valid, payload) in drive.offers.items():
            context.set(self._ports[name].valid, int(valid))
            context.set(self._bits[name], Const(payload, len(self._bits[name])).value)
        for name, ready in drive.ready.items():
            context.set(self._ports[name].ready, int(ready))
        signals = [
            signal for name, port in self._ports.items() for signal in (port.valid, port.ready, self._bits[name])
        ]
        _, _, *values = await context.tick().sample(*signals)
        return {
            name: Sample(bool(valid), bool(ready), int(payload) if valid else None)
            for name, valid, ready, payload in zip(self._ports, values[0::3], values[1::3], values[2::3], strict=True)
        }


def run_pysim(component: Component, scenario: Callable[[StreamBench], Awaitable[None]], *, seed: int = 1) -> None:
    """Simulate ``component`` until ``scenario`` ends; it starts after a reset."""
    from amaranth.hdl import ClockDomain, Module

    domain = ClockDomain("sync")
    top = Module()
    top.domains += domain
    top.submodules.dut = component
    finished = False

    async def testbench(context: Any) -> None:
        nonlocal finished
        bench = PysimBench(component, context, domain.rst, seed)
        await bench.reset()
        await scenario(bench)
        finished = True

    simulator = Simulator(top)
    simulator.add_clock(1e-9)
    simulator.add_testbench(testbench)
    simulator.run()
    assert finished


def _as_bits(payload: Any) -> Any:
    return payload.as_value() if isinstance(payload, ValueCastable) else payload
