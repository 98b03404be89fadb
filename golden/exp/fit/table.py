"""Entries for a :class:`golden.exp.table.TableSpec`, fitted to the operands that choose each of them.

Per entry, every integer near the values it stands for is judged on the operands themselves; then one a step is chosen
so that the table does not fall, exact among all choices (:func:`golden.exp.fit.pieces.chain`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.fit.pieces import Choices, Targets, chain

if TYPE_CHECKING:
    from golden.exp.table import TableSpec

__all__ = ["TableFit", "fit"]

_REACH = 4
_LIMIT = 64


@dataclass(frozen=True, kw_only=True)
class TableFit:
    """Result of :func:`fit`.

    Parameters
    ----------
    table : tuple of int
        As in :class:`golden.exp.table.TableSpec`.
    method_error : float
        Largest relative error of the best entries with no word length: ``tanh(ln(2) / (2 * entries))``.
    error : float
        Largest relative error of the rounded results: the smallest of any table.
    misrounded : int
        Operands whose result is not the correctly rounded one.
    operands : int
        Operands counted: those with a normal result.
    """

    table: tuple[int, ...]
    method_error: float
    error: float
    misrounded: int
    operands: int


def fit(spec: TableSpec) -> TableFit:
    """Fit the entries of ``spec`` to its word lengths, format and domain.

    Parameters
    ----------
    spec : TableSpec
        Everything but the entries is used; of these only the number.

    Returns
    -------
    TableFit
    """
    targets = Targets(spec)
    rows, error = chain([_choices(spec, targets, k) for k in range(spec.entries)])
    table = tuple(int(row[0]) for row in rows)
    misrounded, _, _ = targets.judge(slice(None), spec.replace(table=table).core(targets.f)[None])
    return TableFit(
        table=table,
        method_error=float(np.tanh(np.log(2) / (2 * spec.entries))),
        error=error,
        misrounded=int(misrounded[0]),
        operands=targets.operands,
    )


def _choices(spec: TableSpec, targets: Targets, k: int) -> Choices:
    """Return the choices of entry ``k``: integers around the middle of what it stands for, or of its step."""
    one = 1 << spec.core_bits
    members = targets.members(k << spec.step_bits, k + 1 << spec.step_bits)
    low, high = targets.low[members], targets.high[members]
    wanted = (low.min(), high.max()) if low.size else 2.0 ** (np.array([k - 0.5, k + 0.5]) / spec.entries) * one
    reach = min(_LIMIT, _REACH + int(wanted[1] - wanted[0]) // 2)
    h = round(float(wanted[0] + wanted[1]) / 2) + np.arange(-reach, reach + 1)
    top = one + (one >> (spec.fmt.significand_bits + 1)) - 1 if k == 0 else 2 * one - 1
    h = np.unique(np.clip(h, one, top))
    if low.size:
        return Choices(h[:, None], h, h, *targets.judge(members, np.repeat(h[:, None], low.size, axis=1)))
    nothing = np.zeros(h.size)
    return Choices(
        h[:, None], h, h, nothing.astype(np.int64), nothing, np.abs(h - float(wanted[0] + wanted[1]) / 2) / one
    )
