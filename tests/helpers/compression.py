"""Scenarios of compressor and decompressor, for both simulators: bytes and numbers held to the golden model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.dma.compression import RAW_SCALE
from hw.interface.layouts import bytes_layout, decoded_layout, numbers_layout, units_layout
from hw.payloads import pack
from hw.timing.compression import compressor_cycles, decompressor_cycles

if TYPE_CHECKING:
    from hw.dma_params import CompressionParams
    from tests.helpers.streams import StreamBench

__all__ = ["compress_all", "compress_broken", "decompress_all", "payloads_of", "reset_between"]


def payloads_of(params: CompressionParams, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return payloads of one beat up to some blocks: near numbers, any numbers, special ones, zeros, subnormals."""
    fmt = params.compression.fmt
    found = []
    for number in range(count):
        size = int(rng.integers(1, 3 * params.block_beats + 1)) * params.lanes
        kind = number % 5
        if kind == 0:
            codes = fmt.to_codes(rng.normal(size=size) * 2.0 ** rng.integers(-10, 10))
        elif kind == 1:
            codes = rng.integers(0, 1 << 16, size) & ~np.int64(fmt.exponent_mask >> 1 << fmt.significand_bits)
        elif kind == 2:
            codes = rng.integers(0, 1 << 16, size)
        elif kind == 3:
            codes = rng.integers(0, 1 << (fmt.significand_bits + 1), size) | (rng.integers(0, 2, size) << 15)
        else:
            codes = rng.choice([0, fmt.sign_mask, 1, fmt.inf_code - 1, fmt.sign_mask | 1], size)
        found.append(codes.astype(np.uint16))
    return found


def _records(params: CompressionParams, payload: np.ndarray) -> list[bytes]:
    """Return the bytes of each output beat of a payload."""
    beats = []
    for record in params.compression.encode(payload):
        size = 2 if record.scale == RAW_SCALE else 1
        for start in range(0, len(record.codes), params.lanes):
            part = b"".join(code.to_bytes(size, "little") for code in record.codes[start : start + params.lanes])
            beats.append((b"" if start else bytes([record.scale])) + part)
    return beats


def _numbers(params: CompressionParams, payload: np.ndarray, layout, **fields: int) -> list[int]:
    rows = payload.reshape(-1, params.lanes)
    return [
        pack(layout, codes=[int(code) for code in row], last=int(number == len(rows) - 1), **fields)
        for number, row in enumerate(rows)
    ]


def _bytes(layout, beats: list[bytes], room: int) -> list[int]:
    return [
        pack(layout, units=list(beat) + [0] * (room - len(beat)), count=len(beat), last=int(number == len(beats) - 1))
        for number, beat in enumerate(beats)
    ]


def _words(params: CompressionParams, content: bytes) -> list[int]:
    size = params.word_bytes
    words = [content[start : start + size] for start in range(0, len(content), size)]
    return _bytes(units_layout(8, size), words, size)


async def compress_all(
    bench: StreamBench, params: CompressionParams, payloads: list[np.ndarray], *, idle: float, stall: float
) -> None:
    """Compress payloads; without pauses every output beat has its cycle."""
    await bench.reset()
    expected = [
        item
        for payload in payloads
        for item in _bytes(bytes_layout(params), _records(params, payload), params.word_bytes + 1)
    ]
    layout = numbers_layout(params)
    bench.stall("o", stall)
    bench.send("i", [item for payload in payloads for item in _numbers(params, payload, layout)], idle=idle)
    await bench.until(o=len(expected))
    await bench.advance(5)
    assert bench.items("o") == expected
    if not idle and not stall:
        cycles = compressor_cycles(params, [len(payload) // params.lanes for payload in payloads])
        assert bench.trace("o").transfers.tolist() == cycles


async def decompress_all(
    bench: StreamBench, params: CompressionParams, payloads: list[np.ndarray], *, idle: float, stall: float
) -> None:
    """Decompress what the golden model compressed; without pauses every output beat has its cycle."""
    await bench.reset()
    compression = params.compression
    records = [_records(params, payload) for payload in payloads]
    expected = [
        item
        for payload in payloads
        for item in _numbers(params, compression.decode(compression.encode(payload)), decoded_layout(params), fault=0)
    ]
    bench.stall("o", stall)
    bench.send("i", [word for beats in records for word in _words(params, b"".join(beats))], idle=idle)
    await bench.until(o=len(expected))
    await bench.advance(5)
    assert bench.items("o") == expected
    if not idle and not stall:
        sizes = [[len(beat) for beat in beats] for beats in records]
        assert bench.trace("o").transfers.tolist() == decompressor_cycles(params, sizes)


async def compress_broken(bench: StreamBench, params: CompressionParams) -> None:
    """Payloads cut short at every byte are told by ``fault``, and the payload behind each is whole."""
    rng = np.random.default_rng(3)
    await bench.reset()
    whole = payloads_of(params, 3, rng)[0]
    content = b"".join(_records(params, whole))
    good = _numbers(
        params, params.compression.decode(params.compression.encode(whole)), decoded_layout(params), fault=0
    )
    ends = set(np.cumsum([len(beat) for beat in _records(params, whole)]).tolist())
    cuts = [cut for cut in range(1, len(content)) if cut not in ends]
    bench.send("i", [word for cut in cuts for word in (*_words(params, content[:cut]), *_words(params, content))])
    layout = decoded_layout(params)
    zero = pack(layout, codes=[0] * params.lanes, last=1, fault=1)
    expected = []
    for cut in cuts:
        full = sum(end <= cut for end in ends)
        expected += [item & ~pack(layout, codes=[0] * params.lanes, last=1, fault=0) for item in good[:full]]
        expected += [zero, *good]
    await bench.until(o=len(expected))
    await bench.advance(5)
    assert bench.items("o") == expected


async def reset_between(bench: StreamBench, params: CompressionParams, run, cuts: list[int]) -> None:
    """After a reset in any cycle of a run the next run is as if it were the first."""
    payloads = payloads_of(params, 5, np.random.default_rng(5))
    for cut in cuts:
        await bench.reset()
        bench.send("i", [0x5555 << (16 * (cut % 3))] * 4)
        bench.stall("o", 0.5)
        await bench.advance(cut)
        await run(bench, params, payloads, idle=0.0, stall=0.0)
