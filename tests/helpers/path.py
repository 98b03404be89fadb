"""The data path of the DMA with the wire between its ends open, and payloads through it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.dma.frames import Frame, Kind, compress, decompress
from hw.interface.layouts import (
    acknowledgement_layout,
    decoded_layout,
    flit_beat_layout,
    frame_command_layout,
    frame_head_layout,
    numbers_layout,
)
from hw.interface.receiver import Receiver
from hw.interface.transmitter import Transmitter
from hw.payloads import pack, unpack
from tests.helpers.compression import payloads_of
from tests.helpers.link import carry

if TYPE_CHECKING:
    from hw.dma_params import PathParams
    from tests.helpers.streams import StreamBench

__all__ = ["PathEnds", "payloads_through", "rate"]


class PathEnds(wiring.Component):
    """Transmitter and receiver; each sends ``wire`` and ``back``, and gets ``returning`` and ``arriving``."""

    def __init__(self, params: PathParams) -> None:
        self.params = params
        beats = stream.Signature(flit_beat_layout(params.link.flit))
        told = stream.Signature(acknowledgement_layout(params.link))
        super().__init__(
            {
                "command": In(stream.Signature(frame_command_layout())),
                "i": In(stream.Signature(numbers_layout(params.compression))),
                "wire": Out(beats),
                "arriving": In(beats),
                "head": Out(stream.Signature(frame_head_layout())),
                "o": Out(stream.Signature(decoded_layout(params.compression))),
                "back": Out(told),
                "returning": In(told),
                "fault": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transmitter = near = Transmitter(self.params)
        m.submodules.receiver = far = Receiver(self.params)
        for outer, inner in (
            (self.command, near.command),
            (self.i, near.i),
            (self.returning, near.acknowledgement),
            (self.arriving, far.i),
        ):
            wiring.connect(m, wiring.flipped(outer), inner)
        for inner, outer in (
            (near.o, self.wire),
            (far.head, self.head),
            (far.o, self.o),
            (far.acknowledgement, self.back),
        ):
            wiring.connect(m, inner, wiring.flipped(outer))
        m.d.comb += self.fault.eq(far.fault)
        return m


async def payloads_through(
    bench: StreamBench, params: PathParams, count: int, *, faults: float, idle: float, stall: float, seed: int
) -> None:
    """Send payloads raw, in 8 bits and as states; each arrives once, whole, in order and with its tag."""
    await bench.reset()
    rng, random = np.random.default_rng(seed), Random(seed)
    lanes = params.compression.lanes
    payloads = [part[: lanes * params.payload_beats] for part in payloads_of(params.compression, count, rng)]
    kinds = [Kind(int(kind)) for kind in rng.integers(1, 4, count)]
    heads, beats = [], []
    for number, (payload, kind) in enumerate(zip(payloads, kinds, strict=True)):
        flush = int(number == count - 1 or rng.random() < 0.2)
        tag = int(rng.integers(1 << 32))
        bench.send("command", [pack(frame_command_layout(), kind=int(kind), tag=tag, flush=flush)], idle=idle)
        rows = payload.reshape(-1, lanes).tolist()
        bench.send(
            "i",
            [
                pack(numbers_layout(params.compression), codes=row, last=int(place == len(rows) - 1))
                for place, row in enumerate(rows)
            ],
            idle=idle,
        )
        frame = Frame(Kind.RAW, tag, payload.astype("<u2").tobytes())
        arrives, length = frame, len(frame.payload)
        if kind is Kind.COMPRESSED:
            small = compress(frame, params.compression.compression)
            arrives, length = decompress(small, params.compression.compression, len(payload)), len(small.payload)
        heads.append({"kind": int(kind), "length": length, "tag": tag})
        rows = np.frombuffer(arrives.payload, "<u2").reshape(-1, lanes).tolist()
        beats += [
            pack(decoded_layout(params.compression), codes=row, last=int(place == len(rows) - 1), fault=0)
            for place, row in enumerate(rows)
        ]
    bench.stall("o", stall)
    bench.stall("head", stall)
    seen = {"wire": 0, "back": 0}
    while len(bench.items("o")) < len(beats) or len(bench.items("head")) < count:
        await carry(bench, seen, random, faults)
        assert bench.cycle < 5000 + 200 * len(beats)
    for _ in range(60):
        await carry(bench, seen, random, 0.0)
    assert [unpack(frame_head_layout(), head) for head in bench.items("head")] == heads
    assert bench.items("o") == beats


async def rate(bench: StreamBench, params: PathParams, kind: Kind, payloads: int, beats: int) -> float:
    """Return the bytes of numbers that are sent over those that the link could have moved meanwhile.

    The link takes a beat in 2 of 5 cycles, so that it and nothing else is what payloads wait for.
    """
    await bench.reset()
    layout = numbers_layout(params.compression)
    rng = np.random.default_rng(1)
    lanes = params.compression.lanes
    for number in range(payloads):
        codes = params.compression.compression.fmt.to_codes(rng.normal(size=(beats, lanes))).tolist()
        bench.send("i", [pack(layout, codes=row, last=int(place == beats - 1)) for place, row in enumerate(codes)])
        flush = int(number == payloads - 1)
        bench.send("command", [pack(frame_command_layout(), kind=int(kind), tag=number, flush=flush)])
    bench.stall("wire", 0.6)
    seen = {"wire": 0, "back": 0}
    while len(bench.items("o")) < payloads * beats:
        await carry(bench, seen, Random(1), 0.0)
        assert bench.cycle < 10 * payloads * (beats + 20)
    wire = bench.trace("wire")
    first, last = wire.transfers[0], wire.transfers[-1]
    return float(payloads * beats / wire.ready[first : last + 1].sum())
