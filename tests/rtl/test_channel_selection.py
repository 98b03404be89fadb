"""Promise: only the selected tokens are read and attended to, at the cost that their rows and columns make."""

from __future__ import annotations

import numpy as np
import pytest

from hw.memory.kv_rows import kv_rows, row_visits
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import row_cycles
from tests.helpers.channels import checked_run, grown, make_channel_operation

ATTACC = DEVICE_PRESETS["attacc"].channel
WIDE = DEVICE_PRESETS["pam-wide"].channel


def _visits(params, operation):
    return row_visits(kv_rows(params, len(operation.query), 0), operation.positions)


def _openings(run):
    return [cycle for cycle, bus, fields in run.commands() if bus == "row" and fields["kind"] == 0]


def _random(rng, tokens, count):
    """Return tokens strewn evenly."""
    return np.sort(rng.choice(tokens, count, replace=False))


def _clustered(rng, tokens, count):
    """Return runs of 16 consecutive tokens, none shorter."""
    starts = np.sort(rng.choice(tokens // 16, count // 16, replace=False)) * 16
    return (starts[:, np.newaxis] + np.arange(16)).ravel()


def test_selections_of_every_kind():
    """None, one, all, runs and gaps; parts that own fewer tokens than the list reaches; selected beside unselected."""
    rng = np.random.default_rng(1)
    operations = []
    for head_dim in (64, 80, 128, 192, 256):
        tokens = 16 * 60 + 5
        positions = [
            np.arange(0),
            np.array([0]),
            np.array([59]),
            np.array([60]),  # the first five parts alone own it
            np.arange(61),
            np.arange(0, 61, 7),
            np.array([0, 1, 2, 3, *range(50, 61)]),  # sinks and a window
            _random(rng, 61, 17),
        ]
        operations += [
            make_channel_operation(ATTACC, rng, head_dim=head_dim, tokens=tokens, positions=chosen)
            for chosen in positions
        ]
        operations.append(make_channel_operation(ATTACC, rng, head_dim=head_dim, tokens=40))
    uneven = list(np.arange(16) * 3)
    operations += [
        make_channel_operation(ATTACC, rng, head_dim=128, tokens=counts, positions=np.arange(0, 45, 4))
        for counts in (uneven, uneven[::-1])
    ]
    run, counts = checked_run(ATTACC, operations)
    selected = [op for op in operations if op.positions is not None]
    visits = [_visits(ATTACC, op) for op in selected]
    others = [kv_rows(ATTACC, len(op.query), 3) for op in operations if op.positions is None]
    assert counts["ACTAB"] == counts["PREAB"] == sum(map(len, visits)) + sum(2 * rows.tiles for rows in others)
    assert counts["MACAB"] == sum(map(sum, visits)) + sum(rows.columns for rows in others)
    assert len(run.read_cycles) == counts["MACAB"]


def test_all_tokens_selected_cost_what_all_tokens_do():
    rng = np.random.default_rng(2)
    plain = make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 256)
    selected = make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 256, positions=np.arange(256))
    one, _ = checked_run(ATTACC, [plain])
    other, _ = checked_run(ATTACC, [selected])
    np.testing.assert_array_equal(one.read_cycles, other.read_cycles)


@pytest.mark.parametrize("first_refresh", [1, 200, 5070])
def test_refreshes_between_selected_rows(first_refresh):
    rng = np.random.default_rng(3)
    operations = [
        make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 500, positions=_random(rng, 500, count))
        for count in (100, 33, 250)
    ]
    _, counts = checked_run(ATTACC, operations, first_refresh_cycles=first_refresh)
    assert counts["REFAB"] >= 3


def test_a_window_that_moves_with_the_new_token():
    """Four sinks and the last twenty tokens; each step writes a token and attends to it."""
    rng = np.random.default_rng(4)
    steps = [make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 60, kv_head=0)]
    for _ in range(20):
        owned = int(steps[-1].tokens[0]) + 1
        window = np.array([0, 1, 2, 3, *range(owned - 20, owned)])
        steps.append(grown(steps[-1], rng, 0, positions=window))
    # At last all are read again.
    steps.append(grown(steps[-1], rng, 0, positions=None))
    checked_run(ATTACC, steps, first_refresh_cycles=900)


# Cycles to the last read, 1,024 tokens a bank group, head dimension 128: all tokens and shares of them.
@pytest.mark.parametrize(
    ("share", "pick", "openings", "expected"),
    [
        (1, _random, 128, 29708),
        (8, _random, 122, 8408),
        (8, _clustered, 16, 3724),
        (32, _random, 54, 3480),
        (32, _clustered, 4, 940),
    ],
    ids=["all", "random/8", "clustered/8", "random/32", "clustered/32"],
)
def test_what_a_share_of_the_tokens_costs(share, pick, openings, expected):
    """Tokens strewn over the rows save columns, not openings: an eighth of them takes 28 % of the time, not 13 %."""
    rng = np.random.default_rng(5)
    positions = pick(rng, 1024, 1024 // share)
    operation = make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 1024, positions=positions)
    run, counts = checked_run(ATTACC, [operation])
    visits = _visits(ATTACC, operation)
    assert counts["ACTAB"] == len(visits)
    opened = _openings(run)
    # A row takes as long as it says wherever the units do not make it wait: everywhere but at the first values.
    waits = np.diff(opened) - [row_cycles(ATTACC, columns) for columns in visits[:-1]]
    assert (waits >= 0).all()
    assert int((waits > 0).sum()) <= 1
    assert len(visits) == openings
    assert int(run.read_cycles[-1]) == expected


def test_selected_whole_tokens():
    rng = np.random.default_rng(6)
    operations = [
        make_channel_operation(WIDE, rng, head_dim=head_dim, tokens=64 * 40 + 3, positions=positions)
        for head_dim, positions in [
            (128, np.arange(0, 41, 3)),
            (128, np.array([40])),
            (256, _random(rng, 41, 11)),
            (64, _random(rng, 41, 30)),
        ]
    ]
    new = grown(make_channel_operation(WIDE, rng, head_dim=128, tokens=64 * 9), rng, 1, positions=np.array([2, 5, 9]))
    checked_run(WIDE, [*operations, new], first_refresh_cycles=400)
