"""Both ends of a link with the wire between them open, and scenarios in which things happen to what is on it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.dma.flits import NUMBERS
from hw.interface.layouts import acknowledgement_layout, flit_beat_layout
from hw.interface.link_receiver import LinkReceiver
from hw.interface.link_sender import LinkSender
from hw.payloads import unpack
from tests.helpers.flits import flit_beats

if TYPE_CHECKING:
    from hw.dma_params import LinkParams
    from tests.helpers.streams import StreamBench

__all__ = ["LinkEnds", "carry", "reset_anywhere", "through"]


class LinkEnds(wiring.Component):
    """Sender and receiver; each sends ``wire`` and ``back``, and gets ``returning`` and ``arriving``."""

    def __init__(self, params: LinkParams) -> None:
        self.params = params
        beats = stream.Signature(flit_beat_layout(params.flit))
        told = stream.Signature(acknowledgement_layout(params))
        super().__init__(
            {
                "i": In(beats),
                "wire": Out(beats),
                "arriving": In(beats),
                "o": Out(beats),
                "back": Out(told),
                "returning": In(told),
                "down": Out(1),
                "again": Out(16),
                "dropped": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sender = sender = LinkSender(self.params)
        m.submodules.receiver = receiver = LinkReceiver(self.params)
        for inner, outer in (
            (sender.i, self.i),
            (sender.o, self.wire),
            (sender.acknowledgement, self.returning),
            (receiver.i, self.arriving),
            (receiver.o, self.o),
            (receiver.acknowledgement, self.back),
        ):
            if inner in (sender.o, receiver.o, receiver.acknowledgement):
                wiring.connect(m, inner, wiring.flipped(outer))
            else:
                wiring.connect(m, wiring.flipped(outer), inner)
        m.d.comb += [self.down.eq(sender.down), self.again.eq(sender.again), self.dropped.eq(receiver.dropped)]
        return m


async def carry(bench: StreamBench, seen: dict[str, int], random: Random, faults: float) -> None:
    """Let a cycle pass; what left an end arrives at the other, with some probability damaged or not at all."""
    await bench.advance()
    for source, target in (("wire", "arriving"), ("back", "returning")):
        items = bench.items(source)
        for item in items[seen[source] :]:
            chance = random.random()
            if chance < faults / 2:
                continue
            bench.send(target, [item ^ (1 << random.randrange(69)) if chance < faults else item])
        seen[source] = len(items)


def beats_of(params: LinkParams, count: int, seed: int) -> list[int]:
    """Return the beats of flits of random bytes, numbered from 0."""
    rng = np.random.default_rng(seed)
    form = params.flit.flits
    return flit_beats(
        params.flit, [form.flit(rng.bytes(form.payload_bytes), number % NUMBERS) for number in range(count)]
    )


async def through(
    bench: StreamBench, params: LinkParams, count: int, *, faults: float, idle: float, stall: float, seed: int
) -> None:
    """Send flits; all arrive once, in order, and the receiver never has to hold more than its room."""
    await bench.reset()
    beats = beats_of(params, count, seed)
    random, seen = Random(seed), {"wire": 0, "back": 0}
    bench.stall("o", stall)
    bench.send("i", beats, idle=idle)
    checked = 0
    while len(bench.items("o")) < len(beats):
        await carry(bench, seen, random, faults)
        assert bench.cycle < 3000 + 400 * len(beats)
        sent = bench.items("wire")
        freed = len(bench.items("o")) // params.flit.beats
        while checked < len(sent):
            # The furthest flit on the way is within the window of what has left the receiver, two beats in registers.
            assert beats.index(sent[checked]) // params.flit.beats <= freed + params.window
            checked += 1
    for _ in range(60):
        await carry(bench, seen, random, 0.0)
    assert bench.items("o") == beats
    told = unpack(acknowledgement_layout(params), bench.items("back")[-1])
    assert (told["freed"], told["expected"]) == (count % NUMBERS, count % NUMBERS)
    if not faults and not idle and not stall:
        assert bench.items("wire") == beats
        first = 3 + params.flit.beats - 1
        assert bench.trace("wire").transfers.tolist() == list(range(first, first + len(beats)))
        assert int(bench.trace("o").transfers[0]) == int(bench.trace("arriving").transfers[params.flit.beats - 1]) + 4


async def reset_anywhere(bench: StreamBench, params: LinkParams, cuts: list[int]) -> None:
    """After a reset in any cycle of a run with faults the next run is as if it were the first."""
    for cut in cuts:
        await bench.reset()
        bench.send("i", beats_of(params, 6, cut))
        seen, random = {"wire": 0, "back": 0}, Random(cut)
        for _ in range(cut):
            await carry(bench, seen, random, 0.2)
        await through(bench, params, 5, faults=0.0, idle=0.0, stall=0.0, seed=cut)
