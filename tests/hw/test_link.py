# amaranth: UnusedElaboratable=no
"""Both ends of a link in Amaranth's simulator: nothing lost, doubled or out of order, whatever happens on the wire."""

from __future__ import annotations

from random import Random

import pytest

from golden.dma.flits import FlitFormat
from hw.dma_params import FlitParams, LinkParams
from hw.interface.link_receiver import LinkReceiver
from hw.interface.link_sender import LinkSender
from tests.helpers.link import LinkEnds, beats_of, carry, reset_anywhere, through
from tests.helpers.pysim import run_pysim

FLIT = FlitParams(flits=FlitFormat(24), beat_bytes=8)
PARAMS = LinkParams(flit=FLIT, window=8, timeout_cycles=60, attempts=8)


@pytest.mark.parametrize(
    ("faults", "idle", "stall"),
    [(0.0, 0.0, 0.0), (0.0, 0.6, 0.0), (0.0, 0.0, 0.7), (0.05, 0.0, 0.0), (0.1, 0.3, 0.5)],
)
def test_flits_arrive_once_and_in_order(faults, idle, stall):
    run_pysim(
        LinkEnds(PARAMS),
        lambda bench: through(bench, PARAMS, 40, faults=faults, idle=idle, stall=stall, seed=1),
    )


@pytest.mark.parametrize("window", [2, 4])
def test_narrow_windows(window):
    params = LinkParams(flit=FLIT, window=window, timeout_cycles=60, attempts=8)
    run_pysim(LinkEnds(params), lambda bench: through(bench, params, 30, faults=0.1, idle=0.0, stall=0.3, seed=2))


def test_reset_in_any_cycle():
    run_pysim(LinkEnds(PARAMS), lambda bench: reset_anywhere(bench, PARAMS, [1, 2, 3, 5, 8, 11, 14, 19, 25, 31, 40]))


def test_a_dead_link_is_told_and_nothing_is_sent_on_it():
    params = LinkParams(flit=FLIT, window=4, timeout_cycles=40, attempts=3)
    ends = LinkEnds(params)

    async def scenario(bench):
        bench.send("i", beats_of(params, 6, 1))
        cycles = 0
        while not bench._context.get(ends.down):
            await carry(bench, {"wire": 1 << 30, "back": 1 << 30}, Random(1), 1.0)
            cycles += 1
            assert cycles < 1000
        # Sent once and again after each timeout, 4 flits of 3 beats; the last timeout gives up.
        assert bench._context.get(ends.again) == 3
        sent = len(bench.items("wire"))
        assert sent == (1 + 3) * 4 * 3
        await bench.advance(200)
        assert len(bench.items("wire")) == sent
        assert bench.items("o") == []

    run_pysim(ends, scenario)


@pytest.mark.parametrize("lost", range(3))
def test_a_lost_acknowledgement_costs_no_more_than_a_timeout(lost):
    """Even the last one, behind which nothing is left to send; it alone says that the room of all flits is free."""
    params = LinkParams(flit=FLIT, window=4, timeout_cycles=40, attempts=3)
    ends = LinkEnds(params)

    async def scenario(bench):
        bench.send("i", beats_of(params, 2, 1))
        told = 0
        for _ in range(10 * params.timeout_cycles):
            await bench.advance()
            bench.send("arriving", bench.fresh("wire"))
            for item in bench.fresh("back"):
                if told != lost:
                    bench.send("returning", [item])
                told += 1
        assert told == (3 if lost < 2 else 4)
        assert (bench._context.get(ends.down), bench._context.get(ends.again)) == (0, int(lost == 2))
        assert bench.items("o") == beats_of(params, 2, 1)
        assert len(bench.items("wire")) == (2 if lost < 2 else 3) * FLIT.beats

    run_pysim(ends, scenario)


@pytest.mark.parametrize("flits", [1, 4, 7])
def test_a_full_receiver_is_no_dead_link(flits):
    """It is asked in every timeout, says that it is there, and takes the rest once it has room."""
    params = LinkParams(flit=FLIT, window=4, timeout_cycles=40, attempts=3)
    ends = LinkEnds(params)

    async def scenario(bench):
        bench.stall("o", 1.0)
        bench.send("i", beats_of(params, flits, 1))
        for cycle in range(20 * params.timeout_cycles):
            if cycle == 10 * params.timeout_cycles:
                assert bench._context.get(ends.again) in (8, 9)
                assert bench.items("o") == []
                bench.stall("o", 0.0)
            await bench.advance()
            bench.send("arriving", bench.fresh("wire"))
            bench.send("returning", bench.fresh("back"))
        assert not bench._context.get(ends.down)
        assert bench.items("o") == beats_of(params, flits, 1)

    run_pysim(ends, scenario)


def test_acknowledgements_that_cannot_be_are_not_believed():
    ends = LinkEnds(PARAMS)

    async def scenario(bench):
        bench.send("i", beats_of(PARAMS, 12, 1))
        # Nothing was sent yet that could have been freed, and the check bits of the second are not those of its fields.
        ones = (1 << 33) - 1
        for fields in (9 | 9 << 16, 1):
            bench.send("returning", [fields | (ones ^ fields) << 33])
        bench.send("returning", [8 | 8 << 16])
        await bench.advance(50)
        assert len(bench.items("wire")) == 8 * 3

    run_pysim(ends, scenario)


@pytest.mark.parametrize("held_cycles", range(1, 30))
def test_a_flit_of_which_a_beat_finds_no_room_is_bad(held_cycles):
    """No sender sends one. Its first beat comes while every place is taken, its last when one may be free again."""
    params = LinkParams(flit=FLIT, window=2, timeout_cycles=60, attempts=8)
    sent = beats_of(params, 5, 1)

    async def scenario(bench):
        bench.stall("o", 1.0)
        bench.send("i", sent)
        await bench.advance(held_cycles)
        bench.stall("o", 0.0)
        await bench.advance(60)
        out = bench.items("o")
        assert len(out) % FLIT.beats == 0
        assert len(out) >= 2 * FLIT.beats
        assert out == sent[: len(out)]

    run_pysim(LinkReceiver(params), scenario)


def test_bad_arguments():
    for unit in (LinkSender, LinkReceiver):
        with pytest.raises(TypeError, match=r"^params must be a LinkParams, not 3$"):
            unit(3)
    with pytest.raises(TypeError, match=r"^flit must be a FlitParams, not None$"):
        LinkParams(flit=None)
    for name, value, message in (
        ("window", 1, "from 2 to 16384, not 1"),
        ("window", 6, "a power of two, not 6"),
        ("timeout_cycles", 0, "at least 1, not 0"),
        ("attempts", 0, "at least 1, not 0"),
    ):
        with pytest.raises(ValueError, match=rf"^{name} must be {message}$"):
            LinkParams(**{name: value})
