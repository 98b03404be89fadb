# amaranth: UnusedElaboratable=no
"""Packer and unpacker in Amaranth's simulator at small sizes: bytes, cycles, filler, bad headers, reset, arguments."""

from __future__ import annotations

import numpy as np
import pytest

from golden.dma.flits import FlitFormat
from hw.dma_params import FlitParams
from hw.interface.packer import Packer
from hw.interface.unpacker import Unpacker
from hw.timing.flits import packer_cycles, unpacker_cycles
from tests.helpers.flits import bad_headers, frames_of, pack_all, reset_between, unpack_all
from tests.helpers.pysim import run_pysim

SIZES = {
    "two beats": FlitParams(flits=FlitFormat(32), beat_bytes=16),
    "three beats": FlitParams(flits=FlitFormat(36), beat_bytes=12),
    "four beats": FlitParams(flits=FlitFormat(32), beat_bytes=8),
}
UNITS = pytest.mark.parametrize(("unit", "run"), [(Packer, pack_all), (Unpacker, unpack_all)], ids=["pack", "unpack"])


@pytest.fixture(params=SIZES.values(), ids=SIZES.keys())
def params(request):
    return request.param


@UNITS
@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.4, 0.4)])
def test_bytes_and_cycles(params, unit, run, idle, stall):
    rng = np.random.default_rng(1)
    runs = [frames_of(int(rng.integers(1, 6)), 60, rng) for _ in range(4)]
    run_pysim(unit(params), lambda bench: run(bench, params, runs, rng, idle=idle, stall=stall))


@UNITS
def test_reset(unit, run):
    params = SIZES["two beats"]
    run_pysim(unit(params), lambda bench: reset_between(bench, params, run, list(range(1, 12))))


def test_bad_headers(params):
    unit = Unpacker(params)
    run_pysim(unit, lambda bench: bad_headers(bench, params))


def test_cycles_of_the_docstrings():
    params = SIZES["two beats"]
    assert packer_cycles(params, [[4, 2]]) == [2, 3]
    assert unpacker_cycles(params, [12, 12]) == [2, 3, 4, 5]
    # 4 KiB in one frame over flits of 256: 4104 bytes are 16.5 flits, 136 beats.
    whole = FlitParams()
    beats = packer_cycles(whole, [[8] * 128 + [2]])
    assert (len(beats), beats[0]) == (136, 2)
    assert beats[-1] - beats[0] == 135


def test_bad_arguments():
    for unit in (Packer, Unpacker):
        with pytest.raises(TypeError, match=r"^params must be a FlitParams, not 3$"):
            unit(3)
    with pytest.raises(TypeError, match=r"^flits must be a FlitFormat, not 64$"):
        FlitParams(flits=64)
    for beat_bytes, message in (
        (4, "from 8 to 128, not 4"),
        (256, "from 8 to 128, not 256"),
        (24, "a multiple of 4 that divides the flit of 256, not 24"),
    ):
        with pytest.raises(ValueError, match=rf"^beat_bytes must be {message}$"):
            FlitParams(beat_bytes=beat_bytes)
