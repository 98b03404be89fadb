# amaranth: UnusedElaboratable=no
"""The DMA's data path in Amaranth's simulator: payloads arrive once, whole and in order, over a link with faults."""

from __future__ import annotations

import pytest

from golden.dma.compression import BlockCompression
from golden.dma.flits import FlitFormat
from golden.formats import FP16
from hw.dma_params import CompressionParams, FlitParams, LinkParams, PathParams
from hw.interface.deframer import Deframer
from hw.interface.framer import Framer
from hw.interface.receiver import Receiver
from hw.interface.transmitter import Transmitter
from tests.helpers.path import PathEnds, payloads_through
from tests.helpers.pysim import run_pysim

SMALL = PathParams(
    compression=CompressionParams(compression=BlockCompression(fmt=FP16, block=8), lanes=4),
    link=LinkParams(flit=FlitParams(flits=FlitFormat(24), beat_bytes=8), window=8, timeout_cycles=80, attempts=8),
    payload_beats=5,
)


@pytest.mark.parametrize(
    ("faults", "idle", "stall"),
    [(0.0, 0.0, 0.0), (0.05, 0.2, 0.2)],
)
def test_payloads_arrive_whole(faults, idle, stall):
    run_pysim(
        PathEnds(SMALL),
        lambda bench: payloads_through(bench, SMALL, 20, faults=faults, idle=idle, stall=stall, seed=3),
    )


def test_bad_arguments():
    for unit in (Transmitter, Receiver, Framer):
        with pytest.raises(TypeError, match=r"^params must be a PathParams, not 3$"):
            unit(3)
    with pytest.raises(TypeError, match=r"^params must be a FlitParams, not 3$"):
        Deframer(3)
    for name, value, message in (
        ("compression", 3, "a CompressionParams, not 3"),
        ("link", 3, "a LinkParams, not 3"),
    ):
        with pytest.raises(TypeError, match=rf"^{name} must be {message}$"):
            PathParams(**{name: value})
    for beats in (0, 1986):
        with pytest.raises(ValueError, match=rf"^payload_beats must be from 1 to 1985, not {beats}$"):
            PathParams(payload_beats=beats)
    with pytest.raises(ValueError, match=r"^lanes of compression must fill 32 bytes, not 8$"):
        PathParams(compression=CompressionParams(lanes=8))
