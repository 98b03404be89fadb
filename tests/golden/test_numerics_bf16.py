"""Promise: with bf16 keys and values attention is right wherever no sum leaves fp32's range, and loudly wrong beyond.

The domain is that of :func:`golden.numerics.unit_numerics`: ``sum |q k| <= 2**127`` and ``tokens * max |v| <= 2**127``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.attention import attention_bf16_reference, attention_reference, local_state, pam_attention
from golden.exp import POLY6
from golden.exp.compact_bf16_units import COMPACT_BF16_ACCURATE_NONPOSITIVE as BRAIN
from golden.formats import BF16, FP16, FP32, round_to_dtype
from golden.numerics import unit_numerics
from golden.partial import finish
from tests.helpers.exact import exact_local_state

EXPS = pytest.mark.parametrize("exp", [POLY6, BRAIN], ids=["fp16 weights", "bf16 weights"])
UNIT = unit_numerics(POLY6, kv_format=BF16)


def bf16(values):
    return round_to_dtype(values, BF16.dtype)


@EXPS
@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_tokens=st.integers(1, 9),
    slice_dim=st.integers(1, 9),
    slices=st.sampled_from([1, 2, 4]),
    tile_tokens=st.integers(1, 6),
    # Ordinary scores; products about 2**119; products around fp32's smallest subnormal, 2**-149.
    exponents=st.sampled_from([(0, 0), (1, 1), (58, 57), (-63, -86), (-30, -125)]),
)
def test_local_state_equals_exact_fractions(exp, seed, num_tokens, slice_dim, slices, tile_tokens, exponents):
    """Every rounding of a processing unit, done again in fractions, scalar by scalar: equal bit for bit."""
    rng = np.random.default_rng(seed)
    head_dim = slice_dim * slices
    q = bf16(np.ldexp(rng.normal(size=(1, head_dim)), exponents[0]))
    k = bf16(np.ldexp(rng.normal(size=(num_tokens, 1, head_dim)), exponents[1]))
    v = bf16(np.ldexp(rng.normal(size=(num_tokens, 1, head_dim)), rng.integers(-132, 118, (num_tokens, 1, head_dim))))
    scale = head_dim**-0.5
    state = local_state(q, k, v, scale, unit_numerics(exp, 4, tile_tokens, slices, BF16))
    m, l, o = exact_local_state(q[0], k[:, 0], v[:, 0], scale, exp, 4, tile_tokens, slices)
    assert Fraction(float(state.m[0])) == m
    assert Fraction(float(state.l[0])) == l
    assert [Fraction(float(x)) for x in state.o[0]] == o


def test_a_product_is_the_exact_one_rounded_once():
    """All finite bf16 numbers by others near both ends: infinity above fp32, subnormals rounded once, zero below."""
    every = BF16.from_codes(np.arange(BF16.inf_code)).astype(np.float64)
    for factor in (3.0, 1.9921875 * 2.0**64, BF16.max_finite, 1.0859375 * 2.0**-23, 2.0**-133, 1.3125 * 2.0**-126):
        assert float(bf16(factor)) == factor
        with np.errstate(over="ignore", under="ignore"):
            ours = UNIT.dot(UNIT.operand(every)[np.newaxis], UNIT.operand(np.full(every.shape, factor))[np.newaxis])
        exact = every * factor  # 16 significant bits, and exponents that float64 has
        np.testing.assert_array_equal(FP32.to_codes(ours), FP32.to_codes(exact))
    assert np.isinf(FP32.from_codes(FP32.to_codes(every * BF16.max_finite))).sum() > 10_000


def test_products_of_fp16_weights_and_bf16_values_are_exact_in_the_normal_range():
    weights = FP16.from_codes(np.arange(1, FP16.one_code + 1, 7)).astype(np.float32)
    values = BF16.from_codes(np.arange(BF16.inf_code - 1, 0, -997)).astype(np.float32)
    exact = np.multiply.outer(weights.astype(np.float64), values.astype(np.float64))
    normal = exact >= FP32.min_normal
    assert 0 < np.count_nonzero(~normal) < normal.sum()
    with np.errstate(under="ignore"):
        ours = np.multiply.outer(weights, values).astype(np.float64)
    np.testing.assert_array_equal(ours[normal], exact[normal])
    assert np.abs(ours - exact)[~normal].max() <= 2.0**-150


def test_operands_and_outputs_are_rounded_once():
    assert UNIT.operand(1 + 2.0**-8 + 2.0**-40) == 1 + 2.0**-7  # a detour over fp32 would see a tie
    assert UNIT.operand(1.0).dtype == np.float32
    assert UNIT.output(np.float32([1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-23])).astype(float).tolist() == [1, 1 + 2.0**-7]
    assert UNIT.output(np.float32([3.4e38]))[0] == np.inf
    assert BF16.to_codes(UNIT.output(np.float32([-np.nan])))[0] == BF16.nan_code


@EXPS
def test_scores_up_to_the_end_of_the_domain(exp):
    """|q_i k_i| = 2**119 in 256 elements, of any signs: no overflow, and the answer is the largest score's value."""
    rng = np.random.default_rng(5)
    q = bf16(rng.choice([-1.0, 1.0], (1, 256)) * 2.0**60)
    k = bf16(rng.choice([-1.0, 1.0], (41, 1, 256)) * 2.0**59)
    k[17], k[33] = np.copysign(k[17], q), -np.copysign(k[33], q)  # scores 2**123 and -2**123
    v = bf16(rng.normal(size=k.shape))
    numerics = unit_numerics(exp, kv_format=BF16)
    for splits in ([range(41)], [range(20), range(20, 33), range(33, 41)]):
        output = pam_attention(q, k, v, 1 / 16, splits, numerics).output
        np.testing.assert_array_equal(output, v[17])
    np.testing.assert_array_equal(attention_reference(q, k, v, 1 / 16), v[17].astype(np.float64))


@EXPS
def test_values_up_to_the_end_of_the_domain(exp):
    """64 equal scores and |v| = 2**121: o is 2**127, and the mean exact; the smallest values come back as well."""
    zeros = np.zeros((64, 1, 4), BF16.dtype)
    numerics = unit_numerics(exp, kv_format=BF16)
    for value in (2.0**121, -(2.0**121), BF16.max_finite / 64, 2.0**-126, 2.0**-133):
        output = pam_attention(zeros[0], zeros, bf16(zeros + value), 1.0, [range(64)], numerics).output
        np.testing.assert_array_equal(output.astype(float), np.full((1, 4), value))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), num_tokens=st.integers(1, 40), parts=st.integers(1, 4), below=st.integers(0, 3))
def test_values_beyond_the_domain_never_give_a_wrong_number(seed, num_tokens, parts, below):
    """Largest values: an element is infinite or NaN, or within the error of the weights and the output."""
    rng = np.random.default_rng(seed)
    q, k = bf16(rng.normal(size=(1, 8))), bf16(rng.normal(size=(num_tokens, 1, 8)))
    v = bf16(np.ldexp(rng.uniform(-1.99, 1.99, (num_tokens, 1, 8)), 127 - below))
    splits = np.array_split(np.arange(num_tokens), parts)
    output = pam_attention(q, k, v, 8**-0.5, splits, UNIT).output.astype(np.float64)
    exact = attention_reference(q, k, v, 8**-0.5)
    finite = np.isfinite(output)
    # Weights err by at most 2.5 * 2**-10 of the largest value, the output by 2**-8 of itself.
    bound = 2.5 * 2.0**-10 * np.abs(v.astype(np.float64)).max() + 2.0**-8 * np.abs(exact)
    assert (np.abs(output - exact) <= bound)[finite].all()
    if num_tokens * np.abs(v.astype(np.float64)).max() <= 2.0**127:
        assert finite.all()


def test_infinite_scores():
    """One of -inf weighs nothing beside a finite one; one of +inf makes the state NaN, as opposite infinities do."""
    rng = np.random.default_rng(3)
    q = bf16(np.abs(rng.normal(size=(1, 8))))
    k, v = (bf16(rng.normal(size=(5, 1, 8))) for _ in range(2))
    without = local_state(q, k[[0, 1, 3, 4]], v[[0, 1, 3, 4]], 0.5, UNIT)
    k[2, 0, 6] = -np.inf
    with_one = local_state(q, k, v, 0.5, UNIT)
    for name in ("m", "l", "o"):
        np.testing.assert_array_equal(getattr(with_one, name), getattr(without, name))
    for bad in (np.inf, np.nan):
        k[2, 0, 6] = bad
        assert np.isnan(finish(local_state(q, k, v, 0.5, UNIT), UNIT).output.astype(float)).all()
    # Finite operands whose products overflow are no different.
    k[2, 0, 6], huge = 1.0, bf16(np.full((1, 8), 2.0**120))
    k[2, 0, :4], k[2, 0, 4:] = 2.0**20, -(2.0**20)
    assert np.isnan(local_state(huge, k, v, 0.5, UNIT).m).all()


def test_plain_bf16_attention():
    """Rounded operands, weights and output: each may move a result by 2**-8 of the largest value."""
    rng = np.random.default_rng(8)
    q, k, v = (bf16(rng.normal(size=shape)) for shape in ((4, 32), (50, 2, 32), (50, 2, 32)))
    plain = attention_bf16_reference(q, k, v, 32**-0.5)
    assert plain.dtype == BF16.dtype
    error = np.abs(plain.astype(np.float64) - attention_reference(q, k, v, 32**-0.5)).max()
    assert 2.0**-12 < error <= 2 * 2.0**-8 * np.abs(v.astype(np.float64)).max()
    assert not attention_bf16_reference(q, k[:0], v[:0], 1.0).any()
    # Operands are rounded here, once.
    np.testing.assert_array_equal(attention_bf16_reference(q, k.astype(float) + 2.0**-40, v, 32**-0.5), plain)
