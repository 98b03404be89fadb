"""Cycles that the memories of a bench of the DMA need at least: counted from their timings, not simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hw.dma_bench_params import DmaBenchParams

__all__ = ["bus_cycles"]

_PASSES = 3
"""A slot that leaves is read; one that comes is written and read back."""


def bus_cycles(bench: DmaBenchParams, name: str) -> float:
    r"""Return the cycles of the ends for which a slot each way takes the buses of a memory.

    With c columns of a slot over the memory's channels, and as many writes in a row as reads wait for at most::

        columns     = 3 c / channels * n_ccds
        turn-around = c / (channels * write_batch) * (n_rtw - n_ccds + n_cwl + n_bl + n_wtrl - n_ccds)

    in the memory's clock. It is what no order of columns can get below: rows are open when they are wanted, no two
    columns of a bank group follow each other, all channels have the same to do, and nothing is refreshed.

    Parameters
    ----------
    bench : DmaBenchParams
        The ends and their memories.
    name : str
        ``near`` or ``far``.
    """
    end, memory = getattr(bench, name), getattr(bench, f"{name}_memory")
    timing = memory.timing
    columns = end.columns / end.space.space.sizes[memory.channel]
    turned = timing.n_rtw + timing.n_cwl + timing.n_bl + timing.n_wtrl - 2 * timing.n_ccds
    cycles = _PASSES * columns * timing.n_ccds + columns / memory.write_batch * turned
    return cycles * timing.clock_ns / bench.clock_ns
