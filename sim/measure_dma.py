"""Measured rates of the DMA: runs over Verilated ends, their memories and a link, and the table of all."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from hw.measure import tool_versions
from hw.measure_dma import DmaCase, bench_sha256, dma_sha256, measure_case, measured_cases
from hw.presets.dma_bench import DMA_BENCHES
from hw.tables.dma import DmaPoint, DmaTable, dma_point
from sim.errors import SimError
from sim.parallel import spread
from sim.studies.kept import kept

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure_dma"]

_SEED = 0


def measure_dma(*, jobs: int, progress: Callable[[str], None]) -> DmaTable:
    """Measure every case of :func:`hw.measure_dma.measured_cases`.

    Every run is kept in the build folder by the hash of its bench's Verilog and its case: an interrupted sweep goes on.

    Parameters
    ----------
    jobs : int
        Runs at a time.
    progress : callable
        Is told in words what is going on.

    Raises
    ------
    hw.cosim.CosimError, hw.toolchain.ToolError
        If a run fails, or a tool is missing.
    SimError
        If the sources change meanwhile.
    """
    progress("dma: making the Verilog")
    sha256 = {name: bench_sha256(name) for name in DMA_BENCHES}
    cases = measured_cases()
    found: dict[int, DmaPoint] = {}
    start = shown = time.monotonic()
    progress(f"dma: building the models and making the first of {len(cases)} runs")
    for place, point in spread(_run, [(sha256[case.bench], case) for case in cases], jobs=jobs):
        found[place] = dma_point(point)
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            progress(f"dma: {len(found)} of {len(cases)} runs after {shown - start:.0f} s")
    return DmaTable(
        points=tuple(found[place] for place in range(len(cases))),
        clock_ns=next(iter(DMA_BENCHES.values())).clock_ns,
        verilog_sha256=dma_sha256(),
        seed=_SEED,
        versions=tool_versions(),
    )


def _run(sha256: str, case: DmaCase) -> dict[str, Any]:
    """Return the point of a case, from the build folder where it was made before."""

    def make() -> bytes:
        point = measure_case(case, seed=_SEED)
        if bench_sha256(case.bench) != sha256:
            raise SimError("Verilog of dma must not change while it is measured, it did: start again")
        return json.dumps(asdict(point)).encode()

    # A point of other fields, kept by an earlier version, is none of these.
    names = ",".join(item.name for item in fields(DmaPoint))
    return json.loads(kept("measure-dma", (sha256, repr(case), str(_SEED), names), make))
