"""A move by the DMA beside one by the host: copy to the CPU's memory, re-layout there, copy back.

With M bytes in pieces of b that lie apart, on one of the system's slots::

    host = M / pcie + 2 M / (h * memory) + M / pcie + 2 c M / b
    DMA  = max(M / (pcie * share), 2 M / memory)

``memory`` is the rate of the DIMMs behind one slot; the re-layout reads and writes once, the DMA writes and reads back.
h is 1, or what PAM says is left to a CPU whose addresses are not hashed: less than a tenth, so taken as one. c is what
software spends on a copy: nothing, or what was measured for ``cudaMemcpyAsync``. Tokens move in one direction;
latencies are left out of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.presets.value import Value
from sim.provenance import Part, combine

if TYPE_CHECKING:
    from sim.system import System

__all__ = ["ASKED", "CALLS", "PIECES", "host_rows", "host_seconds"]

ASKED = 20.0
"""How much faster PAM says its interface is than the host; asked of tokens that lie apart, the smallest pieces."""

PIECES = tuple(512 << (2 * step) for step in range(7))
"""Bytes that lie together, 512 to 2 MiB; a piece is what one copy moves."""

CALLS = (
    Value(0.0, "s", "chosen: software that costs nothing"),
    Value(2.3e-6, "s", "taco-project/FlexKV, pull request 193: cudaMemcpyAsync of pieces of KV on an H20, measured"),
    Value(6e-6, "s", "arXiv:2602.21548, section 5.2: 5 to 7 us a cudaMemcpyAsync, measured"),
)
"""Seconds of software a copy."""

_MIB = 1 << 20
_HASHING = (
    Value(1.0, "1", "chosen: the full rate of the DIMMs"),
    Value(0.1, "1", "arXiv:2602.11521, section 6.2: without address hashing a CPU has below 10 % of its memory's rate"),
)


def host_seconds(bytes_moved: float, piece: float, *, pcie: float, memory: float, call_s: float) -> float:
    """Return the seconds that the host takes.

    Parameters
    ----------
    bytes_moved, piece : float
        Bytes in all, and bytes that lie together.
    pcie, memory : float
        Bytes a second of the slot in one direction, and of the memory, reads and writes together.
    call_s : float
        Software of one copy; each piece is copied twice.
    """
    return 2 * bytes_moved / pcie + 2 * bytes_moved / memory + 2 * call_s * bytes_moved / piece


def host_rows(system: System, link_share: float, share_part: Part) -> list[dict[str, Any]]:
    """Return the ratio of both times, by rate of the memory, software and bytes that lie together.

    Parameters
    ----------
    system : System
        With links ``pcie`` and ``memory-bus``.
    link_share : float
        Bytes of tokens for each byte that a link has room for.
    share_part : Part
        Where that comes from.
    """
    slots = system.gpu.count.integer
    pcie, bus = (system.links[name] for name in ("pcie", "memory-bus"))
    rate, memory = pcie.bytes_per_s / slots, bus.bytes_per_s / slots
    rows: list[dict[str, Any]] = []
    for hashing in _HASHING:
        for call in CALLS:
            for piece in PIECES:
                rates = {"pcie": rate, "memory": hashing.number * memory, "call_s": call.number}
                host = host_seconds(piece, piece, **rates)
                ratio = host / max(piece / (rate * link_share), 2 * piece / memory)
                parts = [
                    *pcie.parts,
                    *bus.parts,
                    Part("rate left to the CPU", "literature", hashing.source),
                    Part("software a copy", "literature", call.source),
                    share_part,
                    Part("the host's way", "modelled", "sim/studies/migration_host.py: no copy overlaps another"),
                ]
                rows.append(
                    {
                        "kind": "host",
                        "name": f"host over DMA, {piece:,} B together, {call.number * 1e6:g} us a copy, "
                        f"{hashing.number:.0%} of the memory",
                        "asked": ASKED if piece == PIECES[0] else None,
                        "reached": ratio,
                        "unit": "1",
                        "within": ratio >= ASKED if piece == PIECES[0] else None,
                        "note": f"{call.source}; {hashing.source}",
                        "piece_bytes": piece,
                        "call_us": call.number * 1e6,
                        "memory_share": hashing.number,
                        "mib_us": host_seconds(_MIB, piece, **rates) * 1e6,
                        "provenance": combine(parts).to_dict(),
                    }
                )
    return rows
