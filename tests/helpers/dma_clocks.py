"""One bench for two ends of the DMA in clocks of their own and the link between them in a third."""

from __future__ import annotations

import logging
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any, Self

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Timer

from tests.helpers.cocotb_bench import ClockedBench
from tests.helpers.dma_crossed import DOMAINS, CrossedPair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hw.dma_crossed_params import DmaCrossedParams
    from hw.timing.trace import StreamTrace
    from tests.helpers.streams import StreamWords

__all__ = ["ClocksBench", "SettledBench"]


class ClocksBench:
    """What :class:`tests.helpers.dma.World` asks of a bench, over the benches of three clocks.

    Time passes by cycles of the near end; the others follow in tasks of their own.
    """

    def __init__(self, dut: Any, words: dict[str, StreamWords], periods_ps: dict[str, int], seed: int) -> None:
        self._periods_ps, self._random = periods_ps, Random(seed)
        self._benches = {
            domain: ClockedBench(
                words[domain],
                seed + number,
                driven=getattr(dut, f"{domain}_driven"),
                seen=getattr(dut, f"{domain}_seen"),
                clock=getattr(dut, f"{domain}_clk"),
            )
            for number, domain in enumerate(DOMAINS)
        }
        self._of = {
            name: self._benches[domain]
            for domain in DOMAINS
            for name in (*words[domain].inputs, *words[domain].outputs)
        }
        self._held_cycles: dict[str, int] = {}

    @classmethod
    async def start(
        cls, dut: Any, params: tuple[DmaCrossedParams, DmaCrossedParams], periods_ps: dict[str, int]
    ) -> Self:
        """Start the clocks, each in a phase of its own, reset everything and return the bench."""
        seed = cocotb.RANDOM_SEED
        logging.getLogger("cocotb").info("periods %s ps, seed %d", periods_ps, seed)
        bench = cls(dut, CrossedPair(params).words, periods_ps, seed)
        for domain in DOMAINS:
            Clock(getattr(dut, f"{domain}_clk"), periods_ps[domain], unit="ps", impl="gpi").start()
            await Timer(bench._random.randrange(1, periods_ps[domain]), unit="ps")
        for domain in DOMAINS[1:]:
            cocotb.start_soon(bench._follow(domain))
        await bench.reset()
        return bench

    @property
    def cycle(self) -> int:
        """Cycles of the near end since its reset."""
        return self._benches[DOMAINS[0]].cycle

    async def advance(self, cycles: int = 1) -> None:
        """Let cycles of the near end pass."""
        await self._benches[DOMAINS[0]].advance(cycles)

    async def reset(self) -> None:
        """Reset all domains, for six cycles of the slowest at once; each then ends its own after some time."""
        leader = DOMAINS[0]
        await self.settled()
        least_ps = 6 * max(self._periods_ps.values())
        for domain, period_ps in self._periods_ps.items():
            # One that is late begins within a cycle of its own.
            self._held_cycles[domain] = ceil(least_ps / period_ps) + 1 + self._random.randrange(20)
        await self._benches[leader].reset(self._held_cycles[leader])
        del self._held_cycles[leader]

    async def _follow(self, domain: str) -> None:
        bench = self._benches[domain]
        while True:
            if domain in self._held_cycles:
                await bench.reset(self._held_cycles[domain])
                del self._held_cycles[domain]
            else:
                await bench.advance()

    async def settled(self) -> None:
        """Let cycles pass until no domain is held in reset."""
        while self._held_cycles:
            await self.advance()

    def send(self, name: str, payloads: Iterable[int], *, idle: float | None = None) -> None:
        """Queue payloads on an input stream."""
        self._of[name].send(name, payloads, idle=idle)

    def stall(self, name: str, probability: float) -> None:
        """Refuse an output stream with a probability in every cycle of its clock."""
        self._of[name].stall(name, probability)

    def count(self, name: str) -> int:
        """Return how many items a stream has transferred since reset."""
        return self._of[name].count(name)

    def fresh(self, name: str) -> list[int]:
        """Return the items a stream has transferred since this was asked last, or since reset."""
        return self._of[name].fresh(name)

    def trace(self, name: str) -> StreamTrace:
        """Return the recorded handshakes of a stream since reset."""
        return self._of[name].trace(name)


class SettledBench(ClocksBench):
    """The same, whose reset is over when that of every domain is: nothing is sent to an end that is not ready."""

    async def reset(self) -> None:
        """Reset all domains and wait for each."""
        await super().reset()
        await self.settled()
