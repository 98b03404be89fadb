"""Index keys and queries as beats of bytes: the order in which the scoring unit takes them, and memory holds keys.

Keys come one after another, a vector's elements in order, the last beat filled up with zeros; vectors that half a beat
holds lie two in one, each filled up to its half; a page's beats alternate, one of its least elements and one of its
largest. With scales, each group of as many keys as scales fit a beat has a
beat of its scales before it, so that 8 keys of 128 bytes and their scales take 33 beats of 32 bytes: 132 bytes a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.index_spec import ScoreMode, ScoreSpec

    Codes = npt.NDArray[np.unsignedinteger]
    Beats = npt.NDArray[np.uint8]

__all__ = ["key_beats", "query_beats", "scale_beats", "stored_beats"]


def scale_beats(spec: ScoreSpec, mode: ScoreMode, keys: int) -> int:
    """Return the beats of the scales of so many keys."""
    return -(-keys // spec.scales_per_beat) if mode.scaled else 0


def stored_beats(spec: ScoreSpec, mode: ScoreMode, keys: int, dim: int) -> int:
    """Return the beats of so many keys of ``dim`` elements, those of their scales included."""
    held = -(-keys // spec.beat_keys(mode, dim))
    return held * mode.columns * spec.vector_beats(mode, dim) + scale_beats(spec, mode, keys)


def key_beats(
    spec: ScoreSpec, mode: ScoreMode, keys: Codes, scales: npt.NDArray[np.float32] | None = None
) -> tuple[Beats, npt.NDArray[np.int64]]:
    """Return the beats of keys, and of each beat the key that it belongs to, its first one, -1 of a beat of scales.

    Parameters
    ----------
    spec, mode, keys, scales
        As of :func:`golden.retrieval.index_score.index_scores`.

    Returns
    -------
    beats : ndarray of uint8, shape (beats, beat_bytes)
    owners : ndarray of int64, shape (beats,)
    """
    count, dim = len(keys), keys.shape[-1]
    together = spec.beat_keys(mode, dim)
    vectors = keys.reshape(count, mode.columns, dim)
    if together > 1:
        parts = np.zeros((-(-count // together) * together, spec.elements(mode) // together), keys.dtype)
        parts[:count, :dim] = keys
        vectors = parts.reshape(-(-count // together), 1, spec.elements(mode))
    columns = _beats(spec, mode, vectors)
    beats = np.swapaxes(columns, 1, 2).reshape(-1, spec.beat_bytes)
    key_size = mode.columns * columns.shape[2]
    owners = np.repeat(np.arange(0, count, together), key_size)
    if scales is None:
        return beats, owners
    group = spec.scales_per_beat
    filled = np.pad(scales, (0, -count % group)).astype("<f4")
    starts = np.arange(0, count, group) // together * key_size
    return (
        np.insert(beats, starts, filled.view(np.uint8).reshape(-1, spec.beat_bytes), axis=0),
        np.insert(owners, starts, -1),
    )


def query_beats(
    spec: ScoreSpec, mode: ScoreMode, query: Codes, weights: npt.NDArray[np.float32]
) -> tuple[Beats, npt.NDArray[np.float32]]:
    """Return the beats of a query with the weight that goes with each: the first beats of all heads, and so on.

    Parameters
    ----------
    spec, mode, query, weights
        As of :func:`golden.retrieval.index_score.index_scores`.

    Returns
    -------
    beats : ndarray of uint8, shape (vector beats * heads, beat_bytes)
    weights : ndarray of float32, shape (vector beats * heads,)
    """
    vectors = _beats(spec, mode, query)
    ordered = np.swapaxes(vectors, 0, 1).reshape(-1, spec.beat_bytes)
    return ordered, np.tile(weights, vectors.shape[1])


def _beats(spec: ScoreSpec, mode: ScoreMode, codes: Codes) -> Beats:
    """Return vectors of codes, the last axis, as beats, two axes instead of one."""
    fmt = spec.format_of(mode)
    beats = spec.vector_beats(mode, codes.shape[-1])
    filled = np.zeros((*codes.shape[:-1], beats * spec.elements(mode)), fmt.code_dtype.newbyteorder("<"))
    filled[..., : codes.shape[-1]] = codes
    return filled.view(np.uint8).reshape(*codes.shape[:-1], beats, spec.beat_bytes)
