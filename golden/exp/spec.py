"""What every exponential unit is to those who use it, whatever its way of computing.

A family subclasses :class:`ExpSpec`, adds its constants and its two models, and registers the steps of its
hardware with ``hw.units.exp.datapath``. Attention, timing and the units around it see only what is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from golden.checks import require_int
from golden.formats import BF16, FP16, FixedFormat, FloatFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

__all__ = ["Domain", "Evaluation", "ExpSpec", "Subnormals", "require_choice"]

Evaluation = Literal["combinational", "pipelined", "serial"]
"""How a unit is laid out in time: no register, a register after each step, or one multiplier for all steps."""

Domain = Literal["full", "nonpositive"]
"""Operands that count: all of them, or those of a softmax, which are never above zero."""

Subnormals = Literal["rounded", "flushed"]
"""What becomes of results below the smallest normal number: rounded like the others, or +0."""


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class ExpSpec(ABC):
    """Exponential of one 16-bit code.

    Parameters
    ----------
    name : str
        Name in reports and presets.
    fmt : FloatFormat or FixedFormat
        Format of operands, and of results unless the family says otherwise. A family for floating point alone
        narrows the type.
    domain : {"full", "nonpositive"}
        Operands that count. A ``nonpositive`` unit is exact in what it does with -0, +0, negative operands and NaNs
        of both signs; what it returns for operands above zero is its family's affair and means nothing.
    subnormals : {"rounded", "flushed"}
        What becomes of results below the smallest normal number of ``fmt``.
    evaluation : {"combinational", "pipelined", "serial"}
        Layout in time; not every family has a serial one. The results are the same.
    registers : int
        Of a pipelined unit: 0 puts a register after each step of the family's datapath; any other number computes
        in one block with so many registers behind it, for a synthesiser to move into the logic.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range.

    Notes
    -----
    Every unit returns +0 for -infinity, +infinity for +infinity and on overflow, ``fmt.nan_code`` for a NaN of either
    sign and exactly 1 for both zeros, and its result does not fall as x rises over the codes of its domain.
    """

    name: str
    fmt: FloatFormat | FixedFormat = FP16
    domain: Domain = "full"
    subnormals: Subnormals = "rounded"
    evaluation: Evaluation = "pipelined"
    registers: int = 0

    family: ClassVar[str]
    """Name of the family in reports."""
    formats: ClassVar[tuple[FloatFormat | FixedFormat, ...]] = (FP16, BF16)
    """Formats that the family computes."""
    evaluations: ClassVar[tuple[Evaluation, ...]] = ("combinational", "pipelined")
    """Layouts that the family has."""

    def __post_init__(self) -> None:
        require_choice("evaluation", self.evaluation, self.evaluations)
        require_choice("domain", self.domain, get_args(Domain))
        require_choice("subnormals", self.subnormals, get_args(Subnormals))
        if not isinstance(self.fmt, FloatFormat | FixedFormat):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"fmt must be a number format, not {self.fmt!r}")
        if self.fmt not in self.formats:
            raise ValueError(f"fmt must be {' or '.join(fmt.name for fmt in self.formats)}, not {self.fmt.name!r}")
        require_int("registers", self.registers, 0, 64)
        if self.registers and self.evaluation != "pipelined":
            raise ValueError(f"registers must be 0 of a {self.evaluation} unit, not {self.registers!r}")

    @property
    def result_fmt(self) -> FloatFormat | FixedFormat:
        """Format of results."""
        return self.fmt

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, int | str]:
        """What sets this unit apart within its family, for the rows of a report."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of the family's datapath; a pipelined unit has a register after each."""

    @property
    def latency_cycles(self) -> int:
        """Cycles from the transfer of an operand to the first cycle in which its result is valid, without stalls.

        0 of a combinational unit: the result is valid in the cycle in which the operand is offered.
        """
        return 0 if self.evaluation == "combinational" else self.registers or self.steps

    @property
    def interval_cycles(self) -> int:
        """Cycles between two accepted operands without stalls."""
        return 1

    def replace(self, **changes: Any) -> Self:
        """Return this spec with ``changes`` applied, validated anew."""
        return replace(self, **changes)

    @abstractmethod
    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the same approximation with no word lengths: what is left is the error of the method.

        Parameters
        ----------
        x : array_like of float
            Any shape.

        Returns
        -------
        ndarray of float64
            Same shape; NaN, infinities and float64 overflow as in ``numpy.exp``.
        """

    @abstractmethod
    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit.

        Parameters
        ----------
        codes : array_like of int
            Codes of ``fmt``, any shape.

        Returns
        -------
        ndarray of uint16
            Same shape.
        """
