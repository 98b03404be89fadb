"""Figure of the study of selection, drawn from its rows."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sim.plots import save_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ["selection_figure"]

_COLOURS = ("#4c72b0", "#c44e52", "#55a868", "#8172b3", "#e0862e")


def selection_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw for each device the time of a selection, as part of that of all tokens, a bar a pattern and share.

    A black mark on each bar is the share that was selected: a device that paid for what it was asked would end there.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of :func:`sim.studies.selection.selection_rows`.
    path : Path
        File to write; its suffix decides the format.

    Raises
    ------
    ValueError
        If there are no rows.
    ConfigError
        If the file can't be written.
    """
    selected = [row for row in rows if row["pattern"] != "all"]
    if not selected:
        raise ValueError("rows must not be empty")
    presets = list(dict.fromkeys(str(row["preset"]) for row in selected))
    patterns = list(dict.fromkeys(str(row["pattern"]) for row in selected))
    shares = sorted({float(row["wanted_share"]) for row in selected}, reverse=True)
    figure = Figure(figsize=(2.0 + 4.2 * len(presets), 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(presets), sharey=True, squeeze=False)[0]
    colours = dict(zip(patterns, _COLOURS, strict=False))
    for axes, preset in zip(panels, presets, strict=True):
        _draw(axes, [row for row in selected if row["preset"] == preset], shares, colours)
    panels[0].set_ylabel("cycles, % of attention to all tokens")
    entries = [Line2D([], [], color=colour, linewidth=8) for colour in colours.values()]
    marks = Line2D([], [], color="black", linewidth=1.5)
    figure.legend(
        [*entries, marks],
        [*colours, "share selected"],
        loc="outside lower center",
        ncols=len(colours) + 1,
        frameon=False,
    )
    hashes = sorted({str(row["verilog_sha256"])[:8] for row in rows})
    tokens = rows[0]["parts"] * rows[0]["part_tokens"]
    figure.suptitle(
        f"selected tokens of {tokens:,} in a channel, head dimension {rows[0]['head_dim']}, Verilog "
        f"{', '.join(hashes)}",
        fontsize=9,
        color="0.4",
    )
    save_figure(figure, path)


def _draw(axes: Axes, rows: Sequence[Mapping[str, Any]], shares: Sequence[float], colours: Mapping[str, str]) -> None:
    """Draw one device: a cluster of bars for each share."""
    width = 0.8 / len(colours)
    for row in rows:
        place = shares.index(float(row["wanted_share"]))
        x = place + (list(colours).index(str(row["pattern"])) - (len(colours) - 1) / 2) * width
        height = 100.0 * float(row["relative_cycles"])
        axes.bar([x], [height], width=0.92 * width, color=colours[str(row["pattern"])])
        asked = 100.0 * float(row["wanted_share"])
        axes.plot([x - width / 2, x + width / 2], [asked, asked], color="black", linewidth=1.5)
        axes.annotate(
            f"{height:.3g}",
            (x, max(height, asked)),
            ha="center",
            va="bottom",
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=7,
        )
    axes.set_yscale("log")
    axes.set_ylim(1, 200)
    axes.set_xticks(range(len(shares)), [f"1/{round(1 / share)} selected" for share in shares])
    axes.set_title(f"{rows[0]['preset']} ({rows[0]['mapping']})", fontsize=11)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
