"""Scores of tokens alone: what attention weighs its values by, before the softmax, and what a matrix times a vector is.

Shapes are those of :mod:`golden.attention`. A selection method ranks the scores of labels, which are keys of a few
channels; a matrix W times a vector x is the scores of its rows at a scale of 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.numerics import REFERENCE, Array, Numerics

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["token_scores"]


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def token_scores(q: npt.ArrayLike, k: npt.ArrayLike, scale: float, numerics: Numerics = REFERENCE) -> Array:
    """Return ``s_t = dot(q, k_t) * scale`` of every token, each operation rounded by itself.

    Parameters
    ----------
    q : array_like, shape (queries, head_dim)
        Queries that share a KV head; rounded to the operand format of the numerics, as is k.
    k : array_like, shape (num_tokens, head_dim)
        Keys; ``num_tokens`` may be 0.
    scale : float
        Factor of the scores, rounded to the format of the state; with 1 a score is the sum itself, for the
        product changes no bit.
    numerics : Numerics
        How the algorithm is rounded; its tiles have no say here.

    Returns
    -------
    ndarray, shape (num_tokens, queries)
        Scores in the format of the state, every NaN the canonical one: those of which
        :func:`golden.attention.local_state` takes maximum and exponentials.

    Raises
    ------
    ValueError
        If shapes disagree.
    """
    queries, keys = np.asarray(q), np.asarray(k)
    if queries.ndim != 2 or keys.ndim != 2 or not queries.shape[1] or queries.shape[1] != keys.shape[1]:
        raise ValueError(
            f"q and k must have shapes (queries, head_dim) and (num_tokens, head_dim), not {queries.shape} and "
            f"{keys.shape}"
        )
    # numerics.dot sums the first axis.
    by_element = numerics.operand(queries).T[:, np.newaxis], numerics.operand(keys).T[:, :, np.newaxis]
    return numerics.canonical(numerics.dot(*by_element) * numerics.score_scale(scale))
