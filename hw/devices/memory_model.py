"""One channel's memory for simulation: cells, open rows, read latency, and a watch over every rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.devices.cells import Cells
from hw.devices.commands import column_command_layout, row_command_layout, strobe_signature
from hw.devices.memory_rules import RuleWatch
from hw.memory.model_params import MemoryModelParams
from hw.memory.rules import rule_names

if TYPE_CHECKING:
    from amaranth.hdl import Value

__all__ = ["MemoryModel", "load_layout", "violation_layout"]


def load_layout(params: MemoryModelParams) -> data.StructLayout:
    """Return the layout of one column of every simulated bank: ``row``, ``column``, and the banks' data in order."""
    organisation = params.organisation
    return data.StructLayout(
        {
            "row": range(params.simulated_rows),
            "column": range(organisation.columns),
            "data": data.ArrayLayout(organisation.column_bits, params.simulated_banks),
        }
    )


def violation_layout(params: MemoryModelParams) -> data.StructLayout:
    """Return the layout of a report: ``valid``, and the lowest broken rule by :func:`hw.memory.rules.rule_names`."""
    return data.StructLayout({"valid": 1, "rule": range(len(rule_names(params.timing)))})


class MemoryModel(wiring.Component):
    """Behave as bank groups 0 to ``simulated_groups - 1`` of one channel, in simulation only.

    Overview
    --------
    Bank i is bank ``i % banks`` of bank group ``i // banks``, groups counted as in
    :meth:`hw.memory.organisation.Organisation.group_index`. A command to one bank that is not simulated keeps the rules
    of ranks, pins and buses, and is otherwise ignored: under commands to all banks the banks left out do what the
    simulated ones do. No cell decays; refresh is a matter of rules.

    Protocol
    --------
    A command is taken in the cycle in which its ``valid`` is high, one a cycle on each bus. ``write_data`` comes with
    its WR command. Commands act on the cells in the order in which they are issued; what a command does that breaks a
    rule is said in :class:`hw.devices.memory_rules.RuleWatch`, and its data mean nothing.

    ``load`` writes one column of every simulated bank a cycle, past all rules; it is ready at all times, and meant for
    the time before the first command. Cells keep their contents over a reset, rows do not stay open.

    Timing
    ------
    Two all-bank reads with n_cl = 4, n_rcdrd = 3, n_ccdab = 3; the first comes a cycle too early (m: data, v: told)::

        cycle            0    1    2    3    4    5    6    7    8    9
        row_command      ACT  .    .    .    .    .    .    .    .    .
        column_command   .    .    MAC  .    .    MAC  .    .    .    .
        violation        .    .    .    v    .    .    .    .    .    .
        columns          .    .    .    .    .    .    m    .    .    m

    Latency and throughput
    ----------------------
    ``columns`` and ``read_data`` show a read's data ``n_cl`` cycles after its command, for one cycle; one column
    command a cycle, as far as the rules let it. ``violation`` and ``broken`` tell in the cycle after the command. Held
    by ``tests/rtl/test_memory_model.py`` against a checker that shares no code with this.

    Numerics
    --------
    Data are bits.

    Parameters
    ----------
    params : MemoryModelParams
        The memory.

    Members
    -------
    row_command, column_command : ``In(strobe_signature(...))``
        The two command buses.
    write_data : ``In(column_bits)``
        Data of a WR command.
    columns : ``Out(strobe_signature(column_bits)).array(simulated_banks)``
        What MAC commands read, to the units at the banks.
    read_data : ``Out(strobe_signature(column_bits))``
        What RD commands read, to the pins.
    load : ``In(stream.Signature(load_layout(params)))``
        Contents before use.
    violation : ``Out(violation_layout(params))``
        That a rule was broken, and which.
    broken : ``Out(len(rule_names(timing)))``
        All rules broken, one bit each.
    violated : ``Out(1)``
        Whether any rule was ever broken since reset.

    Raises
    ------
    TypeError
        If ``params`` is not a MemoryModelParams.
    """

    simulation_only = True
    """No unit: no Verilog of it ships and it has no area."""

    row_command: wiring.PureInterface
    column_command: wiring.PureInterface
    columns: list[wiring.PureInterface]
    read_data: wiring.PureInterface
    load: stream.Interface
    write_data: Signal
    broken: Signal
    violated: Signal

    def __init__(self, params: MemoryModelParams) -> None:
        require_type("params", params, MemoryModelParams)
        self.params = params
        organisation = params.organisation
        column = strobe_signature(organisation.column_bits)
        super().__init__(
            {
                "row_command": In(strobe_signature(row_command_layout(organisation))),
                "column_command": In(strobe_signature(column_command_layout(organisation))),
                "write_data": In(organisation.column_bits),
                "columns": Out(column).array(params.simulated_banks),
                "read_data": Out(column),
                "load": In(stream.Signature(load_layout(params))),
                "violation": Out(violation_layout(params)),
                "broken": Out(len(rule_names(params.timing))),
                "violated": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Watch the rules, delay commands by the read latency, and keep the cells."""
        m = Module()
        m.submodules.watch = watch = RuleWatch(self.params)
        wiring.connect(m, wiring.flipped(self.row_command), watch.row_command)
        wiring.connect(m, wiring.flipped(self.column_command), watch.column_command)
        self._tell(m, watch.broken)
        delayed = self._delay(m, watch)
        self._cells(m, delayed)
        return m

    def _tell(self, m: Module, broken: Value) -> None:
        any_broken = broken.any()
        m.d.comb += [self.broken.eq(broken), self.violation.valid.eq(any_broken)]
        for number in range(len(broken))[::-1]:
            with m.If(broken[number]):
                m.d.comb += self.violation.rule.eq(number)
        with m.If(any_broken):
            m.d.sync += self.violated.eq(1)

    def _delay(self, m: Module, watch: RuleWatch) -> data.View:
        """Return the column commands of ``n_cl - 1`` cycles ago, each with the rows it found open.

        Writes wait as long as reads do, so that all act on the cells in the order of the commands. The commands go
        around in a memory; shifting every one of them a step a cycle would cost more time than all the rest.
        """
        params = self.params
        banks = params.simulated_banks
        waiting = data.StructLayout(
            {
                "mac": banks,
                "read": banks,
                "write": banks,
                "column": range(params.organisation.columns),
                "rows": data.ArrayLayout(range(params.simulated_rows), banks),
                "data": params.organisation.column_bits,
            }
        )
        depth = params.timing.n_cl - 1
        m.submodules.waiting = ring = memory.Memory(shape=waiting, depth=depth, init=[])
        put, get = ring.write_port(), ring.read_port(domain="comb")
        place = Signal(range(depth))
        m.d.sync += place.eq(Mux(place == depth - 1, 0, place + 1))
        taken = Signal(depth)
        m.d.sync += taken.eq(Cat(self.column_command.valid, taken))
        m.d.comb += [
            put.addr.eq(place),
            put.en.eq(self.column_command.valid),
            put.data.mac.eq(watch.reads_to_units),
            put.data.read.eq(watch.reads_to_pins),
            put.data.write.eq(watch.writes),
            put.data.column.eq(self.column_command.payload.column),
            put.data.data.eq(self.write_data),
            get.addr.eq(place),
        ]
        m.d.comb += [put.data.rows[bank].eq(row) for bank, row in enumerate(watch.open_rows)]
        delayed = Signal(waiting)
        with m.If(taken[-1]):
            m.d.comb += delayed.eq(get.data)
        return delayed

    def _cells(self, m: Module, delayed: data.View) -> None:
        params = self.params
        organisation = params.organisation
        m.d.comb += self.load.ready.eq(1)
        load = self.load.payload
        shown = Signal(range(params.simulated_banks))
        m.d.sync += self.read_data.valid.eq(delayed.read.any())
        for bank in range(params.simulated_banks):
            cells = Cells(organisation.column_bits, params.simulated_rows * organisation.columns)
            m.submodules[f"cells_{bank}"] = cells
            address = delayed.rows[bank] * organisation.columns + delayed.column
            m.d.comb += [
                cells.read.eq(delayed.mac[bank] | delayed.read[bank]),
                cells.read_address.eq(address),
                cells.write.eq(self.load.valid | delayed.write[bank]),
                cells.write_address.eq(Mux(self.load.valid, load.row * organisation.columns + load.column, address)),
                cells.write_data.eq(Mux(self.load.valid, load.data[bank], delayed.data)),
                self.columns[bank].payload.eq(cells.read_data),
            ]
            m.d.sync += self.columns[bank].valid.eq(delayed.mac[bank])
            with m.If(delayed.read[bank]):
                m.d.sync += shown.eq(bank)
            with m.If(shown == bank):
                m.d.comb += self.read_data.payload.eq(cells.read_data)
