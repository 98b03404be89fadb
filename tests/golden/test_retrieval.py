"""Promise: every method selects what its definition says, whatever the sizes and ties, and counts what it reads."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.formats import FP8_E4M3
from golden.retrieval.blocks import BestToken, PageBounds, Representatives
from golden.retrieval.clusters import Clusters
from golden.retrieval.indexer import Indexer, indexer_scores, quantize
from golden.retrieval.labels import Labels, heavy_channels
from golden.retrieval.method import Query
from golden.retrieval.pinned import Pinned
from golden.retrieval.positional import Dense, Streaming
from golden.retrieval.quality import attention_mass, kept_mass, recall
from golden.retrieval.topk import top_k
from tests.helpers.data import full_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from golden.retrieval.method import RetrievalMethod

DIM = 8
METHODS: dict[str, Callable[[], RetrievalMethod]] = {
    "dense": lambda: Dense(DIM),
    "streaming": lambda: Streaming(DIM, sinks=2),
    "indexer": lambda: Indexer(DIM),
    "best token": lambda: BestToken(DIM, block_tokens=4),
    "page bounds": lambda: PageBounds(DIM, block_tokens=4),
    "representatives": lambda: Representatives(DIM, block_tokens=4, representatives=2),
    "clusters": lambda: Clusters(DIM, cluster_tokens=4, recluster_tokens=8, most_tokens=6),
    "labels": lambda: Labels(DIM, channels=[1, 3, 6]),
}


def _keys(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)


def _query(seed: int = 1, heads: int = 3) -> Query:
    return Query.of(np.random.default_rng(seed).standard_normal((heads, DIM)))


# Top-k.


@given(st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, np.inf]), max_size=30), st.integers(0, 40))
def test_top_k_is_a_stable_sort_cut_off(scores: list[float], k: int) -> None:
    ordered = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    assert top_k(np.array(scores), k).tolist() == sorted(ordered[:k])


def test_top_k_of_equal_scores_takes_the_lower_ids() -> None:
    assert top_k(np.zeros(5), 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("scores", "k", "error"),
    [([1.0, np.nan], 1, ValueError), ([[1.0]], 1, ValueError), ([1.0], -1, ValueError), ([1.0], 1.5, TypeError)],
)
def test_top_k_refuses_what_has_no_order(scores: object, k: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        top_k(scores, k)  # type: ignore[arg-type]


# What all methods keep.


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("tokens", [0, 1, 3, 4, 5, 8, 29])
@pytest.mark.parametrize("k", [0, 1, 4, 5, 28, 29, 30, 1000])
def test_a_selection_has_as_many_tokens_as_there_are_up_to_k(name: str, tokens: int, k: int) -> None:
    method = METHODS[name]()
    method.append(_keys(tokens))
    selected = method.select(_query(), k)
    assert len(selected) == min(k, tokens)
    assert (np.diff(selected) > 0).all()
    assert ((selected >= 0) & (selected < tokens)).all()


@pytest.mark.parametrize("name", METHODS)
def test_a_larger_budget_keeps_what_a_smaller_one_selects(name: str) -> None:
    method = METHODS[name]()
    method.append(_keys(30))
    for k in range(30):
        assert set(method.select(_query(), k)) <= set(method.select(_query(), k + 1))


@pytest.mark.parametrize("name", METHODS)
def test_equal_keys_are_all_found_and_the_lower_ones_first(name: str) -> None:
    method = METHODS[name]()
    method.append(np.tile(_keys(1), (10, 1)))
    if name != "streaming":  # the last ones are what its window is for
        assert method.select(_query(), 3).tolist() == [0, 1, 2]
    assert len(method.select(_query(), 10)) == 10


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"clusters"}))
@given(cuts=st.lists(st.integers(0, 26), max_size=4))
def test_appending_piece_by_piece_builds_the_same_index(name: str, cuts: list[int]) -> None:
    keys, whole, pieces = _keys(26), METHODS[name](), METHODS[name]()
    whole.append(keys)
    for part in np.split(keys, sorted(cuts)):
        pieces.append(part)
    assert np.array_equal(whole.score(_query()), pieces.score(_query()))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "bad", [np.zeros((2, DIM + 1)), np.zeros(DIM), np.full((1, DIM), np.inf), np.full((1, DIM), np.nan)]
)
def test_keys_of_another_shape_or_not_finite_are_refused(name: str, bad: Any) -> None:
    method = METHODS[name]()
    with pytest.raises(ValueError, match="keys must"):
        method.append(bad)
    assert method.num_tokens == 0


@pytest.mark.parametrize("name", METHODS)
def test_a_query_of_another_length_and_a_negative_budget_are_refused(name: str) -> None:
    method = METHODS[name]()
    method.append(_keys(3))
    with pytest.raises(ValueError, match="query must"):
        method.select(Query.of(np.ones(DIM + 1)), 1)
    with pytest.raises(ValueError, match="k must"):
        method.select(_query(), -1)


@pytest.mark.parametrize(
    ("vectors", "weights"), [(np.empty((0, DIM)), []), (np.ones((2, DIM)), [1.0]), (np.ones(DIM), [np.nan])]
)
def test_a_query_without_heads_or_with_other_weights_is_refused(vectors: Any, weights: list[float]) -> None:
    with pytest.raises(ValueError, match="must"):
        Query.of(vectors, weights)


# Each by its own definition.


def test_streaming_selects_sinks_and_the_last_tokens() -> None:
    method = Streaming(DIM, sinks=2)
    method.append(_keys(10))
    assert method.select(_query(), 5).tolist() == [0, 1, 7, 8, 9]
    assert method.select(_query(), 1).tolist() == [0]


_CODES = st.integers(0, 255).filter(lambda code: code & 0x7F != 0x7F)


@given(st.lists(st.tuples(_CODES, _CODES), min_size=1, max_size=24))
def test_an_indexer_product_is_exact_until_it_is_rounded_once(pairs: list[tuple[int, int]]) -> None:
    query, key = (np.array([codes], np.uint8) for codes in zip(*pairs, strict=True))
    values = [FP8_E4M3.from_codes(codes).astype(float)[0] for codes in (query, key)]
    exact = sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(*values, strict=True)), Fraction(0))
    found = indexer_scores(query, np.ones(1, np.float32), key, np.ones(1, np.float32))
    # float64 holds the sum exactly: 48 bits at most.
    assert found[0] == max(np.float32(float(exact)), np.float32(0))
    assert Fraction(float(exact)) == exact


def test_indexer_heads_are_summed_in_order_in_fp32() -> None:
    one, big = FP8_E4M3.one_code, int(FP8_E4M3.to_codes([256.0])[0])
    query, key = np.array([[big], [one], [one]], np.uint8), np.array([[one]], np.uint8)
    # 2^24 + 1 + 1 in fp32 is 2^24: each one is lost on its own.
    weights = np.array([65536, 1, 1], np.float32)
    assert indexer_scores(query, weights, key, np.ones(1, np.float32))[0] == 2.0**24
    assert indexer_scores(query[::-1], weights[::-1], key, np.ones(1, np.float32))[0] == 2.0**24 + 2


def test_an_indexer_ignores_heads_that_dislike_a_key() -> None:
    codes = FP8_E4M3.to_codes([[1.0], [-1.0]]).astype(np.uint8)
    scores = indexer_scores(codes, np.array([2, 3], np.float32), codes, np.array([1, 0.5], np.float32))
    assert scores.tolist() == [2.0, 1.5]


@pytest.mark.parametrize("largest", [0.0, 1e-45, 1e-38, 1.0, 448.0, 3e38])
def test_quantised_keys_err_by_half_a_step_of_their_scale(largest: float) -> None:
    vector = np.array([[largest, -largest / 3, largest / 1000]], np.float32)
    codes, scales = quantize(vector)
    # Half a step of E4M3: 2^-4 of the number, or 2^-10 of the scale for what is subnormal there; and fp32 rounding.
    bound = np.maximum(np.abs(vector) / 16, scales[0] * 2.0**-10) * (1 + 1e-6) + 1e-45
    assert (np.abs(FP8_E4M3.from_codes(codes).astype(float) * scales[0] - vector) <= bound).all()


def test_an_indexer_key_takes_132_bytes_at_128_elements() -> None:
    method = Indexer(128)
    method.append(np.ones((100, 128)))
    traffic = method.traffic(np.arange(7), 64)
    # Heads 64: 8,192 multiplications and additions a key.
    assert (traffic.score_bytes, traffic.score_flops) == (100 * 132, 100 * 2 * 8192)
    assert (traffic.candidates, traffic.gather_tokens) == (100, 7)


def test_a_block_scores_as_its_best_token() -> None:
    method = BestToken(2, block_tokens=2)
    method.append([[1, 0], [0, 1], [3, 0], [0, 0], [0, 5]])
    assert method.score(Query.of([1, 0])).tolist() == [1, 3, 0]
    # Weights add up over heads before the best token is taken.
    assert method.score(Query.of([[1, 0], [0, 1]], [1, 2])).tolist() == [2, 3, 10]
    assert method.select(Query.of([1, 0]), 3).tolist() == [0, 2, 3]
    assert method.traffic(np.arange(3), 4).score_bytes == 5 * 2 * 2


@given(st.integers(0, 1 << 32), st.integers(1, 40), st.integers(1, 9))
def test_page_bounds_are_bounds(seed: int, tokens: int, page: int) -> None:
    rng = np.random.default_rng(seed)
    keys = (rng.standard_normal((tokens, DIM)) * 10.0 ** rng.uniform(-6, 4, (tokens, 1))).astype(np.float32)
    query = Query.of(rng.standard_normal((2, DIM)))
    method = PageBounds(DIM, block_tokens=page)
    method.append(keys)
    products = (keys.astype(float) @ query.vectors.astype(float).T).max(axis=1)
    best = np.array([products[start : start + page].max() for start in range(0, tokens, page)])
    # The last step, to fp32, is to the nearest.
    assert (method.score(query) >= best - np.abs(best) * 2.0**-24).all()


def test_another_page_size_in_the_same_process_is_its_own_index() -> None:
    keys = _keys(100)
    for page in (16, 4, 16):
        method = PageBounds(DIM, block_tokens=page)
        method.append(keys)
        traffic = method.traffic(method.select(_query(), 32), 1)
        assert traffic.candidates == -(-100 // page)
        assert traffic.score_bytes == -(-100 // page) * 2 * DIM * 2
        assert traffic.gather_tokens == 32


def test_traffic_counts_what_is_there_not_what_was_asked_for() -> None:
    method = Labels(DIM, channels=[0])
    method.append(_keys(100))
    traffic = method.traffic(method.select(_query(), 2048), 1)
    assert (traffic.candidates, traffic.gather_tokens) == (100, 100)


def test_representatives_are_the_keys_most_like_their_block() -> None:
    method = Representatives(2, block_tokens=4, representatives=2)
    # Sum (3, 1): products 3, 3, 1 and 2; the first two stand for the block. The short block stands for itself.
    method.append([[1, 0], [1, 0], [0, 1], [1, -1], [0, 7]])
    assert method.score(Query.of([[0, 1]])).tolist() == [0, 7]


def test_clusters_hold_every_token_once_and_none_is_empty_or_too_long() -> None:
    method = Clusters(DIM, cluster_tokens=5, recluster_tokens=20, most_tokens=7)
    for seed in range(12):
        method.append(_keys(5, seed))
        members = np.concatenate(method.lists)
        assert np.array_equal(np.sort(members), np.arange(method.num_tokens))
        assert all(1 <= len(cluster) <= 7 for cluster in method.lists)
        means = [method.keys[cluster].astype(float).mean(axis=0) for cluster in method.lists]
        assert np.allclose(method.centroids, means)


def test_lists_out_of_order_and_lists_of_nothing_select_the_same() -> None:
    method = Clusters(DIM, cluster_tokens=5)
    method.append(_keys(60))
    wanted = [method.select(_query(), k) for k in (1, 7, 23, 60)]
    rng = np.random.default_rng(6)
    shuffled = [rng.permutation(members) for members in method.lists]
    assert any((np.diff(members) < 0).any() for members in shuffled)
    # The query likes the list of nothing best of all.
    method.lists = [np.empty(0, np.int64), *shuffled]
    liked = 1e3 * _query().vectors[:1].astype(np.float64)
    method.centroids = np.concatenate([liked, method.centroids])
    assert all(np.array_equal(method.select(_query(), len(ids)), ids) for ids in wanted)


def test_clusters_of_clear_directions_are_found() -> None:
    # Three directions, 20 tokens each, mixed.
    rng = np.random.default_rng(5)
    kinds = rng.permutation(np.repeat([0, 1, 2], 20))
    keys = np.eye(DIM, dtype=np.float32)[kinds] * rng.uniform(1, 3, (60, 1)).astype(np.float32)
    method = Clusters(DIM, cluster_tokens=6)
    method.append(keys)
    for kind in range(3):
        selected = method.select(Query.of(np.eye(DIM)[kind]), 20)
        assert np.array_equal(selected, np.flatnonzero(kinds == kind))


def test_heavy_channels_are_those_of_the_largest_products() -> None:
    queries, keys = np.array([[1, 2, -3, 0]]), np.array([[1, -1, 1, 100], [1, -1, -3, 100]])
    assert heavy_channels(queries, keys, 2) == [1, 2]
    with pytest.raises(ValueError, match="count must be"):
        heavy_channels(queries, keys, 5)


@pytest.mark.parametrize("channels", [[], [3, 1], [1, 1], [-1], [DIM]])
def test_channels_out_of_order_or_range_are_refused(channels: list[int]) -> None:
    with pytest.raises(ValueError, match="channels must ascend"):
        Labels(DIM, channels=channels)


# Pins.


@pytest.mark.parametrize(
    ("tokens", "k", "pins"), [(0, 3, []), (3, 5, [0, 1, 2]), (10, 4, [0, 1, 8, 9]), (10, 3, [0, 1, 8]), (10, 0, [])]
)
def test_pins_come_first_and_never_twice(tokens: int, k: int, pins: list[int]) -> None:
    method = Labels(DIM, channels=[0])
    method.append(_keys(tokens))
    selected = Pinned(method, sinks=2, window=2).select(_query(), k)
    assert set(pins) <= set(selected.tolist())
    assert len(selected) == min(k, tokens) == len(set(selected.tolist()))


# Quality.


def test_recall_and_mass_counted_by_hand() -> None:
    mass = np.array([0.5, 0.1, 0.3, 0.1])
    assert recall(np.array([0, 1]), mass) == 0.5
    assert kept_mass(np.array([0, 1]), mass) == pytest.approx(0.6)
    assert recall(np.array([], np.int64), mass) == 1.0


REAL: dict[str, Callable[[], RetrievalMethod]] = {
    "indexer": lambda: Indexer(32),
    "best token of 16": lambda: BestToken(32, block_tokens=16),
    "page bounds of 16": lambda: PageBounds(32, block_tokens=16),
    "4 representatives of 16": lambda: Representatives(32, block_tokens=16, representatives=4),
    "clusters of 16": lambda: Clusters(32, cluster_tokens=16, recluster_tokens=512),
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("k", [16, 64, 128])
def test_on_real_keys_a_method_finds_more_than_chance(name: str, k: int) -> None:
    data = np.load(full_tensors())
    recalls, masses = [], []
    for layer in (0, 2, 5):
        for head in range(0, 12, 3):
            queries, keys = data[f"q{layer}"][::64, head], data[f"k{layer}"][:, head]
            method = REAL[name]()
            method.append(keys)
            for query in queries:
                mass = attention_mass(query, keys, 32**-0.5)
                # ReLU(q.k) - ReLU(-q.k) is q.k: two heads let an indexer see what attention does.
                asked = Query.of([query, -query], [1, -1]) if name == "indexer" else Query.of(query)
                selected = method.select(asked, k)
                recalls.append(recall(selected, mass))
                masses.append(kept_mass(selected, mass))
    chance = k / 512
    assert np.mean(recalls) > 1.5 * chance
    assert np.mean(masses) > 1.5 * chance
    if name == "indexer":
        # Keys and queries in fp8 err by 1/16 an element at most, at random: nearly all of the best are found.
        assert np.mean(recalls) > 0.9
    print(f"{name}, k {k}: recall {np.mean(recalls):.3f}, mass {np.mean(masses):.3f}")
