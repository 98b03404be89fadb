"""The rules of :mod:`hw.memory.rules` in gates, for simulation: which of them the commands of a cycle break."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.devices.commands import ColumnKind, RowKind, Scope, column_command_layout, row_command_layout, strobe_signature
from hw.memory.model_params import MemoryModelParams
from hw.memory.rules import COLUMN_COMMANDS, ROW_COMMANDS, command_name, rule_names, timing_rules

if TYPE_CHECKING:
    from hw.memory.rules import Rule

__all__ = ["CommandDecoder", "RuleWatch"]

_CLOCK_BITS = 48  # nine years at a million cycles a second


def _any(terms: list[Value]) -> Value:
    return functools.reduce(operator.or_, terms, Const(0, 1))


class CommandDecoder:
    """Names of commands and the parts of a channel they reach, as conditions on the two buses.

    Parameters
    ----------
    params : MemoryModelParams
        The memory.
    row, column : Interface
        The buses.
    """

    def __init__(self, m: Module, params: MemoryModelParams, row: wiring.Interface, column: wiring.Interface) -> None:
        organisation = params.organisation
        self._m = m
        self._reaches: dict[tuple[tuple[str, ...], tuple[int, ...]], Signal] = {}
        self._issued_any: dict[tuple[str, ...], Signal] = {}
        self._matches: dict[tuple[int, tuple[tuple[str, int], ...]], Signal] = {}
        self._buses: dict[str, Any] = {**dict.fromkeys(ROW_COMMANDS, row), **dict.fromkeys(COLUMN_COMMANDS, column)}
        self._scopes: dict[str, Scope] = {}
        self.issued: dict[str, Signal] = {}
        self.no_command: list[Value] = []
        groups = itertools.product(
            range(organisation.pseudochannels), range(organisation.ranks), range(organisation.bankgroups)
        )
        simulated = list(itertools.islice(groups, params.simulated_groups))
        banks = range(organisation.banks)
        self.units: dict[str, list[tuple[int, ...]]] = {
            "bank": [(*group, bank) for group in simulated for bank in banks],
            "bankgroup": simulated,
            "rank": list(itertools.product(range(organisation.pseudochannels), range(organisation.ranks))),
            "pseudochannel": [(index,) for index in range(organisation.pseudochannels)],
            "channel": [()],
        }
        for bus, kinds, known in ((row, RowKind, ROW_COMMANDS), (column, ColumnKind, COLUMN_COMMANDS)):
            payload = bus.payload
            exists: list[Value] = []
            for kind in kinds:
                if kind is ColumnKind.BROADCAST:
                    exists.append(self._name(m, "BROADCAST", bus, payload.kind == kind))
                    self._scopes["BROADCAST"] = Scope.ALL_BANK
                    continue
                for scope in Scope:
                    name = command_name(kind.name, scope.name)
                    if name in known:
                        chosen = (payload.kind == kind) & (payload.scope == scope) & self._address_exists(bus, params)
                        exists.append(self._name(m, name, bus, chosen))
                        self._scopes[name] = scope
            self.no_command.append(bus.valid & ~_any(exists))

    def _name(self, m: Module, name: str, bus: wiring.Interface, chosen: Value) -> Signal:
        self.issued[name] = signal = Signal(name=name.lower())
        m.d.comb += signal.eq(bus.valid & chosen)
        return signal

    @staticmethod
    def _address_exists(bus: wiring.Interface, params: MemoryModelParams) -> Value:
        counts = {name: f"{name}s" for name in ("pseudochannel", "rank", "bankgroup", "bank", "row", "column")}
        fields = {name: getattr(bus.payload, name) for name in counts if name in bus.payload.shape().members}
        return functools.reduce(
            operator.and_,
            (
                Value.cast(field) < count
                for name, field in fields.items()
                if (count := getattr(params.organisation, counts[name])) != 1 << len(Value.cast(field))
            ),
            Const(1, 1),
        )

    def reaches(self, names: tuple[str, ...], unit: tuple[int, ...]) -> Signal:
        """Return the condition that one of the commands ``names``, all of one bus, is issued and reaches ``unit``.

        ``unit`` counts pseudo-channel, rank, bank group and bank, as far as its level goes.
        """
        if (names, unit) not in self._reaches:
            condition = self._signal(
                _any([self._issued_at(names, scope) & self._within(names[0], scope, unit) for scope in Scope]),
                "reaches",
            )
            self._reaches[names, unit] = condition
        return self._reaches[names, unit]

    def _issued_at(self, names: tuple[str, ...], scope: Scope) -> Value:
        chosen = tuple(name for name in names if self._scopes[name] is scope)
        if len(chosen) > 1:
            if chosen not in self._issued_any:
                self._issued_any[chosen] = self._signal(_any([self.issued[name] for name in chosen]), "issued")
            return self._issued_any[chosen]
        return self.issued[chosen[0]] if chosen else Const(0, 1)

    def _within(self, name: str, scope: Scope, unit: tuple[int, ...]) -> Value:
        bus = self._buses[name]
        fields = dict(zip(("pseudochannel", "rank", "bankgroup", "bank"), unit, strict=False))
        if scope is Scope.ALL_BANK:
            fields = {}
        elif scope is Scope.SAME_BANK:
            fields = {level: index for level, index in fields.items() if level == "bank"}
        if not fields:
            return Const(1, 1)
        key = id(bus), tuple(fields.items())
        if key not in self._matches:
            matches = functools.reduce(
                operator.and_, (getattr(bus.payload, level) == at for level, at in fields.items())
            )
            self._matches[key] = self._signal(matches, "matches")
        return self._matches[key]

    def _signal(self, value: Value, name: str) -> Signal:
        """Return a signal of ``value``, so that every user shares one."""
        signal = Signal(name=name)
        self._m.d.comb += signal.eq(value)
        return signal


class RuleWatch(wiring.Component):
    """Say which rules the commands of a cycle break. Simulation only.

    Overview
    --------
    Every rule of :func:`hw.memory.rules.timing_rules` is built as it stands in the table: for every unit of its level,
    the cycle of the last commands of ``before`` is kept, and a command of ``after`` compares. A command that breaks a
    rule takes effect all the same; one that is none has no effect.

    Column and row command of one cycle: the column command counts as the earlier one.

    Banks and bank groups that are not simulated have no state here: rules that hold only there are not seen. Those of
    ranks, pseudo-channels and the channel are complete.

    Refresh: at every multiple of ``n_refi`` cycles from reset one falls due, and REFAB makes one. When more than
    ``postponed_refreshes`` would be due, the rule is broken, once for each, and that refresh is given up. At most as
    many count ahead of time.

    Latency
    -------
    ``broken`` is a register: it tells in the cycle after the commands.

    Parameters
    ----------
    params : MemoryModelParams
        The memory.

    Members
    -------
    row_command, column_command : ``In(strobe_signature(...))``
        The two buses.
    open_rows : ``Out(ArrayLayout)``
        One a simulated bank: its open row, which is kept when it closes.
    reads_to_units, reads_to_pins, writes : ``Out(simulated_banks)``
        Simulated banks that the column command reaches, by what it does; in the cycle of the command.
    broken : ``Out(len(rule_names(timing)))``
        One bit a rule, in the order of :func:`hw.memory.rules.rule_names`.
    """

    simulation_only = True

    def __init__(self, params: MemoryModelParams) -> None:
        require_type("params", params, MemoryModelParams)
        self.params = params
        organisation = params.organisation
        super().__init__(
            {
                "row_command": In(strobe_signature(row_command_layout(organisation))),
                "column_command": In(strobe_signature(column_command_layout(organisation))),
                "open_rows": Out(range(organisation.rows)).array(params.simulated_banks),
                "reads_to_units": Out(params.simulated_banks),
                "reads_to_pins": Out(params.simulated_banks),
                "writes": Out(params.simulated_banks),
                "broken": Out(len(rule_names(params.timing))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build every rule over every unit of its level."""
        m = Module()
        timing = self.params.timing
        decoder = CommandDecoder(m, self.params, self.row_command, self.column_command)
        rules = timing_rules(timing)
        # Stamps start at 0 and the clock where no rule reaches back to it.
        now = Signal(_CLOCK_BITS, init=max(rule.cycles for rule in rules))
        m.d.sync += now.eq(now + 1)

        depths: dict[tuple[tuple[str, ...], str], int] = {}
        for rule in rules:
            key = (rule.before, rule.level)
            depths[key] = max(rule.window, depths.get(key, 0))
        stamps = {
            (before, unit): self._stamps(m, now, decoder.reaches(before, unit), depth)
            for (before, level), depth in depths.items()
            for unit in decoder.units[level]
        }
        broken = [
            _any(
                [
                    self._breaks(rule, unit, now, stamps[rule.before, unit], decoder)
                    for unit in decoder.units[rule.level]
                ]
            )
            for rule in rules
        ]
        broken += self._state_rules(m, decoder)
        m.d.sync += self.broken.eq(Cat(*broken))
        for target, names in (
            (self.reads_to_units, ("MAC", "MACSB", "MACAB")),
            (self.reads_to_pins, ("RD",)),
            (self.writes, ("WR",)),
        ):
            m.d.comb += target.eq(Cat(*(decoder.reaches(names, unit) for unit in decoder.units["bank"])))
        return m

    @staticmethod
    def _stamps(m: Module, now: Signal, issued: Value, depth: int) -> list[Signal]:
        """Return the cycles of the last ``depth`` commands, the latest first."""
        stamps = [Signal(_CLOCK_BITS) for _ in range(depth)]
        with m.If(issued):
            m.d.sync += [stamp.eq(earlier) for stamp, earlier in zip(stamps, [now, *stamps], strict=False)]
        return stamps

    @staticmethod
    def _breaks(rule: Rule, unit: tuple[int, ...], now: Signal, stamps: list[Signal], decoder: CommandDecoder) -> Value:
        early = (now - stamps[rule.window - 1])[:_CLOCK_BITS] < rule.cycles
        if rule.before[0] in COLUMN_COMMANDS and rule.after[0] in ROW_COMMANDS:
            early = early | decoder.reaches(rule.before, unit)
        return decoder.reaches(rule.after, unit) & early

    def _state_rules(self, m: Module, decoder: CommandDecoder) -> list[Value]:
        """Return the conditions of :data:`hw.memory.rules.STATE_RULES`, in their order."""
        accesses = ("RD", "WR", "MAC", "MACSB", "MACAB")
        activations = ("ACT", "ACTSB", "ACTAB")
        is_open = Signal(self.params.simulated_banks)
        not_open: list[Value] = []
        not_closed: list[Value] = []
        reached: list[Value] = []
        opened: list[Value] = []
        for index, unit in enumerate(decoder.units["bank"]):
            opens = decoder.reaches(activations, unit)
            with m.If(opens):
                m.d.sync += [is_open[index].eq(1), self.open_rows[index].eq(self.row_command.payload.row)]
            with m.If(decoder.reaches(("PRE", "PRESB", "PREAB"), unit)):
                m.d.sync += is_open[index].eq(0)
            not_closed.append(opens & is_open[index])
            not_open.append(decoder.reaches(accesses, unit) & ~is_open[index])
            reached.append(decoder.reaches(("MACSB", "MACAB"), unit) & is_open[index])
            opened.append(opens)
        # The first open bank reached is the one that the others are compared with.
        reference = self.open_rows[0]
        for index in range(1, len(reached))[::-1]:
            reference = Mux(reached[index], self.open_rows[index], reference)
        reference = Mux(reached[0], self.open_rows[0], reference)
        apart = [hit & (row != reference) for hit, row in zip(reached, self.open_rows, strict=True)]
        return [
            _any(decoder.no_command),
            _any(not_open),
            _any(not_closed),
            decoder.issued["REFAB"] & is_open.any(),
            _any(apart),
            _any(opened) & (self.row_command.payload.row >= self.params.simulated_rows),
            self._refresh_due(m, decoder.issued["REFAB"]),
        ]

    def _refresh_due(self, m: Module, refreshed: Value) -> Value:
        interval, most = self.params.timing.n_refi, self.params.postponed_refreshes
        left = Signal(range(interval + 1), init=interval)
        falls_due = left == 0
        m.d.sync += left.eq(Mux(falls_due, interval - 1, left - 1))
        due = Signal(signed(8))
        after = due + falls_due - refreshed
        with m.If((after <= most) & (after >= -most)):
            m.d.sync += due.eq(after)
        return after > most
