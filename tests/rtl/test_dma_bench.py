"""Promise: the bench moves whole tokens over both kinds of memory, as fast as the formulas and the link let it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hw.cosim import CosimError, StreamRun, run_streams
from hw.dma_run import DmaWork, bench_verilog, run_dma
from hw.interface.dma_bench import BENCH_TOP, landed_layout, setup_layout
from hw.interface.dma_layouts import segment_layout
from hw.payloads import pack, unpack
from hw.timing.dma import latency_cycles
from tests.helpers.dma_bench import LINK_CYCLES, TINY_BENCH

SLOT_BEATS = 4


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("run_tokens", [1, 2])
def test_every_token_comes_as_it_was(at_once: bool, compressed: bool, run_tokens: int) -> None:
    work = DmaWork(tokens=60, run_tokens=run_tokens, compressed=compressed, link_beats=(1, 2), at_once=at_once)
    run = run_dma(TINY_BENCH, work)
    assert set(run.landed) == {"near", "far"}
    for landed in run.landed.values():
        assert len(landed.cycles) == 60
        # The link offers a beat in every other cycle, and a token takes more than the beats that it has.
        beats = landed.offered[-1] - landed.offered[0]
        assert abs(beats - (int(landed.cycles[-1]) - int(landed.cycles[0])) / 2) <= 1
        assert beats > 59 * SLOT_BEATS / (2 if compressed else 1)
        assert (landed.opened[-1] == 0) == at_once


def test_one_way_and_a_lone_token() -> None:
    """The formula's link brings a beat in the next cycle; over this one token and verdict are longer on the way."""
    work = DmaWork(tokens=1, senders=("near",), at_once=True)
    run = run_dma(TINY_BENCH, work)
    assert set(run.landed) == {"near"}
    assert run.first_completions == {"near": latency_cycles(TINY_BENCH.near) + 2 * (LINK_CYCLES - 1)}
    slow = run_dma(TINY_BENCH, replace(work, at_once=False)).first_completions["near"]
    # Read, written and read back behind rows that are opened: HBM3's 19 + 19, DDR4's 24 + 24 cycles of theirs.
    assert slow >= run.first_completions["near"] + (38 * 0.769 + 2 * 24 * 0.625) / 1.538


def test_the_same_work_takes_the_same_cycles() -> None:
    work = DmaWork(tokens=30, link_beats=(2, 5), seed=3)
    runs = [run_dma(TINY_BENCH, work) for _ in range(2)]
    assert runs[0].cycles == runs[1].cycles
    assert runs[0].landed["near"].cycles.tolist() == runs[1].landed["near"].cycles.tolist()


def test_a_column_that_is_not_its_sources_is_counted() -> None:
    """Two tokens are given one room: what the first one left there is not what the table says of the second."""
    size = TINY_BENCH.near.space.space.slot_bytes
    descriptor = pack(
        segment_layout(TINY_BENCH.near),
        tag=0,
        move=True,
        compressed=False,
        destination=1,
        source=0,
        length=2 * size,
        last=True,
    )
    inputs = {
        "setup": [pack(setup_layout(), beats=1, cycles=1, at_once=True)],
        "near_descriptor": [descriptor],
        "far_room": [40, 40],
    }
    run = run_streams(bench_verilog(TINY_BENCH), BENCH_TOP, inputs, {"far_landed": 2}, max_cycles=2000)
    found = [unpack(landed_layout(), payload) for payload in run.streams["far_landed"].payloads]
    assert [one["wrong"] for one in found] == [4, 4]


def test_work_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tokens must be a multiple of the 8 of a run, not 12$"):
        DmaWork(tokens=12, run_tokens=8)
    with pytest.raises(ValueError, match=r"^senders must be of near, far, not \('up',\)$"):
        DmaWork(tokens=1, senders=("up",))
    with pytest.raises(ValueError, match=r"^beats of link_beats must be from 1 to 2, not 3$"):
        DmaWork(tokens=1, link_beats=(3, 2))
    with pytest.raises(ValueError, match=r"^half of a memory must have room for 8 runs, not for 4$"):
        run_dma(TINY_BENCH, DmaWork(tokens=8, run_tokens=8))


@pytest.mark.parametrize("key", ["wrong", "lost"])
def test_a_run_that_ends_badly_is_told(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(*arguments: Any, **options: Any) -> StreamRun:
        run = run_streams(*arguments, **options)
        landed = run.streams["far_landed"]
        landed.payloads[-1] |= 1 << landed_layout()[key].offset
        return run

    monkeypatch.setattr("hw.dma_run.run_streams", spoilt)
    with pytest.raises(CosimError, match=f"^{key} at far must be 0, not 1$"):
        run_dma(TINY_BENCH, DmaWork(tokens=1, senders=("near",)))
