"""Cycles of both ends of the DMA while nothing makes them wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.timing.dma import interval_cycles, latency_cycles, link_interval
from tests.helpers.dma import World

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams
    from tests.helpers.streams import StreamBench

__all__ = ["alone", "assert_cycles"]


async def alone(
    bench: StreamBench, params: tuple[DmaParams, DmaParams], *, tokens: int = 1, compressed: bool = False
) -> dict[str, list[int]]:
    """Move tokens by one descriptor while nothing else goes on; return the cycles in which each stream moved.

    They count from that in which the descriptor is taken.
    """
    await bench.reset()
    world = World(bench, params, seed=1)
    world.memory_delay = 0.0
    for _ in range(tokens):
        world.append("near")
    await bench.advance(10)
    length = tokens * params[0].space.space.slot_bytes
    world.submit("near", 0, [(0, length)], move=True, compressed=compressed, destination=1)
    await world.until_complete(1, 5000)
    names = ("ask", "answer", "fetch", "fetched", "sending", "message", "completion")
    far = ("write", "check", "checked", "sending")
    start = int(bench.trace("near_descriptor").transfers[0])
    streams = [f"near_{name}" for name in names] + [f"far_{name}" for name in far]
    return {name: [int(cycle) - start for cycle in bench.trace(name).transfers] for name in streams}


async def assert_cycles(bench: StreamBench, params: tuple[DmaParams, DmaParams]) -> None:
    """Demand latency and interval of :mod:`hw.timing.dma`."""
    near = params[0]
    one = await alone(bench, params)
    assert one["near_completion"] == [latency_cycles(near)]
    # The question is 4 cycles behind the descriptor, its answer 1, the first read 5, the next ones 1 each.
    assert (one["near_ask"], one["near_fetch"]) == ([4], list(range(10, 10 + near.columns)))
    count = min(near.copies, 14)
    many = await alone(bench, params, tokens=count)
    firsts = many["far_write"][:: near.columns]
    # A token may begin with a flit or in it, and a column in two of them comes with the second: not all are alike.
    exact = max(near.columns + 2, link_interval(near))
    assert exact <= interval_cycles(near) < exact + 1
    assert abs(firsts[-1] - firsts[0] - (count - 1) * exact) <= near.path.link.flit.beats
