"""Promise: units at the bank groups answer as the golden model does, by legal commands, at the pace of a column path.

All runs but that of two groups are of one model, the one that the table is measured on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from golden.formats import FP16
from hw.channel_operation import shared_head
from hw.channel_run import run_channel
from hw.measure import MEASURED_ROWS, RunSizes, column_read_cycles, random_operations
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import stream_limit, with_refresh
from sim.comparisons.attacc import CYCLES
from tests.helpers.channels import assert_states, checked_run, grown, make_channel_operation

GROUP = DEVICE_PRESETS["attacc-bankgroup"].channel
OPTIONS = {"rows": MEASURED_ROWS, "platform": NATIVE}
REFRESH = 8 + 19 + 456 + 19 - 6
"""By hand: n_rtpl, n_rp, n_rfc, n_rcdrd from column to column, where n_ccdab = 6 would be between two."""


def _make(rng, head_dim, tokens, **options):
    return make_channel_operation(GROUP, rng, head_dim=head_dim, tokens=tokens, **options)


def _run(operations, **options):
    return checked_run(GROUP, operations, **OPTIONS, **options)


def _by_kind(run):
    """Return cycle and fields of all commands by name; every one is of a bank in all groups but REF, WR, BROADCAST."""
    found = defaultdict(list)
    for cycle, bus, fields in run.commands():
        kind = {"row": ("ACT", "PRE", "REF"), "column": ("RD", "WR", "MAC", "BROADCAST")}[bus][fields.pop("kind")]
        found[kind].append((cycle, fields))
    return found


def test_head_dimensions_and_token_counts_of_every_kind():
    """Sizes change from operation to operation; groups own different numbers of tokens, and none at all."""
    rng = np.random.default_rng(7)
    operations = [
        _make(rng, head_dim, tokens)
        for head_dim, tokens in [
            *((128, tokens) for tokens in (0, 1, 15, 16, 17, 63, 65, 130)),
            *((64, tokens) for tokens in (1, 129)),
            *((80, 100), (96, 33), (256, 33), (192, 49), (72, 16), (128, 0), (256, 0), (64, 16)),
        ]
    ]
    uneven = np.arange(16)
    operations += [_make(rng, 128, list(counts)) for counts in (np.eye(16, dtype=int)[3] * 9, uneven, uneven[::-1])]
    run, counts = _run(operations)
    beats = [-(-len(op.query) // 16) for op in operations]
    longest = [int(op.tokens.max()) for op in operations]
    # A row of 32 columns holds whole tokens.
    rows = sum(2 * -(-most // (32 // b)) for most, b in zip(longest, beats, strict=True))
    assert counts["ACTSB"] == counts["PRESB"] == rows
    assert counts["MACSB"] == len(run.read_cycles) == sum(2 * most * b for most, b in zip(longest, beats, strict=True))
    assert counts["BROADCAST"] == sum(GROUP.command_columns + b for b in beats)


def test_large_and_special_codes():
    rng = np.random.default_rng(3)
    operations = [_make(rng, 128, 200, spread=spread) for spread in (100.0, 1e-7, 1e4)]
    operations[0].keys[0][3, 5] = 0x7C00  # infinity
    operations[1].values[0][2, 100] = 0x7E00  # NaN
    operations[2].values[0][1, :] = FP16.to_codes(np.float16(6e-8))  # subnormal
    _run(operations)


def test_rows_go_to_the_banks_in_turn():
    """Head dimension 128, ten tokens a group: three rows of keys from bank 0 on, then of values from bank 0 on."""
    rng = np.random.default_rng(1)
    found = _by_kind(_run([_make(rng, 128, 160)])[0])
    opened = [(fields["bank"], fields["row"]) for _, fields in found["ACT"]]
    # K0, K1, V0, K2, V1, V2; keys in row 0 of banks 0 to 2, values in row 1 of the same.
    assert opened == [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (2, 1)]
    read = [(fields["bank"], fields["column"]) for _, fields in found["MAC"]]
    columns = {0: 32, 1: 32, 2: 16}
    assert read == [(bank, column) for bank in (0, 1, 0, 2, 1, 2) for column in range(columns[bank])]
    assert all(fields["scope"] == 1 for kind in ("ACT", "MAC", "PRE") for _, fields in found[kind])


def test_columns_follow_each_other_over_rows_and_operations():
    """The opening of a row hides behind the columns of the one before it: a column every n_ccdab = 6 cycles."""
    rng = np.random.default_rng(2)
    run, _ = _run([_make(rng, head_dim, 16 * tokens) for head_dim, tokens in ((128, 12), (128, 9), (64, 32), (256, 8))])
    columns = 2 * (12 * 8 + 9 * 8 + 32 * 4 + 8 * 16)
    assert (np.diff(run.read_cycles) == 6).all()
    assert len(run.read_cycles) == columns
    found = _by_kind(run)
    opened = np.array([cycle for cycle, _ in found["ACT"]])
    # JEDEC's window of four activations: one ACTSB, four a rank, in any 39 cycles.
    assert (np.diff(opened) >= 39).all()


@pytest.mark.parametrize("first", [1, 40, 59, 777, 5070])
def test_refresh_costs_what_the_rules_say(first):
    rng = np.random.default_rng(first)
    operations = [_make(rng, 128, 512) for _ in range(2)]
    columns = (2 * 32 * 16 - 1) * 6
    run, counts = _run(operations, first_refresh_cycles=first)
    if first < 60 - 19:
        # No row is open yet: the refresh comes at once, then an opening and the first column.
        expected = first + 1 + 456 + 19 + columns + (counts["REFAB"] - 1) * REFRESH
    else:
        expected = 60 + columns + counts["REFAB"] * REFRESH
        assert with_refresh(GROUP, 60 + columns, first) == expected
    assert run.read_cycles[-1] == expected
    assert counts["REFAB"] == -(-(expected - first) // 5070)


def test_streaming_reaches_the_limit_of_the_rules():
    """4,096 tokens a bank group, refresh on: at least 99 % of what is left between refreshes."""
    operations = random_operations(GROUP, RunSizes(128, 4096, 1), seed=1)
    run = run_channel(GROUP, operations, first_refresh_cycles=GROUP.timing.n_refi, **OPTIONS)
    assert_states(run, operations)
    reads = column_read_cycles(run)
    assert len(reads) == 2 * 4096 * 8
    limit = 6 / (1 - REFRESH / 5070)
    assert float(stream_limit(GROUP, 32).column_cycles) == pytest.approx(limit, rel=1e-12)
    assert limit * (len(reads) - 1) / (reads[-1] - reads[0]) >= 0.99


def test_tokens_are_appended_where_the_next_steps_read_them():
    """First token, first and last of a row, of every size; groups that are simulated and that are not."""
    rng = np.random.default_rng(4)
    operations = [
        grown(_make(rng, head_dim, tokens), rng, part)
        for head_dim, tokens, part in [
            *((128, tokens, 0) for tokens in (0, 16 * 3, 16 * 4, 16 * 5, 90)),
            *((128, 0, 5), (128, 64, 12), (64, 110, 0), (256, 33, 0), (72, 0, 0), (192, 32, 0)),
        ]
    ]
    steps = [_make(rng, 128, 16 * 7 - 3, kv_head=0)]
    for step in range(12):
        steps.append(grown(steps[-1], rng, (0, 0, 5)[step % 3]))
    _, counts = _run(operations + steps, first_refresh_cycles=300)
    assert counts["WR"] == sum(2 * -(-len(op.query) // 16) for op in operations) + 12 * 2 * 8
    assert counts["REFAB"] >= 2


def test_cost_of_a_token():
    """Eight columns of key, eight of value, n_ccdl = 4 apart, n_cwl + n_bl + n_wtrl = 19 before the next read."""
    rng = np.random.default_rng(5)
    base = _make(rng, 128, 16 * 15)
    run, _ = _run([grown(base, rng, 0)])
    written = [cycle for cycle, _ in _by_kind(run)["WR"]]
    assert np.diff(written[:8]).tolist() == np.diff(written[8:]).tolist() == [4] * 7
    for last in (written[7], written[15]):
        assert min(cycle for cycle in run.read_cycles if cycle > last) - last == 19
    gaps = np.diff(run.read_cycles)
    # From the last read before to the first one behind: n_ccdl, the writes, the turnaround.
    assert sorted(set(gaps.tolist())) == [6, 4 + 7 * 4 + 19]
    assert (gaps == 51).sum() == 2


def test_queries_that_share_a_head():
    """Rows of the next pass begin in the bank of keys' first row; where values end there, its opening shows."""
    rng = np.random.default_rng(6)
    for tiles, more in ((4, 0), (5, 8 + 19 + 19 - 6)):
        base = _make(rng, 128, 16 * 4 * tiles, kv_head=0)
        queries = [_make(rng, 128, 0).query for _ in range(3)]
        run, counts = _run(shared_head(base, queries))
        assert counts["ACTSB"] == 3 * 2 * tiles
        assert run.read_cycles[-1] - run.read_cycles[0] == (3 * 2 * tiles * 32 - 1) * 6 + 2 * more
        rows = {(fields["bank"], fields["row"]) for _, fields in _by_kind(run)["ACT"]}
        assert len(rows) == 2 * tiles


def test_groups_in_lock_step():
    """Two groups with tokens of their own, as many, one fewer and none in the second: each answers for itself."""
    rng = np.random.default_rng(8)
    dealt = [np.full(16, 9), np.array([9] + [8] * 15), np.eye(16, dtype=int)[0] * 5, np.full(16, 6)]
    operations = [
        make_channel_operation(GROUP, rng, head_dim=head_dim, tokens=list(counts), groups=2)
        for head_dim, counts in zip((128, 64, 128, 96), dealt, strict=True)
    ]
    pair, _ = checked_run(GROUP, operations, groups=2, first_refresh_cycles=700, **OPTIONS)
    alone = [replace(op, keys=op.keys[:1], values=op.values[:1]) for op in operations]
    single, _ = _run(alone, first_refresh_cycles=700)
    for name in ("row_commands", "column_commands"):
        np.testing.assert_array_equal(getattr(pair, name).cycles, getattr(single, name).cycles)
        assert getattr(pair, name).payloads == getattr(single, name).payloads
    np.testing.assert_array_equal(pair.heads[0].cycles, single.heads[0].cycles)
    np.testing.assert_array_equal(pair.bodies[0].cycles, single.bodies[0].cycles)
    assert pair.heads[0].cycles[[0, 3]].tolist() == pair.heads[1].cycles[[0, 3]].tolist()


def test_attacc_takes_the_cycles_of_its_simulator():
    """Four of 64 heads on one of 16 channels; first refresh after one interval."""
    rng = np.random.default_rng(9)
    run, counts = _run([_make(rng, 128, 512) for _ in range(4)], first_refresh_cycles=5070)
    assert abs(run.read_cycles[-1] / CYCLES["attacc-bankgroup"][512] - 1) <= 0.01
    assert run.read_cycles[-1] == 60 + (4 * 512 - 1) * 6 + 2 * REFRESH
    assert (counts["MACSB"], counts["ACTSB"], counts["REFAB"]) == (4 * 512, 4 * 16, 2)
    # The model of the memory watches the longer run; the checker takes milliseconds a command.
    longer = random_operations(GROUP, RunSizes(128, 2048 // 16, 4), seed=2)
    run = run_channel(GROUP, longer, first_refresh_cycles=5070, **OPTIONS)
    assert_states(run, longer)
    reads = column_read_cycles(run)
    assert abs(reads[-1] / CYCLES["attacc-bankgroup"][2048] - 1) <= 0.05
    assert reads[-1] == 60 + (4 * 2048 - 1) * 6 + 10 * REFRESH
