"""Promise: only the selected tokens are read and attended to, at the cost that their rows and columns make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden.selection import SelectionForm, dealt, union
from hw.devices.commands import ColumnKind, RowKind
from hw.measure import MEASURED_ROWS
from hw.memory.kv_rows import kv_rows, row_visits
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import row_cycles
from tests.helpers.channels import checked_run, grown, make_channel_operation

ATTACC = DEVICE_PRESETS["attacc"].channel
PAM = DEVICE_PRESETS["pam"].channel
WIDE = DEVICE_PRESETS["pam-wide"].channel


def _visits(params, operation):
    return row_visits(kv_rows(params, len(operation.query), 0), operation.positions)


def _openings(run):
    return [cycle for cycle, bus, fields in run.commands() if bus == "row" and fields["kind"] == 0]


def _reads(run):
    """Return row and column of every read of all banks."""
    row, found = None, []
    for _, bus, fields in run.commands():
        if bus == "row" and fields["kind"] == RowKind.ACT.value:
            row = fields["row"]
        elif bus == "column" and fields["kind"] == ColumnKind.MAC.value:
            found.append((row, fields["column"]))
    return found


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


def _selecting(params, rng, picks, **options):
    """Return an operation whose part i attends to the positions ``picks[i]`` of its tokens."""
    positions, wanted = union(picks)
    return make_channel_operation(params, rng, positions=positions, wanted=wanted, **options)


def _spoilt(operation):
    """Return ``operation`` with infinities and NaNs in all tokens that are not attended to."""
    keys, values = ([part.copy() for part in kind] for kind in (operation.keys, operation.values))
    for part in range(len(keys)):
        others = np.setdiff1d(np.arange(len(keys[part])), operation.positions[operation.marks[part]])
        keys[part][others], values[part][others] = 0x7C00, 0x7E00
    return replace(operation, keys=keys, values=values)


@pytest.mark.parametrize(
    ("params", "options"),
    [(PAM, {"groups": 2, "rows": MEASURED_ROWS, "platform": NATIVE}), (WIDE, {"groups": 1})],
    ids=["split", "whole"],
)
def test_every_part_attends_to_its_own_tokens(params, options):
    """Parts that want different tokens, few, all or none; what they do not want is infinite, and changes nothing."""
    rng = np.random.default_rng(11)
    parts, groups = params.parts, options["groups"]
    operations, wanted = [], []
    for head_dim in (64, 128):
        counts = [int(count) for count in rng.integers(60, 90, parts)]
        for share in (0.9, 0.3, 0.05):
            picks = [np.flatnonzero(rng.random(count) < share) for count in counts]
            picks[1] = np.arange(0)  # none
            picks[2] = np.arange(counts[2])
            picks[3] = np.array([counts[3] - 1])  # nothing before the last tile
            picks[0] = picks[0][picks[0] > 40]  # tiles without any, then tokens
            wanted.append(picks)
            operations.append(_selecting(params, rng, picks, head_dim=head_dim, tokens=counts, groups=groups))
        few = [np.arange(0) for _ in range(parts)]
        few[parts - 1] = np.array([3, 50])  # a part that is not simulated
        wanted.append(few)
        operations.append(_selecting(params, rng, few, head_dim=head_dim, tokens=counts, groups=groups))
    for operation, picks in zip(operations, wanted, strict=True):
        assert operation.marks.sum(axis=1).tolist() == [len(pick) for pick in picks]
    checked_run(params, [_spoilt(operation) for operation in operations], first_refresh_cycles=700, **options)


@pytest.mark.parametrize("params", [ATTACC, WIDE], ids=["split", "whole"])
def test_the_forms_say_the_same(params):
    """A list, a bitmap, and sinks with a window, one after another: the same columns of the same rows, same states."""
    rng = np.random.default_rng(12)
    parts = params.parts
    operations = []
    for head_dim, sinks, window in ((128, 4, 500), (64, 70, 33), (256, 0, 17), (80, 7, 0)):
        tokens = 40 * parts + 5
        chosen = np.concatenate([np.arange(sinks), np.arange(tokens - window, tokens)])
        positions, wanted = dealt(chosen, parts)
        listed = make_channel_operation(
            params, rng, head_dim=head_dim, tokens=tokens, positions=positions, wanted=wanted, kv_head=head_dim
        )
        operations += [replace(listed, form=form) for form in SelectionForm]
    plain = make_channel_operation(params, rng, head_dim=128, tokens=50)
    run, _ = checked_run(params, [plain, *operations, plain])
    reads = _reads(run)[run.rows[0].columns :]
    for first in range(0, len(operations), 3):
        columns = run.rows[1 + first].columns
        one, other, third = (reads[columns * number : columns * (number + 1)] for number in range(3))
        assert one == other == third
        reads = reads[3 * columns :]


def test_a_form_that_cannot_say_it_is_refused():
    rng = np.random.default_rng(13)
    operation = make_channel_operation(
        ATTACC, rng, head_dim=128, tokens=160, positions=np.array([0, 3, 6]), form=SelectionForm.RUNS
    )
    with pytest.raises(ValueError, match="selected must be two runs of tokens at most, not 3"):
        checked_run(ATTACC, [operation])
