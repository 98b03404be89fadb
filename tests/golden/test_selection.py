"""Promise: a selection's forms name the same tokens, each once, and what cannot be said in a form is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.attention import local_state
from golden.exp import POLY6
from golden.numerics import REFERENCE, unit_numerics
from golden.selection import SelectionForm, TokenRun, bitmap_words, dealt, from_bitmap, token_runs, union

_ONES = np.ones((3, 1, 4))


def _tokens(selected):
    """Return the tokens that a selection names, one for each mark, in order."""
    parts = len(selected.wanted)
    pairs = zip(selected.positions.tolist(), selected.wanted.T, strict=True)
    return [position * parts + int(part) for position, marks in pairs for part in np.flatnonzero(marks)]


def test_union_by_hand():
    positions, wanted = union([np.array([7, 1]), np.arange(0), np.array([1, 2])])
    assert positions.tolist() == [1, 2, 7]
    assert wanted.astype(int).tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 0]]
    positions, wanted = union([np.arange(0), np.arange(0)])
    assert positions.tolist() == []
    assert wanted.shape == (2, 0)


@given(st.sets(st.integers(0, 300)), st.integers(1, 17))
def test_dealt_tokens_come_back(tokens, parts):
    selected = dealt(np.array(sorted(tokens), np.int64), parts)
    assert _tokens(selected) == sorted(tokens)
    assert (np.diff(selected.positions) > 0).all()
    assert selected.wanted.any(axis=0).all()


@given(st.sets(st.integers(0, 300)), st.integers(1, 9), st.integers(1, 7), st.integers(1, 9))
def test_a_bitmap_comes_back(tokens, parts, row_positions, word_positions):
    selected = dealt(np.array(sorted(tokens), np.int64), parts)
    words = bitmap_words(selected, row_positions=row_positions, word_positions=word_positions)
    assert all(0 <= word < 1 << parts * word_positions for word in words)
    back = from_bitmap(words, parts=parts, row_positions=row_positions, word_positions=word_positions)
    np.testing.assert_array_equal(back.positions, selected.positions)
    np.testing.assert_array_equal(back.wanted, selected.wanted)


def test_bitmap_words_by_hand():
    """Two parts, rows of three positions, words of two: position 2 has a word of its own, and position 3 the next."""
    selected = dealt(np.array([0, 3, 5, 6]), 2)
    assert selected.positions.tolist() == [0, 1, 2, 3]
    assert bitmap_words(selected, row_positions=3, word_positions=2) == [0b1001, 0b10, 0b01, 0]
    assert bitmap_words(dealt(np.arange(0), 2), row_positions=3, word_positions=2) == []
    with pytest.raises(ValueError, match="words must name positions of a row of 3, not 3 in word 1"):
        from_bitmap([0, 0b100], parts=2, row_positions=3, word_positions=2)


@given(st.integers(0, 40), st.integers(0, 80), st.integers(0, 60), st.integers(1, 9))
def test_runs_hold_sinks_and_window(sinks, gap, window, parts):
    chosen = [*range(sinks), *range(sinks + gap, sinks + gap + window)]
    named = []
    for run in token_runs(dealt(np.array(chosen, np.int64), parts)):
        for index in range(run.positions):
            first = run.first_part if index == 0 else 0
            end = run.end_part if index == run.positions - 1 else parts
            named += [(run.first_position + index) * parts + part for part in range(first, end)]
    assert named == chosen


def test_runs_by_hand():
    assert token_runs(dealt(np.array([0, 1, 2, 3, 9, 10, 11]), 4)) == (TokenRun(0, 1, 0, 4), TokenRun(2, 1, 1, 4))
    assert token_runs(dealt(np.arange(0), 4)) == (TokenRun(0, 0, 0, 0), TokenRun(0, 0, 0, 0))
    assert token_runs(dealt(np.array([5]), 4))[0] == TokenRun(1, 1, 1, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: union([]), "parts must be at least one, not none"),
        (lambda: union([np.array([3, -1])]), "parts must name positions from 0 on, not -1"),
        (lambda: dealt(np.arange(3), 0), "parts must be at least 1, not 0"),
        (lambda: token_runs(dealt(np.array([0, 2, 4]), 2)), "selected must be two runs of tokens at most, not 3"),
        (
            lambda: token_runs(union([np.array([1])])._replace(wanted=np.array([[False]]))),
            "selected must read positions that a part wants",
        ),
        (lambda: local_state(_ONES[0], _ONES, _ONES, 1.0, wanted=[True]), r"wanted must have shape \(3,\), not \(1,\)"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_forms_have_the_numbers_of_the_hardware():
    assert {form.name: form.value for form in SelectionForm} == {"LIST": 0, "BITMAP": 1, "RUNS": 2}


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_tokens_that_are_not_wanted_change_nothing(wanted, tile_tokens, seed):
    """Any codes there, infinities too: the same bits; and in float64 the state of the wanted ones alone."""
    rng = np.random.default_rng(seed)
    wanted = np.array(wanted)
    n = len(wanted)
    q, k, v = rng.normal(size=(2, 8)), rng.normal(size=(n, 1, 8)), rng.normal(size=(n, 1, 8))
    q, k, v = (array.astype(np.float16) for array in (q, k, v))
    spoilt = [array.copy() for array in (k, v)]
    for array in spoilt:
        array[~wanted] = rng.choice([np.inf, -np.inf, np.nan], array[~wanted].shape)
    numerics = unit_numerics(POLY6, lanes=4, tile_tokens=tile_tokens)
    states = [local_state(q, *pair, 0.35, numerics, wanted) for pair in ((k, v), spoilt)]
    for name in ("m", "l", "o", "empty"):
        np.testing.assert_array_equal(getattr(states[0], name), getattr(states[1], name))
    alone = local_state(q, k[wanted], v[wanted], 0.35, REFERENCE)
    exact = local_state(q, *spoilt, 0.35, REFERENCE, wanted)
    assert bool(exact.empty.all()) == (not wanted.any())
    for name in ("m", "l", "o"):
        np.testing.assert_allclose(getattr(exact, name), getattr(alone, name), rtol=1e-13, atol=1e-13)
