"""The sequencer of a channel with units at its bank groups: reads one bank of every group, and opens the next ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring

from hw.devices.append_walk import AppendWalk
from hw.devices.bank_timer import BankTimer
from hw.devices.broadcaster import Broadcaster
from hw.devices.commands import ColumnKind, RowKind, Scope
from hw.devices.group_walk import GroupWalk
from hw.devices.power_cap import PowerCap
from hw.devices.refresh import RefreshTimer
from hw.devices.row_pair import RowPair
from hw.devices.sequencer_ports import drive_command, permitted, sequencer_members, used_up
from hw.devices.spacing import Spacing
from hw.memory.rules import distance, same_bank_activation_cycles

if TYPE_CHECKING:
    from amaranth.lib import data

    from hw.device_params import ChannelParams

__all__ = ["GroupSequencer"]

_COMMANDS = {
    "activate": "ACTSB",
    "read": "MACSB",
    "write": "WR",
    "close": "PRESB",
    "refresh": "REFAB",
    "broadcast": "BROADCAST",
}


class GroupSequencer(wiring.Component):
    """Drive the banks of one number in all bank groups in lock step, through the rows of one operation after another.

    Overview
    --------
    A row is opened in one bank of every group (ACTSB), read column by column into the units (MACSB), and closed
    (PRESB). Rows that follow each other lie in different banks, and the next one is opened while this one is read, so
    that columns go on at the pace of the column path: the front row is being read, the row ahead is open or being
    opened, and rows that are through are closed one after another.

    When a refresh is owed no row is opened any more: the open ones are read, closed, and all banks refreshed (REFAB). A
    row that the units hold up is closed for it (PREAB, with the one ahead) and opened again. So no refresh is later
    than the time of two rows. Commands, queries and new tokens go as in :class:`hw.devices.sequencer.ChannelSequencer`.

    Protocol
    --------
    Members are those of :class:`hw.devices.sequencer.ChannelSequencer`; ``places`` is never taken, all tokens are read.

    Timing
    ------
    Distances in cycles of the memory clock; rows of n columns in banks a and b::

        ACTSB a -- n_rcdrd -- MACSB a -- n_ccdab -- ... MACSB a -- n_ccdab -- MACSB b -- n_ccdab -- ...
                              ACTSB b -- n_rcdrd ...    |
                                                        +-- n_rtpl -- PRESB a -- n_rp -- ACTSB a

    ACTSB commands keep :func:`hw.memory.rules.same_bank_activation_cycles`: no more activations a rank than JEDEC's
    window of four allows. All other distances are those of :func:`hw.memory.rules.distance`. Where units use a column
    longer than n_ccdab, for several queries, that is the distance of two columns
    (:meth:`hw.device_params.ChannelParams.column_cycles`).

    Latency and throughput
    ----------------------
    A row of n columns takes ``n * n_ccdab`` cycles, or the distance of two ACTSB if that is more
    (:func:`hw.timing.channel.streamed_row_cycles`): 192 at 32 columns in HBM3, power limited. A row in the bank of the
    one before it begins ``n_rtpl + n_rp + n_rcdrd`` cycles behind the last column of that one, and a refresh adds
    ``n_rfc`` to as much (:func:`hw.timing.channel.refresh_cycles`). Held by ``tests/rtl/test_group_channel.py``.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.
    parts : int
        Bank groups whose units are heard.
    """

    def __init__(self, params: ChannelParams, *, parts: int) -> None:
        self.params = params
        self.parts = parts
        super().__init__(sequencer_members(params, parts))

    def elaborate(self, platform: object) -> Module:
        """Connect broadcaster, walks and banks, and decide what happens to the rows that are open."""
        m = Module()
        params = self.params
        m.submodules.broadcaster = broadcaster = Broadcaster(params)
        m.submodules.walk = walk = GroupWalk(params)
        m.submodules.rows = rows = RowPair(params)
        m.submodules.append = append = AppendWalk(params)
        m.submodules.refresh = refresh = RefreshTimer(params.timing.n_refi)
        wiring.connect(m, broadcaster.rows, walk.rows)
        wiring.connect(m, walk.visits, rows.visits)
        wiring.connect(m, wiring.flipped(self.operation), broadcaster.operation)
        wiring.connect(m, wiring.flipped(self.query), broadcaster.query)

        front = rows.front
        events = {name: Signal(name=name) for name in (*_COMMANDS, "close_all")}
        spaced = self._spacings(m, events, front)
        closing_bank = Signal.like(front.bank, name="closing_bank")
        banks = self._banks(m, events, opened=rows.wanted_bank, front=front.bank, closing=closing_bank)

        def each(name: str) -> Value:
            return Cat(*(getattr(bank, name) for bank in banks))

        closable = each("is_open") & each("may_close") & ~rows.kept
        for number in reversed(range(len(banks))):
            with m.If(closable[number]):
                m.d.comb += closing_bank.eq(number)
        taken = permitted(
            self.permissions,
            parts=self.parts,
            is_value=front.is_value,
            operation=front.operation,
            value_tile=front.value_tile,
            room=self.scores_free | ~front.scored,
        )
        go_on = Mux(append.due, self.append.valid, taken)
        openable = (each("may_activate") & ~each("is_open")).bit_select(rows.wanted_bank, 1)
        m.d.comb += [
            events["activate"].eq(rows.wanted & ~refresh.owed & openable & spaced["activate"]),
            events["write"].eq(
                rows.readable & append.due & go_on & each("may_write").bit_select(front.bank, 1) & spaced["write"]
            ),
            events["read"].eq(
                rows.readable & ~append.due & go_on & each("may_read").bit_select(front.bank, 1) & spaced["read"]
            ),
            events["close_all"].eq(rows.readable & refresh.owed & ~go_on & each("may_close").all() & spaced["close"]),
            events["close"].eq(closable.any() & spaced["close"] & ~events["activate"] & ~events["close_all"]),
            events["refresh"].eq(refresh.owed & ~each("is_open").any() & each("may_refresh").all() & spaced["refresh"]),
            events["broadcast"].eq(broadcaster.wanted & spaced["broadcast"] & ~events["read"] & ~events["write"]),
            rows.opened.eq(events["activate"]),
            rows.read.eq(events["read"]),
            rows.all_closed.eq(events["close_all"]),
            append.begin.eq(rows.begin),
            append.append.eq(front.append),
            append.token_columns.eq(front.token_columns),
            append.is_value.eq(front.is_value),
            append.tile.eq(front.tile),
            append.written.eq(events["write"]),
            self.append.ready.eq(events["write"]),
            self.wanted.eq(-1),
            refresh.start.eq(self.start),
            refresh.first_cycles.eq(self.first_refresh_cycles),
            refresh.done.eq(events["refresh"]),
            broadcaster.command_free.eq(self.command_free),
            broadcaster.query_free.eq(self.query_free),
            broadcaster.granted.eq(events["broadcast"]),
            self.command_valid.eq(broadcaster.granted & broadcaster.is_command & broadcaster.command_last),
            self.query_valid.eq(broadcaster.granted & ~broadcaster.is_command),
            self.banks.eq(broadcaster.banks),
            self.write_data.eq(self.append.payload),
        ]
        self._drive_buses(m, events, rows, closing_bank, append)
        return m

    def _banks(
        self, m: Module, events: dict[str, Signal], *, opened: Value, front: Value, closing: Value
    ) -> list[BankTimer]:
        """Return the state of every bank, told of the commands that reach it."""
        banks = [BankTimer(self.params.timing) for _ in range(self.params.organisation.banks)]
        for number, bank in enumerate(banks):
            m.submodules[f"bank_{number}"] = bank
            m.d.comb += [
                bank.activate.eq(events["activate"] & (opened == number)),
                bank.read.eq(events["read"] & (front == number)),
                bank.write.eq(events["write"] & (front == number)),
                bank.close.eq(events["close_all"] | (events["close"] & (closing == number))),
            ]
        return banks

    def _spacings(self, m: Module, events: dict[str, Signal], front: data.View) -> dict[str, Value]:
        """Return, for each kind of command, whether those before it, to whatever bank, are far enough away."""
        timing = self.params.timing
        found: dict[str, list[Value]] = {name: [] for name in _COMMANDS}
        for before, one in _COMMANDS.items():
            for after, other in _COMMANDS.items():
                cycles = distance(timing, one, other, "bankgroup")
                if before == after == "activate":
                    cycles = max(cycles, same_bank_activation_cycles(self.params.organisation, timing))
                if cycles > 1:
                    m.submodules[f"{before}_{after}"] = spacing = Spacing(cycles)
                    m.d.comb += spacing.event.eq(events[before])
                    found[after].append(spacing.ready)
        found["read"] += used_up(m, self.params, read=events["read"], last_query=front.last_query)
        if self.params.column_period is not None:
            m.submodules.cap = cap = PowerCap(self.params.column_period, self.params.cap_burst_columns)
            m.d.comb += cap.take.eq(events["read"])
            found["read"].append(cap.ready)
        return {name: Cat(*ready).all() for name, ready in found.items()}

    def _drive_buses(
        self, m: Module, events: dict[str, Signal], rows: RowPair, closing_bank: Value, append: AppendWalk
    ) -> None:
        """Make the commands of a cycle from its events."""
        row, columns = self.row_command, self.column_command
        activate, close, close_all = events["activate"], events["close"], events["close_all"]
        read, write = events["read"], events["write"]
        row_kind, row_scope = Signal(RowKind), Signal(Scope)
        column_kind, column_scope = Signal(ColumnKind), Signal(Scope)
        m.d.comb += [
            row_kind.eq(Mux(activate, RowKind.ACT, Mux(close | close_all, RowKind.PRE, RowKind.REF))),
            row_scope.eq(Mux(activate | close, Scope.SAME_BANK, Scope.ALL_BANK)),
            column_kind.eq(Mux(read, ColumnKind.MAC, Mux(write, ColumnKind.WR, ColumnKind.BROADCAST))),
            column_scope.eq(Mux(read, Scope.SAME_BANK, Mux(write, Scope.BANK, Scope.ALL_BANK))),
            row.valid.eq(activate | close | close_all | events["refresh"]),
            columns.valid.eq(read | write | events["broadcast"]),
        ]
        drive_command(
            m,
            row.payload,
            {
                "kind": row_kind,
                "scope": row_scope,
                "bank": Mux(activate, rows.wanted_bank, Mux(close, closing_bank, 0)),
                "row": Mux(activate, rows.wanted_row, 0),
            },
        )
        group = {name: Mux(write, append.append[name], 0) for name in ("pseudochannel", "rank", "bankgroup")}
        drive_command(
            m,
            columns.payload,
            {
                "kind": column_kind,
                "scope": column_scope,
                **group,
                "bank": Mux(read | write, rows.front.bank, 0),
                "column": Mux(read, rows.column, Mux(write, append.column, 0)),
            },
        )
