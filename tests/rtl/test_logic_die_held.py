"""Promise: a whole logic die waits as long as its root is held, and after a reset at any cycle works as if new.

The whole die runs with the machine's arithmetic; a smaller one of the same parts runs as gates, too.
"""

from __future__ import annotations

import numpy as np
import pytest

from hw.cosim import StreamRecord
from hw.logic_die_params import LogicDieParams
from hw.logic_die_run import run_logic_die
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from tests.helpers.logic_die import GroupStates, assert_root, run_held, with_groups
from tests.helpers.partials import mixed_beats

DIE = LogicDieParams(channel=DEVICE_PRESETS["pam"].channel)
GROUPS = DIE.channel.groups
BEATS = DIE.channel.reduction.beats
HEAD, BODY = 1, 2


def _work(operations: int, seed: int, params: LogicDieParams = DIE) -> tuple[GroupStates, tuple[int, int]]:
    """Return states of every kind, and the heads and beats that the root answers."""
    rng = np.random.default_rng(seed)
    groups = params.channel.groups
    kinds = rng.choice(["plain", "tied", "special", "empty"], (operations, groups), p=[0.5, 0.15, 0.15, 0.2]).tolist()
    kinds[-1] = ["plain"] * groups
    beats = mixed_beats(params.channel.reduction, operations, rng)
    full = [count for count, row in zip(beats, kinds, strict=True) if set(row) != {"empty"}]
    return GroupStates.make(params, kinds, beats, seed), (operations, int(sum(full)))


def _at_once(operations: int, groups: int = GROUPS) -> np.ndarray:
    return np.zeros((operations, groups), np.int64)


@pytest.mark.parametrize(("stalled", "spread", "seed"), [(0.3, 0, 1), (0.7, 300, 2), (0.95, 100, 3)])
def test_random_stalls_on_every_stream(stalled: float, spread: int, seed: int) -> None:
    """Groups offer at random times, with pauses between beats; head and body of the root are held each by itself."""
    operations = 24
    work, wanted = _work(operations, seed)
    rng = np.random.default_rng(seed)
    cycles = np.sort(rng.integers(0, 1 + spread * operations // 4, (operations, GROUPS)), axis=0)
    bits = rng.random((200_000, 2)) < stalled
    held = [(cycle, int(row @ [HEAD, BODY])) for cycle, row in enumerate(bits) if row.any()]
    run = run_held(DIE, *work.records(cycles, pause=seed), wanted, held=held, platform=NATIVE, max_cycles=190_000)
    assert_root(run, work.expected())


@pytest.mark.parametrize("bits", [HEAD, BODY, HEAD | BODY])
def test_nothing_locks_up_behind_a_root_that_is_held_long(bits: int) -> None:
    """Held for 3,000 cycles of every 4,000, all groups pushing: all buffers fill up, and what was held goes on."""
    operations = 30
    work, wanted = _work(operations, seed=4)
    held = [(cycle, bits) for start in range(0, 80_000, 4000) for cycle in range(start, start + 3000)]
    run = run_held(
        DIE, *work.records(_at_once(operations)), wanted, held=held, platform=NATIVE, max_cycles=len(held) * 4 // 3
    )
    assert_root(run, work.expected())
    assert run.late_cycles > 2500


def test_reset_at_any_cycle_leaves_a_die_that_works() -> None:
    """Each of 48 runs is cut off by a reset somewhere, then repeated: what came before is that of a whole run."""
    work, wanted = _work(3, seed=5)
    cycles = _at_once(3)
    heads, bodies = work.records(cycles)
    whole = run_held(DIE, heads, bodies, wanted, platform=NATIVE)
    assert_root(whole, work.expected())
    length = int(max(whole.head.cycles[-1], whole.body.cycles[-1])) + 2
    offsets = sorted({*range(1, 20), *np.random.default_rng(6).integers(20, length, 28).tolist(), length - 1})
    # Long enough for what groups still offer to be lost; even, as the phase of the clock enable goes on.
    flush = 2 * (max(len(record.payloads) for record in bodies) + 4)
    starts = np.cumsum([0, *(offset + offset % 2 + flush for offset in offsets)])
    restarts = [
        start + offset + wait
        for start, offset in zip(starts[:-1], offsets, strict=True)
        for wait in range(flush + offset % 2)
    ]

    def again(record: StreamRecord) -> StreamRecord:
        shifted = [record.cycles + np.uint64(start) for start in starts]
        return StreamRecord(np.concatenate(shifted), record.payloads * len(starts))

    def expected(record: StreamRecord) -> StreamRecord:
        before = [int((record.cycles < offset).sum()) for offset in offsets] + [len(record.payloads)]
        shifted = [record.cycles[:count] + np.uint64(start) for count, start in zip(before, starts, strict=True)]
        return StreamRecord(np.concatenate(shifted), [item for count in before for item in record.payloads[:count]])

    head, body = expected(whole.head), expected(whole.body)
    # Resets fell before, between and behind the heads.
    assert len(offsets) // 4 < len(head.payloads) - len(whole.head.payloads) < len(offsets) * len(whole.head.payloads)
    run = run_held(
        DIE,
        [again(record) for record in heads],
        [again(record) for record in bodies],
        (len(head.payloads), len(body.payloads)),
        restarts=restarts,
        platform=NATIVE,
    )
    for found, said in ((run.head, head), (run.body, body)):
        assert found.payloads == said.payloads
        np.testing.assert_array_equal(found.cycles, said.cycles)


def test_gates_and_the_machines_arithmetic_do_the_same() -> None:
    """Four groups, units of two in two levels: every item of the root, bit for bit and cycle for cycle."""
    small = with_groups(DIE, 4, (2, 2))
    work, wanted = _work(20, seed=7, params=small)
    rng = np.random.default_rng(8)
    cycles = np.sort(rng.integers(0, 4000, (20, 4)), axis=0)
    held = [(int(cycle), int(rng.integers(1, 4))) for cycle in np.flatnonzero(rng.random(20_000) < 0.4)]
    gates, native = (
        run_held(small, *work.records(cycles, pause=1), wanted, held=held, platform=platform)
        for platform in (None, NATIVE)
    )
    assert_root(gates, work.expected())
    for one, other in ((gates.head, native.head), (gates.body, native.body)):
        assert one.payloads == other.payloads
        np.testing.assert_array_equal(one.cycles, other.cycles)


def test_the_bench_changes_nothing_when_it_is_left_alone() -> None:
    work, wanted = _work(4, seed=9)
    records = work.records(_at_once(4))
    plain = run_logic_die(DIE, *records, platform=NATIVE)
    held = run_held(DIE, *records, wanted, platform=NATIVE)
    np.testing.assert_array_equal(plain.body.cycles, held.body.cycles)
    assert plain.body.payloads == held.body.payloads
