"""Promise: a tier takes as long as the fullest bank group asks for, which the mean law and single tokens agree on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sim.model_config import load_model
from sim.serving.batch import StepWork
from sim.serving.host import calibrated_factors
from sim.serving.step_model import TierStepModel
from sim.system_config import load_system
from sim.tiering.groups import bank_groups, expected_highest, fullest_tokens


def _fullest(read: float, always: float, held: float) -> float:
    found = fullest_tokens(np.array([read]), np.array([always]), np.array([held]), np.array([16]))
    return float(found[0])


def test_groups_of_pam() -> None:
    # 64 units of a channel of HBM3 in groups of 4, 128 of a DIMM in groups of 4; flash has pages.
    assert [bank_groups(tier) for tier in load_system("pam").tiers] == [16, 32, 1]


def test_the_highest_of_normal_numbers() -> None:
    # Closed forms of 1 to 3 (the mean square of the higher of two is that of one); Harter's tables (1961) of 16 and 32.
    assert expected_highest(1) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert expected_highest(2) == pytest.approx((1 / math.sqrt(math.pi), 1.0), rel=1e-6)
    assert expected_highest(3)[0] == pytest.approx(1.5 / math.sqrt(math.pi), rel=1e-6)
    assert expected_highest(3)[1] == pytest.approx(1 + math.sqrt(3) / (2 * math.pi), rel=1e-6)
    assert expected_highest(16)[0] == pytest.approx(1.76599, abs=1e-5)
    assert expected_highest(32)[0] == pytest.approx(2.06967, abs=1e-5)


@pytest.mark.parametrize(("held", "read"), [(800, 100), (800, 400), (3200, 400), (16_000, 2000), (320, 40)])
def test_the_mean_is_that_of_draws(held: int, read: int) -> None:
    rng = np.random.default_rng(held + read)
    draws = rng.multivariate_hypergeometric([held // 16] * 16, read, size=4000).max(axis=1)
    assert _fullest(read, 0.0, held) / 16 == pytest.approx(draws.mean(), rel=0.03)


def test_edges_of_the_mean() -> None:
    assert _fullest(0.0, 0.0, 0.0) == 0.0
    # All are read, or always read ones alone: groups share them evenly.
    assert _fullest(800.0, 21.0, 800.0) == pytest.approx(800.0)
    assert _fullest(21.0, 21.0, 800.0) == 21.0
    # One token, or a part of one.
    assert _fullest(1.0, 0.0, 800.0) == pytest.approx(16.0, rel=2e-3)
    assert _fullest(0.25, 0.0, 800.0) == 4.0


def test_attention_waits_for_the_fullest_group() -> None:
    system, model = load_system("pam"), load_model("llama-3.1-8b")
    steps = TierStepModel(system, model, calibrated_factors(), power_cap="bytes")
    work = StepWork(
        decoding=256,
        tier_tokens=(256 * 2000.0, 256 * 1000.0, 0.0),
        tier_requests=(256.0, 256.0, 0.0),
        prompt_requests=0,
        prompt_tokens=0,
        prompt_pairs=0,
        prompt_context=(0, 0, 0),
        decode_appended=(0, 256, 0),
        prompt_appended=(0, 0, 0),
        ending=256,
        swapped_tokens=0,
        tier_held=(256 * 8000.0, 256 * 8000.0, 0.0),
        tier_pages=(0.0, 0.0, 0.0),
    )

    def attention_s(work: StepWork) -> float:
        before = steps.attention_s
        steps.step_s(work)
        return steps.attention_s - before

    even = attention_s(work)
    assert attention_s(replace(work, tier_fullest=work.tier_tokens)) == pytest.approx(even, rel=1e-12)
    # DDR-PIM is what is waited for: a fifth more in its fullest group is a fifth more time, HBM-PIM may hide as much.
    assert attention_s(replace(work, tier_fullest=(256 * 2400.0, 256 * 1200.0, 0.0))) == pytest.approx(
        attention_s(replace(work, tier_tokens=(256 * 2400.0, 256 * 1200.0, 0.0))), rel=1e-12
    )
    assert attention_s(replace(work, tier_fullest=(256 * 2400.0, 256 * 1000.0, 0.0))) == pytest.approx(even, rel=1e-12)
    assert attention_s(replace(work, tier_fullest=(256 * 2000.0, 256 * 1200.0, 0.0))) == pytest.approx(
        1.2 * even, rel=0.03
    )
