"""Promise: index scores are those of a naive loop in the stated order, within the stated bound of exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from golden.formats import BF16, FP8_E4M3, FP16, FP32
from golden.retrieval.blocks import BestToken, PageBounds, Representatives
from golden.retrieval.clusters import Clusters
from golden.retrieval.index_beats import key_beats, query_beats, stored_beats
from golden.retrieval.index_score import index_scores, score_error_bound
from golden.retrieval.index_spec import KARAT_SCORES, MODES, ScoreMode, ScoreSpec
from golden.retrieval.labels import Labels
from golden.retrieval.method import Query
from tests.helpers.index_score import drawn_codes, drawn_keys

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = ScoreSpec(beat_bytes=8, head_lanes=3, wide_head_lanes=2)
SHAPES = ((1, 1, 1), (5, 3, 4), (8, 7, 13), (4, 8, 9), (0, 2, 3), (17, 5, 33))
"""Keys, heads, elements: one of each, groups and beats cut short, no keys."""


def _case(spec: ScoreSpec, mode: ScoreMode, shape: tuple[int, int, int], kind: str, seed: int = 0) -> Any:
    """Return query, weights, keys and scales."""
    rng = np.random.default_rng(seed)
    keys, heads, dim = shape
    fmt = spec.format_of(mode)
    weights = FP32.from_codes(drawn_codes(FP32, kind, (heads,), rng))
    scales = FP32.from_codes(drawn_codes(FP32, kind, (keys,), rng)) if mode.scaled else None
    return drawn_codes(fmt, kind, (heads, dim), rng), weights, drawn_keys(spec, mode, kind, keys, dim, rng), scales


def _naive(spec: ScoreSpec, mode: ScoreMode, query: Any, weights: Any, keys: Any, scales: Any) -> list[int]:
    """Return the codes of the scores by loops over scalars, as the order is written down."""
    fmt, one = spec.format_of(mode), np.float32
    lanes, heads = spec.elements(mode), spec.lanes(mode, query.shape[1])

    def tree(terms: list[Any], join: Callable[[Any, Any], Any]) -> Any:
        while len(terms) > 1:
            pairs = [terms[place : place + 2] for place in range(0, len(terms), 2)]
            terms = [join(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return terms[0]

    def larger(old: Any, new: Any) -> Any:
        if np.isnan(old) or np.isnan(new):
            return one(np.nan)
        return new if new > old else old

    def add(a: Any, b: Any) -> Any:
        return one(a) + one(b)

    def wide_dot(q: Any, vectors: Any) -> Any:
        total = None
        for start in range(0, len(q), lanes):
            for column, vector in enumerate(vectors):
                products = []
                for place in range(start, start + lanes):
                    inside = place < len(q)
                    a, b = (one(q[place]), one(vector[place])) if inside else (one(0), one(0))
                    counts = len(vectors) == 1 or bool(np.signbit(a)) == (column == 0)
                    products.append(a * b if counts else one(0))
                beat = tree(products, add)
                total = beat if total is None else add(total, beat)
        return total

    def exact_dot(q: Any, vectors: Any) -> Any:
        total = Fraction(0)
        for place, a in enumerate(q):
            b = vectors[0][place] if len(vectors) == 1 or np.signbit(a) else vectors[1][place]
            if np.isnan(a) or np.isnan(b):
                return one(np.nan)
            total += Fraction(float(a)) * Fraction(float(b))
        # Below 2^53 steps: float64 holds it.
        return one(float(total))

    scores, numbers = [], fmt.from_codes(query).astype(np.float32)
    for number, key in enumerate(keys):
        vectors = fmt.from_codes(key).astype(np.float32).reshape(mode.columns, -1)
        dots = [(wide_dot if mode.wide else exact_dot)(q, vectors) for q in numbers]
        if mode.relu:
            dots = [dot if np.isnan(dot) or dot > 0 else one(0) for dot in dots]
        terms = [one(weight) * dot for weight, dot in zip(weights, dots, strict=True)]
        join = larger if mode.largest else add
        groups = [tree(terms[start : start + heads], join) for start in range(0, len(terms), heads)]
        total = groups[0]
        for group in groups[1:]:
            total = join(total, group)
        scores.append(total if scales is None else total * scales[number])
    blocks = [scores[start : start + mode.block_keys] for start in range(0, len(scores), mode.block_keys)]
    best = []
    for block in blocks:
        largest = block[0]
        for score in block[1:]:
            largest = larger(largest, score)
        best.append(largest)
    return FP32.to_codes(np.array(best, np.float32)).tolist()


@pytest.mark.parametrize("kind", ["near", "any", "corners", "ties"])
@pytest.mark.parametrize("wide_format", [BF16, FP16], ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("name", MODES)
@np.errstate(all="ignore")
def test_scores_are_those_of_a_loop_over_scalars(name: str, wide_format: Any, kind: str) -> None:
    spec = ScoreSpec(beat_bytes=8, head_lanes=3, wide_head_lanes=2, wide_format=wide_format)
    for seed, shape in enumerate(SHAPES):
        case = _case(spec, MODES[name], shape, kind, seed)
        assert FP32.to_codes(index_scores(spec, MODES[name], *case)).tolist() == _naive(spec, MODES[name], *case)


def test_every_other_mode_is_that_loop_too() -> None:
    """All 32 settings of the five switches, with blocks of three keys."""
    for number in range(32):
        wide, relu, largest, bounds, scaled = (bool(number >> bit & 1) for bit in range(5))
        mode = ScoreMode(wide=wide, relu=relu, largest=largest, bounds=bounds, scaled=scaled, block_keys=3)
        with np.errstate(all="ignore"):
            case = _case(SMALL, mode, (8, 4, 9), "any", number)
            assert FP32.to_codes(index_scores(SMALL, mode, *case)).tolist() == _naive(SMALL, mode, *case), mode


@pytest.mark.parametrize("name", MODES)
def test_the_error_is_within_its_bound(name: str) -> None:
    """Against float64, which is exact to 2^-50 here; 64 heads of 128 elements among the sizes."""
    mode = MODES[name]
    for spec in (SMALL, KARAT_SCORES):
        for seed, shape in enumerate((*SHAPES, (40, 64, 128))):
            query, weights, keys, scales = _case(spec, mode, shape, "near", seed)
            fmt = spec.format_of(mode)
            q, k = (fmt.from_codes(codes).astype(np.float64) for codes in (query, keys))
            dots = np.maximum(q * k[:, :1], q * k[:, 1:]).sum(axis=2) if mode.bounds else k @ q.T
            terms = weights.astype(np.float64) * (np.maximum(dots, 0) if mode.relu else dots)
            exact = terms.max(axis=1) if mode.largest else terms.sum(axis=1)
            exact = exact if scales is None else exact * scales
            blocks = [exact[start : start + mode.block_keys] for start in range(0, len(exact), mode.block_keys)]
            error = np.abs(index_scores(spec, mode, query, weights, keys, scales) - [block.max() for block in blocks])
            bound = score_error_bound(spec, mode, query, weights, keys, scales)
            assert (error <= bound).all()
            # The bound says something: a few of 2^24 parts of all magnitudes.
            if len(exact) and not mode.scaled:
                largest = np.abs(k).sum() * np.abs(q).sum() * np.abs(weights).sum()
                assert bound.max() <= 64 * 2.0**-24 * largest + 1e-40


def test_exact_dots_do_not_know_the_width_of_a_beat() -> None:
    mode = MODES["indexer"]
    case = _case(KARAT_SCORES, mode, (30, 20, 100), "near")
    found = {index_scores(ScoreSpec(beat_bytes=size), mode, *case).tobytes() for size in (8, 32, 64)}
    assert len(found) == 1


def test_zeros_infinities_and_overflow_by_hand() -> None:
    def bf16(*values: float) -> Any:
        return BF16.to_codes(np.array([values]))

    one = np.ones(1, np.float32)
    relu, plain = ScoreMode(wide=True, relu=True), ScoreMode(wide=True)

    def score(mode: ScoreMode, q: Any, k: Any, w: Any = one) -> Any:
        return index_scores(SMALL, mode, q, w, k)[0]

    assert np.signbit(score(plain, bf16(-1, -1, -1, -1), bf16(0, 0, 0, 0)))
    assert not np.signbit(score(relu, bf16(-1, -1, -1, -1), bf16(0, 0, 0, 0)))
    # The two zeros that fill the beat up are +0: their sum with -0 is +0.
    assert not np.signbit(score(plain, bf16(-1, -1), bf16(0, 0)))
    assert score(plain, bf16(3e38), bf16(3e38)) == np.inf
    assert np.isnan(score(plain, bf16(3e38, 3e38), bf16(3e38, -3e38)))
    assert score(plain, bf16(2), bf16(3), np.array([3e38], np.float32)) == np.inf
    nan, largest = np.array([[0x7F]], np.uint8), np.array([[0x7E]], np.uint8)
    assert np.isnan(index_scores(SMALL, ScoreMode(relu=True), nan, one, largest)[0])
    assert index_scores(SMALL, ScoreMode(), largest, one, largest)[0] == 448 * 448
    scaled = ScoreMode(scaled=True)
    for scale, wanted in ((0.0, 0.0), (2.0**-149, 2.0**-148), (3e38, np.inf)):
        codes = FP8_E4M3.to_codes([[2.0]])
        found = index_scores(SMALL, scaled, codes, one / 2, codes, np.array([scale], np.float32))
        assert found[0] == np.float32(wanted)


def test_methods_give_scores_near_those_of_their_modes() -> None:
    """The methods compute in float64 on keys of their own formats; the modes agree within bound and key rounding."""
    rng = np.random.default_rng(3)
    keys = rng.standard_normal((100, 16)).astype(np.float32).astype(BF16.dtype).astype(np.float32)
    vectors = rng.standard_normal((4, 16)).astype(np.float32).astype(BF16.dtype).astype(np.float32)
    query = Query.of(vectors, rng.standard_normal(4).astype(np.float32))
    codes = {fmt.name: (fmt.to_codes(vectors), fmt) for fmt in (BF16, FP16)}
    half = ScoreSpec(wide_format=FP16)
    tokens = BestToken(16, block_tokens=8)
    pages, labels = PageBounds(16, block_tokens=8), Labels(16, channels=range(16))
    centroids, few = Clusters(16), Representatives(16, block_tokens=8, representatives=2)
    for method in (tokens, pages, labels, centroids, few):
        method.append(keys)
    ones = np.ones(4, np.float32)
    chosen = np.concatenate([keys[block] for block in few._chosen])
    cases = {
        "best-token": (KARAT_SCORES, 8, query.weights, keys, tokens.score(query)),
        "page-bounds": (half, 1, ones, np.stack([pages.low, pages.high], axis=1), pages.score(query)),
        "labels": (half, 1, ones, keys, labels.score(query)),
        "centroids": (half, 1, ones, centroids.centroids, centroids.score(query)),
        "representatives": (half, 2, ones, chosen, few.score(query)),
    }
    for name, (spec, block, weights, stored, wanted) in cases.items():
        mode = ScoreMode(**{**vars(MODES[name]), "block_keys": block})
        fmt = spec.wide_format
        case = (codes[fmt.name][0], weights, fmt.to_codes(stored))
        found = index_scores(spec, mode, *case)[: len(wanted)]
        rounding = 0 if name in ("best-token", "page-bounds", "labels", "representatives") else 2.0**-11
        slack = rounding * np.abs(vectors).sum() * np.abs(stored).max()
        full = len(wanted) if name != "representatives" else 100 // 8
        bound = score_error_bound(spec, mode, *case)[:full] * 2 + slack
        assert (np.abs(found[:full] - wanted[:full]) <= bound).all(), name


@pytest.mark.parametrize("name", MODES)
def test_beats_hold_every_code_once_in_order(name: str) -> None:
    mode = MODES[name]
    for shape in SHAPES:
        keys, heads, dim = shape
        query, weights, codes, scales = _case(SMALL, mode, shape, "any")
        beats, owners = key_beats(SMALL, mode, codes, scales)
        assert len(beats) == len(owners) == stored_beats(SMALL, mode, keys, dim)
        columns = codes.reshape(keys, mode.columns, dim)
        size, read = SMALL.format_of(mode).bytes, iter(beats)
        parts: list[Any] = []
        for key in range(keys):
            if mode.scaled and key % 2 == 0:
                found = next(read).view("<f4")[: min(2, keys - key)]
                assert found.tobytes() == scales[key : key + 2].tobytes()
            # Half a beat of 8 bytes holds a vector: the next key's is the other half.
            pairs = not mode.bounds and dim * size <= 4
            if pairs and key % 2:
                parts = [parts[0][4:]]
            else:
                parts = [next(read) for _ in range(mode.columns * SMALL.vector_beats(mode, dim))]
            for column in range(mode.columns):
                words = np.concatenate(parts[column :: mode.columns])[: 4 if pairs and key % 2 == 0 else None]
                words = np.ascontiguousarray(words).view(f"<u{size}")
                assert words.tolist() == columns[key, column].tolist() + [0] * (len(words) - dim)
        assert next(read, None) is None
        sent, weight = query_beats(SMALL, mode, query, weights)
        assert weight.tobytes() == np.tile(weights, len(sent) // heads).tobytes()
        for head in range(heads):
            words = np.concatenate(sent[head::heads]).view(f"<u{size}")
            assert words.tolist() == query[head].tolist() + [0] * (len(words) - dim)


def test_eight_keys_of_deepseek_take_33_beats() -> None:
    assert stored_beats(KARAT_SCORES, MODES["indexer"], 8, 128) * 32 == 8 * 132
    assert stored_beats(KARAT_SCORES, MODES["page-bounds"], 1, 128) * 32 == 512
    assert stored_beats(KARAT_SCORES, MODES["best-token"], 3, 128) * 32 == 3 * 256


def test_labels_of_eight_channels_lie_two_to_a_beat() -> None:
    labels = MODES["labels"]
    assert stored_beats(KARAT_SCORES, labels, 1001, 8) == 501
    # A ninth channel, or what is no half: a beat each.
    assert stored_beats(KARAT_SCORES, labels, 1001, 9) == 1001
    assert stored_beats(KARAT_SCORES, MODES["page-bounds"], 1001, 8) == 2002
    # A beat of scales for eight keys, and those in four beats.
    assert stored_beats(KARAT_SCORES, MODES["cosine"], 16, 8) == 2 + 8
    beats, owners = key_beats(KARAT_SCORES, labels, np.arange(24, dtype=np.uint16).reshape(3, 8))
    assert beats.view("<u2").tolist() == [list(range(16)), [*range(16, 24), *[0] * 8]]
    assert owners.tolist() == [0, 2]


def test_bad_arguments() -> None:
    for changes, message in (
        ({"beat_bytes": 24}, "beat_bytes must be a power of two, not 24"),
        ({"beat_bytes": 4}, "beat_bytes must be from 8 to 64, not 4"),
        ({"head_lanes": 0}, "head_lanes must be from 1 to 64, not 0"),
        ({"wide_head_lanes": 23}, "wide_head_lanes must be from 1 to 22, not 23"),
        ({"wide_format": FP8_E4M3}, "wide_format must be bf16 or fp16, not 'fp8_e4m3'"),
    ):
        with pytest.raises(ValueError, match=message):
            ScoreSpec(**changes)
    with pytest.raises(TypeError, match="wide must be a bool, not 1"):
        ScoreMode(wide=1)
    with pytest.raises(ValueError, match="block_keys must be from 1 to 256, not 0"):
        ScoreMode(block_keys=0)
    query, weights, keys, _ = _case(SMALL, MODES["labels"], (2, 3, 4), "near")
    for arguments, message in (
        ((query[0], weights, keys), r"query must have shape \(heads, dim\) of a head and an element or more, not \(4,"),
        ((query, weights[:2], keys), r"weights must have shape \(3,\), not \(2,\)"),
        ((query, weights, keys[:, :3]), r"keys must have shape \(num_keys, 4\), not \(2, 3\)"),
        ((query, weights, keys, weights), "scales must not be given in a mode with scaled=False"),
    ):
        with pytest.raises(ValueError, match=message):
            index_scores(SMALL, MODES["labels"], *arguments)
    with pytest.raises(ValueError, match=r"scales must have shape \(2,\), not \(3,\)"):
        index_scores(SMALL, MODES["cosine"], query, weights, keys, weights)
    with pytest.raises(ValueError, match="scales must be given in a mode with scaled=True"):
        index_scores(SMALL, MODES["cosine"], query, weights, keys)
    with pytest.raises(ValueError, match=r"keys must have shape \(num_keys, 2, 4\), not \(2, 4\)"):
        index_scores(SMALL, MODES["page-bounds"], query, weights, keys)
