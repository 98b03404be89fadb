"""Promise: a fresh run at sizes that no table was made from takes the cycles that the law gives."""

from __future__ import annotations

import numpy as np
import pytest

from hw.presets.devices import DEVICE_PRESETS
from hw.tables import load_table
from hw.timing.channel import row_cycles
from sim.comparisons.attacc import CYCLES
from tests.helpers.channels import checked_run, make_channel_operation


def _run(name, head_dim, walk_tokens, operations, first_refresh_cycles):
    params = DEVICE_PRESETS[name].channel
    rng = np.random.default_rng(walk_tokens)
    made = [
        make_channel_operation(params, rng, head_dim=head_dim, tokens=walk_tokens * params.parts)
        for _ in range(operations)
    ]
    run, _ = checked_run(params, made, first_refresh_cycles=first_refresh_cycles)
    return run


@pytest.mark.parametrize("first_refresh_cycles", [0, 1, 3000, 5070])
@pytest.mark.parametrize(
    ("name", "head_dim", "walk_tokens", "operations"),
    [
        ("attacc", 128, 5, 3),
        ("attacc", 128, 71, 5),
        ("attacc", 80, 130, 1),
        ("attacc", 256, 29, 7),
        ("attacc-unlimited", 128, 71, 5),
        ("pam", 128, 2, 40),
        ("pam", 128, 71, 5),
        ("pam", 64, 100, 3),
        ("pam", 128, 1, 9),
        ("attacc-bankgroup", 128, 13, 3),
        ("attacc-bankgroup", 64, 9, 5),
    ],
)
def test_the_law_holds_at_other_sizes(name, head_dim, walk_tokens, operations, first_refresh_cycles):
    params = DEVICE_PRESETS[name].channel
    run = _run(name, head_dim, walk_tokens, operations, first_refresh_cycles)
    law = load_table(name).cycles.with_refresh(head_dim, walk_tokens, operations, first_refresh_cycles)
    tolerance = max(0.01 * law.last_column, row_cycles(params, 32))
    if first_refresh_cycles and _falls_due_at_the_end(params, law, first_refresh_cycles):
        tolerance = max(tolerance, params.timing.n_rfc)
    assert abs(run.read_cycles[-1] - law.last_column) <= tolerance
    assert abs(int(run.bodies[0].cycles[-1]) - law.last_state) <= tolerance
    if not first_refresh_cycles and params.column_period is None:
        assert (run.read_cycles[0], run.read_cycles[-1]) == (law.first_column, law.last_column)


def _falls_due_at_the_end(params, law, first_refresh_cycles):
    """Whether a refresh falls due within the time of the last row, so that it may or may not be in the run."""
    row = row_cycles(params, 32) if params.column_period is None else 32 * params.column_period
    away = (law.last_column - first_refresh_cycles) % params.timing.n_refi
    return away < row or params.timing.n_refi - away < row


@pytest.mark.parametrize(
    ("name", "tokens"), [(name, tokens) for name in ("attacc", "attacc-unlimited") for tokens in CYCLES[name]]
)
def test_attacc_takes_the_cycles_of_its_simulator(name, tokens):
    """Four of 64 heads on one of 16 channels; first refresh after one interval."""
    run = _run(name, 128, tokens // 16, 4, 5070)
    reference = CYCLES[name][tokens]
    assert abs(run.read_cycles[-1] / reference - 1) <= (0.01 if tokens == 512 else 0.05)
