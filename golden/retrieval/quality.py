"""How good a selection is: how many of the tokens that matter it holds, and how much of the attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.retrieval.topk import top_k

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["attention_mass", "kept_mass", "recall"]


def attention_mass(query: npt.ArrayLike, keys: npt.ArrayLike, scale: float) -> npt.NDArray[np.float64]:
    """Return the softmax weight of every token for one query vector, in float64.

    Parameters
    ----------
    query : array_like, shape (head_dim,)
    keys : array_like, shape (tokens, head_dim)
    scale : float
        Factor of the scores.
    """
    scores = scale * (np.asarray(keys, np.float64) @ np.asarray(query, np.float64))
    if not len(scores):
        return scores
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def recall(selected: npt.NDArray[np.int64], mass: npt.NDArray[np.float64]) -> float:
    """Return which part of the tokens of largest mass, as many as were selected, is among them; 1 for none of none."""
    best = top_k(mass, len(selected))
    return 1.0 if not len(best) else len(np.intersect1d(selected, best)) / len(best)


def kept_mass(selected: npt.NDArray[np.int64], mass: npt.NDArray[np.float64]) -> float:
    """Return the sum of the weights of the selected tokens: 1 if nothing that matters is missing."""
    return float(mass[selected].sum())
