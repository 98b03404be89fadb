"""Figure of the study of policies, drawn from its rows."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sim.plots import save_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["policies_figure"]

_PARTS = {
    "gpu": "#4c72b0",
    "attention": "#55a868",
    "labels": "#8172b3",
    "migration": "#c44e52",
    "scatter": "#b0b0b0",
}


def policies_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw for each load steps that run no prompts, what all time went into, and which part of the reads is far away.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of :func:`sim.studies.policies.policy_rows`, at least one.
    path : Path
        File to write; its suffix decides the format.

    Raises
    ------
    ConfigError
        If the file can't be written.
    """
    loads = list(dict.fromkeys(str(row["load"]) for row in rows))
    figure = Figure(figsize=(max(8.0, 1.0 + 4.6 * len(loads)), 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(3, len(loads), squeeze=False, sharex="col")
    for column, load in enumerate(loads):
        of_load = [row for row in rows if row["load"] == load]
        names = [str(row["policy"]) for row in of_load]
        steps, times, shares = (line[column] for line in panels)
        steps.bar(names, [row["decode_step_ms"] for row in of_load], color="#4c72b0")
        below = np.zeros(len(of_load))
        for part, colour in _PARTS.items():
            values = np.array([row["parts_s"][part] for row in of_load])
            times.bar(names, values, bottom=below, color=colour, label=part.replace("_", " "))
            below += values
        shares.bar(names, [100 * row["far_share"] for row in of_load], color="#e0862e")
        for axes in (steps, times, shares):
            axes.grid(axis="y", color="0.9")
            axes.set_axisbelow(True)
        shares.tick_params(axis="x", rotation=40)
        outside = of_load[0]["outside_share"]
        steps.set_title(f"{load}: {of_load[0]['model']}, {outside:.0%} outside HBM", fontsize=10)
    for axes, text in zip(
        panels[:, 0], ("ms, a step without prompts", "s in all", "reads outside HBM, %"), strict=True
    ):
        axes.set_ylabel(text)
    handles, labels = panels[1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(_PARTS), frameon=False)
    save_figure(figure, path)
