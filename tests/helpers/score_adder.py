"""Scenarios of the score adder, for both simulators: sums held to NumPy's float32, and every cycle to the latency."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from golden.formats import FP32
from hw.timing.score_adder import latency_cycles
from tests.helpers.floats import corner_codes, random_codes

__all__ = ["ScoreBench", "corners", "lost_step", "random_sums", "reset_forgets"]


class ScoreBench(ABC):
    """The simulator-independent part; a back end supplies :meth:`step`."""

    def __init__(self, slices: int) -> None:
        self.slices = slices

    @abstractmethod
    async def step(self, valids: list[bool], codes: list[int], *, reset: bool = False) -> tuple[bool, int, bool]:
        """Let one clock cycle pass with these inputs; return valid, sum and fault as its rising edge saw them."""

    async def reset(self) -> None:
        """Hold reset for two cycles."""
        for _ in range(2):
            await self.step([True] * self.slices, [1] * self.slices, reset=True)


def _expected(codes: np.ndarray) -> list[int]:
    """Return the sums of rows of codes: neighbours, then neighbouring sums, and so on, in NumPy's float32."""
    level = FP32.from_codes(codes)
    with np.errstate(all="ignore"):
        while level.shape[1] > 1:
            level = level[:, 0::2] + level[:, 1::2]
    return FP32.to_codes(level[:, 0]).tolist()


async def _run(bench: ScoreBench, codes: np.ndarray, gaps: np.ndarray) -> None:
    """Offer each row in the first cycle after its gap; every sum must come exactly the latency later, none else."""
    await bench.reset()
    cycles = np.arange(len(codes)) + np.cumsum(gaps)
    latency = latency_cycles(bench.slices)
    rows = dict(zip(cycles.tolist(), codes, strict=True))
    wanted = dict(zip((cycles + latency).tolist(), _expected(codes), strict=True))
    noise = np.random.default_rng(0)
    for cycle in range(int(cycles[-1]) + latency + 3):
        # Idle inputs carry noise, so that an adder that looks at them is found out.
        row = rows.get(cycle, noise.integers(0, 1 << 32, bench.slices))
        valid, total, fault = await bench.step([cycle in rows] * bench.slices, [int(code) for code in row])
        assert valid == (cycle in wanted), cycle
        assert not fault
        if valid:
            assert total == wanted[cycle], (cycle, hex(total), hex(wanted[cycle]), [hex(int(code)) for code in row])


async def random_sums(bench: ScoreBench, count: int, pause: float, seed: int) -> None:
    """Random parts, half of them near each other, offered with random gaps."""
    rng = np.random.default_rng(seed)
    size = count * bench.slices
    codes = np.where(rng.random(size) < 0.5, random_codes(FP32, size, rng), random_codes(FP32, size, rng, near=0))
    await _run(bench, codes.reshape(count, bench.slices), rng.geometric(1 - pause, count) - 1)


async def corners(bench: ScoreBench, count: int, seed: int) -> None:
    """Rows of zeros, subnormals, extremes, infinities and NaNs, one a cycle."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(corner_codes(FP32), (count, bench.slices))
    await _run(bench, codes, np.zeros(count, int))


async def lost_step(bench: ScoreBench) -> None:
    """Each input alone missing, and each alone there: fault in the next cycle, for good, and no score."""
    latency = latency_cycles(bench.slices)
    for number in range(bench.slices):
        for alone in (False, True):
            await bench.reset()
            valids = [(other == number) == alone for other in range(bench.slices)]
            seen = [await bench.step(valids, [0] * bench.slices)]
            seen += [await bench.step([False] * bench.slices, [0] * bench.slices) for _ in range(latency + 3)]
            assert [fault for _, _, fault in seen] == [False] + [True] * (latency + 3)
            assert not any(valid for valid, _, _ in seen)


async def reset_forgets(bench: ScoreBench) -> None:
    """Reset after each number of cycles: the fault ends, and the sums under way are dropped."""
    latency = latency_cycles(bench.slices)
    for before in range(1, latency + 1):
        await bench.reset()
        await bench.step([True] + [False] * (bench.slices - 1), [0] * bench.slices)
        for _ in range(before):
            await bench.step([True] * bench.slices, [0x3F800000] * bench.slices)
        await bench.reset()
        for _ in range(latency + 2):
            valid, _, fault = await bench.step([False] * bench.slices, [0] * bench.slices)
            assert not valid
            assert not fault
