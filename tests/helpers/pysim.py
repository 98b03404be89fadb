"""Runs a scenario in Amaranth's own simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, ValueCastable
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from tests.helpers.streams import StreamBench, StreamWords

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from amaranth.lib.wiring import Component

__all__ = ["PysimBench", "component_streams", "run_pysim"]


def component_streams(component: Component) -> dict[str, tuple[bool, Any]]:
    """Return the streams of a component: name as in its Verilog -> (is input, interface).

    What has no payload is none.
    """
    found = {}
    for path, member, _ in component.signature.flatten(component):
        if path[-1] == "valid":
            name = "__".join(str(part) for part in path[:-1])
            parent = component
            for part in path[:-1]:
                parent = getattr(parent, part) if isinstance(part, str) else parent[part]
            if hasattr(parent, "payload"):
                found[name] = (member.flow == In, parent)
    return found


class PysimBench(StreamBench):
    """The bench in Amaranth's simulator, inside one testbench."""

    def __init__(self, component: Component, context: Any, reset: Any, seed: int) -> None:
        streams = component_streams(component)
        payloads = {name: _as_bits(interface.payload) for name, (_, interface) in streams.items()}
        inputs = {name: len(payloads[name]) for name, (is_input, _) in streams.items() if is_input}
        outputs = {name: len(payloads[name]) for name in streams if name not in inputs}
        super().__init__(StreamWords(inputs, outputs), seed)
        ports = {name: interface for name, (_, interface) in streams.items()}
        self._write = Cat(
            reset,
            *(part for name in inputs for part in (ports[name].valid, payloads[name])),
            *(ports[name].ready for name in outputs),
        )
        seen = Cat(
            *(ports[name].ready for name in inputs),
            *(part for name in outputs for part in (ports[name].valid, payloads[name])),
        )
        self._context = context
        self._tick = context.tick().sample(seen)

    async def _step(self, driven: int) -> int:
        self._context.set(self._write, driven)
        _, _, seen = await self._tick
        return seen


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
