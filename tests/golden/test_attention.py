"""Attention whole, online and split: against float64 two-pass attention, within bounds derived in helpers/bounds.py."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.attention import (
    attention_fp16_reference,
    attention_online,
    attention_reference,
    local_state,
    pam_attention,
    pam_state,
)
from golden.exp import POLY6
from golden.numerics import REFERENCE, REFERENCE_BASE2, unit_numerics
from golden.partial import finish, merge_chain
from tests.helpers.bounds import DOUBLE, attention_bound, tree_depth, unit_error_model

LANES, TILE = 16, 8
UNIT = unit_numerics(POLY6, lanes=LANES, tile_tokens=TILE)
UNIT_MODEL = unit_error_model(POLY6)
both = pytest.mark.parametrize("numerics", [REFERENCE, UNIT], ids=lambda numerics: numerics.name)


def draw(seed, num_tokens, num_heads, num_kv_heads, head_dim, spread=1.0):
    rng = np.random.default_rng(seed)
    q = (spread * rng.normal(size=(num_heads, head_dim))).astype(np.float16)
    k = rng.normal(size=(num_tokens, num_kv_heads, head_dim)).astype(np.float16)
    v = rng.normal(size=(num_tokens, num_kv_heads, head_dim)).astype(np.float16)
    return q, k, v, head_dim**-0.5


def bound_of(q, k, v, scale, *, tiles=1, depth=0, numerics=REFERENCE):
    """Return the derived bound of ``numerics``; that of the float64 reference by default."""
    head_dim = q.shape[-1]
    score_roundings = (
        head_dim if numerics.lanes is None else int(np.log2(numerics.lanes)) + -(-head_dim // numerics.lanes)
    )
    score_roundings += 2 if numerics.base == "2" else 0  # log2(e) and its product with the scale
    model = UNIT_MODEL if numerics is UNIT else DOUBLE
    return attention_bound(q, k, v, scale, tiles=tiles, depth=depth, model=model, score_roundings=score_roundings)


def check(q, k, v, scale, splits, numerics=UNIT, tree=None):
    """Assert that every element is within the derived bound of the float64 reference; return the output."""
    output, empty = pam_attention(q, k, v, scale, splits, numerics, tree)
    tiles = max(-(-len(part) // numerics.tile_tokens) for part in splits)
    bound = bound_of(q, k, v, scale, tiles=tiles, depth=tree_depth(tree, len(splits)), numerics=numerics)
    bound += bound_of(q, k, v, scale)  # the reference itself is float64
    assert not empty.any()
    assert (np.abs(output.astype(np.float64) - attention_reference(q, k, v, scale)) <= bound).all()
    return output


@st.composite
def partitions(draw, max_tokens=40):
    """Draw an ordered partition of some tokens into parts, some empty, and a tree over them."""
    num_tokens = draw(st.integers(1, max_tokens))
    order = draw(st.permutations(range(num_tokens)))
    cuts = sorted(draw(st.lists(st.integers(0, num_tokens), max_size=6)))
    parts = [order[a:b] for a, b in zip([0, *cuts], [*cuts, num_tokens], strict=True)]
    tree = draw(st.sampled_from([None, 2, 3, "nested"]))
    if tree == "nested":
        middle = draw(st.integers(0, len(parts)))
        halves = [list(range(middle)), list(range(middle, len(parts)))]
        tree = [half for half in halves if half]
    return num_tokens, parts, tree


@both
@settings(derandomize=True, deadline=None, max_examples=40)
@given(partition=partitions(), seed=st.integers(0, 2**16), spread=st.sampled_from([0.1, 1.0, 4.0]))
def test_any_split_and_any_tree_are_within_the_bound(numerics, partition, seed, spread):
    """So any two splits differ by at most the sum of their bounds."""
    num_tokens, parts, tree = partition
    check(*draw(seed, num_tokens, 4, 2, 20, spread), parts, numerics, tree)


@both
@pytest.mark.parametrize("head_dim", [1, 32, 33, 64, 80, 96, 128, 256])
def test_head_dims(numerics, head_dim):
    check(*draw(head_dim, 37, 2, 1, head_dim), np.array_split(np.arange(37), 3), numerics, 2)


@both
@pytest.mark.parametrize("ratio", range(1, 17))
def test_gqa_ratios(numerics, ratio):
    """The heads of a group read the KV head of their group, and nothing else."""
    q, k, v, scale = draw(ratio, 21, 2 * ratio, 2, 32)
    output = check(q, k, v, scale, [range(10), range(10, 21)], numerics)
    for head in range(2 * ratio):
        kv = slice(head // ratio, head // ratio + 1)
        alone = check(q[head : head + 1], k[:, kv], v[:, kv], scale, [range(10), range(10, 21)], numerics)
        if numerics is UNIT:
            np.testing.assert_array_equal(alone[0], output[head])


@both
@pytest.mark.parametrize("num_tokens", [1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE, 97])
def test_one_pass_equals_two_passes(numerics, num_tokens):
    q, k, v, scale = draw(num_tokens, num_tokens, 3, 3, 48)
    check(q, k, v, scale, [range(num_tokens)], numerics)
    state = local_state(q, k, v, scale, numerics)
    for tile_tokens in (numerics.tile_tokens, num_tokens):
        online = attention_online(q, k, v, scale, tile_tokens, numerics)
        assert not online.empty.any()
        if tile_tokens == numerics.tile_tokens:
            np.testing.assert_array_equal(online.output, finish(state, numerics).output)
        error = np.abs(online.output.astype(np.float64) - attention_reference(q, k, v, scale))
        tiles = -(-num_tokens // tile_tokens)
        assert (error <= bound_of(q, k, v, scale, tiles=tiles, numerics=numerics) + bound_of(q, k, v, scale)).all()


def test_reference_against_50_digits():
    q, k, v, scale = draw(5, 9, 1, 1, 6, spread=8.0)
    with mpmath.workdps(50):
        s = [mpmath.fdot(map(float, q[0]), map(float, key[0])) * scale for key in k]
        p = [mpmath.exp(x - max(s)) for x in s]
        expected = [float(mpmath.fdot(p, map(float, v[:, 0, i])) / mpmath.fsum(p)) for i in range(6)]
    assert (np.abs(attention_reference(q, k, v, scale)[0] - expected) <= bound_of(q, k, v, scale)[0]).all()


@both
def test_one_token_is_its_value(numerics):
    q, k, v, scale = draw(0, 1, 4, 2, 64, spread=100.0)
    output = pam_attention(q, k, v, scale, [[], [0], []], numerics, 2).output
    np.testing.assert_array_equal(output, np.repeat(v[0], 2, axis=0))


@both
def test_no_token_is_empty_zero(numerics):
    q, k, v, scale = draw(0, 0, 4, 2, 64)
    for result in (
        pam_attention(q, k, v, scale, [[], [], []], numerics, [[0, 1], 2]),
        attention_online(q, k, v, scale, 16, numerics),
    ):
        assert result.empty.all()
        assert result.output.shape == q.shape
        assert not result.output.any()
    assert not attention_reference(q, k, v, scale).any()
    assert not attention_fp16_reference(q, k, v, scale).any()


@pytest.mark.parametrize("numerics", [REFERENCE, UNIT], ids=["reference", "unit"])
def test_empty_parts_change_no_bit(numerics):
    q, k, v, scale = draw(8, 30, 4, 2, 32)
    parts = np.array_split(np.random.default_rng(8).permutation(30), 3)
    bare = pam_state(q, k, v, scale, parts, numerics)
    for splits in ([[], *parts], [parts[0], [], parts[1], [], [], parts[2]], [*parts, []]):
        state = pam_state(q, k, v, scale, splits, numerics)
        for name in ("m", "l", "o"):
            np.testing.assert_array_equal(getattr(state, name), getattr(bare, name))


@both
@pytest.mark.parametrize("num_tokens", [3, 64, 100])
def test_equal_scores_give_the_mean(numerics, num_tokens):
    q, k, v, scale = draw(3, num_tokens, 2, 1, 32)
    k = np.repeat(k[:1], num_tokens, axis=0)
    splits = np.array_split(np.arange(num_tokens), 5)
    check(q, k, v, scale, splits, numerics, 2)
    assert (pam_state(q, k, v, scale, splits, numerics, 2).l == num_tokens).all()


@both
@pytest.mark.parametrize("position", [0, 13, 39])
def test_one_score_far_above_the_rest(numerics, position):
    """The others weigh less than the least subnormal of the exponential: the answer is that one value, exactly."""
    q, k, v, scale = draw(4, 40, 2, 1, 32)
    k[:] = 0
    q[:] = 32.0
    k[position] = 32.0 * 32**-0.5
    output = check(q, k, v, scale, np.array_split(np.arange(40), 4), numerics, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(output.astype(np.float16), np.repeat(v[position], 2, axis=0))


def rank_one(scores, head_dim):
    """Operands whose scores are nearly those asked for: q is constant, each key is constant."""
    scale = head_dim**-0.5
    q = np.full((1, head_dim), 64.0, np.float16)
    k = np.repeat((np.asarray(scores) / (64.0 * head_dim * scale)).astype(np.float16)[:, None, None], head_dim, axis=2)
    v = np.random.default_rng(6).normal(size=k.shape).astype(np.float16)
    return q, k, v, scale


@both
@pytest.mark.parametrize("top", [80.0, 11585.0, 1e5])
@pytest.mark.parametrize("order", ["rising", "falling", "mixed"])
def test_large_scores_of_both_signs(numerics, top, order):
    """Scores from -top to top, among them near the largest: no overflow, and the answer is kept."""
    scores = np.concatenate([np.linspace(-top, top, 41), top * (1 - np.array([2.0, 4.0, 8.0]) / 2048)])
    order = {"rising": np.argsort(scores), "falling": np.argsort(-scores)}.get(
        order, np.random.default_rng(1).permutation(44)
    )
    q, k, v, scale = rank_one(scores[order], 128)
    exact = scale * np.einsum("hd,thd->t", q.astype(float), k.astype(float))
    assert np.abs(exact).max() > 0.999 * top
    output = check(q, k, v, scale, np.array_split(np.arange(44), 4), numerics, 2)
    assert np.isfinite(output).all()


def test_largest_constructible_scores():
    """Every element 65504 in q and in the keys, both signs: far past 11,585, still exact."""
    q = np.full((1, 128), 65504.0, np.float16)
    k = np.stack([q, -q, q])
    v = np.arange(3 * 128).reshape(3, 1, 128).astype(np.float16)
    output = pam_attention(q, k, v, 128**-0.5, [[0], [1], [2]], UNIT).output
    np.testing.assert_array_equal(output[0], (v[0, 0] + v[2, 0]) / 2)


def test_a_million_equal_scores_lose_nothing():
    """4,096 tokens in each of 256 units: l is a count, exact in fp32 up to 2**24."""
    per_unit, units = 4096, 256
    zeros = np.zeros((per_unit, 1, 1), np.float16)
    state = local_state(zeros[:1, 0], zeros, zeros + 1, 1.0, unit_numerics(POLY6, lanes=2, tile_tokens=4096))
    assert state.l == per_unit
    merged = merge_chain([state] * units, UNIT)
    assert merged.l == 2**20
    assert finish(merged, UNIT).output == 1.0
    # The same in one unit, where only l + 1 and o + 1 happen once the maximum stands.
    assert np.add.accumulate(np.ones(2**20, np.float32))[-1] == 2**20


def test_leading_axes_are_further_queries():
    q, k, v, scale = draw(11, 25, 4, 2, 40)
    queries = np.stack([q, -q, q / 2]).reshape(3, 1, 4, 40)
    splits = [range(7), range(7, 25)]
    together = pam_attention(queries, k, v, scale, splits, UNIT, 2)
    assert together.output.shape == queries.shape
    for index in range(3):
        np.testing.assert_array_equal(
            together.output[index, 0], pam_attention(queries[index, 0], k, v, scale, splits, UNIT, 2).output
        )
    error = np.abs(attention_reference(queries, k, v, scale)[1, 0] - attention_reference(-q, k, v, scale))
    assert (error <= 2 * bound_of(-q, k, v, scale)).all()
    assert attention_fp16_reference(queries, k, v, scale).shape == queries.shape


def test_base2_gives_the_same_answer():
    q, k, v, scale = draw(12, 50, 2, 2, 64)
    check(q, k, v, scale, np.array_split(np.arange(50), 4), REFERENCE_BASE2, 2)


def test_fp16_reference_rounds_where_it_says():
    """Two equal scores and values 1 + 2^-10 and 1: P is 1/2 exactly, the mean is a tie, and goes to even."""
    q, k = np.zeros((1, 2), np.float16), np.zeros((2, 1, 2), np.float16)
    v = np.array([[[1 + 2.0**-10, 3.0]], [[1.0, 4.0]]], np.float16)
    output = attention_fp16_reference(q, k, v, 1.0)
    assert output.dtype == np.float16
    assert output.tolist() == [[1.0, 3.5]]
    # Three equal scores: P = fp16(1/3), a little below a third.
    third = float(np.float16(1 / 3))
    output = attention_fp16_reference(q, np.zeros((3, 1, 2)), np.ones((3, 1, 2)), 1.0)
    assert output.tolist() == [[float(np.float16(3 * third))] * 2]


Q, K = np.zeros((4, 8)), np.zeros((5, 2, 8))


@pytest.mark.parametrize(
    ("q", "k", "v", "message"),
    [
        (Q[0], K, K, r"^q must have shape \(\.\.\., num_heads, head_dim\), not \(8,\)$"),
        (Q, K[0], K[0], r"^k must have shape \(num_tokens, num_kv_heads, head_dim\), not \(2, 8\)$"),
        (Q, K, K[:4], r"^v must have the shape of k \(5, 2, 8\), not \(4, 2, 8\)$"),
        (Q, K[..., :7], K[..., :7], r"^k must have the head_dim of q \(8\), not 7$"),
        (Q[:3], K, K, r"^num_heads must be a multiple of num_kv_heads \(2\), not 3$"),
        (Q, K[:, :0], K[:, :0], r"^num_heads must be a multiple of num_kv_heads \(0\), not 4$"),
    ],
)
def test_bad_shapes(q, k, v, message):
    for call in (attention_reference, attention_fp16_reference, attention_online, local_state):
        with pytest.raises(ValueError, match=message):
            call(q, k, v, 1.0)
    with pytest.raises(ValueError, match=message):
        pam_attention(q, k, v, 1.0, [range(5)])


@pytest.mark.parametrize(
    ("splits", "error", "message"),
    [
        ([], ValueError, r"^splits must hold at least one part, not none$"),
        ([[0, 1], [2, 3]], ValueError, r"^splits must hold every token once, not token 4 0 times$"),
        ([[0, 1, 1], [2, 3, 4]], ValueError, r"^splits must hold every token once, not token 1 2 times$"),
        ([[0, 1], [2, 3, 4, 5]], ValueError, r"^splits must name tokens from 0 to 4, not 5$"),
        ([[-1, 0, 1, 2, 3]], ValueError, r"^splits must name tokens from 0 to 4, not -1$"),
        ([[0.0, 1.0], [2, 3, 4]], TypeError, r"^splits\[0\] must be a list of token indices, not \[0\.0, 1\.0\]$"),
        ([0, 1, 2, 3, 4], TypeError, r"^splits\[0\] must be a list of token indices, not 0$"),
    ],
)
def test_bad_splits(splits, error, message):
    with pytest.raises(error, match=message):
        pam_attention(Q, K, K, 1.0, splits)
