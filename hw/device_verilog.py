"""Verilog of the devices: for each preset one channel's logic, and its share of the logic die.

The banks of a channel are the memory's, so that the text ends at their pins; models of them, and benches, are for
simulation and are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.area_rows import area_rows
from hw.builds import digest
from hw.devices.channel import channel_modules
from hw.devices.channel_bench import ChannelBench
from hw.devices.logic_die import LogicDie, LogicDieBench, logic_die_units
from hw.devices.memory_model import MemoryModel
from hw.devices.placed import UnitModule
from hw.logic_die_params import LogicDieParams
from hw.presets.devices import DEVICE_PRESETS
from hw.synth_parts import module_areas
from hw.timing.device_formulas import channel_interval, channel_latency, logic_die_interval, logic_die_latency
from hw.verilog import VerilogUnit

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from amaranth.lib.wiring import Component

    from hw.area_rows import AreaRow
    from hw.liberty import Library
    from hw.timing.formulas import Formula

__all__ = ["SIMULATION_ONLY", "DevicePart", "device_parts", "generate_device", "require_hardware"]

SIMULATION_ONLY: dict[str, type[Component[Any]]] = {
    "channel_bench": ChannelBench,
    "logic_die_bench": LogicDieBench,
    "memory_model": MemoryModel,
}
"""Parts by name that are simulated with a device and are no part of it."""


@dataclass(frozen=True)
class DevicePart:
    """A part of a device that is a Verilog file of its own.

    Parameters
    ----------
    name, description : str
        Name, and what it is.
    modules : tuple of UnitModule
        Its Verilog modules, the top one last.
    blocks : tuple of str
        Instances of the top module whose area is told apart from the top's own.
    latency_cycles, interval_cycles : Formula
        In cycles of the memory clock.

    Raises
    ------
    ValueError
        If a module is for simulation only.
    """

    name: str
    description: str
    modules: tuple[UnitModule, ...]
    blocks: tuple[str, ...]
    latency_cycles: Formula
    interval_cycles: Formula

    def __post_init__(self) -> None:
        for module in self.modules:
            require_hardware(module.make)

    def text(self) -> str:
        """Return the Verilog of all modules."""
        return "".join(module.text() for module in self.modules)

    def sha256(self) -> str:
        """Return the hash of that text."""
        return digest(self.text())

    def area_rows(self, library: Library, *, script: str = "quick") -> list[AreaRow]:
        """Synthesise every distinct module once and count them.

        Parameters and errors as of :func:`hw.synth_parts.module_areas`.
        """
        names = [module.name for module in self.modules]
        return area_rows(module_areas(self.text(), names[-1], library, script=script), names, self.blocks)


def require_hardware(component: Callable[[Any], object]) -> None:
    """Raise ValueError if a component, or what makes it, is marked ``simulation_only``."""
    if getattr(component, "simulation_only", False):
        name = getattr(component, "__name__", repr(component))
        raise ValueError(f"a part of a device must be hardware, and {name} is for simulation only")


def device_parts(device: str) -> tuple[DevicePart, ...]:
    """Return the parts of one channel of a device.

    Parameters
    ----------
    device : str
        A key of :data:`hw.presets.devices.DEVICE_PRESETS`.

    Raises
    ------
    KeyError
        If there is no such device.
    """
    channel = DEVICE_PRESETS[device].channel
    die = LogicDieParams(channel=channel)
    return (
        DevicePart(
            name="channel",
            description="sequencer and bank groups of one channel, up to the pins of its banks",
            modules=tuple(channel_modules(channel)),
            blocks=("sequencer", "selection"),
            latency_cycles=channel_latency(channel),
            interval_cycles=channel_interval(channel),
        ),
        DevicePart(
            name="logic_die",
            description="one channel's share of the logic die: links and the tree of reduction units",
            modules=(*logic_die_units(die), UnitModule("nearkv_logic_die", LogicDie, die)),
            blocks=tuple(f"link_{number}" for number in range(channel.organisation.pseudochannels)),
            latency_cycles=logic_die_latency(die),
            interval_cycles=logic_die_interval(die),
        ),
    )


def generate_device(device: str) -> list[VerilogUnit]:
    """Return the Verilog of the parts of a device; parameters and errors as :func:`device_parts`."""
    return [
        VerilogUnit(
            kind="device",
            name=part.name,
            preset=device,
            description=part.description,
            text=part.text(),
            latency_cycles=part.latency_cycles,
            interval_cycles=part.interval_cycles,
        )
        for part in device_parts(device)
    ]
