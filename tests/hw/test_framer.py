# amaranth: UnusedElaboratable=no
"""Framer and deframer in Amaranth's simulator: words of the golden frames, lengths, tags, and the stated cycles."""

from __future__ import annotations

import numpy as np
import pytest

from golden.dma.compression import BlockCompression
from golden.dma.flits import FlitFormat
from golden.dma.frames import HEADER, WORD_BYTES, Frame, Kind
from golden.formats import FP16
from hw.dma_params import CompressionParams, FlitParams, LinkParams, PathParams
from hw.interface.deframer import Deframer
from hw.interface.framer import Framer
from hw.interface.layouts import (
    bytes_layout,
    frame_beat_layout,
    frame_command_layout,
    frame_head_layout,
    units_layout,
    unpacked_layout,
)
from hw.payloads import pack, unpack
from tests.helpers.flits import frames_of
from tests.helpers.pysim import run_pysim

PARAMS = PathParams(
    compression=CompressionParams(compression=BlockCompression(fmt=FP16, block=8), lanes=4),
    link=LinkParams(flit=FlitParams(flits=FlitFormat(24), beat_bytes=8)),
    payload_beats=6,
)
BEAT = PARAMS.link.flit.beat_bytes
PAUSES = pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.4, 0.4)])


def cut(content: bytes, sizes: list[int]) -> list[bytes]:
    ends = np.cumsum(sizes).tolist()
    return [content[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def framed(frame: Frame, flush: int) -> list[int]:
    words = np.frombuffer(frame.to_bytes(), "<u4").tolist()
    room, head = BEAT // WORD_BYTES, HEADER.size // WORD_BYTES
    parts = [words[:head], *(words[start : start + room] for start in range(head, len(words), room))]
    return [
        pack(
            frame_beat_layout(PARAMS.link.flit),
            words=part + [0] * (room - len(part)),
            count=len(part),
            flush=int(flush and number == len(parts) - 1),
        )
        for number, part in enumerate(parts)
    ]


@PAUSES
def test_frames_are_the_golden_models(idle, stall):
    rng = np.random.default_rng(1)
    frames = frames_of(30, BEAT * PARAMS.payload_beats, rng)

    async def scenario(bench):
        expected = []
        bench.stall("o", stall)
        for frame in frames:
            flush = int(rng.random() < 0.3)
            sizes: list[int] = []
            while sum(sizes) < len(frame.payload):
                sizes.append(min(int(rng.integers(1, BEAT + 2)), len(frame.payload) - sum(sizes)))
            beats = [
                pack(
                    bytes_layout(PARAMS.compression),
                    units=list(part) + [0] * (BEAT + 1 - len(part)),
                    count=len(part),
                    last=int(number == len(sizes) - 1),
                )
                for number, part in enumerate(cut(frame.payload, sizes))
            ]
            bench.send("i", beats, idle=idle)
            bench.send("command", [pack(frame_command_layout(), kind=int(frame.kind), tag=frame.tag, flush=flush)])
            expected += framed(frame, flush)
        await bench.until(o=len(expected))
        await bench.advance(5)
        assert bench.items("o") == expected

    run_pysim(Framer(PARAMS), scenario)


@pytest.mark.parametrize(
    ("sizes", "behind"), [([8], 4), ([5], 4), ([8] * 5, 4), ([9, 3], 4), ([9, 8], 5), ([7, 9], 5), ([9, 8, 8], 5)]
)
def test_when_a_frame_leaves(sizes, behind):
    """So many cycles behind the last beat of bytes the header, then a beat a cycle."""
    size = sum(sizes)
    frame = Frame(Kind.RAW, 3, bytes(range(1, size + 1)))

    async def scenario(bench):
        layout = bytes_layout(PARAMS.compression)
        parts = cut(frame.payload, sizes)
        for number, part in enumerate(parts):
            units = list(part) + [0] * (BEAT + 1 - len(part))
            bench.send("i", [pack(layout, units=units, count=len(part), last=int(number == len(parts) - 1))])
        bench.send("command", [pack(frame_command_layout(), kind=1, tag=3, flush=1)])
        await bench.until(o=len(framed(frame, 1)))
        left, came = bench.trace("o").transfers, bench.trace("i").transfers
        assert (left - came[-1]).tolist() == list(range(behind, behind + len(left)))

    run_pysim(Framer(PARAMS), scenario)


@PAUSES
def test_headers_and_payloads_part(idle, stall):
    flit = PARAMS.link.flit
    frames = frames_of(30, 60, np.random.default_rng(2))

    async def scenario(bench):
        layout, bodies = unpacked_layout(flit), []
        bench.stall("o", stall)
        bench.stall("head", stall)
        for frame in frames:
            beats = [unpack(frame_beat_layout(flit), beat) for beat in framed(frame, 0)]
            items = [
                pack(
                    layout,
                    words=[int(word) for word in beat["words"]],
                    count=beat["count"],
                    header=int(number == 0),
                    last=int(number == len(beats) - 1),
                )
                for number, beat in enumerate(beats)
            ]
            bench.send("i", items, idle=idle)
            parts = [frame.payload[start : start + BEAT] for start in range(0, len(frame.payload), BEAT)]
            bodies += [
                pack(
                    units_layout(8, BEAT),
                    units=list(part) + [0] * (BEAT - len(part)),
                    count=len(part),
                    last=int(number == len(parts) - 1),
                )
                for number, part in enumerate(parts)
            ]
        await bench.until(o=len(bodies), head=len(frames))
        await bench.advance(5)
        assert bench.items("o") == bodies
        heads = [unpack(frame_head_layout(), head) for head in bench.items("head")]
        assert heads == [{"kind": int(f.kind), "length": len(f.payload), "tag": f.tag} for f in frames]

    run_pysim(Deframer(flit), scenario)
