"""One end of the inter-device DMA whose link runs in a clock of its own."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from golden.checks import require_type
from hw.dma_crossed_params import DmaCrossedParams
from hw.interface.crossing import Crossing
from hw.interface.dma import Dma

__all__ = ["LINK_STREAMS", "DmaCrossed"]

LINK_STREAMS = ("sending", "acknowledged", "arriving", "acknowledgement")
"""Streams in the link's clock."""


class DmaCrossed(wiring.Component):
    """An end of the DMA as it sits in a device: memory and block table in the device's clock, the link in its own.

    Overview
    --------
    A :class:`hw.interface.dma.Dma` with a :class:`hw.interface.crossing.Crossing` on each of the four streams of its
    link. The two ends of a link may run in clocks that have nothing to do with each other, nor with the link's.

    Protocol
    --------
    Plain ready/valid streams: those of the link in domain ``link``, all others in ``sync``. The two domains are reset
    together, and those of the other end with them, as :class:`hw.interface.dma.Dma` says: all resets are held for at
    least six cycles of the slowest of the clocks at once, and may begin and end one before the other. What an end that
    is ready first sends to one that is not yet is lost and sent again, as from a link that loses it.

    Latency and throughput
    ----------------------
    A token passes two crossings and its verdict two: 3 cycles more each where the clocks are alike
    (:mod:`hw.timing.dma_crossed`). A beat a cycle of the slower clock.

    Numerics
    --------
    Contents, completions and the block table equal the golden mover's, whatever the clocks
    (``tests/rtl/test_dma_crossed.py``).

    Parameters
    ----------
    params : DmaCrossedParams
        Sizes.

    Members
    -------
    sending, acknowledged, arriving, acknowledgement
        Those of :class:`hw.interface.dma.Dma`, in domain ``link``.
    all others
        Those of :class:`hw.interface.dma.Dma`, in domain ``sync``.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: DmaCrossedParams) -> None:
        require_type("params", params, DmaCrossedParams)
        self.params = params
        self._dma = Dma(params.dma)
        super().__init__(dict(self._dma.signature.members))

    def elaborate(self, platform: object) -> Module:
        """Place the end and its crossings."""
        m = Module()
        m.submodules.dma = dma = self._dma
        for name, member in dma.signature.members.items():
            inner, outer = getattr(dma, name), getattr(self, name)
            if not member.is_signature:
                m.d.comb += outer.eq(inner)
                continue
            leaves = member.flow == Out
            source, target = (inner, wiring.flipped(outer)) if leaves else (wiring.flipped(outer), inner)
            if name in LINK_STREAMS:
                domains = ("sync", "link") if leaves else ("link", "sync")
                shape = inner.payload.shape()
                crossing = Crossing(shape, depth=self.params.depth, source=domains[0], target=domains[1])
                m.submodules[f"{name}_crossing"] = crossing
                wiring.connect(m, source, crossing.i)
                wiring.connect(m, crossing.o, target)
            else:
                wiring.connect(m, source, target)
        return m
