# amaranth: UnusedElaboratable=no
"""Promise: blocks with streams keep their rules, and lose, double or change nothing, in all runs of a few cycles."""

from __future__ import annotations

import pytest

from tests.formal import solver
from tests.formal.blocks import PROOFS

CYCLES = 6
"""Enough to fill and stall most of the blocks; ``make formal`` goes further, and where it can without a bound."""

REACHED_CYCLES = 12
"""Any block lets something through within so many cycles."""


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.block)
def test_claims_hold(proof):
    bench = proof.bench()
    claims = list(bench.claims)
    assert len(claims) >= 3
    # Assumptions that contradict each other would make every claim hold: it must fail that nothing leaves.
    silent = [f"nothing leaves: {name}" for name in bench.leaves]
    for name, leaves in zip(silent, bench.leaves.values(), strict=True):
        bench.claim(name, ~leaves)
    aiger = solver.graph(*bench.finish())
    results = [solver.check(aiger, number, cycles=CYCLES, seconds=0).result for number in range(len(claims))]
    assert dict(zip(claims, results, strict=True)) == dict.fromkeys(claims, "bounded")
    reached = [
        solver.check(aiger, len(claims) + number, cycles=REACHED_CYCLES, seconds=0).result
        for number in range(len(silent))
    ]
    assert reached == ["fails"] * len(silent) != []
