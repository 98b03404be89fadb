"""Work in the background of a step: what of it fits into the time that memories and links have to spare.

A flow moves bytes and takes time on several resources at once, memories and directions of links; its demand ``D_r`` is
its bytes on resource r over the rate of r. A phase of the step lasts ``d_p`` and leaves the part ``a_pr`` of each
resource idle. Nothing is stored on the way, so that the slowest resource sets the pace, and a phase has room for the
part ::

    x_p = d_p * min over r of (a_pr / D_r)

of the flow. Flows take their turn: the first has the room to itself, each later one what is left. A flow that finds
more room than it needs takes the same part of each phase's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Flow", "Phase", "hidden_parts"]


@dataclass(frozen=True)
class Phase:
    """A part of the step.

    Parameters
    ----------
    name : str
        What the step does meanwhile.
    duration_s : float
        How long it lasts, of all layers together.
    idle : mapping of str to float
        Part of each resource's rate that the step leaves idle, from 0 to 1.
    """

    name: str
    duration_s: float
    idle: Mapping[str, float]


@dataclass(frozen=True)
class Flow:
    """Bytes on their way.

    Parameters
    ----------
    name : str
        Between what.
    demands_s : mapping of str to float
        Time that it takes on each resource at the resource's full rate, above 0; all are resources of every phase.
    """

    name: str
    demands_s: Mapping[str, float]


def hidden_parts(flows: Sequence[Flow], phases: Sequence[Phase]) -> list[dict[str, float]]:
    """Return the part of each flow that each phase has room for, by the phase's name; at most 1 in all.

    Parameters
    ----------
    flows : sequence of Flow
        In their turn.
    phases : sequence of Phase
        With different names.
    """
    idle = {phase.name: dict(phase.idle) for phase in phases}
    found: list[dict[str, float]] = []
    for flow in flows:
        room = {phase.name: _room(phase.duration_s, idle[phase.name], flow) for phase in phases}
        scale = 1.0 / max(1.0, sum(room.values()))
        taken = {name: part * scale for name, part in room.items()}
        for phase in phases:
            for name, demand_s in flow.demands_s.items():
                if phase.duration_s:
                    used = taken[phase.name] * demand_s / phase.duration_s
                    idle[phase.name][name] = max(0.0, idle[phase.name][name] - used)
        found.append(taken)
    return found


def _room(duration_s: float, idle: Mapping[str, float], flow: Flow) -> float:
    """Return the part of a flow that a phase has room for."""
    return duration_s * min(idle[name] / demand_s for name, demand_s in flow.demands_s.items())
