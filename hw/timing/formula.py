"""A number of cycles as text that can be evaluated, with its variables and a worked number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Formula"]


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A number of cycles as a formula.

    Parameters
    ----------
    formula : str
        Expression of the variables; ``ceil`` and ``max`` are the usual ones.
    variables : dict of str to str
        Meaning of each variable.
    values : dict of str to int
        Values of the variables for this unit.
    cycles : int
        What the formula gives for them.
    """

    formula: str
    variables: dict[str, str]
    values: dict[str, int]
    cycles: int

    def to_dict(self) -> dict[str, Any]:
        """Return formula, variables and worked example as they stand in a manifest."""
        return {
            "formula": self.formula,
            "variables": self.variables,
            "example": {**self.values, "cycles": self.cycles},
        }
