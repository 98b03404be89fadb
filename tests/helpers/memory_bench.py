"""Runs a memory model at native speed: commands by cycle in, what it showed in every cycle out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.cosim import run_streams
from hw.devices.cells import with_cells
from hw.devices.commands import ColumnKind, RowKind, Scope, column_command_layout, row_command_layout
from hw.devices.memory_model import MemoryModel, load_layout
from hw.memory.organisation import Organisation
from hw.memory.rules import rule_names
from hw.memory.timing import DramTiming
from tests.helpers.dram_checker import Command, DramChecker
from tests.helpers.rtl import verilog_of

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
    harness = _Harness(params)
    return harness, with_cells(verilog_of(harness))


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
    items = [item.const(by_cycle[cycle]).as_bits() if cycle in by_cycle else 0 for cycle in range(cycles)]
    contents = load_layout(params)
    loads = [
        contents.const({"row": row, "column": column, "data": list(words)}).as_bits() for row, column, words in load
    ]
    run = run_streams(verilog, "dut", {"commands": items, "load": loads}, {"seen": cycles})
    names = rule_names(params.timing)
    shape = harness.seen.payload.shape()
    result = Seen({}, {}, {}, {}, False)
    for cycle, bits in enumerate(run.streams["seen"].payloads[:cycles]):
        seen = shape.from_bits(bits)
        if seen.broken:
            result.broken[cycle - 1] = {name for number, name in enumerate(names) if seen.broken >> number & 1}
        if seen.violation.valid:
            result.numbered[cycle - 1] = names[seen.violation.rule]
        shown = {bank: column.payload for bank, column in enumerate(seen.columns) if column.valid}
        if shown:
            result.columns[cycle] = shown
        if seen.pins.valid:
            result.pins[cycle] = seen.pins.payload
    last = shape.from_bits(run.streams["seen"].payloads[cycles - 1])
    return Seen(result.broken, result.numbered, result.columns, result.pins, bool(last.violated))
