"""Measures rates of the DMA on Verilated benches, for the table of :mod:`hw.tables.dma`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hw.builds import digest
from hw.dma_run import DmaWork, bench_verilog, counted, run_dma
from hw.presets.dma_bench import DMA_BENCHES
from hw.tables.dma import DmaPoint

if TYPE_CHECKING:
    from hw.dma_bench_params import DmaBenchParams

__all__ = ["DmaCase", "bench_sha256", "dma_sha256", "measure_case", "measured_cases"]

_EVERY, _SOME, _FEW, _LITTLE = (1, 1), (2, 5), (1, 4), (1, 8)
_ALL = (_EVERY, _SOME, (2, 7), _FEW, (1, 5), _LITTLE)
"""Beats that links take, of cycles. Over the first the end or its memory is what tokens wait for; the fewer there
are, the more room the memories have for both directions."""

_LONG_QUEUES = "long-queues"
"""Bench that differs from that of a device in its memories alone, and so not where they take no time."""

_TOKEN_BYTES = 1 << 20
"""Bytes of tokens that each end sends in a run."""

_SENDERS = {"near to far": ("near",), "far to near": ("far",), "both": ("near", "far")}


@dataclass(frozen=True, kw_only=True)
class DmaCase:
    """One run: bench, what it is called, and what is moved how."""

    name: str
    bench: str
    run_tokens: int
    compressed: bool
    direction: str
    at_once: bool
    link_beats: tuple[int, int]

    def work(self, params: DmaBenchParams, seed: int) -> DmaWork:
        """Return what the ends do."""
        return DmaWork(
            tokens=_TOKEN_BYTES // params.near.space.space.slot_bytes,
            run_tokens=self.run_tokens,
            compressed=self.compressed,
            senders=_SENDERS[self.direction],
            link_beats=self.link_beats,
            at_once=self.at_once,
            seed=seed,
        )


_LINKS = {
    ("contiguous", "device", 8, False): (_EVERY, _SOME, _FEW),
    ("contiguous, slots of 4 KiB", "long-slots", 1, False): (_EVERY, _SOME, _FEW),
    ("scattered", "device", 1, False): (_EVERY, _SOME, _FEW, _LITTLE),
    ("scattered, 8 bits", "device", 1, True): (_EVERY, _SOME, _FEW, _LITTLE),
    ("scattered, no reorder", "no-reorder", 1, False): (_SOME,),
    ("scattered, no packing", "no-packing", 1, False): (_SOME,),
    ("scattered, 32 reads wait", _LONG_QUEUES, 1, False): _ALL,
    ("scattered, 8 bits, 32 reads wait", _LONG_QUEUES, 1, True): _ALL,
}
"""Name, bench, tokens that lie together, and whether they are sent in 8 bits: links over which both directions go."""


def measured_cases() -> list[DmaCase]:
    """Return all runs: both directions over some links, and each by itself over one, at the sizes of a device.

    Memories take no time, and then have open rows.
    """
    return [
        DmaCase(
            name=name,
            bench=bench,
            run_tokens=run_tokens,
            compressed=compressed,
            direction=direction,
            at_once=at_once,
            link_beats=link,
        )
        for (name, bench, run_tokens, compressed), links in _LINKS.items()
        for at_once in ((False,) if bench == _LONG_QUEUES else (True, False))
        for direction, link in [
            *(("both", link) for link in links),
            *((direction, _SOME) for direction in ("near to far", "far to near") if bench == "device"),
        ]
    ]


def bench_sha256(name: str) -> str:
    """Return the hash of the Verilog of a bench."""
    return digest(bench_verilog(DMA_BENCHES[name]))


def dma_sha256() -> str:
    """Return the hash of those of all benches."""
    return digest(*map(bench_sha256, DMA_BENCHES))


def measure_case(case: DmaCase, *, seed: int) -> DmaPoint:
    """Run a case and a lone token of its kind.

    Raises
    ------
    hw.cosim.CosimError
        If a token is lost, differs from its source, or is not there in time.
    hw.toolchain.ToolError
        If the model can't be built.
    """
    params = DMA_BENCHES[case.bench]
    work = case.work(params, seed)
    run = run_dma(params, work)
    lone = run_dma(params, replace(work, tokens=1, run_tokens=1, senders=work.senders[:1]))
    counts = {name: counted(landed) for name, landed in run.landed.items()}
    slot_bytes, beat_bytes = params.near.space.space.slot_bytes, params.near.path.link.flit.beat_bytes
    shares = {name: count.tokens * slot_bytes / (count.offered * beat_bytes) for name, count in counts.items()}
    every = list(counts.values())
    return DmaPoint(
        name=case.name,
        direction=case.direction,
        memories="immediate" if case.at_once else "open-row",
        slot_bytes=slot_bytes,
        run_tokens=case.run_tokens,
        compressed=case.compressed,
        reorder=params.near.reorder_depth > 1,
        packing=params.near.run_frames > 1,
        reads_waiting=params.near_memory.reads_waiting,
        link_beats=case.link_beats,
        tokens=sum(count.tokens for count in every),
        cycles=max(count.cycles for count in every),
        offered_beats=sum(count.offered for count in every),
        beat_bytes=beat_bytes,
        near_share=shares.get("near"),
        far_share=shares.get("far"),
        rows_opened=every[0].opened,
        lone_cycles=next(iter(lone.first_completions.values())),
    )
