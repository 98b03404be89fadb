"""Partial states for the tests of the units that carry them: plain ones, and such as make arithmetic fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FP32
from golden.partial import PartialState, empty_state
from tests.helpers.floats import corner_codes, random_codes

if TYPE_CHECKING:
    from golden.numerics import Numerics
    from hw.params import StateParams

__all__ = ["make_state", "mixed_beats"]


def mixed_beats(params: StateParams, operations: int, rng: np.random.Generator, fewest: int = 2) -> list[int]:
    """Return random numbers of beats, one an operation: fewest and most at first, then half of them one of the two."""
    ends = (fewest, params.beats)
    drawn = [
        int(rng.choice(ends) if rng.random() < 0.5 else rng.integers(fewest, params.beats + 1))
        for _ in range(operations)
    ]
    return [*ends, *drawn][:operations]


def _special(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return fp32 numbers of every kind, half of them corners; NaNs are canonical, as on every wire."""
    corners = rng.choice(corner_codes(FP32), count)
    anything = random_codes(FP32, count, rng)
    codes = np.where(rng.random(count) < 0.5, corners, anything)
    return FP32.from_codes(FP32.to_codes(FP32.from_codes(codes)))


def make_state(head_dim: int, numerics: Numerics, rng: np.random.Generator, kind: str = "plain") -> PartialState:
    """Return one random state.

    Parameters
    ----------
    head_dim : int
        Elements of o.
    numerics : Numerics
        Gives the dtype.
    rng : numpy.random.Generator
        Source of randomness.
    kind : {"plain", "tied", "special", "empty"}
        As attention makes them; with a maximum of a few values that tie; with every field any fp32 number; empty.
    """
    if kind == "empty":
        return empty_state(head_dim, numerics)
    if kind == "special":
        m = _special(1, rng)[0] if rng.random() < 0.5 else np.float32(rng.normal(scale=4))
        return PartialState(m=m, l=_special(1, rng)[0], o=_special(head_dim, rng))
    m = rng.choice([-0.0, 0.0, 1.5, -80.0]) if kind == "tied" else rng.normal(scale=6)
    weight = rng.uniform(1, 100)
    return PartialState(
        m=np.float32(m), l=np.float32(weight), o=(rng.normal(size=head_dim) * weight).astype(np.float32)
    )
