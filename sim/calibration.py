"""The free factors of ``calibration.toml``, checked when read."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, cast

from sim.errors import ConfigError
from sim.provenance import Part

__all__ = ["Factor", "factors", "parse_factors"]

_KEYS = {"value", "default", "unit", "bounds", "source", "fitted_to", "command"}


@dataclass(frozen=True)
class Factor:
    """One free factor.

    Parameters
    ----------
    name : str
        Its key in the file.
    value, default : float
        What is used, and what stands where nothing is fitted.
    unit : str
        Its unit.
    bounds : tuple of float
        Smallest and largest value it may take.
    source, fitted_to, command : str
        Where it comes from, the data it was fitted to, and the command that fits it.
    """

    name: str
    value: float
    default: float
    unit: str
    bounds: tuple[float, float]
    source: str
    fitted_to: str
    command: str

    @property
    def part(self) -> Part:
        """The factor as an ingredient of a number."""
        return Part(self.name, "calibrated", f"sim/calibration.toml: {self.source}")


def parse_factors(text: str, *, where: str) -> dict[str, Factor]:
    """Return the factors that a TOML text holds, by name.

    Raises
    ------
    ConfigError
        If the text is not TOML, a key is missing or unknown, or a number leaves its bounds.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where}: file must be TOML: {error}") from None
    result: dict[str, Factor] = {}
    for name, table in tables.items():
        if not isinstance(table, dict) or set(table) != _KEYS:  # pyright: ignore[reportUnknownArgumentType]
            raise ConfigError(f"{where}: {name} must have the keys {', '.join(sorted(_KEYS))}, not {table!r}")
        entry = cast("dict[str, Any]", table)
        low, high = entry.pop("bounds")
        for key in ("value", "default"):
            if not low <= entry[key] <= high:
                raise ConfigError(f"{where}: {name}.{key} must be from {low} to {high}, not {entry[key]!r}")
        result[name] = Factor(name=name, bounds=(float(low), float(high)), **entry)
    return result


@cache
def factors() -> dict[str, Factor]:
    """Return the factors of the installed ``calibration.toml``, by name."""
    text = (resources.files("sim") / "calibration.toml").read_text(encoding="utf-8")
    return parse_factors(text, where="sim/calibration.toml")
