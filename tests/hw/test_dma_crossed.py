# amaranth: UnusedElaboratable=no
"""Promise: an end of the DMA with crossings takes the cycles of its formula, and one that can't be is refused."""

from __future__ import annotations

import pytest
from amaranth.hdl import DomainRenamer

from hw.dma_crossed_params import DmaCrossedParams
from hw.interface.dma_crossed import DmaCrossed
from hw.presets.dma import STACK_END, TINY_END
from hw.timing import dma
from hw.timing.dma_crossed import interval_formula_of, latency_cycles, latency_formula_of, round_trip_cycles
from tests.helpers.dma_cycles import alone
from tests.helpers.dma_ends import DmaPair
from tests.helpers.dma_runs import CROSSED, SMALL
from tests.helpers.pysim import run_pysim


class OneClock(DmaPair):
    """Two ends and the link between them in one clock."""

    end = DmaCrossed

    def elaborate(self, platform):
        return DomainRenamer({"link": "sync"})(super().elaborate(platform))


def test_latency_in_one_clock():
    async def scenario(bench):
        found = await alone(bench, SMALL)
        assert found["near_completion"] == [latency_cycles(CROSSED[0])]

    run_pysim(OneClock(CROSSED), scenario)


def test_formulas_are_those_of_the_end_and_its_crossings():
    params = DmaCrossedParams(dma=STACK_END)
    assert latency_cycles(params) == dma.latency_cycles(STACK_END) + 12
    formula = latency_formula_of(params)
    assert eval(formula.formula, {}, dict(formula.values)) == formula.cycles
    assert interval_formula_of(params) == dma.interval_formula_of(STACK_END)


def test_timeouts_of_the_presets_cover_the_crossings():
    """By hand, all clocks of 1 ns and 10 ns of wire: 9 + 16 + 7 + 20; a link of a fifth of the rate adds 4 * 16."""
    params = DmaCrossedParams(dma=TINY_END)
    times = {"clock_s": 1e-9, "link_s": 1e-9, "peer_s": 1e-9, "wire_s": 10e-9}
    assert round_trip_cycles(params, **times) == 52
    assert round_trip_cycles(params, **times | {"link_s": 5e-9}) == 116
    for end in (TINY_END, STACK_END):
        assert round_trip_cycles(params, **times | {"link_s": 5e-9}) < end.path.link.timeout_cycles


def test_bad_arguments():
    for name, value, message in (("depth", 3, "at least 4, not 3"), ("depth", 12, "a power of two, not 12")):
        with pytest.raises(ValueError, match=rf"^{name} must be {message}$"):
            DmaCrossedParams(dma=TINY_END, **{name: value})
    with pytest.raises(TypeError, match=r"^dma must be a DmaParams, not 3$"):
        DmaCrossedParams(dma=3)
    with pytest.raises(TypeError, match=r"^params must be a DmaCrossedParams, not DmaParams\("):
        DmaCrossed(TINY_END)
