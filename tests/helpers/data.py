"""Finds tensors: the committed slice, and the full set that lies beside the checkout where there is one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    import numpy.typing as npt

_CHECKOUT = Path(__file__).resolve().parents[2]

FIXTURE = _CHECKOUT / "tests" / "fixtures" / "minilm_l6_slice.npz"


@dataclass(frozen=True, kw_only=True)
class LayerTensors:
    """q, k and v of one layer, fp16, shape (num_tokens, num_heads, head_dim); every query attends to every token."""

    layer: int
    q: npt.NDArray[Any]
    k: npt.NDArray[Any]
    v: npt.NDArray[Any]

    @property
    def scale(self) -> float:
        return self.q.shape[-1] ** -0.5


def data_file(*parts: str) -> Path:
    """Path of a file of the data set: under NEARKV_DATA, else ../shared/data beside the checkout; skips if absent."""
    root = Path(os.environ.get("NEARKV_DATA", _CHECKOUT.parent / "shared" / "data"))
    path = root.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"{'/'.join(parts)} is not in {root}; NEARKV_DATA names the folder")
    return path


def full_tensors() -> Path:
    """Path of the full tensors (512 tokens, 12 heads, layers 0, 2 and 5); skips if absent."""
    return data_file("tensors", "minilm_l6_apache2_n512.npz")


def load_layers(path: Path) -> list[LayerTensors]:
    """Load every layer of a file of tensors, in layer order."""
    with np.load(path) as arrays:
        numbers = sorted(int(name[1:]) for name in arrays.files if name[0] == "q")
        return [LayerTensors(layer=n, q=arrays[f"q{n}"], k=arrays[f"k{n}"], v=arrays[f"v{n}"]) for n in numbers]
