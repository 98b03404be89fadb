"""Swaps of tokens between the memories of a system during a decode step, and what of them the step does not notice.

A swap takes a token up, to the nearer memory, and one down; between two memories as many go up as down. Moving B bytes
up and B bytes down takes, at each resource's full rate unless said otherwise:

memory of banks
    ``(B read + B written + B read back) / (rate of its pins * bus share)``: the DMA reads what it wrote before it
    lets go of the source. Where the units at the banks read it back, idle while the GPUs work, the last is ``B /
    power limit`` for their columns, while the pins stand still, and a column on the pins for the check sum of each
    slot;
flash
    ``B * read amplification / page reads of its dies + B / program rate of its dies``; its write buffer is read back;
link
    ``B / (rate * share)`` in each direction, both together where the link has one direction at a time. ``share`` is
    what of a link's bytes are bytes of tokens.

Links of one memory's path that are not of the other's lie between them. The GPUs' own memory has no link but its pins.

What fits into the time to spare (:mod:`sim.spare`) is hidden. The rest takes the time of the memories from the step, on
its way over the links beside it::

    exposed = max((1 - hidden) * max over memories of D_m, max over resources of D_r - step)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from sim.background import Flow, hidden_parts
from sim.spare import PRODUCTS, link_resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.background import Phase
    from sim.models import Model
    from sim.step import StepTime
    from sim.system import System, Tier

__all__ = ["CHECKERS", "Background", "Manner", "Swap", "background", "swap_flow", "swaps"]

CHECKERS = ("pins", "banks")
"""Where what was written is read back."""


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How tokens move.

    Parameters
    ----------
    moved : float
        Part of all tokens that change their memory in a step, those up and those down together.
    last : float
        Part of all tokens that go up from the last of three memories, and as many down to it.
    link_share : float
        Bytes of tokens for each byte that a link has room for; above 1 if they are compressed.
    read_amplification : float
        Bytes read from flash for each byte of a token.
    program_bytes_per_s : float
        Rate at which a die of flash is programmed.
    keeping : tuple of str
        Kinds of memories that have kept a copy of what comes down to them, so that nothing moves down.
    checker : {"pins", "banks"}
        Where what was written is read back: over the pins by the DMA, or at the banks by the units there.
    bus_share : float
        Part of the time in which pins of memories of banks can carry what moves; 1 is their full rate.

    Raises
    ------
    ValueError
        If ``checker`` is something else, or ``bus_share`` not above 0 and at most 1.
    """

    moved: float
    last: float
    link_share: float
    read_amplification: float
    program_bytes_per_s: float
    keeping: tuple[str, ...] = ()
    checker: str = "pins"
    bus_share: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.bus_share <= 1.0:
            raise ValueError(f"bus_share must be above 0 and at most 1, not {self.bus_share!r}")
        if self.checker not in CHECKERS:
            raise ValueError(f"checker must be one of {', '.join(CHECKERS)}, not {self.checker!r}")


@dataclass(frozen=True)
class Swap:
    """Tokens that change places in a step.

    Parameters
    ----------
    near, far : str
        The two memories.
    tokens : int
        Tokens that go up, and tokens that go down.
    """

    near: str
    far: str
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Background:
    """Swaps in the background of a step.

    Parameters
    ----------
    swaps : tuple of Swap
        Those of at least one token.
    moved_bytes : int
        Bytes of the tokens that change their memory.
    demands_s : dict of str to float
        Time on each memory and direction of a link, of all swaps together.
    hidden_s : dict of str to float
        What each phase has room for, in time of the memory of a swap that takes longest.
    unhidden_s : float
        The same of everything that moves.
    exposed_s : float
        By how much the step grows.
    crossed_s : float
        Time of the GPUs' memory that swaps take while products read it: by as much the step grows more if those reads
        leave no gaps that something else can use.
    """

    swaps: tuple[Swap, ...]
    moved_bytes: int
    demands_s: dict[str, float] = field(default_factory=dict[str, float])
    hidden_s: dict[str, float] = field(default_factory=dict[str, float])
    unhidden_s: float = 0.0
    exposed_s: float = 0.0
    crossed_s: float = 0.0


def swaps(step: StepTime, manner: Manner) -> tuple[Swap, ...]:
    """Return how many tokens change places between neighbouring memories that hold any, the nearest first.

    The two farthest of three swap ``last`` of all tokens; the two nearest the rest of ``moved``. No memory gives more
    tokens than it holds.

    Parameters
    ----------
    step : StepTime
    manner : Manner
    """
    total = step.request.batch * step.request.context
    held = {tier.name: tier.tokens for tier in step.placement if tier.tokens}
    rest = total * manner.moved / 2
    found: list[Swap] = []
    for number, (near, far) in reversed(list(enumerate(pairwise(held)))):
        # Ten decimals are kept, so that binary fractions round nothing up.
        wanted = math.ceil(round(total * manner.last if number else rest, 10))
        found.append(Swap(near, far, min(wanted, held[near], held[far])))
        rest = max(0.0, rest - found[-1].tokens)
    return tuple(reversed(found))


def background(system: System, model: Model, step: StepTime, manner: Manner, phases: Sequence[Phase]) -> Background:
    """Return what of a step's swaps finds room, and by how much the rest prolongs it.

    Parameters
    ----------
    system : System
    model : Model
    step : StepTime
        Of that model on that system.
    manner : Manner
    phases : sequence of Phase
        Where to look for room: those of the step, or some of them.
    """
    exchanged = tuple(swap for swap in swaps(step, manner) if swap.tokens)
    moved = sum(2 * swap.tokens for swap in exchanged) * model.kv_bytes_per_token
    if not exchanged:
        return Background(swaps=exchanged, moved_bytes=moved)
    flows = [swap_flow(system, model, swap, manner) for swap in exchanged]
    memories = {tier.name for tier in system.tiers}
    longest = [max(demand for name, demand in flow.demands_s.items() if name in memories) for flow in flows]
    parts = hidden_parts(flows, phases)
    hidden_s = {
        phase.name: sum(part[phase.name] * time for part, time in zip(parts, longest, strict=True)) for phase in phases
    }
    demands_s: dict[str, float] = {}
    for flow in flows:
        for name, demand in flow.demands_s.items():
            demands_s[name] = demands_s.get(name, 0.0) + demand
    # Twelve decimals are kept, so that nothing is left of what parts of 1 add up to.
    left = sum(time * round(1.0 - sum(part.values()), 12) for part, time in zip(parts, longest, strict=True))
    return Background(
        swaps=exchanged,
        moved_bytes=moved,
        demands_s=demands_s,
        hidden_s=hidden_s,
        unhidden_s=sum(longest),
        exposed_s=max(left, max(demands_s.values()) - step.total_s, 0.0),
        crossed_s=sum(
            part.get(PRODUCTS, 0.0) * flow.demands_s.get(system.gpu_tier.name, 0.0)
            for part, flow in zip(parts, flows, strict=True)
        ),
    )


def swap_flow(system: System, model: Model, swap: Swap, manner: Manner) -> Flow:
    """Return a swap's time on every resource that it takes any of."""
    near, far = system.tier(swap.near), system.tier(swap.far)
    up = swap.tokens * model.kv_bytes_per_token
    down = 0 if far.device.kind in manner.keeping else up
    slot_bytes = model.attention.token_bytes
    demands = {
        near.name: _memory_s(near, manner, slot_bytes, read=down, written=up),
        far.name: _memory_s(far, manner, slot_bytes, read=up, written=down),
    }
    between = [
        link
        for one, other in ((near, far), (far, near))
        if not one.shared_with_gpu
        for link in one.path
        if link not in other.path
    ]
    for link in between:
        for name, (times_up, times_down) in link_resources(link).items():
            demands[name] = (times_up * up + times_down * down) / (link.bytes_per_s * manner.link_share)
    return Flow(f"{near.name}, {far.name}", {name: demand for name, demand in demands.items() if demand})


def _memory_s(tier: Tier, manner: Manner, slot_bytes: int, *, read: int, written: int) -> float:
    """Return the time of all devices of a memory for bytes of tokens read and written there."""
    page = tier.device.page
    if page is None:
        pins = manner.bus_share * tier.count.integer * tier.device.external_bytes_per_s.number
        check_s = written / pins if manner.checker == "pins" else _bank_check_s(tier, slot_bytes, written)
        return (read + written) / pins + check_s
    dies = tier.channels * page.dies_per_channel.integer
    read_s = read * manner.read_amplification / (tier.channels * page.read_bytes_per_s)
    return read_s + written / (dies * manner.program_bytes_per_s)


def _bank_check_s(tier: Tier, slot_bytes: int, written: int) -> float:
    """Return the time in which units at the banks read bytes of slots back and say what check sums they have."""
    device = tier.device
    assert device.unit_column_bytes is not None
    column_s = device.unit_column_bytes.integer / slot_bytes / device.external_bytes_per_s.number
    return written / tier.count.integer * (1 / device.cap_bytes_per_s.number + column_s)
