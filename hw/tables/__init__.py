"""Tables of measured cycles, one JSON file a device preset, written by ``nearkv measure``; free of Amaranth.

A file names the Verilog that was run by its sha256 and the channel's parameters by theirs. Parameters are compared
whenever a table is read. The Verilog can only be compared where it can be made: ``nearkv measure`` and
``nearkv compare attacc`` do so, and ``tests/contract/test_tables.py`` holds the tables that ship to the RTL beside
them.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.builds import digest
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.tables import TableCycles, TableError, TablePoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hw.device_params import ChannelParams

__all__ = [
    "DeviceTable",
    "TableError",
    "load_table",
    "params_sha256",
    "point_dict",
    "read_table",
    "table_folder",
    "table_text",
]

_POINT_KEYS = ("head_dim", "walk_tokens", "operations", "queries", "first_column", "last_column", "last_state")


@dataclass(frozen=True, kw_only=True)
class DeviceTable:
    """Measured cycles of one channel of a device.

    Parameters
    ----------
    name : str
        Device preset.
    preset : str
        Timing preset of its memory.
    clock_hz : float
        Clock in whose cycles everything is counted: that of the memory.
    points : tuple of TablePoint
        Measured runs that the law is laid through.
    held_out : tuple of TablePoint
        Measured runs at other sizes, for comparison.
    verilog_sha256 : str
        Hash of the Verilog that was run.
    seed : int
        Seed of the data.
    versions : mapping of str to str
        Tools that wrote and ran the Verilog.
    """

    name: str
    preset: str
    clock_hz: float
    points: tuple[TablePoint, ...]
    held_out: tuple[TablePoint, ...]
    verilog_sha256: str
    seed: int
    versions: Mapping[str, str]

    @functools.cached_property
    def cycles(self) -> TableCycles:
        """The law through the points."""
        return TableCycles(DEVICE_PRESETS[self.name].channel, self.points)

    def require_verilog(self, sha256: str) -> None:
        """Refuse to speak for other RTL.

        Raises
        ------
        TableError
            If the table was measured on Verilog of another hash.
        """
        if sha256 != self.verilog_sha256:
            raise TableError(
                f"table {self.name} must be measured on today's Verilog {sha256[:16]}, it is of "
                f"{self.verilog_sha256[:16]}: run nearkv measure {self.name}"
            )


def table_folder() -> Path:
    """Return the folder of the tables that ship."""
    return Path(str(resources.files("hw.tables")))


def params_sha256(params: ChannelParams) -> str:
    """Return a hash of everything that a channel is elaborated from."""
    return digest(repr(params))


def table_text(table: DeviceTable) -> str:
    """Return the file of a table: the same text for the same table, a point a line."""
    head = {
        "name": table.name,
        "preset": table.preset,
        "clock_hz": table.clock_hz,
        "params_sha256": params_sha256(DEVICE_PRESETS[table.name].channel),
        "verilog_sha256": table.verilog_sha256,
        "seed": table.seed,
        "versions": dict(table.versions),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key in ("held_out", "points"):
        points = ",\n".join(f"    {json.dumps(point_dict(point))}" for point in getattr(table, key))
        lines.append(f'  "{key}": [\n{points}\n  ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_table(text: str) -> DeviceTable:
    """Return the table of a file's text.

    Raises
    ------
    TableError
        If it is no table, or one of a channel with other parameters than the preset of its name has.
    """
    try:
        entries: dict[str, Any] = json.loads(text)
        measured_params = entries.pop("params_sha256")
        for key in ("points", "held_out"):
            entries[key] = tuple(TablePoint(**point) for point in entries[key])
        table = DeviceTable(**entries)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TableError(f"table must be a file that nearkv measure wrote: {error}") from None
    if table.name not in DEVICE_PRESETS:
        raise TableError(f"name of a table must be a device preset, not {table.name!r}")
    if measured_params != params_sha256(DEVICE_PRESETS[table.name].channel):
        raise TableError(
            f"table {table.name} must be of today's parameters of the preset, it is of others: "
            f"run nearkv measure {table.name}"
        )
    return table


@functools.cache
def load_table(name: str) -> DeviceTable:
    """Return the table that ships for a device preset.

    Raises
    ------
    TableError
        If there is none, or it was measured with other parameters.
    """
    path = table_folder() / f"{name}.json"
    if not path.is_file():
        raise TableError(f"table of {name} must be there, it is not: run nearkv measure {name}")
    return read_table(path.read_text(encoding="utf-8"))


def point_dict(point: TablePoint) -> dict[str, int]:
    """Return a point as it stands in a file."""
    return {key: getattr(point, key) for key in _POINT_KEYS}
