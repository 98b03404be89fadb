"""The rules of a channel's commands as data: which must keep how far apart, and where they must meet for it.

Commands are named as in AttAcc's controller: the kind alone for one bank (``ACT``, ``PRE``, ``RD``, ``WR``, ``MAC``),
with ``SB`` for one bank in every bank group of the channel, with ``AB`` for every bank of the channel. Refresh is of
all banks. ``BROADCAST`` brings a column's worth of bytes over the pins of the channel to the units and touches no bank.

**One table serves all scopes.** A rule of the bank holds between any two commands that reach a common bank, so that
``ACT -> MAC``, ``ACTAB -> MACAB`` and ``ACT -> MACAB`` keep the same ``n_rcdrd``; a command to several banks keeps
every rule of each. Three things differ by scope:

* pace of multiply-accumulates: ``n_ccds`` and ``n_ccdl`` where one of the two is of a single bank, ``n_ccdab`` where
  neither is;
* the window of four activations, ``n_faw``, counts activations of single banks;
* the power of an activation of many banks stands outside ``n_faw``: see :func:`activations_per_window`.

Sources: the distances of ACTAB, MACAB, PREA and REFab are those of scale-snu/attacc_simulator (HBM3-PIM.cpp), those of
single banks JEDEC JESD238 as ramulator2 and AttAcc read it. Stricter than AttAcc: activations of one bank in every
group keep ``n_rrdl``; all commands that share pins or a group's column path keep their distance, whatever their scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.checks import require_int

if TYPE_CHECKING:
    from hw.memory.organisation import Organisation
    from hw.memory.timing import DramTiming

__all__ = [
    "ACT_BUS_CYCLES",
    "COLUMN_COMMANDS",
    "LEVELS",
    "ROW_COMMANDS",
    "STATE_RULES",
    "Rule",
    "activations_per_window",
    "command_name",
    "distance",
    "rule_names",
    "same_bank_activation_cycles",
    "timing_rules",
]

ACT_BUS_CYCLES = 2
"""Cycles that an activation takes on the bus of row commands."""

LEVELS = ("bank", "bankgroup", "rank", "pseudochannel", "channel")
"""Where two commands can meet, from the smallest part of a channel to the whole."""

_ACT = ("ACT", "ACTSB", "ACTAB")
_PRE = ("PRE", "PRESB", "PREAB")
_MAC = ("MAC", "MACSB", "MACAB")
_READ = ("RD", *_MAC)

ROW_COMMANDS = (*_ACT, *_PRE, "REFAB")
"""Commands of the bus of row commands; every other pair of kind and scope is none."""

COLUMN_COMMANDS = ("RD", "WR", *_MAC, "BROADCAST")
"""Commands of the bus of column commands."""

_SUFFIX = {"BANK": "", "SAME_BANK": "SB", "ALL_BANK": "AB"}

STATE_RULES = {
    "command": "kind and scope make a command, and the address exists",
    "row open": "RD, WR and MAC find a row open in every bank they reach",
    "bank closed": "ACT finds every bank it reaches closed",
    "banks closed": "REFAB finds every bank closed",
    "lock step": "MACSB and MACAB find the same row open in every bank they reach",
    "row kept": "ACT opens a row that the memory model has cells for; no rule of a real memory",
    "refresh due": "no more refreshes are due at once than may be postponed",
}
"""Rules about what a command finds, not when it comes; the last is broken by the clock, without a command."""


@dataclass(frozen=True)
class Rule:
    """No command of ``after`` sooner than ``cycles`` after a command of ``before`` with which it shares a ``level``.

    Parameters
    ----------
    name : str
        Unique name.
    before, after : tuple of str
        Names of commands.
    level : str
        One of :data:`LEVELS`: the two commands reach at least one common unit of this level.
    cycles : int
        Smallest distance in cycles of the device clock.
    window : int
        Counts from the ``window``-th last command of ``before``.
    """

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    level: str
    cycles: int
    window: int = 1


def command_name(kind: str, scope: str) -> str:
    """Return the name of a command of this kind and scope, which need not exist.

    Raises
    ------
    ValueError
        If there is no such scope.
    """
    if scope not in _SUFFIX:
        raise ValueError(f"scope must be one of {', '.join(_SUFFIX)}, not {scope!r}")
    return kind if kind == "BROADCAST" else kind + _SUFFIX[scope]


def timing_rules(timing: DramTiming) -> tuple[Rule, ...]:
    """Return all distances that ``timing`` demands, rules of rows first."""
    t = timing
    write_end = t.n_cwl + t.n_bl
    # A read's data must not meet a write's on the pins: late enough for the data, and one command a burst.
    write_to_read_pins = max(t.n_bl, write_end - t.n_cl)
    refresh = ("REFAB",)
    return (
        Rule("ACT on the row bus", _ACT, ROW_COMMANDS, "channel", ACT_BUS_CYCLES),
        Rule("ACT to ACT, bank", _ACT, _ACT, "bank", t.n_rc),
        Rule("ACT to ACT, bank group", _ACT, _ACT, "bankgroup", t.n_rrdl),
        Rule("ACT to ACT, rank", _ACT, _ACT, "rank", t.n_rrds),
        Rule("four ACT, rank", ("ACT",), ("ACT",), "rank", t.n_faw, window=4),
        Rule("ACT to PRE", _ACT, _PRE, "bank", t.n_ras),
        Rule("ACT to REF", _ACT, refresh, "bank", t.n_rc),
        Rule("PRE to ACT", _PRE, _ACT, "bank", t.n_rp),
        Rule("PRE to REF", _PRE, refresh, "bank", t.n_rp),
        Rule("REF to ACT", refresh, _ACT, "channel", t.n_rfc),
        Rule("REF to REF", refresh, refresh, "channel", t.n_rfc),
        Rule("read to PRE", _READ, _PRE, "bank", t.n_rtpl),
        Rule("WR to PRE", ("WR",), _PRE, "bank", write_end + t.n_wr),
        Rule("ACT to read", _ACT, _READ, "bank", t.n_rcdrd),
        Rule("ACT to WR", _ACT, ("WR",), "bank", t.n_rcdwr),
        Rule("read to read, bank group", _READ, _READ, "bankgroup", t.n_ccdl),
        Rule("read to read, rank", _READ, _READ, "rank", t.n_ccds),
        Rule("MACAB to MACAB", ("MACSB", "MACAB"), ("MACSB", "MACAB"), "channel", t.n_ccdab),
        Rule("WR to WR, bank group", ("WR",), ("WR",), "bankgroup", t.n_ccdl),
        Rule("WR to WR, rank", ("WR",), ("WR",), "rank", t.n_ccds),
        Rule("MAC to WR, bank group", _MAC, ("WR",), "bankgroup", t.n_ccdl),
        Rule("MAC to WR, rank", _MAC, ("WR",), "rank", t.n_ccds),
        Rule("WR to read, bank group", ("WR",), _READ, "bankgroup", write_end + t.n_wtrl),
        Rule("WR to read, rank", ("WR",), _READ, "rank", write_end + t.n_wtrs),
        Rule("RD to RD, pins", ("RD",), ("RD",), "pseudochannel", t.n_bl),
        Rule("WR to WR, pins", ("WR",), ("WR",), "pseudochannel", t.n_bl),
        Rule("RD to WR, pins", ("RD",), ("WR",), "pseudochannel", t.n_rtw),
        Rule("WR to RD, pins", ("WR",), ("RD",), "pseudochannel", write_to_read_pins),
        Rule("RD to BROADCAST, pins", ("RD",), ("BROADCAST",), "channel", t.n_rtw),
        Rule("BROADCAST to RD, pins", ("BROADCAST",), ("RD",), "channel", write_to_read_pins),
        Rule("BROADCAST to BROADCAST, pins", ("BROADCAST",), ("BROADCAST",), "channel", t.n_ccds),
        Rule("WR to BROADCAST, pins", ("WR",), ("BROADCAST",), "channel", t.n_ccds),
        Rule("BROADCAST to WR, pins", ("BROADCAST",), ("WR",), "channel", t.n_ccds),
    )


def rule_names(timing: DramTiming) -> tuple[str, ...]:
    """Return the names of all rules, of time and of state, in the order in which violations are numbered."""
    return (*(rule.name for rule in timing_rules(timing)), *STATE_RULES)


def distance(timing: DramTiming, before: str, after: str, level: str = "bank") -> int:
    """Return the smallest distance of two commands that share a unit of ``level`` and so of every larger level.

    The window of four activations, which is no matter of two commands, is left out; 1 where no rule holds, as a bus
    takes one command a cycle.

    Parameters
    ----------
    timing : DramTiming
    before, after : str
        Names of commands.
    level : str
        Smallest unit that both reach: one of :data:`LEVELS`. Commands of many banks reach a common bank.

    Raises
    ------
    ValueError
        If there is no such command or level.
    """
    for name in (before, after):
        if name not in ROW_COMMANDS + COLUMN_COMMANDS:
            raise ValueError(f"command must be one of {', '.join(ROW_COMMANDS + COLUMN_COMMANDS)}, not {name!r}")
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    shared = LEVELS[LEVELS.index(level) :]
    return max(
        (
            rule.cycles
            for rule in timing_rules(timing)
            if before in rule.before and after in rule.after and rule.level in shared and rule.window == 1
        ),
        default=1,
    )


def activations_per_window(organisation: Organisation, timing: DramTiming, banks: int) -> tuple[int, int]:
    """Return the activations a rank starts within ``n_faw``: by rows opened in ``banks`` banks at once, and singly.

    The budget of activation power: single banks may start 4 in ``n_faw`` cycles, and not more than one each
    ``n_rrds``. An ACTAB starts all banks of a rank at once, ``4 * bankgroups`` in HBM, and again after ``n_rc``. So
    all-bank commands are granted the first number of activations where JEDEC grants the second: a part that offers them
    must supply that current. At HBM3's 5.2 Gb/s: 16 to 4.

    Parameters
    ----------
    organisation : Organisation
    timing : DramTiming
    banks : int
        Banks of a rank that one command opens; 1 to all of them.

    Raises
    ------
    ValueError
        If there are not as many banks in a rank.
    """
    require_int("banks", banks, 1, organisation.bankgroups * organisation.banks)
    together = banks * -(-timing.n_faw // max(timing.n_rc, timing.n_ras + timing.n_rp))
    singly = min(4, -(-timing.n_faw // timing.n_rrds))
    return together, singly


def same_bank_activation_cycles(organisation: Organisation, timing: DramTiming) -> int:
    """Return the distance of ACTSB commands that starts no more than four activations a rank in ``n_faw`` cycles.

    An ACTSB opens a row in each of a rank's ``bankgroups`` bank groups: ``ceil(bankgroups * n_faw / 4)`` cycles apart
    they draw no more than JEDEC grants single banks, which no rule of the command table asks of them; n_rrdl holds
    besides. A rank of more than four bank groups starts them all at once, and then keeps that rate.
    """
    return max(distance(timing, "ACTSB", "ACTSB", "bankgroup"), -(-organisation.bankgroups * timing.n_faw // 4))
