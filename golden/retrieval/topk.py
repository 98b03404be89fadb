"""The k largest scores, exactly, ties to the lower id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["top_k"]


def top_k(scores: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Return the ids of the ``k`` largest of ``scores``, in ascending order of id; all of them if there are fewer.

    The order is that of numbers, -0 = +0; of equal scores the lower id is taken first. -inf is a score like any other.

    Parameters
    ----------
    scores : array_like, shape (candidates,)
        Score of each id.
    k : int
        How many, at least 0.

    Raises
    ------
    ValueError
        If ``scores`` is not one-dimensional, holds a NaN, or ``k`` is negative.
    TypeError
        If ``k`` is no integer.
    """
    values = np.asarray(scores)
    if values.ndim != 1:
        raise ValueError(f"scores must have shape (candidates,), not {values.shape}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"scores must be numbers, that of id {int(np.isnan(values).argmax())} is NaN")
    require_int("k", k, 0, 1 << 62)
    if k >= len(values):
        return np.arange(len(values))
    if k == 0:
        return np.empty(0, np.int64)
    least = np.partition(values, len(values) - k)[len(values) - k]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)
    return np.sort(np.concatenate([above, equal[: k - len(above)]]))
