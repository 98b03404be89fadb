"""Two ends of the DMA in clocks of their own, and the link between them in a third, in one unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.interface.dma_crossed import LINK_STREAMS, DmaCrossed
from tests.helpers.dma_ends import ENDS
from tests.helpers.streams import StreamWords

if TYPE_CHECKING:
    from hw.dma_crossed_params import DmaCrossedParams

__all__ = ["DOMAINS", "CrossedPair"]

DOMAINS = (*ENDS, "link")
"""Clocks of the two ends and of the link."""


class CrossedPair(wiring.Component):
    """Two ends with crossings; the streams of each clock, and its reset, are the two words of :class:`StreamWords`."""

    def __init__(self, params: tuple[DmaCrossedParams, DmaCrossedParams]) -> None:
        self.ends = {name: DmaCrossed(one) for name, one in zip(ENDS, params, strict=True)}
        self.words = {domain: self._words(domain) for domain in DOMAINS}
        ports = {f"{domain}_clk": In(1) for domain in DOMAINS}
        ports |= {f"{domain}_driven": In(words.driven_bits) for domain, words in self.words.items()}
        ports |= {f"{domain}_seen": Out(words.seen_bits) for domain, words in self.words.items()}
        counts = {key: Out(16) for key in ("retries", "again")} | {"down": Out(1)}
        super().__init__(ports | {f"{name}_{key}": member for name in ENDS for key, member in counts.items()})

    def _streams(self, domain: str) -> dict[str, Any]:
        return {
            f"{name}_{key}": getattr(end, key)
            for name, end in self.ends.items()
            for key, member in end.signature.members.items()
            if member.is_signature and domain == ("link" if key in LINK_STREAMS else name)
        }

    def _words(self, domain: str) -> StreamWords:
        bits: dict[bool, dict[str, int]] = {True: {}, False: {}}
        for name, interface in self._streams(domain).items():
            end, _, key = name.partition("_")
            is_input = self.ends[end].signature.members[key].flow == In
            bits[is_input][name] = len(interface.payload.as_value())
        return StreamWords(bits[True], bits[False])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, end in self.ends.items():
            m.submodules[name] = DomainRenamer({"sync": name})(end)
            m.d.comb += [getattr(self, f"{name}_{key}").eq(getattr(end, key)) for key in ("retries", "again", "down")]
        for domain, words in self.words.items():
            m.domains += ClockDomain(domain)
            driven, seen = getattr(self, f"{domain}_driven"), getattr(self, f"{domain}_seen")
            m.d.comb += [ClockSignal(domain).eq(getattr(self, f"{domain}_clk")), ResetSignal(domain).eq(driven[0])]
            streams, place, shown = self._streams(domain), 1, 0
            for name, bits in words.inputs.items():
                payload = streams[name].payload.as_value()
                m.d.comb += [streams[name].valid.eq(driven[place]), payload.eq(driven[place + 1 : place + 1 + bits])]
                m.d.comb += seen[shown].eq(streams[name].ready)
                place, shown = place + 1 + bits, shown + 1
            for name, bits in words.outputs.items():
                payload = streams[name].payload.as_value()
                m.d.comb += [seen[shown].eq(streams[name].valid), seen[shown + 1 : shown + 1 + bits].eq(payload)]
                m.d.comb += streams[name].ready.eq(driven[place])
                place, shown = place + 1, shown + 1 + bits
        return m
