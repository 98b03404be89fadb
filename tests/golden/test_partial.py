"""Merging partial states: identity, order, trees, division; every bound is derived in tests/helpers/bounds.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.exp import POLY6
from golden.formats import FP32
from golden.numerics import REFERENCE, REFERENCE_BASE2, unit_numerics
from golden.partial import PartialState, convert_base, empty_state, finish, merge, merge_chain, merge_tree
from tests.helpers.bounds import DOUBLE, merge_bound, tree_depth, unit_error_model

UNIT = unit_numerics(POLY6)
MODELS = {"reference": DOUBLE, "unit": unit_error_model(POLY6)}
HEAD_DIM = 3

both = pytest.mark.parametrize("numerics", [REFERENCE, UNIT], ids=lambda numerics: numerics.name)
steady = settings(derandomize=True, deadline=None, max_examples=120)


def make(m, l, o, numerics=UNIT, *, empty=False):
    dtype = numerics.dtype.type
    return PartialState(
        m=dtype(m), l=dtype(l), o=np.array(o, numerics.dtype), empty=np.bool_(empty), base=numerics.base
    )


def bits(state):
    """Return the arrays of a state as bit patterns."""
    integer = f"u{state.m.dtype.itemsize}"
    return [np.ravel(x).view(integer).tolist() for x in (state.m, state.l, state.o)] + [state.empty.tolist()]


# Maxima that are equal, close, far, and so far that the weight is subnormal or zero.
maxima = (
    st.sampled_from([-80.0, -1.5, 0.0, 79.0, 11585.0]) | st.floats(-20, 20, width=32) | st.floats(-1e5, 1e5, width=32)
)
full_members = st.tuples(
    maxima,
    st.floats(1, 2**20, width=32),
    st.lists(st.floats(-500, 500, width=32), min_size=HEAD_DIM, max_size=HEAD_DIM),
)


def states_of(members, numerics):
    return [empty_state(HEAD_DIM, numerics) if x is None else make(*x, numerics) for x in members]


@st.composite
def trees(draw, count):
    """Draw a fan-in, a chain, or any nested tree over the numbers below ``count``, in any order."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.integers(2, 5))
    nodes = list(draw(st.permutations(range(count))))
    while len(nodes) > 1:
        start = draw(st.integers(0, len(nodes) - 1))
        stop = draw(st.integers(start + 1, len(nodes)))
        nodes[start:stop] = [nodes[start:stop]]
        if draw(st.booleans()):
            break
    return nodes


@st.composite
def forests(draw):
    """Members, none of them or some of them empty, and a tree over them."""
    members = draw(st.lists(st.none() | full_members, min_size=1, max_size=9))
    return members, draw(trees(len(members)))


@both
@steady
@given(member=full_members)
def test_empty_is_the_identity_bit_for_bit(numerics, member):
    state, empty = make(*member, numerics), empty_state(HEAD_DIM, numerics)
    for merged in (
        merge(state, empty, numerics),
        merge(empty, state, numerics),
        merge_chain([empty, empty, state, empty], numerics),
        merge_tree([empty, state, empty, empty, empty], 2, numerics),
        merge_tree([empty, state, empty], [[0, [2]], 1], numerics),
    ):
        assert bits(merged) == bits(state)
    assert bits(merge(empty, empty, numerics)) == bits(empty)


@pytest.mark.parametrize("l", [0.0, -0.0, np.nan, np.inf])
def test_identity_keeps_odd_numbers(l):
    state = make(-0.0, l, [-0.0, np.inf, 1e-45])
    empty = empty_state(HEAD_DIM, UNIT)
    assert bits(merge(state, empty, UNIT)) == bits(merge(empty, state, UNIT)) == bits(state)


@both
@steady
@given(a=full_members, b=full_members)
def test_merge_commutes_bit_for_bit(numerics, a, b):
    """Both operands are treated alike but for the sign of a zero maximum, where the accumulator's stays."""
    ab = merge(make(*a, numerics), make(*b, numerics), numerics)
    ba = merge(make(*b, numerics), make(*a, numerics), numerics)
    assert bits(ab)[1:] == bits(ba)[1:]
    assert ab.m == ba.m


@both
@steady
@given(forest=forests())
def test_any_tree_in_any_order_is_within_the_bound(numerics, forest):
    """So any two trees, orders or ways of bracketing differ by at most the sum of their bounds."""
    members, tree = forest
    states = states_of(members, numerics)
    merged = merge_tree(states, tree, numerics)
    if all(member is None for member in members):
        assert merged.empty
        return
    depth = tree_depth(tree, len(states))
    m, l, o, l_bound, o_bound = merge_bound(states, depth, MODELS[numerics.name])
    assert float(merged.m) == m
    assert abs(merged.l - l) <= l_bound
    assert (np.abs(merged.o - o) <= o_bound).all()


@both
def test_chain_is_the_left_comb(numerics):
    rng = np.random.default_rng(1)
    states = [make(rng.normal(), 1 + rng.random(), rng.normal(size=HEAD_DIM), numerics) for _ in range(6)]
    comb = merge(
        merge(
            merge(merge(merge(*states[:2], numerics), states[2], numerics), states[3], numerics), states[4], numerics
        ),
        states[5],
        numerics,
    )
    assert bits(merge_chain(states, numerics)) == bits(comb)
    assert bits(merge_tree(states, [0, 1, 2, 3, 4, 5], numerics)) == bits(comb)
    assert bits(merge_tree(states, [[[[[0, 1], 2], 3], 4], 5], numerics)) == bits(comb)
    assert bits(merge_tree(states, 6, numerics)) == bits(comb)
    pairs = [merge(states[i], states[i + 1], numerics) for i in (0, 2, 4)]
    expected = merge(merge(pairs[0], pairs[1], numerics), pairs[2], numerics)
    assert bits(merge_tree(states, 2, numerics)) == bits(expected)
    assert bits(merge_tree(states[:1], 2, numerics)) == bits(merge_tree(states[:1], [0], numerics)) == bits(states[0])


def test_larger_side_is_not_multiplied():
    """A sum beside a vanishing partner comes through unchanged, whichever side is the accumulator."""
    large, small = make(50.0, 3.0, [1e-45, -7.25, 3e38]), make(-50.0, 2.0, [1.0, 1.0, 1.0])
    assert bits(merge(large, small, UNIT)) == bits(merge(small, large, UNIT)) == bits(large)


def test_equal_maxima_add():
    merged = merge(make(3.0, 1.5, [1, 2, 3]), make(3.0, 2.5, [10, 20, 30]), UNIT)
    assert bits(merged) == bits(make(3.0, 4.0, [11, 22, 33]))


def test_zero_maximum_of_the_accumulator_stays():
    minus, plus = make(-0.0, 1, [1, 1, 1]), make(0.0, 1, [1, 1, 1])
    assert np.signbit(merge(minus, plus, UNIT).m)
    assert not np.signbit(merge(plus, minus, UNIT).m)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_nan_spreads_as_the_one_code(position):
    states = [make(x, 1.0, [1, 1, 1]) for x in (0.0, 1.0, -1.0)]
    states[position] = make(-np.float32(np.nan), 1.0, [1, 1, 1])
    nan = FP32.nan_code
    assert bits(merge_chain(states, UNIT)) == [[nan], [nan], [nan] * 3, False]


@both
def test_leading_axes_are_independent(numerics):
    rng = np.random.default_rng(2)
    shape = (4, 5)
    dtype = numerics.dtype
    batches = []
    for _ in range(3):
        empty = rng.random(shape) < 0.4
        m = np.where(empty, -np.inf, rng.normal(size=shape)).astype(dtype)
        l = np.where(empty, 0, 1 + rng.random(shape)).astype(dtype)
        o = np.where(empty[..., None], 0, rng.normal(size=(*shape, HEAD_DIM))).astype(dtype)
        batches.append(PartialState(m=m, l=l, o=o, empty=empty))
    merged = merge_chain(batches, numerics)
    finished = finish(merged, numerics)
    for index in np.ndindex(shape):
        one = merge_chain([batch[index] for batch in batches], numerics)
        assert bits(merged[index]) == bits(one)
        np.testing.assert_array_equal(finished.output[index], finish(one, numerics).output)
        assert finished.empty[index] == one.empty


@both
@pytest.mark.parametrize("state", ["empty", 0.0, -0.0])
def test_finish_without_weight_is_zero_and_flagged(numerics, state):
    state = empty_state(HEAD_DIM, numerics) if state == "empty" else make(1.0, state, [1, np.inf, np.nan], numerics)
    output, empty = finish(state, numerics)
    assert empty
    assert output.tolist() == [0, 0, 0]
    assert not np.signbit(output).any()
    assert output.dtype == numerics.output_dtype


def test_finish_rounds_reciprocal_product_and_output():
    state = make(0.0, 3.0, [3.0, 1.0, 7e5])
    third = np.float32(1) / np.float32(3)  # rounds up
    output, empty = finish(state, UNIT)
    assert not empty
    assert output.tolist() == [1.0, float(np.float16(third)), np.inf]
    np.testing.assert_array_equal(finish(make(0.0, np.nan, [1, 1, 1]), UNIT).output, [np.nan] * 3)


def test_bases_never_mix():
    a, b = make(0.0, 1.0, [1, 1, 1], REFERENCE), make(0.0, 1.0, [1, 1, 1], REFERENCE_BASE2)
    message = r"^states must share one base, not 'e' and '2': convert one with convert_base$"
    for call in (lambda: merge(a, b), lambda: merge_chain([a, a, b]), lambda: merge_tree([a, b], 2)):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=r"^state must have the base of the numerics \('e'\), not '2'$"):
        merge(b, b)
    with pytest.raises(ValueError, match=r"^state must have the base of the numerics \('2'\), not 'e'$"):
        finish(a, REFERENCE_BASE2)
    with pytest.raises(ValueError, match=r"^states must share one base"):
        merge(a, empty_state(3, REFERENCE_BASE2))


def test_converted_base_gives_the_right_mass():
    """3,072 tokens of score 2 and 64 of score 5: the suffix has 64 e^3 of 3072 + 64 e^3, in either base.

    A dozen operations are rounded, two of them in exponents up to 7.3: 32 roundoffs cover them.
    """
    prefix = make(2.0, 3072.0, [0, 0, 0], REFERENCE)
    suffix = make(5.0 * np.log2(np.e), 64.0, [64, 64, 64], REFERENCE_BASE2)
    expected = 64 * np.exp(3.0) / (3072 + 64 * np.exp(3.0))
    in_e = merge(prefix, convert_base(suffix, "e"))
    in_2 = merge(convert_base(prefix, "2"), suffix, REFERENCE_BASE2)
    np.testing.assert_allclose(finish(in_e).output, expected, rtol=32 * 2.0**-53)
    np.testing.assert_allclose(finish(in_2, REFERENCE_BASE2).output, expected, rtol=32 * 2.0**-53)
    assert bits(convert_base(prefix, "e")) == bits(prefix)
    assert convert_base(empty_state(3), "2").empty


def test_states_are_read_only_copies():
    o = np.ones(3)
    state = PartialState(m=np.float64(0), l=np.float64(1), o=o)
    o[:] = 7
    assert state.o.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        state.o[0] = 2
    assert (state.head_dim, state.shape) == (3, ())


F32, ZERO, ONES = np.float32, np.float32(0), np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"m": np.float16(0)}, TypeError, r"^m must be of dtype float32 or float64, not float16$"),
        ({"l": np.float64(0)}, TypeError, r"^l must be of the dtype of m \(float32\), not float64$"),
        ({"o": np.ones(3)}, TypeError, r"^o must be of the dtype of m \(float32\), not float64$"),
        ({"l": np.zeros(2, F32)}, ValueError, r"^l must have the shape of m \(\), not \(2,\)$"),
        ({"o": ZERO}, ValueError, r"^o must have the shape of m \(\) and one more axis, not \(\)$"),
        ({"o": np.ones(0, F32)}, ValueError, r"^o must have the shape of m \(\) and one more axis, not \(0,\)$"),
        ({"empty": 1}, TypeError, r"^empty must be of dtype bool, not int64$"),
        ({"empty": np.zeros(2, bool)}, ValueError, r"^empty must have the shape of m \(\), not \(2,\)$"),
        ({"base": "10"}, ValueError, r"^base must be \"e\" or \"2\", not '10'$"),
        ({"empty": True}, ValueError, r"^an empty state must have m = -inf, l = 0 and o = 0$"),
    ],
)
def test_bad_states(fields, error, message):
    with pytest.raises(error, match=message):
        PartialState(**({"m": ZERO, "l": ZERO, "o": ONES} | fields))


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        (1, ValueError, r"^fan-in must be at least 2, not 1$"),
        (True, ValueError, r"^fan-in must be at least 2, not True$"),
        ([0, 1], ValueError, r"^tree must name each state from 0 to 2 once, not \[0, 1\]$"),
        ([0, [1, 1], 2], ValueError, r"^tree must name each state from 0 to 2 once, not \[0, 1, 1, 2\]$"),
        ([[], 0, 1, 2], ValueError, r"^tree must have no unit without members, not \[\]$"),
        ([0, "1", 2], TypeError, r"^tree must be made of integers and lists, not '1'$"),
    ],
)
def test_bad_trees(tree, error, message):
    with pytest.raises(error, match=message):
        merge_tree([make(0, 1, [1, 1, 1])] * 3, tree, UNIT)


def test_states_that_do_not_merge():
    a = make(0, 1, [1, 1, 1])
    with pytest.raises(ValueError, match=r"^states must hold at least one state, not none$"):
        merge_chain([], UNIT)
    with pytest.raises(ValueError, match=r"^states must share one shape, not \(3,\) and \(4,\)$"):
        merge(a, make(0, 1, [1] * 4), UNIT)
    with pytest.raises(TypeError, match=r"^state must have the dtype of the numerics \(float64\), not float32$"):
        merge(a, a)
