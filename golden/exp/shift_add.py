"""Exponential by shifts and adds, as CORDIC does: no multiplier and no table, one bit of the result a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.frame import ReducedSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["SHIFT_ADD_SPECS", "ShiftAddSpec"]


@dataclass(frozen=True, kw_only=True)
class ShiftAddSpec(ReducedSpec):
    """Exponential by range reduction and a product of factors ``1 + 2^-k``, each taken or not.

    Parameters
    ----------
    iterations : int
        Factors: k from 1 to this.
    guard_bits : int
        Bits of the remainder and of the product beyond ``frac_bits``.
    start : int
        What the product starts above 1, in units of its last place, against the truncation of every shift.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, or if the product leaves [1, 2), rounds ``2^0`` to
        anything but 1, or makes a result fall where x rises.

    Notes
    -----
    With ``F = frac_bits + guard_bits`` and ``c[k]`` the logarithm ``log2(1 + 2^-k)`` rounded to F bits, in the frame of
    :class:`golden.exp.frame.ReducedSpec`::

        r, h = f, 1 + start
        if r >= c[k]:  r, h = r - c[k], h + (h >> k)        for k = 1 .. iterations

    Every factor need be taken at most once: the logarithms of those behind any one sum to more than its own. A CORDIC
    in hyperbolic mode decides in the same way and keeps cosh and sinh apart, with a third adder a step.
    """

    iterations: int
    guard_bits: int = 2
    start: int = 0

    family: ClassVar[str] = "shift-add"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("guard_bits", self.guard_bits, 0, 6)
        require_int("iterations", self.iterations, 1, self.core_bits)
        require_int("start", self.start, 0, (1 << self.core_bits) - 1)
        self.require_core()

    @property
    def core_bits(self) -> int:
        """Fraction bits of remainder and product."""
        return self.frac_bits + self.guard_bits

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Iterations and word lengths."""
        return {"iterations": self.iterations, "frac_bits": self.frac_bits, "core_bits": self.core_bits}

    @property
    def steps(self) -> int:
        """Steps of the datapath: log2(e), shift, one a factor, scaling, rounding."""
        return self.iterations + 4

    @property
    def logarithms(self) -> tuple[int, ...]:
        """``c[1] .. c[iterations]`` in units of ``2^-core_bits``."""
        k = np.arange(1, self.iterations + 1)
        return tuple(np.rint(np.log2(1 + 2.0**-k) * (1 << self.core_bits)).astype(np.int64).tolist())

    def remainders(self) -> tuple[int, ...]:
        """Return the largest remainder before the first factor and after each."""
        f = np.arange(1 << self.frac_bits)
        return (int(f[-1]) << self.guard_bits, *(int(r.max()) for r, _ in self._walk(f)))

    def _walk(self, f: npt.NDArray[np.int64]) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield remainder and product after every factor."""
        r = f << self.guard_bits
        h = np.full_like(f, (1 << self.core_bits) + self.start)
        for k, logarithm in enumerate(self.logarithms, 1):
            take = r >= logarithm
            r, h = np.where(take, r - logarithm, r), np.where(take, h + (h >> k), h)
            yield r, h

    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the product of the factors taken; see :meth:`ReducedSpec.core`."""
        *_, (_, h) = self._walk(f)
        return h

    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the product of exact factors, taken by exact logarithms."""
        r, h = f, np.ones_like(f)
        for k in range(1, self.iterations + 1):
            take = r >= np.log2(1 + 2.0**-k)
            r, h = np.where(take, r - np.log2(1 + 2.0**-k), r), np.where(take, h * (1 + 2.0**-k), h)
        return h


SHIFT_ADD_SPECS = (
    ShiftAddSpec(name="shift-add11", evaluation="combinational", frac_bits=11, guard_bits=3, iterations=11, start=7),
    ShiftAddSpec(name="shift-add14", evaluation="combinational", frac_bits=14, guard_bits=2, iterations=14, start=3),
)
"""The cheapest below 0.1 % and one of 0.052 %, of all starts and iterations at their word lengths the best."""
