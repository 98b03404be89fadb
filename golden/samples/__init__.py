"""Real q, k and v of an attention model: a small slice that ships with the package (origin in README.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SLICE", "LayerTensors", "load_layers"]

SLICE = Path(__file__).with_name("minilm_l6_slice.npz")
"""The slice: layers 0, 2 and 5, 128 tokens, 2 heads of 32 elements."""


@dataclass(frozen=True, kw_only=True)
class LayerTensors:
    """Queries, keys and values of one layer; every query attends to every token.

    Parameters
    ----------
    layer : int
        Its number in the model.
    q, k, v : ndarray of float16, shape (num_tokens, num_heads, head_dim)
        One query, key and value a token and head.
    """

    layer: int
    q: npt.NDArray[Any]
    k: npt.NDArray[Any]
    v: npt.NDArray[Any]

    @property
    def scale(self) -> float:
        """Factor of every score: 1/sqrt(head_dim)."""
        return float(self.q.shape[-1]) ** -0.5


def load_layers(path: Path = SLICE) -> list[LayerTensors]:
    """Load every layer of a file of tensors, in layer order.

    Parameters
    ----------
    path : Path
        A NumPy archive with arrays ``q<layer>``, ``k<layer>`` and ``v<layer>``.
    """
    with np.load(path) as arrays:
        numbers = sorted(int(name[1:]) for name in arrays.files if name[0] == "q")
        return [LayerTensors(layer=n, q=arrays[f"q{n}"], k=arrays[f"k{n}"], v=arrays[f"v{n}"]) for n in numbers]
