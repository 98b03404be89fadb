"""Stages of one layer's attention, one after another: what each takes, and what it hides of itself."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STAGES", "Stage"]

STAGES = ("index query out", "score", "select", "query out", "gather", "attend", "merge", "output back")
"""Stages there are, in their order."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of one layer on the busiest device, all its requests.

    Parameters
    ----------
    name : str
        One of :data:`STAGES`.
    seconds : float
        What it adds to the layer.
    busy_s : float
        How long what it uses is busy; more than ``seconds`` where part of it hides behind other stages.
    bound : str
        What sets its pace: ``memory``, ``compute``, ``link``, ``unit`` or ``exchange``.
    read_bytes : int
        Bytes read from memory, or sent over the link.
    flops : int
        Operations.
    unit_cycles : int
        Cycles of the unit in RTL that it uses; 0 where there is none.
    """

    name: str
    seconds: float
    busy_s: float
    bound: str
    read_bytes: int = 0
    flops: int = 0
    unit_cycles: int = 0
