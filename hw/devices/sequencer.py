"""The sequencer of a channel: opens rows, reads columns into the units, refreshes, and feeds the units."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring

from golden.checks import require_int, require_type
from hw.device_params import ChannelParams
from hw.devices.append_walk import AppendWalk
from hw.devices.broadcaster import Broadcaster
from hw.devices.commands import ColumnKind, RowKind, Scope, address_fields
from hw.devices.power_cap import PowerCap
from hw.devices.read_marks import ReadMarks
from hw.devices.refresh import RefreshTimer
from hw.devices.row_walk import RowWalk
from hw.devices.sequencer_ports import drive_command, permitted, sequencer_members, used_up
from hw.devices.spacing import Spacing

__all__ = ["ChannelSequencer"]


class ChannelSequencer(wiring.Component):
    """Drive the banks of a channel in lock step through the rows of one operation after another.

    Overview
    --------
    A row is opened in all banks (ACTAB), read column by column into the units (MACAB), and closed (PREA). While units
    work on the last values of an operation, the command and the query of the next one go out between the reads.
    A refresh that is owed is given (REFAB) at the end of the row being read; a row that the units hold up is closed for
    it and opened again. So no refresh is later than the time of one row.

    An operation of scores (:class:`hw.timing.operation.OperationKind`) reads keys alone, and reads on only while the
    queues of the groups have room for what is on its way; a row may be closed for a refresh meanwhile.

    A new token is written (WR, bank by bank) in the opening in which its row is read anyhow, before the row's first
    read: key and value cost their writes and one turnaround each, but no row of their own. The writes do not wait for
    the units.

    Of selected tokens only their columns are read, and only their rows opened. The banks are in lock step: all parts
    read the same positions, so that a token that one part wants is read by all; ``wanted`` tells the units of each part
    which columns are theirs.

    Protocol
    --------
    Reads are issued n_cl cycles before their data reach the units, which have no place to keep columns: a column that
    is used for several queries is followed by the next one when the units are through with it. Keys are read
    when the units count the operation in ``key_operations``, values when they count the tile in ``value_tiles`` (see
    :class:`hw.units.processing.ProcessingUnit`); a row may be opened before that. ``start`` begins operation, and sets
    when the first refresh is due.

    ``append`` gives the columns of an operation's new token, those of one bank after the other, key before value, and
    is taken as they are written. ``places`` gives the positions of an operation that selects tokens, ascending, each
    with the parts that want their token. A new token must be among them, else it is not written.

    Timing
    ------
    All distances in cycles of the memory clock; a row of n columns, the next one behind it::

        ACTAB -- n_rcdrd -- MACAB -- n_ccdab -- MACAB ... MACAB -- n_rtpl -- PREA -- n_rp -- ACTAB

    or later where n_ras, n_rc, the power cap or the units say so. Where units use a column longer than n_ccdab, for
    several queries, that is the distance (:meth:`hw.device_params.ChannelParams.column_cycles`), also of the last
    column of a row from the first of the next. A row with w columns to write::

        ACTAB -- n_rcdwr -- WR -- n_ccdl -- WR ... WR -- n_cwl + n_bl + n_wtrl -- MACAB ...

    and no PREA sooner than ``n_cwl + n_bl + n_wr`` after the last of them.

    Latency and throughput
    ----------------------
    A row of n columns takes ``max(n_rcdrd + (n - 1) * n_ccdab + n_rtpl, n_ras) + n_rp`` cycles, never less than n_rc,
    and a refresh ``n_rfc`` more (the n_rp before it is that of the row). Writing w columns makes it
    ``n_rcdwr - n_rcdrd + (w - 1) * n_ccdl + n_cwl + n_bl + n_wtrl`` longer: at head dimension 128 in HBM3 47 cycles for
    8 columns of key, and as many for the value. :func:`hw.timing.channel.row_cycles` has both,
    :func:`hw.memory.kv_rows.row_visits` the rows and columns of selected tokens.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.
    parts : int
        Parts whose units are heard.

    Members
    -------
    start, first_refresh_cycles : In
        Begin; cycles to the first refresh, 0 for none at all.
    operation, query : In(stream)
        See :class:`hw.devices.broadcaster.Broadcaster`.
    append : In(stream of vector_layout)
        Columns of new tokens.
    places : In(stream of selected_layout)
        Selected tokens.
    permissions : In(ArrayLayout(permission_layout, parts))
        What each part may be sent.
    command_free, query_free : In(1)
        Every unit has room for a command, for a beat of a query.
    scores_free : In(1)
        The scores of one more column have room in every group.
    command_valid, query_valid : Out(1)
        A command, a beat of a query, is delivered to the units in this cycle.
    banks : Out
        Banks of every group that the beat is for.
    wanted : Out(parts)
        In the cycle in which the data of a read reach the units: parts that want them.
    row_command, column_command : Out
        ``valid`` and ``payload`` of the two buses; always taken.
    write_data : Out(vector_layout)
        Data of a WR command.
    """

    def __init__(self, params: ChannelParams, *, parts: int) -> None:
        require_type("params", params, ChannelParams)
        require_int("parts", parts, 1, params.parts)
        self.params = params
        self.parts = parts
        super().__init__(sequencer_members(params, parts))

    def elaborate(self, platform: object) -> Module:
        """Connect broadcaster and walks, and decide what happens to the row that is open."""
        m = Module()
        params = self.params
        m.submodules.broadcaster = broadcaster = Broadcaster(params)
        m.submodules.walk = walk = RowWalk(params)
        m.submodules.append = append = AppendWalk(params)
        m.submodules.marks = marks = ReadMarks(params, parts=self.parts)
        m.submodules.refresh = refresh = RefreshTimer(params.timing.n_refi)
        wiring.connect(m, broadcaster.rows, walk.rows)
        wiring.connect(m, wiring.flipped(self.operation), broadcaster.operation)
        wiring.connect(m, wiring.flipped(self.query), broadcaster.query)
        wiring.connect(m, wiring.flipped(self.places), walk.places)

        events = {name: Signal(name=name) for name in ("activate", "read", "write", "close", "give", "broadcast")}
        spaced = self._spacings(m, events, walk)
        is_open = Signal()
        open_row = Signal.like(walk.row)
        here = is_open & walk.valid & (open_row == walk.row)
        taken = permitted(
            self.permissions,
            parts=self.parts,
            is_value=walk.is_value,
            operation=walk.operation,
            value_tile=walk.value_tile,
            room=self.scores_free | ~walk.scored,
        )
        go_on = Mux(append.due, self.append.valid, taken)
        m.d.comb += [
            events["activate"].eq(~is_open & walk.valid & ~refresh.owed & spaced["activate"]),
            events["write"].eq(here & append.due & go_on & spaced["write"]),
            events["read"].eq(here & ~append.due & go_on & spaced["read"]),
            events["close"].eq(is_open & spaced["close"] & (~here | (refresh.owed & ~go_on))),
            events["give"].eq(~is_open & refresh.owed & spaced["give"]),
            events["broadcast"].eq(broadcaster.wanted & spaced["broadcast"] & ~events["read"] & ~events["write"]),
        ]
        m.d.sync += is_open.eq((is_open | events["activate"]) & ~events["close"])
        with m.If(events["activate"]):
            m.d.sync += open_row.eq(walk.row)
        m.d.comb += [
            walk.read.eq(events["read"]),
            walk.closed.eq(events["close"]),
            marks.read.eq(events["read"]),
            marks.wanted.eq(walk.wanted),
            self.wanted.eq(marks.arriving),
            append.begin.eq(walk.begin),
            append.append.eq(walk.append),
            append.token_columns.eq(walk.token_columns),
            append.is_value.eq(walk.is_value),
            append.tile.eq(walk.tile),
            append.written.eq(events["write"]),
            self.append.ready.eq(events["write"]),
            refresh.start.eq(self.start),
            refresh.first_cycles.eq(self.first_refresh_cycles),
            refresh.done.eq(events["give"]),
            broadcaster.command_free.eq(self.command_free),
            broadcaster.query_free.eq(self.query_free),
            broadcaster.granted.eq(events["broadcast"]),
            self.command_valid.eq(broadcaster.granted & broadcaster.is_command & broadcaster.command_last),
            self.query_valid.eq(broadcaster.granted & ~broadcaster.is_command),
            self.banks.eq(broadcaster.banks),
        ]
        self._drive_buses(m, events, walk, append)
        return m

    def _drive_buses(self, m: Module, events: dict[str, Signal], walk: RowWalk, append: AppendWalk) -> None:
        """Make the commands of a cycle from its events."""
        row, columns = self.row_command, self.column_command
        activate, read, write = events["activate"], events["read"], events["write"]
        row_kind, column_kind, scope = Signal(RowKind), Signal(ColumnKind), Signal(Scope)
        m.d.comb += [
            row_kind.eq(Mux(activate, RowKind.ACT, Mux(events["close"], RowKind.PRE, RowKind.REF))),
            column_kind.eq(Mux(read, ColumnKind.MAC, Mux(write, ColumnKind.WR, ColumnKind.BROADCAST))),
            scope.eq(Mux(write, Scope.BANK, Scope.ALL_BANK)),
            row.valid.eq(activate | events["close"] | events["give"]),
            columns.valid.eq(read | write | events["broadcast"]),
            self.write_data.eq(self.append.payload),
        ]
        address = {name: Mux(write, walk.append[name], 0) for name in address_fields(self.params.organisation)}
        column = Mux(read, walk.column, Mux(write, append.column, 0))
        drive_command(m, row.payload, {"kind": row_kind, "scope": Scope.ALL_BANK, "row": Mux(activate, walk.row, 0)})
        drive_command(
            m,
            columns.payload,
            {"kind": column_kind, "scope": scope, **address, "bank": Mux(write, append.bank, 0), "column": column},
        )

    def _spacings(self, m: Module, events: dict[str, Signal], walk: RowWalk) -> dict[str, Value]:
        """Return, for each kind of command, whether those before it are far enough away."""
        timing = self.params.timing

        def ready(before: str, after: str, cycles: int) -> Value:
            m.submodules[f"{before}_{after}"] = spacing = Spacing(cycles)
            m.d.comb += spacing.event.eq(events[before])
            return spacing.ready

        capped = used_up(m, self.params, read=events["read"], last_query=walk.last_query)
        if self.params.column_period is not None:
            m.submodules.cap = cap = PowerCap(self.params.column_period, self.params.cap_burst_columns)
            m.d.comb += cap.take.eq(events["read"])
            capped.append(cap.ready)
        write_end = timing.n_cwl + timing.n_bl
        distances = {
            "activate": [
                ready("activate", "activate", timing.n_rc),
                ready("close", "activate", timing.n_rp),
                ready("give", "activate", timing.n_rfc),
            ],
            "read": [
                ready("activate", "read", timing.n_rcdrd),
                ready("read", "read", timing.n_ccdab),
                ready("write", "read", write_end + timing.n_wtrl),
                *capped,
            ],
            "write": [
                ready("activate", "write", timing.n_rcdwr),
                ready("write", "write", timing.n_ccdl),
                ready("read", "write", timing.n_ccdl),
                ready("broadcast", "write", timing.n_ccds),
            ],
            "close": [
                ready("activate", "close", timing.n_ras),
                ready("read", "close", timing.n_rtpl),
                ready("write", "close", write_end + timing.n_wr),
            ],
            "broadcast": [ready("write", "broadcast", timing.n_ccds)],
            "give": [ready("close", "give", timing.n_rp), ready("give", "give", timing.n_rfc)],
        }
        return {kind: Cat(*found).all() for kind, found in distances.items()}
