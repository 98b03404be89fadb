"""Promise: slots that are placed by themselves are read nearest; whole tokens the farther, the less heads agree."""

from __future__ import annotations

import numpy as np
import pytest

from sim.studies.policies import LOADS, SPARSITY
from sim.studies.policies_granularity import ALIKE, drawn_reads, granularity_rows, mixed_reads
from sim.tiering.plan import TierPlan


def test_heads_have_as_much_in_common_as_is_asked() -> None:
    drawn = drawn_reads(TierPlan(sparsity=SPARSITY), 4000, heads=8, steps=2, seed=3)
    # Every stream reads 500 of 4,000 in every step.
    assert (drawn.sum(axis=2) == 500).all()
    for alike in (0.8, *ALIKE):
        reads = mixed_reads(drawn, alike, 3)[-1]
        pairs = [(a, b) for a in range(8) for b in range(a)]
        found = np.mean([2 * (reads[a] & reads[b]).sum() / (reads[a].sum() + reads[b].sum()) for a, b in pairs])
        # The 21 tokens that are always read are common to all.
        assert found == pytest.approx(alike + (1 - alike) * 0.04, abs=0.03)


def test_whole_tokens_are_read_farther_away_the_less_heads_agree() -> None:
    loads = {name: LOADS[name] for name in ("dram", "drives")}
    rows = granularity_rows(loads, seed=1, heads=48, tokens=800, steps=8)
    assert [row["load"] for row in rows] == ["dram"] * 4 + ["drives"] * 4
    for name, load in loads.items():
        slots, *whole = (row for row in rows if row["load"] == name)
        shares = [slots["far_share"], *(row["far_share"] for row in whole)]
        assert shares == sorted(shares)
        times = [slots["step_ms"], *(row["step_ms"] for row in whole)]
        assert times == sorted(times)
        # 80 layers of 8 KV heads.
        assert slots["table_entries"] == 640 * load.requests * 16_000
        assert all(row["table_entries"] == load.requests * 16_000 for row in whole)
