"""Scenarios of packer and unpacker, for both simulators: bytes held to the golden model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.dma.flits import NUMBERS
from golden.dma.frames import HEADER, WORD_BYTES, Frame, Kind
from hw.interface.layouts import flit_beat_layout, frame_beat_layout, unpacked_layout
from hw.payloads import pack
from hw.timing.flits import packer_cycles, unpacker_cycles

if TYPE_CHECKING:
    from hw.dma_params import FlitParams
    from tests.helpers.streams import StreamBench

__all__ = ["bad_headers", "flit_beats", "frames_of", "pack_all", "reset_between", "unpack_all"]


def frames_of(count: int, longest: int, rng: np.random.Generator) -> list[Frame]:
    """Return frames of any kind and length up to ``longest`` bytes, many of them short."""
    return [
        Frame(
            Kind(int(rng.integers(1, 4))),
            int(rng.integers(1 << 32)),
            rng.bytes(int(rng.integers(1, longest + 1) if rng.random() < 0.5 else rng.integers(1, 9))),
        )
        for _ in range(count)
    ]


def _words(content: bytes) -> list[int]:
    return np.frombuffer(content, "<u4").tolist()


def _filled(words: list[int], size: int) -> list[int]:
    return words + [0] * (size - len(words))


def flit_beats(params: FlitParams, flits: list[bytes]) -> list[int]:
    """Return the beats of flits."""
    layout = flit_beat_layout(params)
    return [
        pack(
            layout,
            words=_words(flit[start : start + params.beat_bytes]),
            last=int(start + params.beat_bytes == len(flit)),
        )
        for flit in flits
        for start in range(0, len(flit), params.beat_bytes)
    ]


async def pack_all(
    bench: StreamBench,
    params: FlitParams,
    runs: list[list[Frame]],
    rng: np.random.Generator,
    *,
    idle: float,
    stall: float,
) -> None:
    """Pack runs of frames, cut into input beats anywhere; without pauses every output beat has its cycle."""
    await bench.reset()
    beats, sizes, expected, number = [], [], [], 0
    for run in runs:
        words = _words(b"".join(frame.to_bytes() for frame in run))
        cuts: list[int] = []
        while sum(cuts) < len(words):
            cuts.append(min(int(rng.integers(1, params.beat_words + 1)), len(words) - sum(cuts)))
        ends = np.cumsum(cuts).tolist()
        for cut, end in zip(cuts, ends, strict=True):
            some = _filled(words[end - cut : end], params.beat_words)
            beats.append(pack(frame_beat_layout(params), words=some, count=cut, flush=int(end == len(words))))
        sizes.append(cuts)
        flits = params.flits.pack(run, first=number)
        number = (number + len(flits)) % NUMBERS
        expected += flit_beats(params, flits)
    bench.stall("o", stall)
    bench.send("i", beats, idle=idle)
    await bench.until(o=len(expected))
    await bench.advance(5)
    assert bench.items("o") == expected
    if not idle and not stall:
        assert bench.trace("o").transfers.tolist() == packer_cycles(params, sizes)


def _unpacked(params: FlitParams, frame: Frame) -> list[int]:
    words = _words(frame.to_bytes())
    layout, head = unpacked_layout(params), HEADER.size // WORD_BYTES
    beats = [pack(layout, words=_filled(words[:head], params.beat_words), count=head, header=1, last=0)]
    for start in range(head, len(words), params.beat_words):
        some = words[start : start + params.beat_words]
        end = int(start + params.beat_words >= len(words))
        beats.append(pack(layout, words=_filled(some, params.beat_words), count=len(some), header=0, last=end))
    return beats


async def unpack_all(
    bench: StreamBench,
    params: FlitParams,
    runs: list[list[Frame]],
    rng: np.random.Generator,
    *,
    idle: float,
    stall: float,
) -> None:
    """Unpack what the golden model packed; without pauses the beats of the first run have their cycles."""
    await bench.reset()
    flits, number = [], int(rng.integers(NUMBERS))
    for run in runs:
        flits += params.flits.pack(run, first=(number + len(flits)) % NUMBERS)
    expected = [beat for run in runs for frame in run for beat in _unpacked(params, frame)]
    bench.stall("o", stall)
    bench.send("i", flit_beats(params, flits), idle=idle)
    await bench.until(o=len(expected), i=len(flits) * params.beats)
    await bench.advance(5)
    assert bench.items("o") == expected
    if not idle and not stall:
        cycles = unpacker_cycles(params, [len(frame.payload) for frame in runs[0]])
        assert bench.trace("o").transfers.tolist()[: len(cycles)] == cycles


async def bad_headers(bench: StreamBench, params: FlitParams) -> None:
    """Headers of no kind, or of no bytes, are skipped with their flit; what follows in the next flit is whole."""
    await bench.reset()
    form = params.flits
    good = Frame(Kind.RAW, 7, bytes(range(1, 30)))
    for header in (b"\x05\x00\x05\x00", b"\xff" * 4, b"\x01\x00\x00\x00"):
        flits = [form.flit(header + b"\x01" * (form.payload_bytes - 4), 0), *form.pack([good], first=1)]
        await bench.reset()
        bench.send("i", flit_beats(params, flits))
        expected = _unpacked(params, good)
        await bench.until(o=len(expected), i=len(flits) * params.beats)
        await bench.advance(5)
        assert bench.items("o") == expected


async def reset_between(bench: StreamBench, params: FlitParams, run, cuts: list[int]) -> None:
    """After a reset in any cycle of a run the next run is as if it were the first."""
    rng = np.random.default_rng(5)
    runs = [frames_of(5, 40, rng)]
    noise = flit_beats(params, params.flits.pack(frames_of(5, 40, rng)))
    for cut in cuts:
        await bench.reset()
        bench.send("i", noise)
        bench.stall("o", 0.5)
        await bench.advance(cut)
        await run(bench, params, runs, rng, idle=0.0, stall=0.0)
