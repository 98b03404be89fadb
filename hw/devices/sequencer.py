"""The sequencer of a channel: opens rows, reads columns into the units, refreshes, and feeds the units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.broadcaster import Broadcaster
from hw.devices.commands import ColumnKind, RowKind, Scope, column_command_layout, row_command_layout
from hw.devices.layouts import operation_layout, permission_layout
from hw.devices.power_cap import PowerCap
from hw.devices.refresh import RefreshTimer
from hw.devices.row_walk import RowWalk
from hw.devices.spacing import Spacing
from hw.layouts import vector_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["ChannelSequencer"]


class ChannelSequencer(wiring.Component):
    """Drive the banks of a channel in lock step through the rows of one operation after another.

    Overview
    --------
    A row is opened in all banks (ACTAB), read column by column into the units (MACAB), and closed (PREA). While units
    work on the last values of an operation, the command and the query of the next one go out between the reads.
    A refresh that is owed is given (REFAB) at the end of the row being read; a row that the units hold up is closed for
    it and opened again. So no refresh is later than the time of one row.

    Protocol
    --------
    Reads are issued n_cl cycles before their data reach the units, which have no place to keep columns. Keys are read
    when the units count the operation in ``key_operations``, values when they count the tile in ``value_tiles`` (see
    :class:`hw.units.processing.ProcessingUnit`); a row may be opened before that. ``start`` begins operation, and sets
    when the first refresh is due.

    Timing
    ------
    All distances in cycles of the memory clock; a row of n columns, the next one behind it::

        ACTAB -- n_rcdrd -- MACAB -- n_ccdab -- MACAB ... MACAB -- n_rtpl -- PREA -- n_rp -- ACTAB

    or later where n_ras, n_rc, the power cap or the units say so.

    Latency and throughput
    ----------------------
    A row of n columns takes ``max(n_rcdrd + (n - 1) * n_ccdab + n_rtpl, n_ras) + n_rp`` cycles, never less than n_rc,
    and a refresh ``n_rfc`` more (the n_rp before it is that of the row). :func:`hw.timing.device.predict` gives the
    cycle of every command of a run without stalls.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    start, first_refresh_cycles : In
        Begin; cycles to the first refresh, 0 for none at all.
    operation, query : In(stream)
        See :class:`hw.devices.broadcaster.Broadcaster`.
    permissions : In(ArrayLayout(permission_layout, parts))
        What each part may be sent.
    command_free, query_free : In(1)
        Every unit has room for a command, for a beat of a query.
    command_valid, query_valid : Out(1)
        A command, a beat of a query, is delivered to the units in this cycle.
    banks : Out
        Banks of every group that the beat is for.
    row_command, column_command : Out
        ``valid`` and ``payload`` of the two buses; always taken.
    """

    def __init__(self, params: ChannelParams, *, parts: int) -> None:
        self.params = params
        self.parts = parts
        super().__init__(
            {
                "start": In(1),
                "first_refresh_cycles": In(range(params.timing.n_refi + 1)),
                "operation": In(stream.Signature(operation_layout(params))),
                "query": In(stream.Signature(vector_layout(params.processing))),
                "permissions": In(data.ArrayLayout(permission_layout(params), parts)),
                "command_free": In(1),
                "query_free": In(1),
                "command_valid": Out(1),
                "query_valid": Out(1),
                "banks": Out(params.organisation.banks),
                "row_command": Out(
                    wiring.Signature({"valid": Out(1), "payload": Out(row_command_layout(params.organisation))})
                ),
                "column_command": Out(
                    wiring.Signature({"valid": Out(1), "payload": Out(column_command_layout(params.organisation))})
                ),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect broadcaster and walk, and build the two buses."""
        m = Module()
        params = self.params
        m.submodules.broadcaster = broadcaster = Broadcaster(params)
        m.submodules.walk = walk = RowWalk(params)
        m.submodules.refresh = refresh = RefreshTimer(params.timing.n_refi)
        wiring.connect(m, broadcaster.rows, walk.rows)
        wiring.connect(m, wiring.flipped(self.operation), broadcaster.operation)
        wiring.connect(m, wiring.flipped(self.query), broadcaster.query)

        activate, read, close, give = Signal(), Signal(), Signal(), Signal()
        spaced = self._spacings(m, {"activate": activate, "read": read, "close": close, "give": give})
        permitted = self._permitted(walk)

        is_open = Signal()
        column = Signal(range(params.organisation.columns + 1))
        row_read = column == walk.columns
        m.d.comb += [
            activate.eq(~is_open & walk.valid & ~refresh.owed & spaced["activate"]),
            read.eq(is_open & ~row_read & permitted & spaced["read"]),
            close.eq(is_open & spaced["close"] & (row_read | (refresh.owed & ~permitted))),
            give.eq(~is_open & refresh.owed & spaced["give"]),
            walk.advance.eq(close & row_read),
            refresh.start.eq(self.start),
            refresh.first_cycles.eq(self.first_refresh_cycles),
            refresh.done.eq(give),
            broadcaster.command_free.eq(self.command_free),
            broadcaster.query_free.eq(self.query_free),
            broadcaster.granted.eq(broadcaster.wanted & ~read),
            self.command_valid.eq(broadcaster.granted & broadcaster.is_command & broadcaster.command_last),
            self.query_valid.eq(broadcaster.granted & ~broadcaster.is_command),
            self.banks.eq(broadcaster.banks),
        ]
        m.d.sync += is_open.eq((is_open | activate) & ~close)
        with m.If(read):
            m.d.sync += column.eq(column + 1)
        with m.If(walk.advance):
            m.d.sync += column.eq(0)

        row, columns = self.row_command, self.column_command
        row_kind = Signal(RowKind)
        column_kind = Signal(ColumnKind)
        m.d.comb += [
            row_kind.eq(Mux(activate, RowKind.ACT, Mux(close, RowKind.PRE, RowKind.REF))),
            column_kind.eq(Mux(read, ColumnKind.MAC, ColumnKind.BROADCAST)),
            row.valid.eq(activate | close | give),
            columns.valid.eq(read | broadcaster.granted),
        ]
        _drive(m, row.payload, {"kind": row_kind, "scope": Scope.ALL_BANK, "row": Mux(activate, walk.row, 0)})
        _drive(m, columns.payload, {"kind": column_kind, "scope": Scope.ALL_BANK, "column": Mux(read, column, 0)})
        return m

    def _spacings(self, m: Module, events: dict[str, Signal]) -> dict[str, Value]:
        """Return, for each kind of command, whether those before it are far enough away."""
        timing = self.params.timing

        def ready(before: str, after: str, cycles: int) -> Value:
            m.submodules[f"{before}_{after}"] = spacing = Spacing(cycles)
            m.d.comb += spacing.event.eq(events[before])
            return spacing.ready

        capped: list[Value] = []
        if self.params.column_period is not None:
            m.submodules.cap = cap = PowerCap(self.params.column_period, self.params.cap_burst_columns)
            m.d.comb += cap.take.eq(events["read"])
            capped.append(cap.ready)
        distances = {
            "activate": [
                ready("activate", "activate", timing.n_rc),
                ready("close", "activate", timing.n_rp),
                ready("give", "activate", timing.n_rfc),
            ],
            "read": [
                ready("activate", "read", timing.n_rcdrd),
                ready("read", "read", timing.n_ccdab),
                *capped,
            ],
            "close": [ready("activate", "close", timing.n_ras), ready("read", "close", timing.n_rtpl)],
            "give": [ready("close", "give", timing.n_rp), ready("give", "give", timing.n_rfc)],
        }
        return {kind: Cat(*found).all() for kind, found in distances.items()}

    def _permitted(self, walk: RowWalk) -> Value:
        """Return whether every part takes the row that is being read."""
        counts = [self.permissions[part] for part in range(self.parts)]
        keys = Cat(*((count.key_operations != walk.operation) for count in counts)).all()
        values = Cat(*((count.value_tiles != walk.value_tile) for count in counts)).all()
        return (walk.is_value & values) | (~walk.is_value & keys)


def _drive(m: Module, payload: data.View, fields: dict[str, Any]) -> None:
    """Drive a payload whose other fields are 0, in one assignment: Verilator refuses blocks that read no variable."""
    parts = []
    for name, field in payload.shape():
        part = Signal(field.width, name=f"{name}_field")
        m.d.comb += part.eq(Value.cast(fields.get(name, 0)))
        parts.append(part)
    m.d.comb += Value.cast(payload).eq(Cat(*parts))
