"""Names of hardware on the command line: units at a preset's sizes, devices, and what is neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.presets import DEFAULT_UNIT_PRESET, UNIT_PRESETS
from hw.presets.devices import DEVICE_PRESETS
from sim.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Hardware", "hardware"]

Hardware = tuple[list[str], list[str]]
"""Names of units and of devices."""


def hardware(names: Sequence[str], preset: str | None, units: Iterable[str], simulated: Iterable[str]) -> Hardware:
    """Sort the names given into units and devices, each once, in their order.

    Parameters
    ----------
    names : sequence of str
        What was given; nothing is all units of the preset and, where none was named, all devices.
    preset : str or None
        Unit preset that was named.
    units, simulated : iterable of str
        Units there are, and parts that are for simulation only.

    Raises
    ------
    ConfigError
        If a name is unknown or for simulation only, the preset has no such unit, or sizes are given to a device.
    """
    sizes = preset or DEFAULT_UNIT_PRESET
    if sizes not in UNIT_PRESETS:
        raise UnknownNameError("preset", sizes, UNIT_PRESETS)
    known, made = list(units), UNIT_PRESETS[sizes].units
    if not names:
        return [name for name in known if name in made], [] if preset else list(DEVICE_PRESETS)
    for name in names:
        if name in simulated:
            raise ConfigError(f"unit must be hardware, not {name!r}, which is for simulation only")
        if name in DEVICE_PRESETS:
            if preset is not None:
                raise ConfigError(f"--preset must go with units, not with device {name!r}, which has sizes of its own")
        elif name not in known:
            raise UnknownNameError("unit", name, [*known, *DEVICE_PRESETS])
        elif name not in made:
            raise ConfigError(f"unit must be one that preset {sizes} has, {', '.join(made)}; not {name!r}")
    given = list(dict.fromkeys(names))
    return [name for name in given if name in known], [name for name in given if name in DEVICE_PRESETS]
