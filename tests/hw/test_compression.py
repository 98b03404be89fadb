# amaranth: UnusedElaboratable=no
"""Compressor and decompressor in Amaranth's simulator at small sizes: bits, cycles, cut payloads, reset, arguments."""

from __future__ import annotations

import numpy as np
import pytest

from golden.dma.compression import BlockCompression
from golden.formats import BF16, FP16
from hw.dma_params import CompressionParams
from hw.interface.compressor import Compressor
from hw.interface.decompressor import Decompressor
from hw.timing.compression import compressor_cycles, compressor_latency, decompressor_cycles
from tests.helpers.compression import compress_all, compress_broken, decompress_all, payloads_of, reset_between
from tests.helpers.pysim import run_pysim

SIZES = {
    "fp16, two beats": CompressionParams(compression=BlockCompression(fmt=FP16, block=8), lanes=4),
    "bf16, one beat": CompressionParams(compression=BlockCompression(fmt=BF16, block=2), lanes=2),
    "fp16, three beats": CompressionParams(compression=BlockCompression(fmt=FP16, block=6), lanes=2),
}
UNITS = pytest.mark.parametrize(
    ("unit", "run"), [(Compressor, compress_all), (Decompressor, decompress_all)], ids=["compressor", "decompressor"]
)


@pytest.fixture(params=SIZES.values(), ids=SIZES.keys())
def params(request):
    return request.param


@UNITS
@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.4, 0.4)])
def test_bits_and_cycles(params, unit, run, idle, stall):
    payloads = payloads_of(params, 12, np.random.default_rng(1))
    run_pysim(unit(params), lambda bench: run(bench, params, payloads, idle=idle, stall=stall))


@UNITS
def test_reset(unit, run):
    params = SIZES["fp16, two beats"]
    run_pysim(unit(params), lambda bench: reset_between(bench, params, run, list(range(1, 9))))


def test_payloads_that_end_in_a_beat_are_told(params):
    run_pysim(Decompressor(params), lambda bench: compress_broken(bench, params))


def test_cycles_of_the_docstrings():
    params = SIZES["fp16, two beats"]
    assert compressor_cycles(params, [3, 1]) == [3, 4, 5, 6]
    assert [compressor_latency(params, beats) for beats in (1, 2, 3)] == [2, 3, 3]
    assert compressor_cycles(CompressionParams(), [16])[0] == compressor_latency(CompressionParams(), 16) == 3
    # 16 numbers a beat: raw blocks of two beats take 65 bytes, so 33 cycles of 32 bytes for 16 blocks' 32 beats.
    default = CompressionParams()
    raw = decompressor_cycles(default, [[33, 32] * 16])
    assert (raw[0], raw[-1]) == (3, 2 + 33 - 1)
    small = decompressor_cycles(default, [[17, 16] * 8] * 50)
    assert small[-1] - small[16 * 40 - 1] == 9 * 16 + 15 + 1


def test_bad_arguments():
    for unit in (Compressor, Decompressor):
        with pytest.raises(TypeError, match=r"^params must be a CompressionParams, not 3$"):
            unit(3)
    with pytest.raises(TypeError, match=r"^compression must be a BlockCompression, not None$"):
        CompressionParams(compression=None)
    for lanes, message in ((1, "from 2 to 64, not 1"), (12, "a power of two, not 12")):
        with pytest.raises(ValueError, match=rf"^lanes must be {message}$"):
            CompressionParams(lanes=lanes)
    with pytest.raises(ValueError, match=r"^lanes must divide the block of 32 numbers, not 64$"):
        CompressionParams(lanes=64)
    for call in (lambda p: compressor_latency(p, 0), lambda p: compressor_cycles(p, [0])):
        with pytest.raises(ValueError, match=r"^beats must be at least 1, not 0$"):
            call(CompressionParams())
    with pytest.raises(ValueError, match=r"^payloads must have at least one beat each, one has none$"):
        decompressor_cycles(CompressionParams(), [[]])
