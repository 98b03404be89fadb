"""What a decode step leaves to spare of memories and links: the phases in which something else may use them.

Phases are those of all layers together. The GPUs' products leave of their memory's pins what weights and activations
do not take; all-reduces and the merge at the root leave all memories and links; while queries, states or outputs are on
their way no link has room; and while memories attend, those that are done leave all, those under way the slots of
columns that their power limit leaves.

Such a slot is for another row than the one that is open in all banks: it is closed, a token's columns are read from one
bank of each pseudo-channel (of each chip of a DIMM), and it is opened again, ``2 (tRP + tRCD) + n tCCD_L`` cycles for
``n tBL`` of the pins. What attention misses meanwhile it catches up, for the limit allows a burst after a pause. Where
not the limit but units, columns, pages or the reduction set the pace, a pause costs attention its time, and no slot is
counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.background import Phase
from sim.channel_cycles import channel_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hw.presets import MemoryDevice
    from sim.links import Link
    from sim.models import Attention
    from sim.step import StepTime
    from sim.system import System, Tier
    from sim.tier import TierTime

__all__ = ["PRODUCTS", "is_attention", "link_resources", "slot_share", "spare_share", "step_phases"]

PRODUCTS = "products"
"""Phase in which the GPUs read weights from their memory."""

_GPU_PHASES = (PRODUCTS, "all-reduce")

_ONE_WAY = ("memory-bus",)
"""Links that have one direction at a time."""


def link_resources(link: Link) -> dict[str, tuple[int, int]]:
    """Return the resources that a link is, each with how often bytes that go up and down take it.

    Up is towards the GPUs.
    """
    if link.name in _ONE_WAY:
        return {link.name: (1, 1)}
    return {f"{link.name} up": (1, 0), f"{link.name} down": (0, 1)}


def is_attention(phase: Phase) -> bool:
    """Return whether a phase of a step is attention's and not the GPUs'."""
    return phase.name not in _GPU_PHASES


def step_phases(system: System, attention: Attention, step: StepTime) -> list[Phase]:
    """Return the phases of a step: products, all-reduce, links, tiers as one memory after the other ends, root.

    Parameters
    ----------
    system : System
    attention : Attention
        Of the step's model.
    step : StepTime
        A step on that system.
    """
    memories = [tier.name for tier in system.tiers]
    links = [name for link in system.links.values() for name in link_resources(link)]
    free = dict.fromkeys([*memories, *links], 1.0)
    home = system.gpu_tier
    pins = system.gpu.count.integer * system.gpu_bytes_per_s
    durations = {PRODUCTS: 0.0, "all-reduce": 0.0, "links": 0.0, "root": 0.0}
    read_bytes = 0.0
    for gpu, count in ((step.head, 1), *((entry.gpu, entry.count) for entry in step.layers)):
        durations[PRODUCTS] += count * gpu.matrices_s
        durations["all-reduce"] += count * gpu.allreduce_s
        read_bytes += count * gpu.read_bytes
    for entry in step.layers:
        durations["links"] += entry.count * entry.link_s
        durations["root"] += entry.count * entry.root_s
    products = max(0.0, 1.0 - read_bytes / (pins * durations[PRODUCTS]))
    return [
        Phase(PRODUCTS, durations[PRODUCTS], free | {home.name: products}),
        Phase("all-reduce", durations["all-reduce"], free),
        Phase("links", durations["links"], free | dict.fromkeys(links, 0.0)),
        *_tier_phases(system, attention, step, free),
        Phase("root", durations["root"], free),
    ]


def _tier_phases(system: System, attention: Attention, step: StepTime, free: dict[str, float]) -> Iterable[Phase]:
    """Yield for every kind of layer the times between the ends of its memories, up to that of the one waited for."""
    for number, entry in enumerate(step.layers):
        last = entry.tiers[entry.critical].total_s
        ends = sorted({min(last, time.total_s) for time in entry.tiers.values()} - {0.0})
        for part, (start, end) in enumerate(zip([0.0, *ends], ends, strict=False)):
            busy = {
                name: spare_share(system.tier(name), attention, time)
                for name, time in entry.tiers.items()
                if time.total_s > start
            }
            yield Phase(f"tiers {number}.{part}", entry.count * (end - start), free | busy)


def spare_share(tier: Tier, attention: Attention, time: TierTime) -> float:
    """Return the part of a memory's rate that attention leaves while it is under way: slots that the limit leaves.

    Parameters
    ----------
    tier : Tier
    attention : Attention
    time : TierTime
        The tier's time in a layer.
    """
    if time.bound != "cap" or tier.device.page is not None:
        return 0.0
    channel = time.channel
    if channel is None:
        columns_s = time.bounds_s["column"]
    else:
        columns_s = channel.rows_s + channel.refresh_cycles / channel_table(tier.device).clock_hz
    return max(0.0, 1.0 - (time.access_s + columns_s) / time.total_s) * slot_share(tier.device, attention.token_bytes)


def slot_share(device: MemoryDevice, slot_bytes: int) -> float:
    """Return the part of the pins' rate at which slots are read in pauses, each from a row opened for it alone.

    Parameters
    ----------
    device : MemoryDevice
        With columns.
    slot_bytes : int
        Bytes of a slot.
    """
    assert device.unit_column_bytes is not None
    cycles = {name: value.number for name, value in device.timing.items()}
    columns = slot_bytes / device.unit_column_bytes.integer
    pause = 2 * (cycles["tRP"] + cycles["tRCD"]) + columns * cycles["tCCD_L"]
    return columns * cycles["tBL"] / pause
