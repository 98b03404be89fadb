"""Two ends of the DMA with their memories and a link, for simulation: what Verilator runs when rates are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.descriptors import Status
from hw.dma_bench_params import DmaBenchParams
from hw.interface.bench_contents import BenchContents
from hw.interface.bench_link import RATE_BITS, BenchLink, Wire
from hw.interface.bench_memory import BenchMemory
from hw.interface.dma import Dma
from hw.interface.dma_layouts import SLOT_BITS, MessageKind, completion_layout, segment_layout
from hw.interface.layouts import acknowledgement_layout, flit_beat_layout

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = ["BENCH_TOP", "DmaBench", "landed_layout", "setup_layout"]

BENCH_TOP = "nearkv_dma_bench"
"""Name of the top module."""

_ENDS = ("near", "far")


def setup_layout() -> data.StructLayout:
    """Item that begins a run: the link takes ``beats`` in ``cycles`` cycles, memories answer at once or have rows."""
    return data.StructLayout({"beats": RATE_BITS, "cycles": RATE_BITS, "at_once": 1})


def landed_layout() -> data.StructLayout:
    """Token whose last column was just written, and what there was until then.

    ``offered`` are the beats that the link it came over could have taken, ``opened`` the rows that both memories have
    opened, ``wrong`` the columns written there that differed from their source, ``lost`` the tokens that the holder was
    told to abandon.
    """
    return data.StructLayout({"offered": 32, "opened": 32, "wrong": 16, "lost": 16})


class DmaBench(wiring.Component):
    """Both ends, at work. Simulation only.

    Overview
    --------
    Tokens come from slots that are never written, and go to those that ``room`` names, in the order in which they are
    asked for; each column written is compared with its source. Messages are taken at once and answers come in the cycle
    behind the question. Each memory is one of :class:`hw.interface.bench_memory.BenchMemory`, each direction of the
    link a :class:`hw.interface.bench_link.BenchLink`; acknowledgements come over a wire of the same length.

    Protocol
    --------
    ``setup`` begins the run. A descriptor waits until its end has room for it, so that none is refused. ``landed`` is
    told whatever its ``ready``.

    Parameters
    ----------
    params : DmaBenchParams
        Sizes.

    Members
    -------
    setup : In(stream of setup_layout)
        Begins the run.
    near_descriptor, far_descriptor : In(stream of segment_layout)
        What is to be moved.
    near_room, far_room : In(stream of unsigned)
        Slots of the memory that tokens may come to.
    near_completion, far_completion : Out(stream of completion_layout)
        Descriptors that ended.
    near_landed, far_landed : Out(stream of landed_layout)
        Tokens that came to a memory.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    simulation_only = True

    def __init__(self, params: DmaBenchParams) -> None:
        require_type("params", params, DmaBenchParams)
        self.params = params
        super().__init__(
            {
                "setup": In(stream.Signature(setup_layout())),
                **{f"{name}_descriptor": In(stream.Signature(segment_layout(self._end(name)))) for name in _ENDS},
                **{f"{name}_room": In(stream.Signature(SLOT_BITS)) for name in _ENDS},
                **{f"{name}_completion": Out(stream.Signature(completion_layout(self._end(name)))) for name in _ENDS},
                **{f"{name}_landed": Out(stream.Signature(landed_layout())) for name in _ENDS},
            }
        )

    def _end(self, name: str) -> DmaParams:
        return getattr(self.params, name)

    def elaborate(self, platform: object) -> Module:
        """Place the ends and what surrounds them, and connect each end's surroundings with the other's."""
        m = Module()
        params = self.params
        rate, running = Signal(setup_layout()), Signal()
        m.d.comb += self.setup.ready.eq(~running)
        with m.If(self.setup.valid & self.setup.ready):
            m.d.sync += [running.eq(1), rate.eq(self.setup.payload)]
        ends, memories, contents, links = {}, {}, {}, {}
        opened = Signal(32)
        for name, peer in zip(_ENDS, _ENDS[::-1], strict=True):
            end = self._end(name)
            m.submodules[f"{name}_end"] = ends[name] = Dma(end)
            m.submodules[f"{name}_contents"] = contents[name] = BenchContents(params, end, self._end(peer))
            memory = BenchMemory(params, end, getattr(params, f"{name}_memory"))
            m.submodules[f"{name}_memory"] = memories[name] = memory
            m.d.comb += memory.at_once.eq(rate.at_once)
            self._connect_memory(m, ends[name], memory, contents[name])
            beat = flit_beat_layout(end.path.link.flit)
            m.submodules[f"{name}_link"] = links[name] = link = BenchLink(beat, params.link_cycles)
            m.d.comb += [link.beats.eq(rate.beats), link.cycles.eq(rate.cycles)]
            landed = getattr(self, f"{name}_landed")
            m.d.comb += [
                landed.valid.eq(contents[name].landed),
                landed.payload.opened.eq(opened),
                landed.payload.wrong.eq(contents[name].wrong),
            ]
        m.d.comb += opened.eq(sum(memory.opened for memory in memories.values()))
        for name, peer in zip(_ENDS, _ENDS[::-1], strict=True):
            told = acknowledgement_layout(self._end(name).path.link)
            m.submodules[f"{name}_told"] = wire = Wire(told, params.link_cycles)
            wiring.connect(m, ends[name].sending, links[name].i)
            wiring.connect(m, links[name].o, ends[peer].arriving)
            wiring.connect(m, ends[name].acknowledgement, wire.i)
            wiring.connect(m, wire.o, ends[peer].acknowledged)
            m.d.comb += getattr(self, f"{peer}_landed").payload.offered.eq(links[name].offered)
            self._connect_holder(m, name, peer, ends[name], contents[peer])
            self._connect_descriptors(m, name, ends[name], running)
        return m

    def _connect_memory(self, m: Module, end: Dma, memory: BenchMemory, contents: BenchContents) -> None:
        wiring.connect(m, end.fetch, memory.fetch)
        wiring.connect(m, end.check, memory.check)
        wiring.connect(m, memory.fetched, contents.read)
        wiring.connect(m, memory.checked, contents.look)
        wiring.connect(m, contents.fetched, end.fetched)
        wiring.connect(m, contents.checked, end.checked)
        m.d.comb += [
            memory.write.valid.eq(end.write.valid),
            Value.cast(memory.write.payload).eq(Value.cast(end.write.payload.address)),
            end.write.ready.eq(memory.write.ready),
            contents.written.eq(end.write.valid & end.write.ready),
            Value.cast(contents.write).eq(Value.cast(end.write.payload)),
        ]

    def _connect_holder(self, m: Module, name: str, peer: str, end: Dma, target: BenchContents) -> None:
        """Answer each question with the next slot that has room, and count what is abandoned."""
        room, answer = getattr(self, f"{peer}_room"), end.answer
        free = Signal(name=f"{name}_answers")
        lost = Signal(16, name=f"{name}_lost")
        m.d.comb += [
            free.eq(~answer.valid | answer.ready),
            end.ask.ready.eq(room.valid & free),
            room.ready.eq(end.ask.valid & free),
            target.reserve.eq(end.ask.valid & end.ask.ready),
            target.slot.eq(room.payload),
            target.source.eq(end.ask.payload.slot),
            end.message.ready.eq(1),
            getattr(self, f"{peer}_landed").payload.lost.eq(lost),
        ]
        with m.If(free):
            m.d.sync += [
                answer.valid.eq(end.ask.valid & room.valid),
                answer.payload.status.eq(Status.OK),
                answer.payload.slot.eq(room.payload),
            ]
        with m.If(end.message.valid & (end.message.payload.kind == MessageKind.ABANDON)):
            m.d.sync += lost.eq(lost + 1)

    def _connect_descriptors(self, m: Module, name: str, end: Dma, running: Signal) -> None:
        """Let as many descriptors in as the end has room for."""
        offered, ended = getattr(self, f"{name}_descriptor"), getattr(self, f"{name}_completion")
        pending = Signal(range(end.params.queue_depth + 1), name=f"{name}_pending")
        room, given = Signal(name=f"{name}_has_room"), Signal(name=f"{name}_given")
        m.d.comb += [
            room.eq(running & (pending != end.params.queue_depth)),
            end.descriptor.valid.eq(offered.valid & room),
            offered.ready.eq(end.descriptor.ready & room),
            Value.cast(end.descriptor.payload).eq(Value.cast(offered.payload)),
            given.eq(offered.valid & offered.ready & offered.payload.last),
        ]
        wiring.connect(m, end.completion, wiring.flipped(ended))
        m.d.sync += pending.eq(pending + given - Mux(ended.valid & ended.ready, 1, 0))
