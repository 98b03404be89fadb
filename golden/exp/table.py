"""Exponential by a table of ``2^f``, with no arithmetic between its entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.frame import ReducedSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TableSpec", "stepping"]


@dataclass(frozen=True, kw_only=True)
class TableSpec(ReducedSpec):
    """Exponential by range reduction and a table of which the entry nearest to t is taken.

    Parameters
    ----------
    table : tuple of int
        One entry for every ``1 / entries`` of [0, 1), in units of ``2^-table_bits``, not falling.
    table_bits : int
        Fraction bits of the entries.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, the entries are no power of two from 64 to 1024, leave
        no bit of t to round at, fall somewhere, or the first does not round to 1.

    Notes
    -----
    In the frame of :class:`golden.exp.frame.ReducedSpec`, but with half a step added to t before it is split, so that
    it is rounded to an entry and not cut; with ``w = frac_bits - log2(entries)``::

        t   = t + 2^(w - 1)
        n,f = t >> A, t mod 2^A
        h   = table[f >> w]

    So the operands around 0 get the entry that is exactly 1. Half a step, a relative error of
    ``ln(2) / (2 * entries)``, is what the method itself costs.
    """

    table: tuple[int, ...]
    table_bits: int

    family: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("table_bits", self.table_bits, self.fmt.significand_bits + 1, 24)
        if not isinstance(self.table, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"table must be a tuple, not {self.table!r}")
        if not 64 <= self.entries <= 1024 or self.entries & (self.entries - 1):
            raise ValueError(f"entries must be a power of two from 64 to 1024, not {self.entries}")
        if self.step_bits < 1:
            raise ValueError(
                f"frac_bits must be at least {self.index_bits + 1} to round to one of {self.entries} entries, "
                f"not {self.frac_bits}"
            )
        one = 1 << self.core_bits
        for k, entry in enumerate(self.table):
            require_int(f"table[{k}]", entry, one, 2 * one - 1)
            if k and entry < self.table[k - 1]:
                raise ValueError(
                    f"table[{k}] must be at least {self.table[k - 1]}, the entry before, so that the result is "
                    f"monotone, not {entry}"
                )
        limit = one + (one >> (self.fmt.significand_bits + 1)) - 1
        if self.table[0] > limit:
            raise ValueError(f"table[0] must be from {one} to {limit} so that exp(0) = 1, not {self.table[0]}")

    @property
    def entries(self) -> int:
        """Entries of the table."""
        return len(self.table)

    @property
    def index_bits(self) -> int:
        """Bits of f that choose an entry."""
        return self.entries.bit_length() - 1

    @property
    def step_bits(self) -> int:
        """Bits of f below those."""
        return self.frac_bits - self.index_bits

    @property
    def core_bits(self) -> int:
        """Fraction bits of the entries."""
        return self.table_bits

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Entries and word lengths."""
        return {"entries": self.entries, "frac_bits": self.frac_bits, "table_bits": self.table_bits}

    @property
    def steps(self) -> int:
        """Steps of the datapath: log2(e), shift, rounding to an entry, table, scaling, rounding."""
        return 6

    def reduce_codes(
        self, codes: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Split t with half a step added; see :meth:`ReducedSpec.reduce_codes`."""
        n, f, beyond = super().reduce_codes(codes)
        f = f + (1 << (self.step_bits - 1))
        return n + (f >> self.frac_bits), f & ((1 << self.frac_bits) - 1), beyond

    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the entry of each f; see :meth:`ReducedSpec.core`."""
        return np.array(self.table, dtype=np.int64)[f >> self.step_bits]

    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the entry nearest to each f, of a table that goes on to 2: the table is the method, so it stays."""
        entries = np.array([*self.table, 2 << self.table_bits])
        return entries[np.floor(f * self.entries + 0.5).astype(np.int64)] * 2.0**-self.table_bits


def stepping(*, name: str, entries: int, frac_bits: int, table_bits: int, **rest: Any) -> TableSpec:
    """Return the unit whose entries are ``2^f`` in the middle of their steps, rounded down.

    It is the naive table, valid at all word lengths, and the start of :func:`golden.exp.fit.table.fit`.

    Parameters
    ----------
    name : str
        Name of the unit.
    entries : int
        Entries, a power of two from 64 to 1024.
    frac_bits, table_bits : int
        Fraction bits of t and of the entries.
    **rest
        Other fields of :class:`TableSpec`.
    """
    values = np.floor(2.0 ** (np.arange(entries) / entries + table_bits)).astype(np.int64)
    return TableSpec(name=name, table=tuple(values.tolist()), frac_bits=frac_bits, table_bits=table_bits, **rest)
