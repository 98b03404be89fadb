"""Promise: every token has one memory, swaps leave occupancies alone, and both fidelities tell the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.retrieval.access import LOCALITIES, AccessStream
from sim.serving.bin_store import BinStore, touched_pages
from sim.serving.fill import FILL_RULES
from sim.serving.token_store import TokenStore, lowest
from sim.tiering.bins import read_chance
from sim.tiering.plan import TierPlan
from sim.tiering.policies import POLICIES, read_next_table
from sim.tiering.sparsity import Sparsity

if TYPE_CHECKING:
    from sim.serving.kv_store import KvStore
    from sim.tiering.use import TierUse

STORES = {"exact": TokenStore, "aggregate": BinStore}
PAGES = (0, 0, 32)
GROUPS = (16, 32, 1)


def _plan(policy: str, sparsity: str = "double", **options: object) -> TierPlan:
    return TierPlan(policy_name=policy, sparsity=Sparsity(name=sparsity), **options)  # type: ignore[arg-type]


def _store(kind: str, room: tuple[int, ...], plan: TierPlan, requests: int) -> KvStore:
    return STORES[kind](
        room,
        requests=requests,
        fill=FILL_RULES["top-down"],
        plan=plan,
        page_tokens=PAGES[: len(room)],
        groups=GROUPS[: len(room)],
    )


def _decode(store: KvStore, lengths: list[int], steps: int) -> list[TierUse]:
    ids, stored = np.arange(len(lengths)), np.array(lengths)
    for request, length in enumerate(lengths):
        assert store.grow(request, length)
    found: list[TierUse] = []
    for _ in range(steps):
        store.grow_each(store.needing(ids, stored))
        found.append(store.use(ids, stored))
        stored += 1
    return found


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(STORES)),
    policy=st.sampled_from(sorted(POLICIES)),
    sparsity=st.sampled_from(["dense", "window", "double"]),
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    near=st.integers(0, 600),
    middle=st.integers(0, 600),
)
def test_tokens_reads_and_room_are_conserved(
    kind: str, policy: str, sparsity: str, lengths: list[int], near: int, middle: int
) -> None:
    steps = 4
    room = (near, middle, sum(lengths) + steps * len(lengths))
    store = _store(kind, room, _plan(policy, sparsity, swap_budget=0.2), len(lengths))
    uses = _decode(store, lengths, steps)
    occupied = store.room - store.free
    for step, use in enumerate(uses):
        now = np.array(lengths) + step + 1
        assert sum(use.held) == pytest.approx(now.sum())
        kept = {"dense": now, "window": np.minimum(now, 1028), "double": -(-now // 8)}[sparsity]
        assert sum(use.tokens) == pytest.approx(kept.sum(), rel=1e-9)
        assert sum(use.appended) == len(lengths)
        for read, held, some in zip(use.tokens, use.held, use.requests, strict=True):
            assert -1e-9 <= read <= held + 1e-6
            assert some <= min(len(lengths), read) + 1e-6
        for read, fullest, groups in zip(use.tokens, use.fullest, GROUPS, strict=True):
            assert read - 1e-6 <= fullest <= groups * read + 1e-6
        assert use.pages[2] <= min(use.tokens[2], use.held[2]) + 1e-6
        assert (policy == "static") <= (not any(use.swaps))
    # The last step's swaps are in what the next would hold: occupancies never change by them.
    assert np.allclose(uses[-1].held, occupied, atol=1e-6)
    # One after another, so that what rounding keeps back has to come out in the end.
    for request in range(len(lengths)):
        store.release(np.array([request]))
        assert (store.free <= store.room).all()
    assert store.free.tolist() == list(room)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("kind", sorted(STORES))
def test_where_everything_is_near_nothing_moves(kind: str, policy: str) -> None:
    uses = _decode(_store(kind, (10_000, 10, 10), _plan(policy), 3), [900, 50, 1], 60)
    assert not any(any(use.swaps) for use in uses)
    assert all(use.tokens[1:] == (0, 0) for use in uses)
    assert uses[0].tokens[0] == 113 + 7 + 1


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_where_everything_is_read_no_token_is_worth_more(policy: str) -> None:
    # Nothing is gained by swaps but between tokens whose earlier reads differ.
    uses = _decode(_store("exact", (500, 500, 2000), _plan(policy, "dense"), 2), [900, 800], 60)
    assert not any(uses[-1].swaps)


def test_the_oracle_misses_only_what_has_no_room() -> None:
    # Near room for 150 tokens, and 230 or so are read in a step: no rule reads fewer than the rest far away.
    store = _store("exact", (150, 4000), _plan("oracle"), 2)
    uses = _decode(store, [900, 900], 20)
    for use in uses[1:]:
        # Beside the tokens that the steps append where there is room: far away.
        least = sum(use.tokens) - 150
        assert least <= use.tokens[1] <= least + sum(use.appended)


def test_no_policy_misses_less_than_the_oracle() -> None:
    missed = {
        name: sum(use.tokens[1] for use in _decode(_store("exact", (300, 4000), _plan(name), 2), [900, 900], 40)[1:])
        for name in POLICIES
    }
    assert min(missed, key=lambda name: missed[name]) == "oracle"
    assert missed["static"] == max(missed.values())
    assert missed["predictive"] < missed["lru"] < missed["static"]


def test_least_recently_read_tokens_go_first() -> None:
    # One request, everything may move: near lie those read last, whatever their order was.
    plan = _plan("lru", swap_budget=1.0)
    store = _store("exact", (200, 4000), plan, 1)
    store.grow(0, 800)
    stream = AccessStream(plan.locality, 800, np.random.default_rng([0, 0]))
    last_read = np.full(820, -9)
    for step in range(12):
        store.grow_each(np.array([0]))
        use = store.use(np.array([0]), np.array([800 + step]))
        stream.append()
        last_read[: len(stream)][stream.step(-(-len(stream) // 8))] = step
        assert sum(use.swaps) == use.swaps[0]
    # 200 tokens of the nearest memory: all that were read in the last step among them.
    newest = np.sort(last_read[: len(stream)])[-200:]
    assert store.held[0].tolist() == [200, 612]
    follow = store.use(np.array([0]), np.array([812 - 1]))
    assert follow.tokens[0] <= 200
    assert newest[-1] == 11


def test_the_table_is_no_worse_on_other_reads_and_seeds() -> None:
    table = read_next_table(LOCALITIES["fitted"], tokens=20_000, steps=60, seed=1 << 20)
    other = read_next_table(LOCALITIES["restless"], tokens=20_000, steps=60, seed=7)
    # Reads of the last step weigh most, and more reads never mean less; on other reads too.
    for found in (table, other):
        assert found[8:].min() > found[:8].max()
    assert np.corrcoef(np.argsort(np.argsort(table)), np.argsort(np.argsort(other)))[0, 1] > 0.9
    stream = AccessStream(LOCALITIES["restless"], 20_000, np.random.default_rng(11))
    for _ in range(3):
        stream.step(2500)
    guess = table[stream.history >> 4]
    read = stream.step(2500)
    # Of the eighth that it would fetch, far more than an eighth is read.
    best = np.argsort(-guess, kind="stable")[:2500]
    assert read[best].mean() > 0.4


@pytest.mark.parametrize("policy", ["pam", "lru", "oracle", "predictive", "static"])
@pytest.mark.parametrize("locality", ["fitted", "restless"])
def test_means_are_those_of_single_tokens(policy: str, locality: str) -> None:
    plan = _plan(policy, locality_name=locality)
    room = (9000, 12_000, 60_000)
    lengths = [1200 + 300 * number for number in range(12)]
    exact, means = (_decode(_store(kind, room, plan, 12), lengths, 40) for kind in ("exact", "aggregate"))

    def total(uses: list[TierUse], name: str) -> np.ndarray:
        return np.array([getattr(use, name) for use in uses], np.float64)[5:].sum(axis=0)

    # Twelve short requests of one draw: a few in a hundred of chance are left.
    assert total(means, "tokens") == pytest.approx(total(exact, "tokens"), rel=0.05, abs=20)
    assert total(means, "pages")[2] == pytest.approx(total(exact, "pages")[2], rel=0.03)
    # Greedy placement evens groups of the nearest memory, to which tokens keep coming, more than chance does; but not
    # the oracle's, which exchanges most of them in every step.
    if policy != "oracle":
        assert total(means, "fullest")[0] == pytest.approx(total(exact, "fullest")[0], rel=0.1)
    assert total(means, "fullest")[1] == pytest.approx(total(exact, "fullest")[1], rel=0.03)
    assert total(means, "requests") == pytest.approx(total(exact, "requests"), rel=0.03, abs=20)
    assert total(means, "swaps") == pytest.approx(total(exact, "swaps"), rel=0.1, abs=40)


def test_pages_are_those_of_draws() -> None:
    rng = np.random.default_rng(4)
    held, always, chance = 1000, 21, 0.04
    read = rng.random((4000, held)) < chance
    read[:, held - always :] = True
    groups = np.pad(read, ((0, 0), (0, 24))).reshape(4000, 32, 32).any(axis=2).sum(axis=1)
    (found,) = touched_pages(np.array([1000.0]), np.array([21.0]), np.array([always + chance * (held - always)]), 32)
    assert found == pytest.approx(groups.mean(), rel=0.01)


@pytest.mark.parametrize(("held", "always", "expected"), [(0.0, 0.0, 0.0), (32.0, 32.0, 1.0), (64.0, 1.0, 1.0)])
def test_pages_at_the_edges(held: float, always: float, expected: float) -> None:
    (found,) = touched_pages(np.array([held]), np.array([always]), np.array([always]), 32)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_bins_keep_tokens_and_read_what_is_wanted(policy: str) -> None:
    bins = POLICIES[policy].bins(LOCALITIES["fitted"])
    counts = 500.0 * bins.start[np.newaxis]
    counts[0, 0] = 21.0
    for wanted in (0.0, 30.0, 62.0, 499.0):
        chance = read_chance(bins, counts, np.array([wanted]))
        assert ((chance >= 0.0) & (chance <= 1.0)).all()
        assert (counts * chance).sum() - 21.0 == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert bins.start.sum() == pytest.approx(1.0)
    assert bins.leave.sum() == pytest.approx(1.0)
    for table in (bins.read_to, bins.unread_to, bins.decided_to):
        if table is not None:
            assert table.sum(axis=1) == pytest.approx(1.0)


@given(values=st.lists(st.integers(0, 5), max_size=30), count=st.integers(0, 30))
def test_the_lowest_are_in_order_and_nothing_lower_is_left(values: list[int], count: int) -> None:
    array = np.array(values, np.float32)
    found = lowest(array, min(count, len(values)), np.random.default_rng(0))
    assert array[found].tolist() == sorted(values)[: min(count, len(values))]
    assert len(set(found.tolist())) == len(found)
