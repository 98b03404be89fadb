"""Figure of the study of retrieval, drawn from its rows."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from sim.plots import save_figure
from sim.studies.retrieval_scan import CLAIM_FROM, LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ["retrieval_figure"]

_COLOURS = ("#333333", "#4c72b0", "#c44e52", "#55a868", "#8172b3", "#e0862e", "#17becf", "#8c564b")
_MARKERS = ("o", "s", "^")


def retrieval_figure(scans: Sequence[Mapping[str, Any]], quality: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw what selecting adds to scoring, and of each source of tokens recall over k and kept mass over bytes read.

    Dashes are methods with the first and last tokens pinned; the oracle reads no index, and is drawn at the bytes of
    the tokens alone.

    Parameters
    ----------
    scans : sequence of mapping
        Rows of :func:`sim.studies.retrieval_scan.scan_rows`.
    quality : sequence of mapping
        Rows of :func:`sim.studies.retrieval_quality.quality_rows`.
    path : Path
        File to write; its suffix decides the format.

    Raises
    ------
    ValueError
        If there are no rows.
    ConfigError
        If the file can't be written.
    """
    if not scans or not quality:
        raise ValueError("rows must not be empty")
    sources = list(dict.fromkeys(str(row["source"]) for row in quality))
    methods = list(dict.fromkeys(_base(row) for row in quality))
    colours = dict(zip(methods, _COLOURS, strict=False))
    figure = Figure(figsize=(15.0, 4.6 * len(sources) + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(sources), 3)
    _draw_scans(figure.add_subplot(grid[:, 0]), scans)
    for number, source in enumerate(sources):
        rows = [row for row in quality if row["source"] == source]
        _draw_quality(figure.add_subplot(grid[number, 1]), rows, colours, "recall")
        _draw_quality(figure.add_subplot(grid[number, 2]), rows, colours, "kept_mass")
    marks = [Line2D([], [], color=colour, linewidth=2) for colour in colours.values()]
    pinned = Line2D([], [], color="0.5", linewidth=1.5, linestyle="--")
    figure.legend(
        [*marks, pinned],
        [*colours, "pinned"],
        loc="outside lower center",
        ncols=len(colours) + 1,
        frameon=False,
    )
    save_figure(figure, path)


def _base(row: Mapping[str, Any]) -> str:
    return str(row["method"]).removesuffix(", pinned")


def _draw_scans(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw selection as part of scoring over tokens, a line a model, and the limit."""
    for number, model in enumerate(dict.fromkeys(str(row["model"]) for row in rows)):
        points = [row for row in rows if row["model"] == model]
        # Models with equal keys lie on one line: the later one is drawn thinner upon it.
        axes.plot(
            [row["tokens"] for row in points],
            [100 * row["select_share"] for row in points],
            color=_COLOURS[number + 1],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=9 if number == 0 else 4,
            linewidth=6 if number == 0 else 1.5,
            label=model,
        )
    axes.plot([CLAIM_FROM, 1 << 20], [100 * LIMIT] * 2, color="black", linewidth=1.5)
    axes.annotate(
        f"at most {LIMIT:.0%} from {CLAIM_FROM:,}",
        (1 << 20, 100 * LIMIT),
        ha="right",
        va="bottom",
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=9,
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = [1 << n for n in range(11, 21, 3)]
    axes.set_xticks(ticks, [f"{tick >> 10}K" for tick in ticks])
    axes.set_xlabel("tokens")
    axes.set_ylabel("cycles of SELECT, % of SCORE")
    axes.set_title("SELECT behind SCORE on one device")
    axes.legend(frameon=False)
    _frame(axes)


def _draw_quality(axes: Axes, rows: Sequence[Mapping[str, Any]], colours: Mapping[str, str], key: str) -> None:
    """Draw recall over k, or kept mass over bytes read."""
    for method in dict.fromkeys(str(row["method"]) for row in rows):
        points = [row for row in rows if row["method"] == method]
        dashed = method.endswith(", pinned")
        axes.plot(
            [row["k"] if key == "recall" else 100 * _share(row) for row in points],
            [100 * row[key] for row in points],
            color=colours[_base(points[0])],
            linestyle="--" if dashed else "-",
            marker="o",
            markersize=2.5 if dashed else 4,
        )
    first = rows[0]
    if key == "recall":
        ks = sorted({int(row["k"]) for row in rows})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ks, [str(k) for k in ks])
        axes.set_xlabel("k, tokens selected")
        axes.set_ylabel("recall of the k tokens of largest mass, %")
    else:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.set_xlabel("bytes of index and tokens read, % of all keys and values")
        axes.set_ylabel("attention mass kept, %")
    axes.set_ylim(0, 103)
    axes.set_title(f"{first['source']}, {first['tokens']:,.0f} tokens, {first['queries']} queries", fontsize=11)
    _frame(axes)


def _share(row: Mapping[str, Any]) -> float:
    """Return the bytes read as part of all keys and values."""
    return float(row["selected"] / row["tokens"] if row["bytes_share"] is None else row["bytes_share"])


def _frame(axes: Axes) -> None:
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
