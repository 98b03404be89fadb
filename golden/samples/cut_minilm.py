"""Cut the sample minilm_l6_slice.npz out of the full tensors: ``python cut_minilm.py SOURCE.npz [TARGET.npz]``."""

import sys
from pathlib import Path

import numpy as np

LAYERS = (0, 2, 5)
HEADS = (2, 4)  # head 2 of layer 0 holds the largest scaled score of all, 79.0
TOKENS = slice(256, 384)  # where that score is: query 364, key 363


def main(source: Path, target: Path) -> None:
    """Write the slice of ``source`` to ``target``."""
    with np.load(source) as tensors:
        arrays = {f"{name}{layer}": tensors[f"{name}{layer}"][TOKENS][:, HEADS] for layer in LAYERS for name in "qkv"}
    np.savez_compressed(target, allow_pickle=False, **arrays)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(f"usage: {Path(__file__).name} SOURCE.npz [TARGET.npz]")
    main(
        Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else Path(__file__).with_name("minilm_l6_slice.npz")
    )
