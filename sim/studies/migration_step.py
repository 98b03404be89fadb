"""What a decode step notices of the tokens that move between the memories while it runs (:mod:`sim.migration`).

PAM prints that 0.7 % of the tokens are adjusted in a step, of which less than 0.1 % come from the SSD. Read to the
letter these are the tokens that change their memory, half of them up and half down; read as swaps there are twice as
many. Both stand in the rows, and beside them what would make either cheaper. Steps are those of the decode table, each
dense and with an eighth of the tokens attended to, as PAM runs its models.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sim.decode import decode_step
from sim.demo import DECODE_POINTS
from sim.migration import Manner, background, swaps
from sim.model_config import load_model
from sim.provenance import Part, combine
from sim.spare import is_attention, step_phases
from sim.step import StepRequest
from sim.studies.migration_flash import FAST_PROGRAM, scattered_amplification, slots_of_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hw.presets.memory_device import PageTiming
    from sim.migration import Background
    from sim.models import Model
    from sim.step import StepTime
    from sim.studies.migration_memory import BusShare
    from sim.studies.migration_rates import LinkShares
    from sim.system import System

__all__ = ["ASKED", "FROM_FLASH", "KEEPS", "MOVED", "has_room_for_copies", "manners", "step_rows"]

MOVED, FROM_FLASH = 0.007, 0.001
"""Parts of all tokens that are adjusted in a step, and that go from flash to DRAM: arXiv:2602.11521, section 6.3."""

ASKED = 0.01
"""By how much of itself a step may grow."""

KEEPS = (1.0, 0.125)
"""Parts of the tokens that are attended to: all, and what PAM's sparsity leaves."""

_JUDGED = ("moved", "each way", "open rows", "rows, each way")
_OF_FLASH = ("runs", "fast", "kept")
_OF_COPIES = ("copies", "copies 8")


def manners(shares: LinkShares, flash: PageTiming, bus: BusShare | None = None) -> dict[str, Manner]:
    """Return how tokens move, by name; the first two are the two readings of what PAM prints.

    Both have the full rate of the memories' pins. ``open rows`` and ``rows, each way`` are the same at the share of
    it that was measured in RTL, between memories whose rows are opened and whose buses turn around.

    Of the others these are as the first but for this: ``8 bits`` compresses tokens on the links. In ``runs`` they leave
    flash in runs that fill its pages; of these ``fast`` has newer flash, and in ``kept`` flash still has what goes down
    to it, so that nothing is written.

    These are as the second: in ``copies`` a token that goes up leaves its copy valid below, which keys and values allow
    since they never change, and what comes down finds it there: a differential copy. All of the nearer memory may then
    have a copy, so that there must be room for it; ``copies 8`` compresses besides. In ``checks`` idle units at the
    banks read back what was written, of which only check sums pass the pins; no RTL of those units does so.

    Parameters
    ----------
    shares : LinkShares
        What of a link's bytes are bytes of tokens.
    flash : PageTiming
        Pages of the last memory.
    bus : BusShare, optional
        What buses of memories with rows reach, where it was measured.
    """
    moved = Manner(
        moved=MOVED,
        last=FROM_FLASH,
        link_share=shares.raw,
        read_amplification=scattered_amplification(FROM_FLASH, slots_of_page(flash)),
        program_bytes_per_s=flash.program_bytes_per_s,
    )
    runs, twice = replace(moved, read_amplification=1.0), replace(moved, moved=2 * MOVED)
    kinds = {
        "moved": moved,
        "each way": twice,
        "8 bits": replace(moved, link_share=shares.compressed),
        "runs": runs,
        "fast": replace(runs, program_bytes_per_s=FAST_PROGRAM.number),
        "kept": replace(runs, keeping=("ssd",)),
        "copies": replace(twice, keeping=("ddr", "ssd")),
        "copies 8": replace(twice, keeping=("ddr", "ssd"), link_share=shares.compressed),
        "checks": replace(twice, checker="banks"),
    }
    if bus is not None:
        kinds["open rows"] = replace(moved, bus_share=bus.share)
        kinds["rows, each way"] = replace(twice, bus_share=bus.share)
    return kinds


def step_rows(system: System, shares: LinkShares, bus: BusShare | None = None) -> list[dict[str, Any]]:
    """Return for every step of the decode table, dense and sparse, by how much it grows; a row a manner.

    Parameters
    ----------
    system : System
        Of three memories, the last of them flash.
    shares : LinkShares
        What of a link's bytes are bytes of tokens.
    bus : BusShare, optional
        What buses of memories with rows reach; without it nothing is said of them.
    """
    flash = system.tiers[-1].device.page
    assert flash is not None
    kinds = manners(shares, flash, bus)
    rows: list[dict[str, Any]] = []
    for name, points in DECODE_POINTS.items():
        model = load_model(name)
        for context, batch in points:
            for keep in KEEPS:
                step = decode_step(system, model, StepRequest(context=context, batch=batch, keep=keep))
                rows += _rows(system, model, step, kinds, _parts(system, model, flash, shares, bus))
    return rows


def _rows(
    system: System, model: Model, step: StepTime, kinds: Mapping[str, Manner], parts: Sequence[Part]
) -> list[dict[str, Any]]:
    """Return the rows of one step: one where all tokens lie in one memory, those of flash where it has some."""
    found = swaps(step, kinds["moved"])
    if not found:
        return [_row(system, model, step, "moved", kinds["moved"], parts)]
    of_flash = any(system.tier(swap.far).device.page is not None for swap in found)
    left_out = () if of_flash else _OF_FLASH
    if not has_room_for_copies(step):
        left_out = (*left_out, *_OF_COPIES)
    chosen = [name for name in kinds if name not in left_out]
    return [_row(system, model, step, name, kinds[name], parts) for name in chosen]


def has_room_for_copies(step: StepTime) -> bool:
    """Return whether each memory that holds tokens has room left for a copy of all that the one before it holds."""
    held = [tier for tier in step.placement if tier.tokens]
    return all(far.room_tokens - far.tokens - far.new_tokens >= near.tokens for near, far in pairwise(held))


def _row(
    system: System, model: Model, step: StepTime, name: str, manner: Manner, parts: Sequence[Part]
) -> dict[str, Any]:
    phases = step_phases(system, model.attention, step)
    whole = background(system, model, step, manner, phases)
    alone = background(system, model, step, manner, [phase for phase in phases if is_attention(phase)])
    request = step.request
    growth = whole.exposed_s / step.total_s if whole.swaps else None
    asked = ASKED if name in _JUDGED and whole.swaps else None
    return {
        "kind": "step",
        "name": f"{model.name}, {request.context:,} x {request.batch}, keep {request.keep:g}: {name}",
        "asked": asked,
        "reached": growth,
        "unit": "of the step",
        "within": None if asked is None or growth is None else growth <= asked,
        "note": _note(whole),
        "model": model.name,
        "context": request.context,
        "batch": request.batch,
        "keep": request.keep,
        "manner": name,
        "moved_bytes": whole.moved_bytes,
        "step_us": step.total_s * 1e6,
        "attention_us": step.attention_s * 1e6,
        "unhidden_us": whole.unhidden_s * 1e6,
        "exposed_us": whole.exposed_s * 1e6,
        "no_gaps": None if growth is None else growth + whole.crossed_s / step.total_s,
        "attention_alone_us": alone.exposed_s * 1e6,
        "attention_growth": alone.exposed_s / step.attention_s if whole.swaps else None,
        "hidden_us": {phase: seconds * 1e6 for phase, seconds in whole.hidden_s.items()},
        "demands_us": {resource: seconds * 1e6 for resource, seconds in whole.demands_s.items()},
        "swaps": [{"near": swap.near, "far": swap.far, "tokens": swap.tokens} for swap in whole.swaps],
        "provenance": combine(parts).to_dict(),
    }


def _note(found: Background) -> str:
    """Return what moves, and what takes longest."""
    if not found.swaps:
        return "all tokens lie in one memory: nothing moves"
    slowest = max(found.demands_s, key=lambda name: found.demands_s[name])
    moved = ", ".join(f"{swap.tokens:,} {swap.near} - {swap.far}" for swap in found.swaps)
    return f"each way {moved}; longest {slowest}, {found.demands_s[slowest] * 1e3:,.1f} ms"


def _parts(
    system: System, model: Model, flash: PageTiming, shares: LinkShares, bus: BusShare | None
) -> tuple[Part, ...]:
    """Return what a growth is made from."""
    rates = (
        Part(f"rate of {tier.name}", "literature", tier.device.external_bytes_per_s.source)
        for tier in system.tiers
        if tier.device.page is None
    )
    return (
        Part(
            "tokens that move", "literature", "arXiv:2602.11521, section 6.3: 0.7 % a step, below 0.1 % from SSD to DDR"
        ),
        Part("model shape", "literature", model.source),
        *rates,
        *(part for link in system.links.values() for part in link.parts),
        shares.part,
        *(() if bus is None else bus.parts),
        Part("page reads of flash", "literature", flash.page_read_s.source),
        Part("page programs of flash", "literature", flash.page_program_s.source),
        Part("page programs of newer flash", "literature", FAST_PROGRAM.source),
        Part("decode step", "modelled", "sim/decode.py: one phase after the other"),
        Part("room", "modelled", "sim/spare.py, sim/background.py: nothing stored on the way; read-back counted"),
    )
