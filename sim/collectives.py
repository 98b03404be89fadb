"""What GPUs take to exchange: rings over their links, in the protocols that NCCL chooses from.

A protocol is ``alpha + beta``: a ring of ``n`` GPUs takes ``base + hops * hop + sent / rate``. An all-reduce of ``M``
bytes goes round twice, so that ``hops = 2 (n - 1)`` and each GPU sends ``2 (n - 1) / n * M``; a message to the next
stage of a pipeline is one hop. The rate is a share of the link's, at most the protocol's own. Short messages take the
protocol that starts soonest, long ones that with the best rate; the fastest counts.

All numbers are those of NCCL's own model of its time, which NVIDIA keeps at what it measures.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hw.presets import Value
from sim.errors import UnknownNameError
from sim.provenance import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COLLECTIVES", "Collectives", "Protocol", "allreduce_s", "load_collectives", "ring_bytes", "send_s"]

_NCCL = "NVIDIA/nccl b6475625, src/graph/tuning.cc"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One way to send round a ring.

    Parameters
    ----------
    base_s, hop_s : Value
        Time before the first hop, and of each.
    share : Value
        Part of the link's rate that carries data.
    most_bytes_per_s : Value or None
        Rate that it never exceeds; None where only the link limits it.
    """

    base_s: Value
    hop_s: Value
    share: Value
    most_bytes_per_s: Value | None = None

    def seconds(self, hops: int, sent_bytes: float, link_bytes_per_s: float) -> float:
        """Return the seconds of so many hops in a row in which every GPU sends so many bytes in all."""
        rate = link_bytes_per_s * self.share.number
        if self.most_bytes_per_s is not None:
            rate = min(rate, self.most_bytes_per_s.number)
        return self.base_s.number + hops * self.hop_s.number + sent_bytes / rate


@dataclass(frozen=True, kw_only=True)
class Collectives:
    """Protocols over one kind of link.

    Parameters
    ----------
    name, description : str
        Name in descriptions of systems, and what it is.
    protocols : dict of str to Protocol
        What there is to choose from, by name.
    """

    name: str
    description: str
    protocols: dict[str, Protocol]

    def seconds(self, hops: int, sent_bytes: float, link_bytes_per_s: float) -> float:
        """Return the seconds in the fastest protocol."""
        return min(protocol.seconds(hops, sent_bytes, link_bytes_per_s) for protocol in self.protocols.values())

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name."""
        for name, protocol in self.protocols.items():
            for item in fields(protocol):
                value = getattr(protocol, item.name)
                if value is not None:
                    yield f"{name}.{item.name}", value

    @property
    def part(self) -> Part:
        """The protocols as an ingredient of a number."""
        return Part(f"exchange over {self.name}", "literature", f"{_NCCL}: base, hop and share of each protocol")


def ring_bytes(count: int, payload: float) -> float:
    """Return the bytes that each of ``count`` GPUs sends in an all-reduce of ``payload``: ``2 (n - 1) / n``."""
    return 2 * (count - 1) / count * payload


def allreduce_s(collectives: Collectives, count: int, payload: float, link_bytes_per_s: float) -> float:
    """Return the seconds of an all-reduce of ``payload`` bytes over a ring of ``count`` GPUs; one alone takes none.

    Parameters
    ----------
    collectives : Collectives
    count : int
        GPUs.
    payload : float
        Bytes that are summed.
    link_bytes_per_s : float
        Rate of one GPU's links, one direction.
    """
    if count == 1:
        return 0.0
    return collectives.seconds(2 * (count - 1), ring_bytes(count, payload), link_bytes_per_s)


def send_s(collectives: Collectives, payload: float, link_bytes_per_s: float) -> float:
    """Return the seconds of a message of ``payload`` bytes from one GPU to another; no bytes take none."""
    return collectives.seconds(1, payload, link_bytes_per_s) if payload else 0.0


def load_collectives(name: str, where: str) -> Collectives:
    """Return the protocols of a kind of link.

    Raises
    ------
    UnknownNameError
        If there is none of that name; ``where`` says which key named it.
    """
    if name not in COLLECTIVES:
        raise UnknownNameError(where, name, COLLECTIVES)
    return COLLECTIVES[name]


def _protocol(name: str, base_us: float, hop_us: float, share: float, most: float | None = None) -> Protocol:
    """Return a protocol of NCCL."""
    return Protocol(
        base_s=Value(base_us * 1e-6, "s", f"{_NCCL}: baseLat, ring, {name}"),
        hop_s=Value(hop_us * 1e-6, "s", f"{_NCCL}: hwLat, ring, {name}"),
        share=Value(share, "1", f"{_NCCL}: share of the ring's rate, {name}"),
        most_bytes_per_s=None if most is None else Value(most, "bytes/s", f"{_NCCL}: llMaxBws, one node"),
    )


_KINDS = (
    Collectives(
        name="nvlink",
        description="rings over NVLink in one node, Ampere and Hopper",
        protocols={
            "ll": _protocol("LL over NVLink", 6.6, 0.6, 0.25, 87.7e9),
            "ll128": _protocol("LL128 over NVLink", 14.0, 1.9, 0.92),
            "simple": _protocol("Simple over NVLink", 8.4, 3.4, 1.0),
        },
    ),
    Collectives(
        name="pcie",
        description="rings over PCI Express in one node",
        protocols={
            "ll": _protocol("LL over PCI Express", 6.6, 1.0, 0.25, 87.7e9),
            "simple": _protocol("Simple over PCI Express", 8.4, 5.7, 1.0),
        },
    ),
)
COLLECTIVES = {kind.name: kind for kind in _KINDS}
"""Kinds of links by name."""
