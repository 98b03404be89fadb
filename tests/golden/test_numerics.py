from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.attention import local_state
from golden.exp import POLY6, POLY6_SERIAL
from golden.formats import BF16, FP16, FP32
from golden.numerics import REFERENCE, REFERENCE_BASE2, Numerics, unit_numerics
from golden.partial import PartialState, merge_chain
from tests.helpers.exact import exact_local_state, exact_merge
from tests.helpers.floats import corner_codes

UNIT = unit_numerics(POLY6)


def fractions(values):
    return [Fraction(float(x)) for x in np.ravel(values)]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_tokens=st.integers(1, 11),
    slice_dim=st.integers(1, 19),
    slices=st.sampled_from([1, 2, 4, 8]),
    lanes=st.sampled_from([2, 4, 16]),
    tile_tokens=st.integers(1, 12),
    spread=st.sampled_from([0.1, 1.0, 6.0]),
)
def test_local_state_equals_exact_fractions(seed, num_tokens, slice_dim, slices, lanes, tile_tokens, spread):
    """Every rounding of a processing unit, done again in fractions, scalar by scalar: equal bit for bit."""
    rng = np.random.default_rng(seed)
    head_dim = slice_dim * slices
    q = (spread * rng.normal(size=(1, head_dim))).astype(np.float16)
    k = (spread * rng.normal(size=(num_tokens, 1, head_dim))).astype(np.float16)
    v = rng.normal(size=(num_tokens, 1, head_dim)).astype(np.float16)
    scale = head_dim**-0.5
    state = local_state(q, k, v, scale, unit_numerics(POLY6, lanes, tile_tokens, slices))
    m, l, o = exact_local_state(q[0], k[:, 0], v[:, 0], scale, POLY6, lanes, tile_tokens, slices)
    assert fractions(state.m) == [m]
    assert fractions(state.l) == [l]
    assert fractions(state.o) == o


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    members=st.lists(
        st.none()
        | st.tuples(
            st.sampled_from([-3.0, 0.0, 2.5]) | st.floats(-100, 100, width=32),
            st.floats(1, 2**20, width=32),
            st.floats(-1000, 1000, width=32),
        ),
        min_size=1,
        max_size=6,
    ).filter(lambda members: any(member is not None for member in members))
)
def test_merge_chain_equals_exact_fractions(members):
    states, expected = [], None
    for member in members:
        m, l, o = member or (-np.inf, 0.0, 0.0)
        m, l, o = np.float32(m), np.float32(l), np.full(1, o, np.float32)
        states.append(PartialState(m=m, l=l, o=o, empty=np.bool_(member is None)))
        one = None if member is None else (Fraction(float(m)), Fraction(float(l)), fractions(o))
        expected = exact_merge(expected, one, POLY6)
    merged = merge_chain(states, UNIT)
    assert (fractions(merged.m)[0], fractions(merged.l)[0], fractions(merged.o)) == expected


def test_dot_adds_neighbours_then_beats():
    """Sizes chosen so that any other order of summation gives another float32."""
    unit = unit_numerics(POLY6, lanes=4)
    big = np.float32(2**24)
    ones = np.ones(8, np.float32)
    # (big + 1) + (1 - big): both ones are lost or kept depending on who is added first.
    assert unit.dot(np.array([big, 1, 1, -big], np.float32), ones[:4]) == 1.0
    assert unit.dot(np.array([big, -big, 1, 1], np.float32), ones[:4]) == 2.0
    # Beats: (big + 0 + 0 + 0) first, then 1 + 1 + 1 + 1 as one addend.
    assert unit.dot(np.array([big, 0, 0, 0, 1, 1, 1, 1], np.float32), ones) == big + 4
    # A short beat is filled with zeros at its end.
    assert unit.dot(np.array([big, 1, 1], np.float32), ones[:3]) == big
    with pytest.raises(ValueError, match=r"^dot must be given at least one element$"):
        unit.dot(np.zeros(0, np.float32), np.zeros(0, np.float32))


def test_dot_adds_slices_pairwise():
    """Four slices of two beats of two elements, with sizes at which the order of summation shows."""
    big = np.float32(2**24)
    values = np.zeros(16, np.float32)
    values[[0, 4, 8, 12]] = big, 1, -big, 1
    ones = np.ones(16, np.float32)
    # (big + 1) + (-big + 1): the first one is lost in a tie to the even number, the second is not.
    assert unit_numerics(POLY6, lanes=2, slices=4).dot(values, ones) == 1.0
    values[[0, 4, 8, 12]] = big, -big, 1, 1
    assert unit_numerics(POLY6, lanes=2, slices=4).dot(values, ones) == 2.0
    values[[0, 4, 8, 12]] = big, 1, 1, -big
    assert unit_numerics(POLY6, lanes=2, slices=4).dot(values, ones) == 1.0  # big + (1 - big)
    assert unit_numerics(POLY6, lanes=2).dot(values, ones) == 0.0  # beats in order: both ones are lost
    with pytest.raises(ValueError, match=r"^dot must be given a multiple of slices \(4\) elements, not 6$"):
        unit_numerics(POLY6, lanes=2, slices=4).dot(values[:6], ones[:6])


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), slices=st.sampled_from([2, 4, 16]), head_dim=st.sampled_from([16, 80, 128]))
def test_units_of_a_group_share_m_and_l_and_each_hold_a_slice_of_o(seed, slices, head_dim):
    """Weights come from the summed score alone: o of a slice is that of a unit that has only this slice of v."""
    rng = np.random.default_rng(seed)
    unit = unit_numerics(POLY6, lanes=2, tile_tokens=3, slices=slices)
    q = rng.normal(size=(1, head_dim)).astype(np.float16)
    k, v = (rng.normal(size=(8, 1, head_dim)).astype(np.float16) for _ in range(2))
    whole = local_state(q, k, v, head_dim**-0.5, unit)
    size = head_dim // slices
    for start in range(0, head_dim, size):
        part = np.zeros_like(v)
        part[..., start : start + size] = v[..., start : start + size]
        state = local_state(q, k, part, head_dim**-0.5, unit)
        assert (state.m, state.l) == (whole.m, whole.l)
        np.testing.assert_array_equal(state.o[:, start : start + size], whole.o[:, start : start + size])
        assert not state.o[:, :start].any()
        assert not state.o[:, start + size :].any()
    exact = local_state(q, k, v, head_dim**-0.5, REFERENCE)
    assert abs(whole.m - exact.m) <= 1e-5 * np.sum(np.abs(q.astype(float) * k[:, 0]), axis=-1).max()


def test_products_of_fp16_are_exact_in_fp32():
    values = FP16.from_codes(np.arange(0, FP16.inf_code, 37)).astype(np.float32)
    np.testing.assert_array_equal(
        np.multiply.outer(values, values), np.multiply.outer(values.astype(np.float64), values.astype(np.float64))
    )


def test_exponential_is_the_unit_behind_a_rounding_to_fp16():
    codes = np.arange(1 << 16, dtype=np.uint16)
    x = FP16.from_codes(codes).astype(np.float32)
    expected = FP16.from_codes(POLY6.evaluate_codes(FP16.to_codes(x))).astype(np.float32)
    np.testing.assert_array_equal(UNIT.exponential(x), expected)
    assert UNIT.exponential(np.float32(0.0)) == 1.0
    tie = np.float32(-1 - 2.0**-11)  # halfway between two fp16 numbers: to the even one, -1
    assert UNIT.exponential(tie) == UNIT.exponential(np.float32(-1))
    assert UNIT.exponential(np.float32(-1e9)) == 0.0
    assert UNIT.exponential(np.float32(-np.inf)) == 0.0


def test_maximum_keeps_the_old_of_two_zeros_and_every_nan():
    codes = corner_codes(FP32)
    with np.errstate(invalid="ignore"):
        values = FP32.from_codes(codes)
        new, old = np.meshgrid(values, values)
        result = FP32.to_codes(UNIT.maximum(new, old))
    nan = np.isnan(new) | np.isnan(old)
    np.testing.assert_array_equal(result, np.where(nan, FP32.nan_code, FP32.to_codes(np.where(new > old, new, old))))
    assert FP32.to_codes(UNIT.maximum(np.float32(0.0), np.float32(-0.0))) == FP32.sign_mask
    assert FP32.to_codes(UNIT.maximum(np.float32(-0.0), np.float32(0.0))) == 0


def test_canonical_nan():
    values = np.array([0xFFC00001, 0x7FC00000, 0x3F800000], np.uint32).view(np.float32)
    np.testing.assert_array_equal(UNIT.canonical(values).view(np.uint32), [0x7FC00000, 0x7FC00000, 0x3F800000])


def test_operands_and_outputs_are_rounded_once():
    assert UNIT.operand(1 + 2.0**-11 + 2.0**-40) == 1 + 2.0**-10  # a detour over fp32 would see a tie
    assert UNIT.operand(1.0).dtype == np.float32
    assert UNIT.output(np.float32([70000.0]))[0] == np.inf
    assert REFERENCE.operand(np.float16(1.5)).dtype == np.float64


def test_base2_scores_carry_log2e():
    assert REFERENCE_BASE2.score_scale(1.0) == np.log2(np.e)
    assert REFERENCE.score_scale(0.1) == 0.1
    assert UNIT.score_scale(0.1) == np.float32(0.1)


def test_serial_and_pipelined_units_are_the_same_function():
    x = np.linspace(-20, 0, 4097, dtype=np.float32)
    np.testing.assert_array_equal(unit_numerics(POLY6_SERIAL).exponential(x), UNIT.exponential(x))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"lanes": 12}, ValueError, r"^lanes must be a power of two, not 12$"),
        ({"lanes": 1}, ValueError, r"^lanes must be at least 2, not 1$"),
        ({"lanes": 4.0}, TypeError, r"^lanes must be an integer, not 4\.0$"),
        ({"tile_tokens": 0}, ValueError, r"^tile_tokens must be at least 1, not 0$"),
        ({"tile_tokens": True}, TypeError, r"^tile_tokens must be an integer, not True$"),
        ({"slices": 3}, ValueError, r"^slices must be a power of two, not 3$"),
        ({"slices": 0}, ValueError, r"^slices must be at least 1, not 0$"),
    ],
)
def test_bad_sizes(changes, error, message):
    with pytest.raises(error, match=message):
        unit_numerics(POLY6, **changes)


def test_bad_formats():
    fields = {"name": "x", "operand_dtype": FP16.dtype, "output_dtype": FP16.dtype, "exponential": np.exp}
    with pytest.raises(ValueError, match=r"^dtype must be float32 or float64, not dtype\('float16'\)$"):
        Numerics(dtype=FP16.dtype, **fields)
    with pytest.raises(ValueError, match=r"^slices must be 1 where lanes is None, not 2$"):
        Numerics(dtype=FP32.dtype, slices=2, **fields)
    with pytest.raises(ValueError, match=r'^base must be "e" or "2", not \'10\'$'):
        Numerics(dtype=FP32.dtype, base="10", **fields)
    with pytest.raises(ValueError, match=r"^exponential unit must be .* fp16 with kv_format fp16, not 'bf16'$"):
        unit_numerics(POLY6.replace(fmt=BF16))
    with pytest.raises(ValueError, match=r"^kv_format must be fp16 or bf16, not 'fp32'$"):
        unit_numerics(POLY6, kv_format=FP32)
    with pytest.raises(TypeError, match=r"^kv_format must be a FloatFormat, not 'bf16'$"):
        unit_numerics(POLY6, kv_format="bf16")
