"""Steps of a datapath in time: all in one cycle, a register after each, or registers behind all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal

from hw.units.exp.datapath import Step, assign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amaranth.hdl import Value
    from amaranth.lib import stream

__all__ = ["combinational", "pipelined"]


def combinational(m: Module, steps: Sequence[Step], i: stream.Interface, o: stream.Interface) -> None:
    """Chain the steps with no register and no gate for the handshake: ``o`` is valid when ``i`` is."""
    m.d.comb += [
        o.valid.eq(i.valid),
        i.ready.eq(o.ready),
        assign(o.payload, _chain(m, steps, {"x": i.payload})["y"]),
    ]


def pipelined(
    m: Module, steps: Sequence[Step], i: stream.Interface, o: stream.Interface, *, registers: int = 0
) -> None:
    """Put a register after each step, or ``registers`` of them after the last; all advance together.

    While a result waits, every stage waits, and bubbles between operands stay.
    """
    advance = Signal()
    m.d.comb += [advance.eq(~o.valid | o.ready), i.ready.eq(advance)]
    if registers:
        block, idle = steps, [_pass] * (registers - 1)
        steps = [lambda m, values: _chain(m, block, values), *idle]
    values: dict[str, Value] = {"x": i.payload}
    valid: Value = i.valid
    for number, step in enumerate(steps, 1):
        results = step(m, values)
        values = {}
        # Valid is reset; what it speaks of need not be.
        flag = Signal(name=f"valid_{number}")
        with m.If(advance):
            m.d.sync += flag.eq(valid)
        for name, value in results.items():
            values[name] = register = Signal(value.shape(), name=f"{name}_{number}", reset_less=True)
            with m.If(advance):
                m.d.sync += assign(register, value)
        valid = flag
    m.d.comb += [o.valid.eq(valid), assign(o.payload, values["y"])]


def _chain(m: Module, steps: Sequence[Step], values: dict[str, Value]) -> dict[str, Value]:
    for number, step in enumerate(steps, 1):
        results = step(m, values)
        values = {}
        # A value of its own: an expression used twice would be built twice, and those behind it four times.
        for name, value in results.items():
            values[name] = wire = Signal(value.shape(), name=f"{name}_{number}")
            m.d.comb += assign(wire, value)
    return values


def _pass(m: Module, values: dict[str, Value]) -> dict[str, Value]:
    return values
