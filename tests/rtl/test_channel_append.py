"""Promise: a new token is in its banks before the operation that brings it reads it, at the cost that is stated."""

from __future__ import annotations

import numpy as np
import pytest

from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import row_cycles
from tests.helpers.channels import checked_run, grown, make_channel_operation

ATTACC = DEVICE_PRESETS["attacc"].channel
PAM = DEVICE_PRESETS["pam"].channel
WIDE = DEVICE_PRESETS["pam-wide"].channel


def _writes(run):
    return [(cycle, fields) for cycle, bus, fields in run.commands() if bus == "column" and fields["kind"] == 1]


def test_tokens_of_every_place_and_size():
    """First token, first of a row, in a row, last of a row; parts that are simulated and that are not; every slice."""
    rng = np.random.default_rng(1)
    operations = [
        grown(make_channel_operation(ATTACC, rng, head_dim=head_dim, tokens=tokens), rng, part)
        for head_dim, tokens, part in [
            *((128, tokens, 0) for tokens in (0, 16 * 15, 16 * 16, 16 * 17, 300, 1000)),
            *((128, tokens, part) for tokens, part in ((0, 5), (0, 15), (256, 1), (300, 12))),
            *((64, 500, 0), (80, 300, 0), (192, 321, 0), (256, 129, 0), (256, 0, 0), (72, 0, 0), (192, 16 * 10, 0)),
        ]
    ]
    _, counts = checked_run(ATTACC, operations)
    # Key and value, in four banks, as many columns each as the token has there.
    assert counts["WR"] == sum(2 * 4 * -(-len(op.query) // 64) for op in operations)


def test_uneven_parts_and_several_groups():
    """The part with the new token may own fewer tokens than others: its row is not the last of the walk."""
    rng = np.random.default_rng(2)
    counts = np.arange(16) * 7 % 40
    base = make_channel_operation(ATTACC, rng, head_dim=128, tokens=list(counts))
    checked_run(ATTACC, [grown(base, rng, part) for part in (0, 1, 3, 7, 15)])


def test_where_the_columns_go():
    """Bank by bank of the part's group, key before value, in the place behind the last token."""
    rng = np.random.default_rng(3)
    base = make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 21)
    run, _ = checked_run(ATTACC, [grown(base, rng, 13)])
    names = ("pseudochannel", "rank", "bankgroup", "bank", "column")
    # Part 13 is bank group 1 of rank 1 of pseudo-channel 1; token 21 is the sixth of its second row.
    expected = [(1, 1, 1, bank, column) for _ in range(2) for bank in range(4) for column in (10, 11)]
    assert [tuple(int(fields[name]) for name in names) for _, fields in _writes(run)] == expected


@pytest.mark.parametrize("first_refresh", [0, 1, 300, 777])
def test_a_decode_writes_what_later_steps_read(first_refresh):
    """Forty steps on one KV head, each with a token more, over rows that fill up and rows that begin."""
    rng = np.random.default_rng(4)
    steps = [make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 15 - 3, kv_head=0)]
    for step in range(40):
        steps.append(grown(steps[-1], rng, (0, 0, 5)[step % 3]))
    _, counts = checked_run(ATTACC, steps, first_refresh_cycles=first_refresh)
    assert counts["WR"] == 40 * 2 * 4 * 2
    assert counts["REFAB"] >= 5 if first_refresh else counts["REFAB"] == 0


def test_cost_of_a_token():
    """Eight columns of key, eight of value, one turnaround each: 47 cycles twice, by hand from the distances."""
    rng = np.random.default_rng(5)
    base = make_channel_operation(ATTACC, rng, head_dim=128, tokens=16 * 31)
    appended, _ = checked_run(ATTACC, [grown(base, rng, 0) for _ in range(4)])
    plain, _ = checked_run(ATTACC, [grown(base, rng, 0, append_part=None) for _ in range(4)])
    more = int(appended.read_cycles[-1]) - int(plain.read_cycles[-1])
    # 7 distances of n_ccdl = 4, then n_cwl + n_bl + n_wtrl = 6 + 2 + 11; n_rcdwr is n_rcdrd.
    assert more == 4 * 2 * (7 * 4 + 19)
    assert row_cycles(ATTACC, 32, 8) - row_cycles(ATTACC, 32) == 47

    activations = [cycle for cycle, bus, fields in appended.commands() if bus == "row" and fields["kind"] == 0]
    cycles = [cycle for cycle, _ in _writes(appended)][:8]
    opened = max(cycle for cycle in activations if cycle < cycles[0])
    read = min(int(cycle) for cycle in appended.read_cycles if cycle > cycles[-1])
    assert [*np.diff([opened, *cycles]), read - cycles[-1]] == [19, *[4] * 7, 19]


@pytest.mark.parametrize(("tokens", "columns"), [(16 * 16, 2), (16 * 17, 4), (16 * 20, 10), (16 * 25, 20)])
def test_cost_in_a_row_that_is_short(tokens, columns):
    """A row of few columns waits for n_ras anyhow: writing costs less there, and the formula says how much."""
    rng = np.random.default_rng(tokens)
    base = make_channel_operation(ATTACC, rng, head_dim=128, tokens=tokens)
    appended, _ = checked_run(ATTACC, [grown(base, rng, 0) for _ in range(3)])
    plain, _ = checked_run(ATTACC, [grown(base, rng, 0, append_part=None) for _ in range(3)])
    row = row_cycles(ATTACC, columns, 8) - row_cycles(ATTACC, columns)
    # Behind the last row of all, the last read tells: it is late by all that the writes took.
    assert int(appended.read_cycles[-1]) - int(plain.read_cycles[-1]) == 5 * row + 47


def test_the_power_cap_pays_for_a_token():
    """Columns that a pause has earned follow at the memory's pace: under the cap of PAM a token costs no time."""
    rng = np.random.default_rng(6)
    base = make_channel_operation(PAM, rng, head_dim=128, tokens=16 * 100)
    appended, _ = checked_run(PAM, [grown(base, rng, 0) for _ in range(4)])
    plain, _ = checked_run(PAM, [grown(base, rng, 0, append_part=None) for _ in range(4)])
    assert appended.read_cycles[-1] == plain.read_cycles[-1]


def test_whole_tokens():
    """A token whole in a bank: eight columns of one bank for the key, as many for the value."""
    rng = np.random.default_rng(7)
    operations = [
        grown(make_channel_operation(WIDE, rng, head_dim=head_dim, tokens=tokens), rng, part)
        for head_dim, tokens, part in [(128, 0, 0), (128, 0, 3), (128, 64 * 4, 2), (256, 300, 1), (64, 700, 40)]
    ]
    steps = [make_channel_operation(WIDE, rng, head_dim=128, tokens=250, kv_head=0)]
    for step in range(16):
        steps.append(grown(steps[-1], rng, step * 3 % 8))
    _, counts = checked_run(WIDE, operations + steps, first_refresh_cycles=500)
    assert counts["WR"] == sum(2 * -(-len(op.query) // 16) for op in operations) + 16 * 2 * 8
