"""Attention of one decode step: reference, online, and split over memories as PAMattention.

Shapes are those of a decode step: one query row a head, ``q`` of shape (num_heads, head_dim), and a cache
``k``, ``v`` of shape (num_tokens, num_kv_heads, head_dim). Query head ``h`` reads KV head ``h // ratio``,
``ratio = num_heads // num_kv_heads`` (GQA; 1 is MHA, ``num_heads`` is MQA). ``q`` may have leading axes: as
many queries on the same cache.

Every token given is attended to. A selection removes tokens, before the call (``k[selected]``) or by ``wanted`` where
a unit sees them stream by; it is never a weight of zero.

PAMattention is the local stage of arXiv:2602.11521 on every part of the tokens, then merges of the partial
states in any tree, then one division. Algorithm 1 as printed there mixes a plain sum with a log-sum-exp;
this is the plain form throughout (see :mod:`golden.partial`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from golden.formats import BF16, FP16, FloatFormat, round_to_dtype
from golden.numerics import REFERENCE, Array, Numerics
from golden.partial import Finished, PartialState, Tree, empty_state, finish, merge_chain, merge_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "attention_bf16_reference",
    "attention_fp16_reference",
    "attention_online",
    "attention_reference",
    "local_state",
    "pam_attention",
    "pam_state",
]


class _Grouped(NamedTuple):
    """Checked operands: q as (..., num_kv_heads, ratio, head_dim), k and v as given."""

    q: Array
    k: Array
    v: Array


def _group(q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike) -> _Grouped:
    """Check shapes and group the query heads by KV head."""
    q, k, v = np.asarray(q), np.asarray(k), np.asarray(v)
    if q.ndim < 2:
        raise ValueError(f"q must have shape (..., num_heads, head_dim), not {q.shape}")
    if k.ndim != 3:
        raise ValueError(f"k must have shape (num_tokens, num_kv_heads, head_dim), not {k.shape}")
    if v.shape != k.shape:
        raise ValueError(f"v must have the shape of k {k.shape}, not {v.shape}")
    num_heads, head_dim = q.shape[-2:]
    num_kv_heads = k.shape[1]
    if head_dim < 1 or k.shape[2] != head_dim:
        raise ValueError(f"k must have the head_dim of q ({head_dim}), not {k.shape[2]}")
    if num_kv_heads < 1 or num_heads < 1 or num_heads % num_kv_heads:
        raise ValueError(f"num_heads must be a multiple of num_kv_heads ({num_kv_heads}), not {num_heads}")
    return _Grouped(q.reshape(*q.shape[:-2], num_kv_heads, num_heads // num_kv_heads, head_dim), k, v)


def attention_reference(q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, scale: float) -> Array:
    """Attention in float64, in two passes: all scores and their maximum first, then the weights.

    Parameters
    ----------
    q : array_like, shape (..., num_heads, head_dim)
    k, v : array_like, shape (num_tokens, num_kv_heads, head_dim)
    scale : float
        Factor of the scores, usually ``1 / sqrt(head_dim)``.

    Returns
    -------
    ndarray of float64, shape (..., num_heads, head_dim)
        Zeros if there is no token.

    Raises
    ------
    ValueError
        If shapes disagree.

    Notes
    -----
    ``s_t = scale * (q . k_t)``, ``p_t = exp(s_t - max s) / sum_t exp(s_t - max s)``, ``o = sum_t p_t v_t``.
    """
    grouped = _group(q, k, v)
    q64, k64, v64 = (x.astype(np.float64) for x in grouped)
    if not len(k64):
        return np.zeros(np.shape(q))
    scores = scale * np.einsum("...hgd,thd->...hgt", q64, k64, optimize=True)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("...hgt,thd->...hgd", weights, v64, optimize=True).reshape(np.shape(q))


def attention_fp16_reference(q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, scale: float) -> Array:
    """Plain attention in fp16: the yardstick for the error of the units.

    Parameters and errors are those of :func:`attention_reference`.

    Returns
    -------
    ndarray of float16, shape (..., num_heads, head_dim)

    Notes
    -----
    fp16 q, k, v; fp32 scores, maximum, exponential and sum; the weights P = softmax(S) rounded to fp16;
    fp32 accumulation of P V; fp16 output. The order of the fp32 sums is the library's: it moves results by
    about 1e-7, where rounding P and the output moves them by up to 5e-4.
    """
    return _plain_attention(q, k, v, scale, FP16)


def attention_bf16_reference(q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, scale: float) -> Array:
    """Plain attention in bf16: :func:`attention_fp16_reference` with bf16 for fp16 throughout.

    Returns
    -------
    ndarray of bfloat16, shape (..., num_heads, head_dim)
    """
    return _plain_attention(q, k, v, scale, BF16)


def _plain_attention(q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, scale: float, fmt: FloatFormat) -> Array:
    """Attention with operands, weights and output of ``fmt``, and everything between in fp32."""
    grouped = _group(q, k, v)
    q32, k32, v32 = (round_to_dtype(x, fmt.dtype).astype(np.float32) for x in grouped)
    if not len(k32):
        return np.zeros(np.shape(q), fmt.dtype)
    scores = np.float32(scale) * np.einsum("...hgd,thd->...hgt", q32, k32, optimize=True)
    with np.errstate(under="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        weights = round_to_dtype(weights, fmt.dtype).astype(np.float32)
        output = np.einsum("...hgt,thd->...hgd", weights, v32, optimize=True)
        return round_to_dtype(output, fmt.dtype).reshape(np.shape(q))


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def local_state(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    scale: float,
    numerics: Numerics = REFERENCE,
    wanted: npt.ArrayLike | None = None,
) -> PartialState:
    """Compute the partial state of these tokens in one pass, tile by tile: what a processing unit does.

    Parameters
    ----------
    q : array_like, shape (..., num_heads, head_dim)
        Rounded to the operand format of the numerics, as are k and v.
    k, v : array_like, shape (num_tokens, num_kv_heads, head_dim)
        Tokens in the order in which the unit reads them; ``num_tokens`` may be 0.
    scale : float
        Factor of the scores, rounded to the format of the state.
    numerics : Numerics
        How the algorithm is rounded; gives the tokens of a tile.
    wanted : array_like of bool, shape (num_tokens,), optional
        Tokens attended to; None is all. A unit that reads a walk made for many passes over the others, which stand in
        their tiles all the same: that decides after which tokens the maximum moves, and nothing else.

    Returns
    -------
    PartialState
        Of shape (..., num_heads), empty if there is no token that is attended to.

    Raises
    ------
    ValueError
        If shapes disagree.

    Notes
    -----
    Each operation is rounded by itself. For each tile, with m the maximum before it::

        s_t    = dot(q, k_t) * scale                       for every t of the tile
        m'     = m, then for each t in order: s_t > m' ? s_t : m' (NaN if either is NaN)
        alpha  = exponential(m - m')     p_t = exponential(s_t - m')
        l      = l * alpha, then for each t in order: l + p_t
        o      = o * alpha, then for each t in order: o + p_t * v_t

    The first tile has no alpha: m starts as the first score, l as +0 and o as the first product. Tokens that are not
    wanted, and tiles without any that is, change nothing, whatever their codes. A head
    dimension (of a slice) that does not fill the last beat is filled with zeros, which changes no sum. Units
    that hold slices of the head dimension have the same m and l, and each its slice of o. l counts equal
    scores exactly up to 2**24 tokens in fp32.
    """
    grouped = _group(q, k, v)
    chosen = np.ones(len(grouped.k), np.bool_) if wanted is None else np.asarray(wanted, np.bool_)
    if chosen.shape != grouped.k.shape[:1]:
        raise ValueError(f"wanted must have shape {grouped.k.shape[:1]}, not {chosen.shape}")
    if not chosen.any():
        return empty_state(grouped.q.shape[-1], numerics, np.shape(q)[:-1])
    queries, keys, values = (numerics.operand(x) for x in grouped)
    factor = numerics.score_scale(scale)
    # numerics.dot sums the first axis: (head_dim, ..., num_kv_heads, ratio) and (head_dim, tokens, num_kv_heads).
    queries, keys = np.moveaxis(queries, -1, 0), np.moveaxis(keys, -1, 0)
    # One axis for the tokens of a tile in front of the heads; leading axes of q go in between.
    batch = queries.ndim - 3
    queries = queries[:, np.newaxis]
    keys = keys.reshape(*keys.shape[:2], *(1,) * batch, keys.shape[2], 1)

    maximum = total = output = None
    for start in range(0, len(values), numerics.tile_tokens):
        tokens = start + np.flatnonzero(chosen[start : start + numerics.tile_tokens])
        if not tokens.size:
            continue
        scores = numerics.dot(queries, keys[:, tokens]) * factor
        tile_max = scores[0] if maximum is None else numerics.maximum(scores[0], maximum)
        for score in scores[1:]:
            tile_max = numerics.maximum(score, tile_max)
        weights = numerics.exponential(scores - tile_max)
        if maximum is None or total is None or output is None:
            total = np.zeros_like(tile_max)
        else:
            alpha = numerics.exponential(maximum - tile_max)
            total, output = total * alpha, output * alpha[..., np.newaxis]
        for weight, value in zip(weights, values[tokens], strict=True):
            total = total + weight
            product = weight[..., np.newaxis] * value[:, np.newaxis, :]
            output = product if output is None else output + product
        maximum = tile_max

    assert maximum is not None and total is not None and output is not None
    heads = np.shape(q)[:-1]
    return PartialState(
        m=numerics.canonical(maximum).reshape(heads),
        l=numerics.canonical(total).reshape(heads),
        o=numerics.canonical(output).reshape(np.shape(q)),
        base=numerics.base,
    )


def attention_online(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    scale: float,
    tile_tokens: int = 16,
    numerics: Numerics = REFERENCE,
) -> Finished:
    """Attention in one pass over the tokens with a running maximum, sum and output.

    Parameters
    ----------
    q : array_like, shape (..., num_heads, head_dim)
    k, v : array_like, shape (num_tokens, num_kv_heads, head_dim)
    scale : float
        Factor of the scores.
    tile_tokens : int
        Tokens between two updates of the running maximum.
    numerics : Numerics
        How the algorithm is rounded; ``tile_tokens`` replaces its own.

    Returns
    -------
    Finished
        ``output`` of shape (..., num_heads, head_dim), and the flags ``empty``.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree or ``tile_tokens`` is no positive integer.
    """
    numerics = replace(numerics, tile_tokens=tile_tokens)
    return finish(local_state(q, k, v, scale, numerics), numerics)


def _check_splits(splits: Sequence[npt.ArrayLike], num_tokens: int) -> list[npt.NDArray[np.intp]]:
    """Return the parts as index arrays; raise unless they hold every token exactly once."""
    parts: list[npt.NDArray[np.intp]] = []
    for number, split in enumerate(splits):
        part = np.asarray(split)
        if part.size == 0:
            part = np.zeros(0, np.intp)
        if part.ndim != 1 or not np.issubdtype(part.dtype, np.integer):
            raise TypeError(f"splits[{number}] must be a list of token indices, not {split!r}")
        parts.append(part.astype(np.intp))
    indices = np.concatenate([np.zeros(0, np.intp), *parts])
    outside = indices[(indices < 0) | (indices >= num_tokens)]
    if outside.size:
        raise ValueError(f"splits must name tokens from 0 to {num_tokens - 1}, not {int(outside[0])}")
    counts = np.bincount(indices, minlength=num_tokens)
    if (counts != 1).any():
        token = int(np.flatnonzero(counts != 1)[0])
        raise ValueError(f"splits must hold every token once, not token {token} {int(counts[token])} times")
    return parts


def pam_state(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    scale: float,
    splits: Sequence[npt.ArrayLike],
    numerics: Numerics = REFERENCE,
    tree: Tree | None = None,
) -> PartialState:
    """Compute the state of all tokens from the states of parts, as :func:`pam_attention` before its division.

    Parameters, errors and notes are those of :func:`pam_attention`.

    Returns
    -------
    PartialState
        Of shape (..., num_heads).
    """
    k, v = np.asarray(k), np.asarray(v)
    _group(q, k, v)
    if not splits:
        raise ValueError("splits must hold at least one part, not none")
    parts = _check_splits(splits, len(k))
    states = [local_state(q, k[part], v[part], scale, numerics) for part in parts]
    return merge_chain(states, numerics) if tree is None else merge_tree(states, tree, numerics)


def pam_attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    scale: float,
    splits: Sequence[npt.ArrayLike],
    numerics: Numerics = REFERENCE,
    tree: Tree | None = None,
) -> Finished:
    """Attention over tokens that lie in several memories: local states, merges in a tree, one division.

    Parameters
    ----------
    q : array_like, shape (..., num_heads, head_dim)
    k, v : array_like, shape (num_tokens, num_kv_heads, head_dim)
    scale : float
        Factor of the scores.
    splits : sequence of array_like of int
        The token indices of each processing unit, in its reading order; parts may be empty and of any size,
        and together hold every token once.
    numerics : Numerics
        How the algorithm is rounded; gives the tokens of a tile.
    tree : int, nested sequence of int, or None
        Shape of the merge, as :func:`golden.partial.merge_tree` takes it, with one state for each part;
        None merges the parts in order. Banks under devices are a nested sequence:
        ``[[0, 1, 2], [3, 4], [5]]`` has three devices of three, two and one bank.

    Returns
    -------
    Finished
        ``output`` of shape (..., num_heads, head_dim), and the flags ``empty``.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, the parts are no partition of the tokens, or the tree is malformed.

    Notes
    -----
    For each part j, over its own tokens (arXiv:2602.11521, local stage)::

        m_j = max s_t      l_j = sum exp(s_t - m_j)      o_j = sum exp(s_t - m_j) v_t

    then at each node of the tree m = max m_j, ``l = sum exp(m_j - m) l_j``, ``o = sum exp(m_j - m) o_j``, and
    at the root ``o / l``. The result does not depend on parts or tree but for rounding.
    """
    return finish(pam_state(q, k, v, scale, splits, numerics, tree), numerics)
