"""Figure of the study of exponential units, drawn from its rows."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sim.plot_labels import place_labels
from sim.plots import save_figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ["exp_figure"]

_COLOURS = (
    *("#4c72b0", "#c44e52", "#55a868", "#8172b3", "#ccb974", "#64b5cd"),
    *("#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#dd8452", "#17becf"),
)
_MARKERS = {"combinational": "o", "pipelined": "s", "serial": "^"}
_SHOWN = {"fp16": 0.01, "bf16": 0.05}
"""Largest error drawn: were those beyond it shown, the others would lie in one line."""
_LANDMARKS = {
    *("table-1024", "shift-add14", "linear-16-12", "linear-64-14", "poly3-f14", "poly6-f14", "compact-poly6"),
    "schraudolph-corrected-bf16",
}
"""Units that are named wherever they lie: one of each plain method."""
_FLOORS = {"fp16": 2.0**-11, "bf16": 2.0**-8, "q5.10": 2.0**-11}

_AREA = "area, gate equivalents"
_DELAYS = {"ns": "ns", "nand2": "NAND2 delays"}


def exp_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw for each format largest error and wrong roundings against area, and area against delay.

    Both axes are logarithmic. Units on the front are filled and, of the full domain, named; the combinational ones
    of these are joined by a line; the others are hollow, and one of each plain method is named.
    The colour is the family, the marker the layout in time.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of :func:`sim.studies.exp.exp_rows`.
    path : Path
        File to write; its suffix decides the format.

    Raises
    ------
    ValueError
        If there are no rows.
    ConfigError
        If the file can't be written.
    """
    if not rows:
        raise ValueError("rows must not be empty")
    # Fixed point has too few units for a panel and another meaning of relative error: it shares that of fp16.
    formats = [name for name in ("fp16", "bf16") if any(_panel(row) == name for row in rows)]
    families = list(dict.fromkeys(str(row["family"]) for row in rows))
    colours = {family: _COLOURS[i % len(_COLOURS)] for i, family in enumerate(families)}
    widths = [1.0 if name == "fp16" else 0.62 for name in formats]
    unit = "nand2" if rows[0]["delay_ns"] is None else "ns"
    figure = Figure(figsize=(3.0 + 7.4 * sum(widths), 18.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(3, len(formats), squeeze=False, gridspec_kw={"width_ratios": widths})
    named: list[tuple[Axes, list[tuple[float, float, str]], list[tuple[float, float]]]] = []
    for column, name in enumerate(formats):
        mine = [row for row in rows if _panel(row) == name]
        upper, middle, lower = (panels[row][column] for row in range(3))
        named.append(_draw(upper, mine, colours, lambda row: (row["area_ge"], row["max_rel"])))
        _draw_front(upper, mine)
        _limit_errors(upper, mine, name)
        upper.axhline(_FLOORS[name], color="0.6", linewidth=0.8, linestyle=":")
        shown = name if all(row["format"] == name for row in mine) else f"{name} and 16-bit fixed point"
        upper.set(title=f"{shown}: error against area", xlabel=_AREA, ylabel="largest relative error")
        named.append(_draw(middle, mine, colours, lambda row: (row["area_ge"], 1 - row["correctly_rounded"])))
        middle.set(xlabel=_AREA, ylabel="share of results not correctly rounded")
        named.append(_draw(lower, mine, colours, lambda row: (row[f"delay_{unit}"], row["area_ge"])))
        lower.set(title=f"{shown}: area against delay", xlabel=f"delay, {_DELAYS[unit]}, no wires", ylabel=_AREA)
    _legend(figure, colours, rows)
    first = rows[0]
    figure.suptitle(
        f"{len(rows)} exponential units, every operand code through the RTL; {first['library']}, {first['yosys']}",
        fontsize=10,
    )
    # Labels are placed in the picture's own units, which are known once it is laid out.
    figure.draw_without_rendering()
    for axes, labels, points in named:
        place_labels(axes, labels, points)
    save_figure(figure, path)


def _panel(row: Mapping[str, Any]) -> str:
    return "bf16" if row["format"] == "bf16" else "fp16"


def _draw(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    colours: Mapping[str, str],
    place: Callable[[Mapping[str, Any]], tuple[float, float]],
) -> tuple[Axes, list[tuple[float, float, str]], list[tuple[float, float]]]:
    """Draw one point a unit; return the axes with the names to place and all points."""
    labels: list[tuple[float, float, str]] = []
    for row in rows:
        x, y = place(row)
        colour = colours[row["family"]]
        axes.plot(
            [x],
            [y],
            marker=_MARKERS[row["parameters"]["evaluation"]],
            markersize=6.5 if row["pareto"] else 4.5,
            markerfacecolor=colour if row["pareto"] else "none",
            markeredgecolor=colour,
            linestyle="none",
            zorder=3 if row["pareto"] else 2,
        )
        named = (row["pareto"] and row["domain"] == "full") or row["name"] in _LANDMARKS
        if named and row["max_rel"] <= _SHOWN[_panel(row)]:
            labels.append((x, y, row["name"]))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.08)
    axes.grid(which="both", color="0.93")
    axes.set_axisbelow(True)
    return axes, labels, [place(row) for row in rows]


def _draw_front(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Join the front of the panel's own format by steps: combinational units of the full domain."""
    front = sorted(
        (row["area_ge"], row["max_rel"])
        for row in rows
        if row["pareto"]
        and row["domain"] == "full"
        and row["format"] == _panel(row)
        and row["parameters"]["evaluation"] == "combinational"
    )
    # Areas that are not ranked leave units on the front that lie above it: the line goes below them.
    steps: list[tuple[float, float]] = []
    for area, error in front:
        if not steps or error < steps[-1][1]:
            steps.append((area, error))
    axes.step([x for x, _ in steps], [y for _, y in steps], where="post", color="0.55", linewidth=1.0, zorder=1)


def _limit_errors(axes: Axes, rows: Sequence[Mapping[str, Any]], fmt: str) -> None:
    """Show the errors from the rounding of the format up, and say what lies above them."""
    axes.set_ylim(0.85 * _FLOORS[fmt], _SHOWN[fmt])
    above = [row["name"] for row in rows if row["max_rel"] > _SHOWN[fmt]]
    if above:
        text = "\n".join((f"above {_SHOWN[fmt]:.0%}:", *above))
        axes.annotate(text, (0.99, 0.985), xycoords="axes fraction", ha="right", va="top", fontsize=7, color="0.4")


def _legend(figure: Figure, colours: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    layouts = list(dict.fromkeys(str(row["parameters"]["evaluation"]) for row in rows))
    handles = [Line2D([], [], marker="o", linestyle="none", color=colour) for colour in colours.values()]
    handles += [Line2D([], [], marker=_MARKERS[name], linestyle="none", color="0.3") for name in layouts]
    handles += [Line2D([], [], marker="o", linestyle="none", markerfacecolor="none", color="0.3")]
    handles += [Line2D([], [], linestyle=":", color="0.6")]
    figure.legend(
        handles,
        [*colours, *layouts, "off the front", "half a unit in the last place"],
        loc="outside lower center",
        ncols=5,
        frameon=False,
        fontsize=9,
    )
