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
from golden.formats import BF16, FP16, FP32, FloatFormat, round_to_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from golden.exp import ExpSpec

__all__ = ["REFERENCE", "REFERENCE_BASE2", "Array", "Base", "Numerics", "require_unit_formats", "unit_numerics"]

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
        with np.errstate(invalid="ignore"):
            return round_to_dtype(values, self.operand_dtype).astype(self.dtype)

    def output(self, values: Array) -> Array:
        """Round ``values`` to the format of the attention output, any shape."""
        with np.errstate(invalid="ignore"):
            return self.canonical(round_to_dtype(values, self.output_dtype))

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
    fmt = spec.fmt
    results = fmt.from_codes(spec.evaluate_codes(np.arange(1 << fmt.bits, dtype=fmt.code_dtype)))
    table = results.astype(FP32.dtype)
    return lambda x: table[fmt.to_codes(x)]


def require_unit_formats(exp_spec: ExpSpec, kv_format: FloatFormat) -> None:
    """Refuse formats for which there are no processing units.

    Raises
    ------
    TypeError, ValueError
        Unless ``kv_format`` is fp16 or bf16, and the exponential unit's operand and result, and so the weights, are
        fp16 or, with bf16 keys and values, bf16. (Weights of bf16 on fp16 values would lose three bits to no end.)
    """
    if not isinstance(kv_format, FloatFormat):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"kv_format must be a FloatFormat, not {kv_format!r}")
    if kv_format not in (FP16, BF16):
        raise ValueError(f"kv_format must be fp16 or bf16, not {kv_format.name!r}")
    if exp_spec.fmt not in (FP16, kv_format):
        wanted = "fp16" if kv_format == FP16 else "fp16 or bf16"
        raise ValueError(
            f"exponential unit must be of format {wanted} with kv_format {kv_format.name}, not {exp_spec.fmt.name!r}"
        )


def unit_numerics(
    exp_spec: ExpSpec, lanes: int = 16, tile_tokens: int = 16, slices: int = 1, kv_format: FloatFormat = FP16
) -> Numerics:
    """Return the numerics of the hardware units: fp32 arithmetic around a 16-bit exponential unit.

    Parameters
    ----------
    exp_spec : ExpSpec
        The exponential unit; its format is that of the weights.
    lanes : int
        Lanes of the processing unit, a power of two.
    tile_tokens : int
        Tokens of a tile.
    slices : int
        Processing units that share the elements of a token, a power of two.
    kv_format : FloatFormat
        Format of q, k, v and of the output: fp16 or bf16.

    Returns
    -------
    Numerics
        q, k, v and output in ``kv_format``, weights in that of the exponential unit; scores, m, l and o in fp32.

    Raises
    ------
    TypeError, ValueError
        If ``lanes``, ``tile_tokens`` or ``slices`` is no valid size, or there are no units of such formats.

    Notes
    -----
    ``exponential(x)`` rounds x to the unit's format and looks the result up among the unit's own: the bit-exact model
    evaluated at all 65,536 codes.

    Every product is the exact one rounded once to fp32: infinity above its range, a subnormal or a zero of the
    product's sign below. Two fp16 numbers multiply exactly. The significands of two bf16 numbers, or of a bf16 and
    an fp16 number, always fit, but bf16 has fp32's exponents: products beyond 2**128 are infinite, and those below
    2**-126 lose bits. So with bf16 attention is right where

    * ``sum |q_i k_i| <= 2**127``, as with ``d <= 256`` and ``|q_i k_i| <= 2**119``, and a scale of at most 1: no sum
      in the tree overflows, and scores far apart weigh 0 or 1 as they should. The units do not tell what lies beyond:
      there opposite infinities add to NaN, a score of +inf makes its state NaN, and one of -inf weighs nothing beside
      a finite score;
    * ``num_tokens * max |v| <= 2**127``: beyond it elements of o, and of the output, are infinite or NaN, never a wrong
      finite number.

    Below the normal range products err by at most 2**-150 each, in scores and outputs alike.
    """
    require_unit_formats(exp_spec, kv_format)
    return Numerics(
        name="unit",
        dtype=FP32.dtype,
        operand_dtype=kv_format.dtype,
        output_dtype=kv_format.dtype,
        exponential=_exponential(exp_spec),
        lanes=lanes,
        tile_tokens=tile_tokens,
        slices=slices,
    )
