"""Scores of index keys as the scoring unit computes them, bit for bit, in every mode.

A key s has one score for its candidate::

    dot_h = sum over i of q_hi k_si                   or, of a page, of max(q_hi low_si, q_hi high_si)
    term_h = w_h dot_h                                or w_h ReLU(dot_h)
    score_s = scale_s * sum over h of term_h          or the largest term_h

and the largest score of the keys of a block where candidates are blocks.

Every operation is IEEE 754 on fp32, rounded to nearest, ties to even, subnormals kept: what is too large becomes
infinite, opposite infinities add to NaN, and a NaN goes through everything. The order is fixed:

* E4M3: products and their sum over all elements are exact, and the sum is rounded once. Neither the order of the
  elements nor the width of a beat changes a bit. A NaN code among the elements makes the dot product NaN.
* 16 bits: each product is rounded once (two bf16 or fp16 numbers multiply exactly within fp32's range). A beat's
  products are added by a tree, neighbours first; the beats' sums in order. A page's beats alternate: least elements,
  then largest ones. An element that doesn't count, by the sign of q, adds +0.
* Heads: the terms of a group of heads are added, or compared, by a tree, in which a last one without a neighbour goes
  up as it is; the groups' results in order.
* ReLU gives +0 for what is not above 0, -0 among it, and NaN for NaN. Of equal terms and scores the earlier one stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FP8_E4M3

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from golden.retrieval.index_spec import ScoreMode, ScoreSpec

    Codes = npt.NDArray[np.unsignedinteger]
    Floats = npt.NDArray[np.float32]

__all__ = ["index_scores", "score_error_bound"]

_STEP_BITS = 9
"""E4M3 numbers are whole multiples of 2^-9."""


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def index_scores(
    spec: ScoreSpec, mode: ScoreMode, query: Codes, weights: Floats, keys: Codes, scales: Floats | None = None
) -> Floats:
    """Return the scores of the candidates.

    Parameters
    ----------
    spec : ScoreSpec
        Order of the sums, and the 16-bit format.
    mode : ScoreMode
        What is computed.
    query : ndarray of codes, shape (heads, dim)
        At least one head and one element.
    weights : ndarray of float32, shape (heads,)
        1 where there are none: that product changes no bit.
    keys : ndarray of codes, shape (num_keys, dim), or (num_keys, 2, dim) of pages
        Of a page the least elements, then the largest.
    scales : ndarray of float32, shape (num_keys,), or None
        Factors of the keys in a mode with scales.

    Returns
    -------
    ndarray of float32, shape (candidates,)

    Raises
    ------
    ValueError
        If shapes disagree with each other or with the mode.
    """
    _require_shapes(mode, query, weights, keys, scales)
    dots = _wide_dots(spec, mode, query, keys) if mode.wide else _exact_dots(mode, query, keys)
    if mode.relu:
        dots = np.where(dots <= 0, np.float32(0), dots)
    terms = (weights * dots).T
    join = _larger if mode.largest else np.add
    lanes = spec.lanes(mode, query.shape[1])
    total = _tree(terms[:lanes], join)
    for start in range(lanes, len(terms), lanes):
        total = join(total, _tree(terms[start : start + lanes], join))
    if scales is not None:
        total = total * scales
    blocks = total[:: mode.block_keys].copy()
    for place in range(1, mode.block_keys):
        later = total[place :: mode.block_keys]
        blocks[: len(later)] = _larger(blocks[: len(later)], later)
    return blocks


def score_error_bound(
    spec: ScoreSpec, mode: ScoreMode, query: Codes, weights: Floats, keys: Codes, scales: Floats | None = None
) -> npt.NDArray[np.float64]:
    """Return how far each score may lie from the exact one, where nothing overflows.

    With u = 2^-24 and n the roundings on the longest way from a product to the score, ``((1 + u)^n - 1)`` of the sum of
    all magnitudes, and for each product below the normal range 2^-150, scaled as it is.

    Parameters
    ----------
    spec, mode, query, weights, keys, scales
        As of :func:`index_scores`; finite numbers.

    Returns
    -------
    ndarray of float64, shape (candidates,)
    """
    _require_shapes(mode, query, weights, keys, scales)
    fmt = spec.format_of(mode)
    q, k = (np.abs(fmt.from_codes(codes).astype(np.float64)) for codes in (query, keys))
    # Both vectors of a page count here: more than the one that is taken.
    magnitudes = (k.sum(axis=1) if mode.bounds else k) @ q.T
    weight = np.abs(weights.astype(np.float64))
    factor = np.ones(len(keys)) if scales is None else np.abs(scales.astype(np.float64))
    heads, dim = query.shape
    elements = spec.elements(mode)
    inside = 1 + (elements.bit_length() - 1) + spec.vector_beats(mode, dim) * mode.columns if mode.wide else 1
    roundings = inside + 1 + (spec.lanes(mode, dim) - 1).bit_length() + spec.groups(mode, heads, dim) + 1
    relative = (1 + 2.0**-24) ** roundings - 1
    least = 2.0**-149
    absolute = (weight.sum() * dim * mode.columns + heads) * least * factor + least
    each = relative * (magnitudes @ weight) * factor + absolute
    return np.maximum.reduceat(each, np.arange(0, len(each), mode.block_keys)) if len(each) else each


def _require_shapes(mode: ScoreMode, query: Codes, weights: Floats, keys: Codes, scales: Floats | None) -> None:
    if query.ndim != 2 or not query.size:
        raise ValueError(f"query must have shape (heads, dim) of a head and an element or more, not {query.shape}")
    heads, dim = query.shape
    if weights.shape != (heads,):
        raise ValueError(f"weights must have shape ({heads},), not {weights.shape}")
    wanted = (2, dim) if mode.bounds else (dim,)
    if keys.ndim != 1 + len(wanted) or keys.shape[1:] != wanted:
        raise ValueError(f"keys must have shape (num_keys, {', '.join(map(str, wanted))}), not {keys.shape}")
    if mode.scaled != (scales is not None):
        raise ValueError(f"scales must {'' if mode.scaled else 'not '}be given in a mode with scaled={mode.scaled}")
    if scales is not None and scales.shape != (len(keys),):
        raise ValueError(f"scales must have shape ({len(keys)},), not {scales.shape}")


def _exact_dots(mode: ScoreMode, query: Codes, keys: Codes) -> Floats:
    """Return the dot products of E4M3 vectors, exact and then rounded, shape (num_keys, heads)."""
    nan = FP8_E4M3.nan_code
    unsigned = [codes & nan == nan for codes in (query, keys)]
    numbers = [
        np.where(bad, 0, FP8_E4M3.from_codes(codes).astype(np.float64)) * (1 << _STEP_BITS)
        for codes, bad in zip((query, keys), unsigned, strict=True)
    ]
    # At most 2^17.8 steps each: 4,096 products stay below 2^48, so float64 holds every partial sum exactly.
    if mode.bounds:
        low = query >= FP8_E4M3.sign_mask
        halves = ((0, low), (1, ~low))
        dots = sum(numbers[1][:, column] @ (numbers[0] * counts).T for column, counts in halves)
        bad = sum(unsigned[1][:, column].astype(np.float64) @ counts.T for column, counts in halves)
    else:
        dots = numbers[1] @ numbers[0].T
        bad = unsigned[1].any(axis=1)[:, np.newaxis]
    bad = (np.asarray(bad) > 0) | unsigned[0].any(axis=1)
    rounded = (np.asarray(dots) * 2.0 ** (-2 * _STEP_BITS)).astype(np.float32)
    # Where everything cancels the library may give -0; a sum of integers has one zero.
    return np.where(bad, np.float32(np.nan), rounded + np.float32(0))


def _wide_dots(spec: ScoreSpec, mode: ScoreMode, query: Codes, keys: Codes) -> Floats:
    """Return the dot products of 16-bit vectors, shape (num_keys, heads)."""
    fmt, lanes = spec.wide_format, spec.elements(mode)
    fill = -query.shape[1] % lanes
    q, k = (
        np.pad(fmt.from_codes(codes).astype(np.float32), [(0, 0)] * (codes.ndim - 1) + [(0, fill)])
        for codes in (query, keys)
    )
    columns = k.reshape(len(k), mode.columns, q.shape[1])
    total: Floats | None = None
    for start in range(0, q.shape[1], lanes):
        part = slice(start, start + lanes)
        for column in range(mode.columns):
            # Elements first, as the tree wants them: (lanes, num_keys, heads).
            products = columns[:, column, part].T[:, :, np.newaxis] * q[:, part].T[:, np.newaxis, :]
            if mode.bounds:
                counts = np.signbit(q[:, part].T[:, np.newaxis, :]) == (column == 0)
                products = np.where(counts, products, np.float32(0))
            beat = _tree(products, np.add)
            total = beat if total is None else total + beat
    assert total is not None, "a vector has elements"
    return total


def _tree(terms: Floats, join: Callable[[Floats, Floats], Floats]) -> Floats:
    """Join over the first axis: neighbours, then neighbouring results; a last one without a neighbour goes up."""
    while len(terms) > 1:
        paired = join(terms[0 : len(terms) - 1 : 2], terms[1::2])
        terms = np.concatenate([paired, terms[-1:]]) if len(terms) % 2 else paired
    return terms[0]


def _larger(old: Floats, new: Floats) -> Floats:
    """Return ``new > old ? new : old``, NaN if either is NaN."""
    return np.where((new > old) | np.isnan(new), new, old)
