"""Compression of 16-bit numbers to 8 bits on the wire, with one scale a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.checks import require_int
from golden.formats import BF16, FP16, FloatFormat

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["RAW_SCALE", "BlockCompression", "BlockRecord"]

RAW_SCALE = 255
"""Scale of a block that is sent as it is, because a number in it is an infinity or a NaN."""

_MAGNITUDE_BITS = 7


@dataclass(frozen=True)
class BlockRecord:
    """One block as it crosses the wire.

    Parameters
    ----------
    scale : int
        From 0 to 254 the scale k of 8-bit codes; :data:`RAW_SCALE` says that ``codes`` are those of the format itself.
    codes : tuple of int
        One a number: 8 bits (sign and 7 bits of magnitude), or 16 bits in a raw block.
    """

    scale: int
    codes: tuple[int, ...]

    @property
    def wire_bytes(self) -> int:
        """Bytes of scale and codes on the wire."""
        return 1 + len(self.codes) * (2 if self.scale == RAW_SCALE else 1)


@dataclass(frozen=True, kw_only=True)
class BlockCompression:
    r"""16-bit floats as 8-bit integers times a power of two that the block shares.

    Every finite number of the format is an integer N times its smallest subnormal. With M the largest \|N\| of a
    block::

        k    = max(0, bit_length(M) - 7)
        c    = min(127, round(|N| / 2^k))          ties to even
        N'   = sign(N) * c * 2^k

    and scale k, sign and c are what is sent. c has 7 bits and the format more, so N' is a number of the format,
    exactly. The sign of a zero survives.

    Notes
    -----
    Error: with k = 0 every number is exact. Else ``M >= 2^(k+6)``. Rounding errs by at most ``2^(k-1) <= M / 128``. A
    number that would round to 128 has ``127.5 <= |N| / 2^k < 128`` and becomes 127, so errs by less than ``2^k``, and
    by ``(|N| / 2^k - 127) / (|N| / 2^k) < 1 / 128`` of itself, at most M. So for every number of a block::

        |N' - N| <= M / 128

    Numbers below 1/256 of the largest of their block become zero: that is what a long block costs.

    Encoding what was decoded gives the same numbers again; to compress a record twice is a matter of tags
    (:mod:`golden.dma.frames`), which forbid it.

    Parameters
    ----------
    fmt : FloatFormat
        fp16 or bf16.
    block : int
        Numbers that share a scale; at least 1.

    Raises
    ------
    TypeError, ValueError
        If ``fmt`` is another format, or ``block`` no integer of at least 1.
    """

    fmt: FloatFormat
    block: int = 32

    def __post_init__(self) -> None:
        if self.fmt not in (FP16, BF16):
            raise ValueError(f"fmt must be fp16 or bf16, not {getattr(self.fmt, 'name', self.fmt)!r}")
        require_int("block", self.block, 1)

    def encode(self, codes: npt.NDArray[Any]) -> list[BlockRecord]:
        """Return the blocks of a vector; the last may be shorter.

        Parameters
        ----------
        codes : ndarray of uint16, shape (numbers,)
            Codes of ``fmt``.

        Raises
        ------
        TypeError, ValueError
            If there are codes of more than 16 bits, no integers, or more than one dimension.
        """
        codes = _vector(codes, 16)
        whole = len(codes) // self.block * self.block
        blocks = self._encode_blocks(codes[:whole].reshape(-1, self.block))
        return blocks + self._encode_blocks(codes[None, whole:]) if whole < len(codes) else blocks

    def decode(self, records: list[BlockRecord]) -> npt.NDArray[np.uint16]:
        """Return the codes of ``fmt`` that records stand for, shape (numbers,).

        Raises
        ------
        ValueError
            If a scale or a code does not exist.
        """
        scales = np.array([record.scale for record in records for _ in record.codes], np.int64)
        codes = np.array([code for record in records for code in record.codes], np.int64)
        raw = scales == RAW_SCALE
        if scales.size and not 0 <= int(np.where(raw, 0, scales).min()) <= int(scales[~raw].max(initial=0)) <= (
            self.max_scale
        ):
            raise ValueError(f"scale must be from 0 to {self.max_scale} or {RAW_SCALE}, not {scales[~raw].tolist()}")
        found = np.zeros(len(codes), np.uint16)
        found[raw] = _vector(codes[raw], 16)
        found[~raw] = self._expand(_vector(codes[~raw], 8).astype(np.int64), scales[~raw])
        return found

    @property
    def max_scale(self) -> int:
        """Largest scale that a block of this format can have."""
        return int(self._bit_lengths(np.array(self.fmt.inf_code - 1))) - _MAGNITUDE_BITS

    def wire_bytes(self, numbers: int) -> int:
        """Return the bytes that ``numbers`` finite numbers take on the wire.

        Raises
        ------
        TypeError, ValueError
            If ``numbers`` is no integer of at least 0.
        """
        require_int("numbers", numbers, 0)
        return numbers + -(-numbers // self.block)

    def _encode_blocks(self, codes: npt.NDArray[np.uint16]) -> list[BlockRecord]:
        """Return the records of blocks of one length, shape (blocks, numbers)."""
        magnitudes = codes.astype(np.int64) & (self.fmt.sign_mask - 1)
        largest = magnitudes.max(axis=1, initial=0)
        scales = np.maximum(0, self._bit_lengths(largest) - _MAGNITUDE_BITS)
        significands, shifts = self._split(magnitudes)
        shifts = shifts - scales[:, None]
        left, right = np.clip(shifts, 0, _MAGNITUDE_BITS), np.clip(-shifts, 0, self.fmt.bits)
        quotients, halves, rests = significands << left >> right, 1 << right >> 1, significands & ((1 << right) - 1)
        up = (right > 0) & ((rests > halves) | ((rests == halves) & (quotients & 1 == 1)))
        signs = codes.astype(np.int64) >> (self.fmt.bits - 1) << _MAGNITUDE_BITS
        small = signs | np.minimum(quotients + up, (1 << _MAGNITUDE_BITS) - 1)
        return [
            BlockRecord(RAW_SCALE, tuple(plain)) if raw else BlockRecord(scale, tuple(short))
            for raw, scale, plain, short in zip(
                (largest >= self.fmt.inf_code).tolist(), scales.tolist(), codes.tolist(), small.tolist(), strict=True
            )
        ]

    def _expand(self, codes: npt.NDArray[np.int64], scales: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the codes of the format that stand for 8-bit codes; it holds their numbers exactly."""
        fraction_bits = self.fmt.significand_bits
        magnitudes = codes & ((1 << _MAGNITUDE_BITS) - 1)
        lengths = np.frexp(magnitudes)[1]
        exponents = np.where(magnitudes > 0, np.maximum(0, scales + lengths - fraction_bits - 1), 0)
        shifts = np.where(magnitudes > 0, scales - exponents, 0)
        significands = magnitudes << np.maximum(shifts, 0) >> np.maximum(-shifts, 0)
        # The hidden bit carries into the exponent field, so that subnormals need no case of their own.
        return (codes >> _MAGNITUDE_BITS << (self.fmt.bits - 1)) | ((exponents << fraction_bits) + significands)

    def _split(self, magnitudes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return significand and shift of each magnitude: it is ``significand << shift`` smallest subnormals."""
        fraction_bits = self.fmt.significand_bits
        exponents = magnitudes >> fraction_bits
        hidden = (exponents > 0).astype(np.int64) << fraction_bits
        return hidden | (magnitudes & ((1 << fraction_bits) - 1)), np.maximum(exponents, 1) - 1

    def _bit_lengths(self, magnitudes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bits of magnitudes counted in smallest subnormals."""
        significands, shifts = self._split(magnitudes)
        return np.frexp(significands)[1] + shifts


def _vector(codes: npt.NDArray[Any], bits: int) -> npt.NDArray[np.uint16]:
    """Return codes as a vector of uint16, if they are integers of so many bits."""
    if codes.ndim != 1:
        raise ValueError(f"codes must be a vector, not of shape {codes.shape}")
    if codes.size and codes.dtype.kind not in "iu":
        raise TypeError(f"codes must be integers, not {codes.dtype}")
    if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < 1 << bits:
        raise ValueError(f"codes must be from 0 to {(1 << bits) - 1}, not {int(codes.min())} to {int(codes.max())}")
    return codes.astype(np.uint16)
