# amaranth: UnusedElaboratable=no
# A component is made here to read its signature as often as to be written as Verilog.
"""Units that a device places many times, each a Verilog module of its own that is written once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import ClockSignal, EnableInserter, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.conversion import convert_once

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Placed", "UnderEnable", "UnitModule"]


class UnderEnable(wiring.Component):
    """A unit whose registers move only in cycles in which ``enable`` is high.

    Parameters
    ----------
    unit : Component
        The unit; its members become those of this component.

    Members
    -------
    enable : In(1)
        The registers take their next values at the end of this cycle. A stream transfers in these cycles alone.
    """

    enable: Signal

    def __init__(self, unit: wiring.Component) -> None:
        self.unit = unit
        super().__init__({"enable": In(1), **unit.signature.members})

    def elaborate(self, platform: object) -> Module:
        """Place the unit."""
        m = Module()
        m.submodules.unit = EnableInserter(self.enable)(self.unit)
        for name in self.unit.signature.members:
            _join(m, getattr(self, name), getattr(self.unit, name), self.unit.signature.members[name])
        return m


def _join(m: Module, outer: Any, inner: Any, member: wiring.Member) -> None:
    """Connect a member of a component to the same member of a unit inside it."""
    if isinstance(outer, list | tuple):
        for one, other in zip(outer, inner, strict=True):
            _join(m, one, other, member)
    elif member.is_port:
        m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
    else:
        wiring.connect(m, wiring.flipped(outer), inner)


@dataclass(frozen=True)
class UnitModule:
    """A Verilog module.

    Parameters
    ----------
    name : str
        Name of the module; modules inside it have names that begin with it.
    make : callable
        Makes the component from ``params``: a class or a function of a module, by whose name the text is kept.
    params : object
        Parameters, with a ``repr`` that tells all.
    """

    name: str
    make: Callable[[Any], wiring.Component]
    params: object

    def text(self, platform: object = None) -> str:
        """Return the Verilog for synthesis, or for another platform."""
        return convert_once(self.make, self.params, name=self.name, platform=platform)


class Placed(wiring.Component):
    """One instance of a :class:`UnitModule`, with the members of its component."""

    def __init__(self, module: UnitModule) -> None:
        self.module = module
        super().__init__(module.make(module.params).signature)

    def elaborate(self, platform: object) -> Module:
        """Place the instance."""
        m = Module()
        ports: dict[str, Value] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in self.signature.flatten(self):
            direction = "i" if member.flow is In else "o"
            ports[f"{direction}_{'__'.join(map(str, path))}"] = Value.cast(value)
        m.submodules.instance = Instance(self.module.name, **ports)
        return m
