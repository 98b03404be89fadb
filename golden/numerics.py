"""How an attention algorithm is rounded: one object that the algorithms take as an argument.

The algorithms of :mod:`golden.partial` and :mod:`golden.attention` are written once. Run with
:data:`REFERENCE` they compute in float64 with the library exponential; run with the result of
:func:`unit_numerics` they compute what the hardware units compute, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.formats import FP16, FP32

if TYPE_CHECKING:
    from collections.abc import Callable

    from golden.exp import ExpSpec

__all__ = ["REFERENCE", "REFERENCE_BASE2", "Array", "Base", "Numerics", "unit_numerics"]

Array: TypeAlias = npt.NDArray[Any]
Base: TypeAlias = Literal["e", "2"]


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """Formats, order of summation and exponential of one implementation of attention.

    Parameters
    ----------
    name : str
        Name used in reports and messages.
    dtype : numpy dtype
        Format of scores and of the state ``(m, l, o)``: float32 or float64.
    operand_dtype : numpy dtype
        Format of q, k and v.
    output_dtype : numpy dtype
        Format of the finished attention output.
    exponential : callable
        Maps an array of ``dtype`` to an array of ``dtype``: ``base ** x`` for x <= 0, with every
        rounding of operand and result that the implementation makes.
    base : {"e", "2"}
        Base of the exponential, and so of every state made with these numerics.
    lanes : int or None
        Elements summed by one pairwise tree (a power of two, at least 2); None leaves the order of a
        dot product to the library.
    tile_tokens : int
        Tokens between two updates of the running maximum; at least 1.
    slices : int
        Equal parts of the head dimension, each summed by a unit of its own before the parts are added; a
        power of two. More than one needs ``lanes``.

    Raises
    ------
    TypeError, ValueError
        If a field is of the wrong type or out of range.

    Notes
    -----
    Sums and products are those of ``dtype``: IEEE 754 round to nearest, ties to even, subnormals kept.
    A NaN has no payload and no sign: :meth:`canonical` brings it to the one NaN code of the format.
    """

    name: str
    dtype: np.dtype[Any]
    operand_dtype: np.dtype[Any]
    output_dtype: np.dtype[Any]
    exponential: Callable[[Array], Array]
    base: Base = "e"
    lanes: int | None = None
    tile_tokens: int = 16
    slices: int = 1

    def __post_init__(self) -> None:
        if self.dtype.name not in ("float32", "float64"):
            raise ValueError(f"dtype must be float32 or float64, not {self.dtype!r}")
        if self.base not in ("e", "2"):
            raise ValueError(f'base must be "e" or "2", not {self.base!r}')
        if self.lanes is not None:
            require_int("lanes", self.lanes, 2)
            if self.lanes & (self.lanes - 1):
                raise ValueError(f"lanes must be a power of two, not {self.lanes!r}")
        require_int("tile_tokens", self.tile_tokens, 1)
        require_int("slices", self.slices, 1)
        if self.slices & (self.slices - 1):
            raise ValueError(f"slices must be a power of two, not {self.slices!r}")
        if self.slices > 1 and self.lanes is None:
            raise ValueError(f"slices must be 1 where lanes is None, not {self.slices!r}")

    def operand(self, values: npt.ArrayLike) -> Array:
        """Round ``values`` to the format of q, k and v and return them as ``dtype``, any shape."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.asarray(values).astype(self.operand_dtype).astype(self.dtype)

    def output(self, values: Array) -> Array:
        """Round ``values`` to the format of the attention output, any shape."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self.canonical(values.astype(self.output_dtype))

    def canonical(self, values: Array) -> Array:
        """Return ``values`` with every NaN replaced by the positive quiet NaN without payload."""
        nan = np.isnan(values)
        return np.where(nan, values.dtype.type(np.nan), values) if nan.any() else values

    def score_scale(self, scale: float) -> Any:
        """Round ``scale`` to ``dtype``, times log2(e) where the base is 2, so that scores fit the base."""
        return self.dtype.type(scale if self.base == "e" else scale * np.log2(np.e))

    def maximum(self, new: Array, old: Array) -> Array:
        """Return ``new > old ? new : old``, NaN if either is NaN; of +0 and -0 the old one stays."""
        return np.where((new > old) | np.isnan(new), new, old)

    def dot(self, a: Array, b: Array) -> Array:
        """Sum ``a[i] * b[i]`` over the first axis.

        Parameters
        ----------
        a, b : ndarray of ``dtype``, shapes (num_elements, ...)
            The other axes broadcast; ``num_elements`` at least 1, a multiple of ``slices`` and of nothing else.

        Returns
        -------
        ndarray of ``dtype``
            Broadcast shape without the first axis.

        Raises
        ------
        ValueError
            If there is no element, or their number is no multiple of ``slices``.

        Notes
        -----
        With ``lanes`` set, elements come in beats of ``lanes``, the last one filled with +0. In a beat
        level 1 adds lanes 2i and 2i + 1, level 2 adds those sums in the same way, and so on
        (``lanes - 1`` additions); the sums of the beats are added in order, starting from the first.
        With ``slices``, each part of ``num_elements / slices`` consecutive elements is summed like that,
        and the sums of the parts are added pairwise as the lanes are.
        """
        count = a.shape[0]
        if count == 0:
            raise ValueError("dot must be given at least one element")
        if count % self.slices:
            raise ValueError(f"dot must be given a multiple of slices ({self.slices}) elements, not {count}")
        if self.lanes is None:
            return np.einsum("i...,i...->...", a, b)
        size = count // self.slices
        parts = [self._slice_dot(a[start : start + size], b[start : start + size]) for start in range(0, count, size)]
        return _pairwise_sum(np.stack(parts))

    def _slice_dot(self, a: Array, b: Array) -> Array:
        """Sum one slice: beats of ``lanes`` elements, each by a pairwise tree, in order."""
        assert self.lanes is not None
        total: Array | None = None
        for start in range(0, a.shape[0], self.lanes):
            level = a[start : start + self.lanes] * b[start : start + self.lanes]
            if level.shape[0] < self.lanes:
                fill = np.zeros((self.lanes - level.shape[0], *level.shape[1:]), self.dtype)
                level = np.concatenate([level, fill])
            beat = _pairwise_sum(level)
            total = beat if total is None else total + beat
        assert total is not None
        return total


def _pairwise_sum(level: Array) -> Array:
    """Sum over the first axis, of a power of two: neighbours, then neighbouring sums, and so on."""
    while level.shape[0] > 1:
        level = level[0::2] + level[1::2]
    return level[0]


_FLOAT64 = np.dtype(np.float64)

REFERENCE = Numerics(
    name="reference", dtype=_FLOAT64, operand_dtype=_FLOAT64, output_dtype=_FLOAT64, exponential=np.exp
)
"""float64 throughout, library exponential, library order of summation inside a dot product."""

REFERENCE_BASE2 = Numerics(
    name="reference-base2",
    dtype=_FLOAT64,
    operand_dtype=_FLOAT64,
    output_dtype=_FLOAT64,
    exponential=np.exp2,
    base="2",
)
"""The same with powers of two: scores carry a factor log2(e), so results agree but states do not mix."""


@lru_cache(maxsize=16)
def _exponential(spec: ExpSpec) -> Callable[[Array], Array]:
    """Return the exponential unit of ``spec`` as a function on float32, by a table of all its codes."""
    results = FP16.from_codes(spec.evaluate_codes(np.arange(1 << FP16.bits, dtype=FP16.code_dtype)))
    table = results.astype(FP32.dtype)
    return lambda x: table[FP16.to_codes(x)]


def unit_numerics(exp_spec: ExpSpec, lanes: int = 16, tile_tokens: int = 16, slices: int = 1) -> Numerics:
    """Return the numerics of the hardware units: fp32 arithmetic around an fp16 exponential unit.

    Parameters
    ----------
    exp_spec : ExpSpec
        The exponential unit, with fp16 operand and result.
    lanes : int
        Lanes of the processing unit, a power of two.
    tile_tokens : int
        Tokens of a tile.
    slices : int
        Processing units that share the elements of a token, a power of two.

    Returns
    -------
    Numerics
        q, k, v, weights and output in fp16; scores, m, l and o in fp32.

    Raises
    ------
    TypeError, ValueError
        If ``lanes``, ``tile_tokens`` or ``slices`` is no valid size, or the exponential unit is not fp16.

    Notes
    -----
    ``exponential(x)`` rounds x to fp16 and looks the result up among the unit's own: the bit-exact model
    evaluated at all 65,536 codes. A product of two fp16 numbers is exact in fp32.
    """
    if exp_spec.fmt != FP16:
        raise ValueError(f"exp_spec must be of format fp16, not {exp_spec.fmt.name!r}")
    return Numerics(
        name="unit",
        dtype=FP32.dtype,
        operand_dtype=FP16.dtype,
        output_dtype=FP16.dtype,
        exponential=_exponential(exp_spec),
        lanes=lanes,
        tile_tokens=tile_tokens,
        slices=slices,
    )
