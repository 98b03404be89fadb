"""Scenarios for the exponential unit, the same in both simulators, and the specs they run on."""

from __future__ import annotations

import numpy as np

from golden.exp import POLY6, POLY6_SERIAL, PolynomialSpec
from golden.formats import BF16
from hw.timing.exp import cycles, predict

__all__ = [
    "SPECS",
    "VARIANTS",
    "chosen_codes",
    "run_back_to_back",
    "run_blocked",
    "run_reset",
    "run_stalled",
]

SPECS = {spec.name: spec for spec in (POLY6, POLY6_SERIAL)}

# Unlike POLY6 in everything: a product that has to move left, guard bits, a low and a high degree, bf16.
VARIANTS = (
    PolynomialSpec(name="line", coefficients=(4097, 4000), frac_bits=12, log2e=23, log2e_bits=4),
    PolynomialSpec(
        name="cubic", coefficients=(65540, 45580, 14780, 5171), frac_bits=14, guard_bits=2, log2e=46, log2e_bits=5
    ),
    POLY6.replace(name="eight", coefficients=(*POLY6.coefficients, 0, 1)),
    POLY6.replace(name="poly6-bf16", fmt=BF16),
)


def chosen_codes(spec, count):
    """Return ``count`` codes, at least 80: both signs around every end of a range, the rest random, all shuffled."""
    fmt = spec.fmt
    ln2 = np.log(2)
    vanish = (fmt.bias + fmt.significand_bits) * ln2
    beyond = 2.0 ** np.ceil(np.log2(vanish + ln2))
    ends = fmt.to_codes([2.0**-fmt.significand_bits, (fmt.bias - 1) * ln2, (fmt.bias + 1) * ln2, vanish, vanish + ln2])
    ends = [1, 1 << fmt.significand_bits, fmt.one_code, *ends.tolist(), int(fmt.to_codes(beyond))]
    ends += [fmt.inf_code, fmt.sign_mask - 1]
    magnitudes = np.unique([[code - 1, code, min(code + 1, fmt.sign_mask - 1)] for code in ends])
    edges = np.concatenate((magnitudes, magnitudes | fmt.sign_mask))
    rng = np.random.default_rng(6)
    # Half of the random operands lie where the result is neither 0 nor infinity.
    wide = rng.integers(0, 1 << fmt.bits, (count - edges.size) // 2)
    near = fmt.to_codes(rng.uniform(-vanish, fmt.bias * ln2, count - edges.size - wide.size))
    return rng.permutation(np.concatenate((edges, wide, near))).tolist()


def check(bench, spec, codes):
    """Demand the bit and the cycle contract of everything that ran since reset."""
    assert bench.items("o") == spec.evaluate_codes(codes).tolist()
    operands, results = bench.trace("i"), bench.trace("o")
    predicted = predict(spec, len(codes), operand=operands, result=results)
    assert predicted.operand.tolist() == operands.transfers.tolist()
    assert predicted.result.tolist() == results.transfers.tolist()
    assert predicted.result_presented.tolist() == results.presented.tolist()


async def run_stalled(bench, spec, codes, idle, stall):
    """Run ``codes`` with random idles and back-pressure."""
    bench.stall("o", stall)
    bench.send("i", codes, idle=idle)
    await bench.until(o=len(codes))
    check(bench, spec, codes)


async def run_back_to_back(bench, spec, codes):
    """Run ``codes`` at full speed, against the closed forms."""
    bench.stall("o", 0.0)
    bench.send("i", codes, idle=0.0)
    await bench.until(o=len(codes))
    check(bench, spec, codes)
    accepted, taken = bench.trace("i").transfers, bench.trace("o").transfers
    assert set((taken - accepted).tolist()) <= {spec.latency_cycles}
    assert set(np.diff(accepted).tolist()) <= {spec.interval_cycles}
    assert taken[-1] - accepted[0] + 1 == cycles(spec, len(codes))


async def run_blocked(bench, spec, codes):
    """Refuse the output until the unit is full, see how many operands it holds, then let all through."""
    bench.stall("o", 1.0)
    bench.send("i", codes, idle=0.0)
    await bench.advance(60)
    # One a register; of a serial unit one in its core, one in each register behind it.
    held = spec.latency_cycles - spec.interval_cycles + 1
    assert len(bench.items("i")) == held < len(codes)
    bench.stall("o", 0.0)
    await bench.until(o=len(codes))
    check(bench, spec, codes)


async def run_reset(bench, spec, codes):
    """Reset after every number of cycles in turn, with results stalled and not; nothing old comes out."""
    for age in range(1, spec.latency_cycles + spec.interval_cycles + 2):
        for stall in (0.0, 1.0):
            bench.stall("o", stall)
            bench.send("i", codes, idle=0.0)
            await bench.advance(age)
            await bench.reset()
            bench.stall("o", 0.0)
            await bench.advance(spec.latency_cycles + 2)
            assert bench.items("o") == []
            assert not bench.trace("o").valid.any()
            bench.send("i", codes[:3], idle=0.0)
            await bench.until(o=3)
            check(bench, spec, codes[:3])
