# amaranth: UnusedElaboratable=no
"""Promise: lists, bitmaps and runs of tokens become the same positions and marks, in the cycles of the formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden.selection import SelectionForm, dealt, token_runs, union
from hw.channel_selection import selection_payloads
from hw.devices.layouts import selected_layout
from hw.devices.selection import Selection, word_positions
from hw.memory.kv_rows import kv_rows
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.selection import bitmap_cycles, list_cycles, runs_cycles
from tests.helpers.pysim import run_pysim

ATTACC = DEVICE_PRESETS["attacc"].channel
WIDE = DEVICE_PRESETS["pam-wide"].channel


def _sinks_and_window(parts, tokens, sinks, window):
    return dealt(np.unique([*range(sinks), *range(tokens - window, tokens)]).astype(np.int64), parts)


def _cases(params, rng):
    """Return selections in every form, with the rows that they lie in; every one names positions of many kinds."""
    parts = params.parts
    cases = []
    for head_dim in (128,) if params is WIDE else (192, 128, 64):
        rows = kv_rows(params, head_dim, 0)
        tokens = 2 * rows.tile_tokens * parts + 7
        shares = (0.0, 1 / (20 * parts), 1 / parts, 0.6, 1.0)
        drawn = [dealt(np.flatnonzero(rng.random(tokens) < share), parts) for share in shares]
        drawn.append(union([np.arange(5) * (part % 2) for part in range(parts)]))
        cases += [(rows, selected, form) for selected in drawn for form in (SelectionForm.LIST, SelectionForm.BITMAP)]
        for sinks, window in ((0, 0), (0, 1), (4, 0), (4, 3 * parts + 2), (parts, parts), (parts + 1, tokens)):
            cases.append((rows, _sinks_and_window(parts, tokens, sinks, window), SelectionForm.RUNS))
        # Sinks and a window at one position, alone there and not, and behind each other.
        for sinks, first, end in ((1, 3, 5), (1, 3, 3 * parts), (parts + 2, parts + 4, parts + 5), (16, 17, 40)):
            chosen = np.array([*range(sinks), *range(first, end)])
            cases.append((rows, dealt(chosen, parts), SelectionForm.RUNS))
    order = rng.permutation(len(cases))
    return [cases[number] for number in order]


def _items(params, rows, selected):
    """Return what must come out, worked out anew: row, column and marks of every position."""
    per_row = 32 // rows.beats
    return [
        (position // per_row, position % per_row * rows.beats, sum(1 << int(part) for part in np.flatnonzero(marks)))
        for position, marks in zip(selected.positions.tolist(), selected.wanted.T, strict=True)
    ]


def _interval(params, selected, form, words):
    match form:
        case SelectionForm.LIST:
            return list_cycles(len(selected.positions))
        case SelectionForm.RUNS:
            return runs_cycles(token_runs(selected))
    places = range(0, params.organisation.column_bits, params.parts)
    return bitmap_cycles([sum(word >> place & ((1 << params.parts) - 1) != 0 for place in places) for word in words])


def _send(bench, params, cases, idle=0.0):
    payloads = [selection_payloads(params, *case) for case in cases]
    bench.send("request", [request for request, _ in payloads], idle=idle)
    bench.send("words", [word for _, words in payloads for word in words], idle=idle)
    return payloads


async def _finish(bench, params, cases):
    expected = [item for rows, selected, _ in cases for item in _items(params, rows, selected)]
    await bench.until(request=len(cases), places=len(expected))
    found = [selected_layout(params).from_bits(item) for item in bench.items("places")]
    assert [(item.place.tile, item.place.column, item.wanted) for item in found] == expected


@pytest.mark.parametrize("params", [ATTACC, WIDE], ids=["split", "whole"])
def test_forms_and_cycles(params):
    cases = _cases(params, np.random.default_rng(1))

    async def scenario(bench):
        payloads = _send(bench, params, cases)
        await _finish(bench, params, cases)
        taken = bench.trace("request").transfers
        intervals = [_interval(params, *case[1:], words) for case, (_, words) in zip(cases, payloads, strict=True)]
        np.testing.assert_array_equal(np.diff(taken, prepend=-1), intervals)
        # A position is there in the cycle behind the one that found it: the last one behind its request.
        places = bench.trace("places").transfers
        ends = np.cumsum([len(selected.positions) for _, selected, _ in cases])
        for (_, selected, form), end, cycle in zip(cases, ends, taken, strict=True):
            if len(selected.positions) and form is not SelectionForm.BITMAP:
                assert places[end - 1] == cycle + 1

    run_pysim(Selection(params), scenario)


@pytest.mark.parametrize(("idle", "pause"), [(0.4, 0.0), (0.0, 0.6), (0.3, 0.3)])
def test_stalls_lose_nothing(idle, pause):
    cases = _cases(ATTACC, np.random.default_rng(2))[::4]

    async def scenario(bench):
        bench.stall("places", pause)
        _send(bench, ATTACC, cases, idle)
        await _finish(bench, ATTACC, cases)

    run_pysim(Selection(ATTACC), scenario)


def test_a_reset_at_any_cycle_leaves_nothing_behind():
    rng = np.random.default_rng(3)
    rows = kv_rows(ATTACC, 64, 0)
    drawn = dealt(np.flatnonzero(rng.random(700) < 0.1), 16)
    before = [(rows, drawn, form) for form in (SelectionForm.BITMAP, SelectionForm.LIST)]
    before.append((rows, _sinks_and_window(16, 300, 20, 100), SelectionForm.RUNS))
    after = [before[number] for number in (2, 0, 1)]

    async def scenario(bench):
        for cycle in range(1, 110, 8):
            bench.stall("places", 0.2)
            _send(bench, ATTACC, before)
            await bench.advance(cycle)
            await bench.reset(cycles=1)
            _send(bench, ATTACC, after)
            await _finish(bench, ATTACC, after)
            await bench.reset()

    run_pysim(Selection(ATTACC), scenario)


def test_hand_counted_cycles():
    assert (list_cycles(0), list_cycles(5)) == (1, 5)
    assert (bitmap_cycles([]), bitmap_cycles([0, 0, 3, 1, 0])) == (1, 7)
    # Positions 0 and 2; 0 for both runs; 0 to 1 and 1 to 2; 0 to 2 in one run; none.
    chosen = ([0, 1, 9, 10], [0, 3], [0, 1, 2, 3, 4, 6, 7, 8], range(9), [])
    assert [runs_cycles(token_runs(dealt(np.array(tokens, np.int64), 4))) for tokens in chosen] == [2, 1, 3, 3, 1]


def test_bits_that_a_column_cannot_hold_are_refused():
    assert word_positions(ATTACC) == word_positions(WIDE) * 4 == 16
    organisation = WIDE.organisation
    larger = replace(organisation, ranks=4 * organisation.ranks, capacity_bytes=4 * organisation.capacity_bytes)
    with pytest.raises(ValueError, match=r"a column must hold a place and a bit for each part, 27\d bits, not 256"):
        Selection(WIDE.replace(organisation=larger))
