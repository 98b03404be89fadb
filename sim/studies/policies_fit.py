"""The ratio that PAM's policy keeps: the one with the shortest decode steps, over loads and a grid of ratios.

Never fitted to how many tokens move. One ratio for all models and contexts: the least geometric mean, over the loads,
of the time of a step as part of that without moves.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

from sim.studies.policies import SPARSITY, decode_step_ms, serve_load
from sim.tiering.plan import TierPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sim.studies.policies import Load

__all__ = ["GRID", "best_ratio", "ratio_rows"]

GRID = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0), (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Values of x and of y."""


def ratio_rows(
    loads: dict[str, Load],
    grid: tuple[Sequence[float], Sequence[float]] = GRID,
    *,
    seed: int,
    progress: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Return a row for each ratio: steps of each load, and their geometric mean as part of those without moves.

    Parameters
    ----------
    loads : dict of str to Load
    grid : pair of sequence of float
        Values of x and of y.
    seed : int
        Of lengths.
    progress : callable
        Told of each row that is done.
    """

    def steps_ms(plan: TierPlan) -> list[float]:
        return [decode_step_ms(serve_load(load, plan)) for load in loads.values()]

    still = steps_ms(TierPlan(policy_name="static", sparsity=SPARSITY, seed=seed))
    rows: list[dict[str, Any]] = []
    for x, y in product(*grid):
        found = steps_ms(TierPlan(policy_name="pam", sparsity=SPARSITY, ratio=(x, y), seed=seed))
        parts = [ours / base for ours, base in zip(found, still, strict=True)]
        relative = math.exp(sum(map(math.log, parts)) / len(parts))
        each = {f"{name} ms": value for name, value in zip(loads, found, strict=True)}
        rows.append({"name": f"{x:g} : {y:g} : 1", "x": x, "y": y, "relative": relative, **each})
        progress(f"{rows[-1]['name']}: {relative:.4f}")
    return rows


def best_ratio(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row with the shortest steps, and whether larger and smaller values of both numbers were tried."""
    best = min(rows, key=lambda row: row["relative"])
    inside = all(min(row[key] for row in rows) < best[key] < max(row[key] for row in rows) for key in ("x", "y"))
    return best | {"bracketed": inside}
