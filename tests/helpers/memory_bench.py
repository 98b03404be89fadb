# amaranth: UnusedElaboratable=no
"""Runs a memory model at native speed: commands by cycle in, what it showed in every cycle out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Shape
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.cosim import run_streams
from hw.devices.cells import with_cells
from hw.devices.commands import ColumnKind, RowKind, Scope, column_command_layout, row_command_layout
from hw.devices.memory_model import MemoryModel, load_layout
from hw.memory.organisation import Organisation
from hw.memory.rules import rule_names
from hw.memory.timing import DramTiming
from tests.helpers.bench_verilog import verilog_of
from tests.helpers.dram_checker import Command, DramChecker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hw.memory.model_params import MemoryModelParams

__all__ = ["QUICK", "SMALL", "Seen", "checker_of", "run_memory"]

SMALL = Organisation(
    channels=1,
    pseudochannels=2,
    ranks=3,
    bankgroups=2,
    banks=2,
    rows=8,
    columns=4,
    dq_bits=8,
    burst_length=8,
    column_bytes=8,
    capacity_bytes=2 * 3 * 2 * 2 * 8 * 4 * 8,
)
"""A channel of 24 banks, with a number of ranks that is no power of two."""

QUICK = DramTiming(
    clock_ns=1.0,
    **{"n_rcdrd": 5, "n_rcdwr": 4, "n_rp": 6, "n_ras": 9, "n_rc": 14, "n_wr": 5, "n_rtps": 2, "n_rtpl": 3},
    **{"n_cl": 6, "n_cwl": 2, "n_bl": 1, "n_ccds": 2, "n_ccdl": 3, "n_ccdab": 4, "n_rrds": 2, "n_rrdl": 3},
    **{"n_wtrs": 2, "n_wtrl": 4, "n_rtw": 7, "n_faw": 13, "n_rfc": 20, "n_refi": 90},
)
"""A timing whose rules all differ and bind within a few cycles."""


@dataclass(frozen=True)
class Seen:
    """What the model showed: broken rules, columns by bank and data at the pins, by cycle; and whether ever broken."""

    broken: dict[int, set[str]]
    numbered: dict[int, str]
    columns: dict[int, dict[int, int]]
    pins: dict[int, int]
    violated: bool


class _Harness(wiring.Component):
    """One item of ``commands`` a cycle into the memory, one item of ``seen`` a cycle out of it."""

    def __init__(self, params: MemoryModelParams) -> None:
        self.params = params
        self.memory = MemoryModel(params)
        organisation = params.organisation
        column = data.StructLayout({"valid": 1, "payload": organisation.column_bits})
        commands = data.StructLayout(
            {
                "row_valid": 1,
                "row": row_command_layout(organisation),
                "column_valid": 1,
                "column": column_command_layout(organisation),
                "write_data": organisation.column_bits,
            }
        )
        seen = data.StructLayout(
            {
                "broken": len(rule_names(params.timing)),
                "violation": self.memory.violation.shape(),
                "violated": 1,
                "columns": data.ArrayLayout(column, params.simulated_banks),
                "pins": column,
            }
        )
        super().__init__(
            {
                "commands": In(stream.Signature(commands)),
                "load": In(stream.Signature(load_layout(params))),
                "seen": Out(stream.Signature(seen)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = self.memory
        commands = self.commands
        seen = self.seen.payload
        wiring.connect(m, wiring.flipped(self.load), memory.load)
        m.d.comb += [
            commands.ready.eq(1),
            memory.row_command.valid.eq(commands.valid & commands.payload.row_valid),
            memory.row_command.payload.eq(commands.payload.row),
            memory.column_command.valid.eq(commands.valid & commands.payload.column_valid),
            memory.column_command.payload.eq(commands.payload.column),
            memory.write_data.eq(commands.payload.write_data),
            self.seen.valid.eq(1),
            seen.broken.eq(memory.broken),
            seen.violation.eq(memory.violation),
            seen.violated.eq(memory.violated),
            seen.pins.valid.eq(memory.read_data.valid),
            seen.pins.payload.eq(memory.read_data.payload),
        ]
        for shown, column in zip(seen.columns, memory.columns, strict=True):
            m.d.comb += [shown.valid.eq(column.valid), shown.payload.eq(column.payload)]
        return m


@cache
def _harness(params: MemoryModelParams) -> tuple[_Harness, str]:
    return _Harness(params), with_cells(verilog_of(_Harness, params))


def checker_of(params: MemoryModelParams) -> DramChecker:
    """Return the checker of what the model watches."""
    return DramChecker(
        asdict(params.timing),
        asdict(params.organisation),
        params.postponed_refreshes,
        params.simulated_groups,
        params.simulated_rows,
    )


def run_memory(
    params: MemoryModelParams,
    commands: Sequence[Command],
    *,
    cycles: int,
    write_data: Mapping[int, int] | None = None,
    load: Sequence[tuple[int, int, Sequence[int]]] = (),
) -> Seen:
    """Run ``commands`` for ``cycles`` cycles after ``load``; cycles count from reset, so loads need as many without."""
    harness, verilog = _harness(params)
    item = harness.commands.payload.shape()
    places = _places(item)
    row_layout, column_layout = item["row"].shape, item["column"].shape
    by_cycle: defaultdict[int, dict[str, object]] = defaultdict(dict)
    for command in commands:
        values = {f.name: getattr(command, f.name) for f in fields(command) if f.name != "cycle"}
        values["scope"] = Scope[command.scope]
        if command.is_column:
            values["kind"] = ColumnKind[command.kind]
            part = {name: values[name] for name in column_layout.members}
            by_cycle[command.cycle] |= {"column_valid": 1, "column": part}
            by_cycle[command.cycle]["write_data"] = (write_data or {}).get(command.cycle, 0)
        else:
            values["kind"] = RowKind[command.kind]
            by_cycle[command.cycle] |= {"row_valid": 1, "row": {name: values[name] for name in row_layout.members}}
    # Cycle 0 is the first after reset, the one that takes item 0.
    items = [_pack(places, by_cycle[cycle]) if cycle in by_cycle else 0 for cycle in range(cycles)]
    contents = _places(load_layout(params))
    loads = [
        _pack(contents, {"row": row, "column": column, "data": dict(enumerate(words))}) for row, column, words in load
    ]
    run = run_streams(verilog, "dut", {"commands": items, "load": loads}, {"seen": cycles})
    names = rule_names(params.timing)
    seen = _places(harness.seen.payload.shape())
    result = Seen({}, {}, {}, {}, False)
    payloads = run.streams["seen"].payloads[:cycles]
    for cycle, bits in enumerate(payloads):
        broken = _read(seen, bits, "broken")
        if broken:
            result.broken[cycle - 1] = {name for number, name in enumerate(names) if broken >> number & 1}
        if _read(seen, bits, "violation", "valid"):
            result.numbered[cycle - 1] = names[_read(seen, bits, "violation", "rule")]
        shown = {
            bank: _read(seen, bits, "columns", bank, "payload")
            for bank in range(params.simulated_banks)
            if _read(seen, bits, "columns", bank, "valid")
        }
        if shown:
            result.columns[cycle] = shown
        if _read(seen, bits, "pins", "valid"):
            result.pins[cycle] = _read(seen, bits, "pins", "payload")
    violated = bool(_read(seen, payloads[-1], "violated"))
    return Seen(result.broken, result.numbered, result.columns, result.pins, violated)


# Amaranth's constants compute every offset anew, which took most of the time of a run.
def _places(shape: object, shift: int = 0) -> dict[tuple[object, ...], tuple[int, int]]:
    """Return shift and mask of every number of a layout, by the names that lead to it."""
    if not isinstance(shape, data.Layout):
        return {(): (shift, (1 << Shape.cast(shape).width) - 1)}
    inner = {name: _places(field.shape, shift + field.offset) for name, field in shape}
    return {(name, *path): place for name, places in inner.items() for path, place in places.items()}


def _read(places: Mapping[tuple[object, ...], tuple[int, int]], bits: int, *path: object) -> int:
    shift, mask = places[path]
    return bits >> shift & mask


def _pack(places: Mapping[tuple[object, ...], tuple[int, int]], values: Mapping[object, object], *path: object) -> int:
    """Return a layout's bits; what ``values`` does not name is 0."""
    bits = 0
    for name, value in values.items():
        if isinstance(value, dict):
            bits |= _pack(places, value, *path, name)
        else:
            shift, mask = places[(*path, name)]
            number = value.value if isinstance(value, Enum) else int(value)
            assert 0 <= number <= mask, f"{name} must be from 0 to {mask}, not {value!r}"
            bits |= number << shift
    return bits
