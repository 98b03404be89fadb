"""Promise: scores are those that attention weighs, exact sums where fp32 holds them, close to float64 elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from golden.attention import local_state
from golden.exp import POLY6
from golden.formats import BF16, FP16
from golden.numerics import unit_numerics
from golden.scores import token_scores

UNIT = unit_numerics(POLY6, 16, 16, 1, FP16)


def test_integers_are_summed_exactly():
    """Elements up to 100 in 200 places: sums up to two million, which fp32 holds; scale 1 changes no bit."""
    rng = np.random.default_rng(1)
    q, k = rng.integers(-100, 101, (3, 200)), rng.integers(-100, 101, (17, 200))
    np.testing.assert_array_equal(token_scores(q, k, 1.0, UNIT), (k @ q.T).astype(np.float32))
    np.testing.assert_array_equal(token_scores(q, k, 0.25, UNIT), (k @ q.T / 4).astype(np.float32))


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=["fp16", "bf16"])
def test_error_against_float64(fmt):
    """A product passes 4 levels over lanes, 3 additions of beats, 2 levels over slices, the scale; 1 to spare."""
    rng = np.random.default_rng(2)
    q, k = (fmt.from_codes(fmt.to_codes(rng.normal(size=(n, 256)))).astype(np.float64) for n in (4, 50))
    scale = float(np.float32(1 / 16))
    found = token_scores(q, k, scale, unit_numerics(POLY6, 16, 16, 4, fmt)).astype(np.float64)
    bound = 11 * 2.0**-24 * scale * (np.abs(k) @ np.abs(q).T)
    assert (np.abs(found - scale * (k @ q.T)) <= bound).all()


def test_a_state_of_one_token_has_its_score_for_maximum():
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 48)).astype(np.float16), rng.normal(size=(9, 48)).astype(np.float16)
    scores = token_scores(q, k, 0.3, UNIT)
    for token, row in enumerate(scores):
        one = local_state(q, k[token : token + 1, np.newaxis], k[token : token + 1, np.newaxis], 0.3, UNIT)
        np.testing.assert_array_equal(one.m, row)
    np.testing.assert_array_equal(local_state(q, k[:, np.newaxis], k[:, np.newaxis], 0.3, UNIT).m, scores.max(axis=0))


def test_ends_of_the_formats():
    q = np.array([[1.0, 0.0]])
    k = np.array([[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 0.0], [65504.0, 65504.0], [2.0**-24, 1.0], [0.0, np.inf]])
    scores = token_scores(q, k, 1.0, UNIT)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores[:, 0], [np.inf, -np.inf, np.nan, 65504.0, 2.0**-24, np.nan])
    assert (scores[[2, 5], 0].view(np.uint32) == 0x7FC00000).all()
    assert token_scores(q, np.empty((0, 2)), 1.0, UNIT).shape == (0, 1)
    assert token_scores(np.full((1, 256), 65504.0), np.full((1, 256), 65504.0), 3.4e38, UNIT)[0, 0] == np.inf


@pytest.mark.parametrize(("q", "k"), [((2, 3), (4, 2)), ((3,), (4, 3)), ((2, 3), (4, 1, 3)), ((2, 0), (4, 0))])
def test_shapes_that_disagree_are_refused(q, k):
    with pytest.raises(ValueError, match=r"^q and k must have shapes \(queries, head_dim\) and \(num_tokens, head_d"):
        token_scores(np.ones(q), np.ones(k), 1.0, UNIT)
