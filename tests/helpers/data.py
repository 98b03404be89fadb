"""Finds files of the data set that lies beside the checkout where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).resolve().parents[2]


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
