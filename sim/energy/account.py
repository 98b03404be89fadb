"""Energy by part: GPUs, the three kinds of memory, links, host; each can be left out, and nothing is guessed.

``gpu``
    idle power over all time, ``(board - idle) / peak`` an operation, and the way of every byte through the caches. At
    peak operations a card so draws its board power. Steps that wait for memory draw less by this account than cards are
    seen to draw; ``board_j`` bounds it: GPUs at board power while a step runs, their memory included.
``hbm``, ``ddr``, ``ssd``
    bytes through the pins, bytes and operations of the units near the banks, and power at rest.
``links``
    bytes of each link.
``host``
    node and processors over all time.

A part without a model that has a source is named, and the sum is withheld unless the part is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sim.energy.costs import GPU_BYTE, HOST, LINKS, MEMORIES, cost_values
from sim.errors import UnknownNameError
from sim.gpu_server import GpuServer
from sim.provenance import Part, Provenance, combine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hw.presets import Value
    from sim.energy.activity import Activity
    from sim.system import System

__all__ = ["PARTS", "Energy", "account", "check_parts"]

PARTS = ("gpu", "hbm", "ddr", "ssd", "links", "host")
"""Parts in the order of a report."""

_BIT_PJ = 8e-12  # joules of a byte at 1 pJ a bit


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Energy of an activity.

    Parameters
    ----------
    parts_j : dict of str to float
        Joules by part, those left out excluded.
    missing : dict of str to str
        Parts without a model, and what there is no source for.
    left_out : tuple of str
        Parts that were not asked for.
    board_j : float or None
        GPUs at board power while steps run and idle else, their memory included; at board power all the time where
        nobody says what they draw idle; None without a source.
    sources : tuple of Part
        Where the power of the GPUs comes from.
    """

    parts_j: dict[str, float]
    missing: dict[str, str] = field(default_factory=dict[str, str])
    left_out: tuple[str, ...] = ()
    board_j: float | None = None
    sources: tuple[Part, ...] = ()

    @property
    def total_j(self) -> float | None:
        """All parts together; None if one has no model."""
        return None if self.missing else sum(self.parts_j.values())

    @property
    def provenance(self) -> Provenance:
        """Class and parts of every joule."""
        costs = (Part(name, "literature", value.source) for name, value in cost_values())
        return combine([*self.sources, *costs, Part("counts", "modelled", "sim/energy/activity.py")])

    def to_record(self) -> dict[str, Any]:
        """Return the keys of a record."""
        note = ", ".join(f"{part} ({why})" for part, why in self.missing.items())
        return {
            "energy_j": self.total_j,
            "energy_note": f"null: no source for {note}" if note else None,
            "energy": {
                "parts_j": self.parts_j,
                "left_out": list(self.left_out),
                "gpu_board_j": self.board_j,
                "provenance": self.provenance.to_dict(),
            },
        }


def check_parts(names: Iterable[str]) -> tuple[str, ...]:
    """Return parts to leave out, each once, in the order of a report.

    Raises
    ------
    UnknownNameError
        If there is no such part.
    """
    given = set(names)
    for name in given:
        if name not in PARTS:
            raise UnknownNameError("part of the energy", name, PARTS)
    return tuple(name for name in PARTS if name in given)


def account(machine: System | GpuServer, activity: Activity, *, left_out: tuple[str, ...] = ()) -> Energy:
    """Return the energy of what a machine did.

    Parameters
    ----------
    machine : System or GpuServer
    activity : Activity
    left_out : tuple of str
        Parts of :data:`PARTS` that the sum leaves out.
    """
    parts: dict[str, float] = {}
    missing: dict[str, str] = {}
    gpu, board, why = _gpu_j(machine, activity)
    if why:
        missing["gpu"] = why
    else:
        parts["gpu"] = gpu
    parts |= _memories_j(machine, activity)
    links, unknown = _links_j(activity)
    if unknown:
        missing["links"] = f"a bit on {', '.join(unknown)}"
    else:
        parts["links"] = links
    parts["host"] = activity.seconds * HOST.watts
    return Energy(
        parts_j={name: parts[name] for name in PARTS if name in parts and name not in left_out},
        missing={name: text for name, text in missing.items() if name not in left_out},
        left_out=left_out,
        board_j=board,
        sources=tuple(
            Part(f"GPU {name}", "literature", value.source)
            for name, value in (("idle_w", machine.gpu.idle_w), ("board_w", machine.gpu.board_w))
            if value is not None
        ),
    )


def _gpu_j(machine: System | GpuServer, activity: Activity) -> tuple[float, float | None, str]:
    """Return the joules of the GPUs, those at board power, and what there is no source for."""
    gpu, count = machine.gpu, machine.gpu.count.integer
    if gpu.board_w is None:
        return 0.0, None, f"power of a GPU of {machine.name}, board_w"
    if gpu.idle_w is None:
        at_most = count * gpu.board_w.number * activity.seconds
        return 0.0, at_most, f"power of a GPU of {machine.name} at rest, idle_w"
    idle, board = gpu.idle_w.number, gpu.board_w.number
    flop_j = (board - idle) / gpu.peak_flops.number
    at_rest = count * idle * activity.seconds
    joules = at_rest + activity.gpu_flops * flop_j + activity.gpu_bytes * GPU_BYTE.number * _BIT_PJ
    return joules, at_rest + count * (board - idle) * activity.busy_s, ""


def _memories_j(machine: System | GpuServer, activity: Activity) -> dict[str, float]:
    """Return the joules of the memories by kind; a kind that the machine has not takes none."""
    joules: dict[str, float] = {}
    for name, kind, count, size in _memories(machine):
        cost = MEMORIES[kind]
        bits = (
            (activity.read_bytes.get(name, 0.0), cost.pin_read_pj),
            (activity.written_bytes.get(name, 0.0), cost.pin_write_pj),
            (activity.near_bytes.get(name, 0.0), cost.near_read_pj),
        )
        found = sum(count_bytes * value.number * _BIT_PJ for count_bytes, value in bits)
        found += activity.macs.get(name, 0.0) * cost.mac_pj.number * 1e-12
        found += activity.seconds * count * _idle_w(cost.idle_w, cost.idle_bytes, size)
        joules[kind] = joules.get(kind, 0.0) + found
    return joules


def _memories(machine: System | GpuServer) -> list[tuple[str, str, int, int]]:
    """Return name, kind, devices and bytes of a device of each memory."""
    if isinstance(machine, GpuServer):
        return [("gpu-memory", "hbm", machine.gpu.count.integer, machine.gpu.memory_bytes.integer)]
    return [
        (tier.name, tier.device.kind, tier.count.integer, tier.device.capacity_bytes.integer) for tier in machine.tiers
    ]


def _idle_w(watts: Value | None, of_bytes: Value | None, size: int) -> float:
    """Return the power of one device at rest."""
    if watts is None:
        return 0.0
    return watts.number if of_bytes is None else watts.number * size / of_bytes.number


def _links_j(activity: Activity) -> tuple[float, list[str]]:
    """Return the joules of all links, and those without a source."""
    joules = 0.0
    unknown: list[str] = []
    for name, count in activity.link_bytes.items():
        if not count:
            continue
        if name not in LINKS:
            unknown.append(name)
        else:
            joules += count * LINKS[name].number * _BIT_PJ
    return joules, unknown
