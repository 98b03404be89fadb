"""Index keys and queries of every kind, as codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP8_E4M3, FloatFormat
from tests.helpers.floats import corner_codes, random_codes

if TYPE_CHECKING:
    from golden.retrieval.index_spec import ScoreMode, ScoreSpec

__all__ = ["drawn_codes", "drawn_keys"]


def drawn_codes(fmt: FloatFormat, kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Return codes: ``near`` 1, ``any``, ``corners`` of the format, or of few values (``ties``)."""
    count = int(np.prod(shape))
    if kind == "ties":
        codes = fmt.to_codes(rng.choice([-1.0, -0.0, 0.0, 0.5, 2.0], count))
    elif fmt == FP8_E4M3:
        codes = rng.integers(0, 256, count)
        if kind == "corners":
            codes = rng.choice([0x00, 0x01, 0x07, 0x08, 0x38, 0x7E, 0x7F, 0x80, 0x81, 0xB8, 0xFE, 0xFF], count)
        elif kind == "near":
            codes = np.where(codes & 0x7F == 0x7F, codes & 0x80, codes)
    elif kind == "corners":
        codes = rng.choice(corner_codes(fmt), count)
    else:
        codes = random_codes(fmt, count, rng, near=0 if kind == "near" else None)
    return codes.astype(fmt.code_dtype).reshape(shape)


def drawn_keys(spec: ScoreSpec, mode: ScoreMode, kind: str, count: int, dim: int, rng: np.random.Generator) -> Any:
    """Return the codes of keys, those of pages with the lesser one of two numbers first."""
    fmt = spec.format_of(mode)
    if not mode.bounds:
        return drawn_codes(fmt, kind, (count, dim), rng)
    codes = drawn_codes(fmt, kind, (count, 2, dim), rng)
    numbers = fmt.from_codes(codes).astype(np.float32)
    swap = numbers[:, :1] > numbers[:, 1:]
    return np.where(swap, codes[:, ::-1], codes)
