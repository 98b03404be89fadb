"""What moving tokens out of flash and into it costs: whole pages read, pages programmed and collected again.

A drive reads whole pages (:class:`golden.dma.nand.NandMemory` counts them). A page of 16 KB holds 32 slots, each the
key and value of one token, layer and KV head of dimension 128. How many of them are wanted decides what is read for
each byte wanted: with w of n wanted, n / w bytes.

Which slots share a page is the placement's choice: ``by token``, slots of one token; ``packed``, successive tokens of
one layer and head, as attention reads them; ``at random``, any. Four ways to ask for slots stand beside each other:
tokens scattered over the context or runs of them as long as a page has slots, all layers and heads, as a move asks for
them; and all or an eighth of the tokens of one layer and head, as attention does. Where a part f of the tokens is
wanted, each alone, packed pages are touched with ``1 - (1 - f)^n``, and ``(1 - (1 - f)^n) / f`` bytes are read for each
byte wanted (:func:`scattered_amplification`).

Demotions overwrite slots at random. Pages are programmed out of place, and the fuller a memory is, the more valid slots
are copied when a block is collected, the one with the fewest first; blocks are small here, so that a run takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from golden.dma.nand import NandMemory
from golden.dma.nand_geometry import NandGeometry, NandTimes
from hw.presets.value import Value
from sim.provenance import Part, combine

if TYPE_CHECKING:
    import numpy.typing as npt

    from hw.presets.memory_device import PageTiming
    from sim.system import System, Tier

__all__ = [
    "FAST_PROGRAM",
    "FILLS",
    "SCATTERED",
    "amplification_rows",
    "placement_rows",
    "scattered_amplification",
    "slots_of_page",
    "write_rows",
]

FAST_PROGRAM = Value(
    194e6,
    "bytes/s",
    "IEEE ISSCC 2023, paper 28.2: write throughput of a die of 1 Tb, 3 bits a cell, beside the preset's flash of 2",
)
"""Rate at which a die of newer flash than the preset's is programmed."""

SCATTERED = 0.001
"""Part of the tokens that moves in the counts of placements: what PAM says leaves flash in a step at most."""

FILLS = (0.3, 0.5, 0.7, 0.8)
"""Parts of the room for slots that are in use when demotions overwrite them."""

_SLOT_BYTES = 512
_WANTED = (1, 2, 4, 8, 16, 32)
_TOKENS, _SLOTS_OF_TOKEN, _SCATTERED_TOKENS = 4096, 32, 4
_ATTENDED = 8
_ROUNDS = 2
_SMALL = {"dies": 1, "blocks": 24, "pages": 8}
_COUNTED = Part("pages", "modelled", "golden.dma.nand.NandMemory, pages counted")
_NO_TIMES = NandTimes(read_s=0.0, program_s=0.0, erase_s=0.0)


def slots_of_page(page: PageTiming) -> int:
    """Return the slots of 512 bytes that a page holds."""
    return page.page_bytes.integer // _SLOT_BYTES


def scattered_amplification(part: float, page_slots: int) -> float:
    """Return the bytes read for each byte wanted if a part of the tokens is wanted, each alone, from packed pages."""
    return (1.0 - (1.0 - part) ** page_slots) / part


def amplification_rows(system: System, tier: Tier) -> list[dict[str, Any]]:
    """Return what is read for each byte wanted, and how fast that is, over the slots wanted of each page.

    Parameters
    ----------
    system : System
    tier : Tier
        Its flash.
    """
    page = tier.device.page
    assert page is not None
    slots = slots_of_page(page)
    inside = tier.channels * page.read_bytes_per_s
    host = min(link.bytes_per_s for link in tier.path if link not in system.gpu_tier.path)
    parts = [
        _COUNTED,
        Part("page, tR, dies, bus", "literature", page.page_read_s.source),
        *next(link for link in tier.path if link.bytes_per_s == host).parts,
    ]
    rows: list[dict[str, Any]] = []
    for wanted in _WANTED:
        memory = _roomy(4 * slots, slots)
        memory.read_many([page * slots + slot for page in range(4) for slot in range(wanted)])
        amplification = memory.read_amplification
        rate = min(host, inside / amplification)
        rows.append(
            {
                "kind": "flash read",
                "name": f"{wanted} of {slots} slots of a page",
                "asked": None,
                "reached": amplification,
                "unit": "bytes read a byte wanted",
                "within": None,
                "note": f"{1 / amplification:.1%} of a page is wanted",
                "wanted_slots": wanted,
                "page_slots": slots,
                "wanted_bytes_per_s": rate,
                "bound": "page reads" if rate < host else "drives' links",
                "provenance": combine(parts).to_dict(),
            }
        )
    return rows


def placement_rows(page_slots: int, seed: int) -> list[dict[str, Any]]:
    """Return what is read for each byte wanted, by placement and by who asks.

    Parameters
    ----------
    page_slots : int
        Slots of a page; divides the tokens.
    seed : int
        Of the random placement and of the tokens drawn.
    """
    rng = np.random.default_rng(seed)
    tokens, heads = np.arange(_TOKENS), np.arange(_SLOTS_OF_TOKEN)
    runs = rng.choice(_TOKENS // page_slots, _SCATTERED_TOKENS, replace=False)
    asked = {
        "move scattered tokens": (rng.choice(_TOKENS, _SCATTERED_TOKENS, replace=False), heads),
        f"move runs of {page_slots} tokens": ((runs[:, None] * page_slots + np.arange(page_slots)).ravel(), heads),
        "attend to all of a head": (tokens, heads[:1]),
        f"attend to 1/{_ATTENDED} of a head": (rng.choice(_TOKENS, _TOKENS // _ATTENDED, replace=False), heads[:1]),
    }
    placements = {
        "by token": tokens[:, None] * _SLOTS_OF_TOKEN + heads,
        "packed": tokens[:, None] + heads * _TOKENS,
        "at random": rng.permutation(_TOKENS * _SLOTS_OF_TOKEN).reshape(_TOKENS, _SLOTS_OF_TOKEN),
    }
    rows: list[dict[str, Any]] = []
    for placement, where in placements.items():
        memory = _roomy(where.size, page_slots)
        for question, (wanted, of_heads) in asked.items():
            chosen = where[np.ix_(np.sort(wanted), of_heads)].ravel()
            memory.requested_slots = memory.read_pages = 0
            memory.read_many([int(slot) for slot in chosen])
            rows.append(
                {
                    "kind": "flash placement",
                    "name": f"{question}, {placement}",
                    "asked": None,
                    "reached": memory.read_amplification,
                    "unit": "bytes read a byte wanted",
                    "within": None,
                    "note": f"{chosen.size:,} of {where.size:,} slots",
                    "placement": placement,
                    "question": question,
                    "provenance": combine([_COUNTED]).to_dict(),
                }
            )
    return rows


def write_rows(page_slots: int, seed: int) -> list[dict[str, Any]]:
    """Return the write amplification of demotions over how full the flash is.

    Parameters
    ----------
    page_slots : int
        Slots of a page.
    seed : int
        Of the slots that are overwritten.
    """
    geometry = NandGeometry(**_SMALL, page_slots=page_slots)
    raw = geometry.dies * geometry.blocks * geometry.pages * geometry.page_slots
    rows: list[dict[str, Any]] = []
    for fill in FILLS:
        slots = int(fill * raw)
        memory = _written(slots, geometry)
        draws = np.random.default_rng(seed).integers(0, slots, (2, _ROUNDS * slots))
        # Blocks and pages come to the state in which they then stay.
        _overwrite(memory, draws[0])
        pages = _overwrite(memory, draws[1])
        rows.append(
            {
                "kind": "flash write",
                "name": f"{fill:.0%} full",
                "asked": None,
                "reached": pages * page_slots / draws[1].size,
                "unit": "bytes programmed a byte written",
                "within": None,
                "note": f"{draws[1].size:,} slots overwritten at random, {geometry.blocks} blocks of {geometry.pages}",
                "fill": fill,
                "erased_blocks": memory.erased_blocks,
                "provenance": combine([_COUNTED]).to_dict(),
            }
        )
    return rows


def _overwrite(memory: NandMemory, slots: npt.NDArray[np.int64]) -> int:
    """Write slots again, and return the pages programmed for it."""
    before = memory.programmed_pages
    for slot in slots:
        memory.write(int(slot), b"")
    return memory.programmed_pages - before


def _roomy(slots: int, page_slots: int) -> NandMemory:
    """Return a memory to which slots were written once, in order, and that has room to spare."""
    pages = 64
    blocks = 2 + -(-slots // (page_slots * (pages - 1)))
    return _written(slots, NandGeometry(dies=1, blocks=blocks, pages=pages, page_slots=page_slots))


def _written(slots: int, geometry: NandGeometry) -> NandMemory:
    """Return a memory to which slots were written once, in order, so that page after page holds them."""
    memory = NandMemory("flash", slots, 1, geometry, _NO_TIMES)
    for slot in range(slots):
        memory.write(slot, b"")
    return memory
