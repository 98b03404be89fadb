"""Figures, drawn from result rows and nothing else."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ["decode_figure", "save_figure"]

_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""What would differ from one run to the next, left out."""
_COLOURS = {"gpu_us": "#4c72b0", "link_us": "#8c8c8c", "reduction_us": "#c44e52"}
_LABELS = {"gpu_us": "GPU", "link_us": "links", "reduction_us": "reduction"}
_TIER_COLOURS = ("#f2c14e", "#e0862e", "#8a5a2b", "#55a868", "#64b5cd")


def decode_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the latency of decode steps, one panel a model, one bar a context and batch.

    The upper panels show the step on a logarithmic axis in milliseconds, the lower ones how it divides.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of :func:`sim.report.decode_row`; drawn in their order.
    path : Path
        File to write; its suffix decides the format.

    Raises
    ------
    ValueError
        If there are no rows.
    ConfigError
        If the file can't be written.
    """
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    if not models:
        raise ValueError("rows must not be empty")
    figure = Figure(figsize=(2.5 + 5.0 * len(models), 7.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, len(models), sharex="col", sharey="row", squeeze=False)
    for column, model in enumerate(models):
        mine = [row for row in rows if row["model"] == model]
        _draw_latency(panels[0][column], mine, f"{model} on {mine[0]['system']}")
        _draw_shares(panels[1][column], mine, _tier_colours(rows))
    panels[0][0].set_ylabel("decode step, ms")
    panels[1][0].set_ylabel("share of the step, %")
    swatches = {_LABELS[key]: colour for key, colour in _COLOURS.items()} | _tier_colours(rows)
    figure.legend(
        [Patch(color=colour) for colour in swatches.values()],
        list(swatches),
        loc="outside lower center",
        ncols=len(swatches),
        frameon=False,
    )
    hashes = sorted({str(row["config_sha256"])[:8] for row in rows})
    figure.suptitle(f"one decode step, configurations {hashes[0]} … ({len(hashes)} in all)", fontsize=9, color="0.4")
    save_figure(figure, path)


def save_figure(figure: Figure, path: Path) -> None:
    """Write ``figure`` in the format of the suffix of ``path``, the same file for the same figure.

    Raises
    ------
    ConfigError
        If the file can't be written, or nothing writes that format.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without date and version in it the same rows give the same file.
        with mpl.rc_context({"svg.hashsalt": "nearkv"}):
            figure.savefig(path, dpi=120, metadata=_METADATA.get(path.suffix.lower()))
    except OSError as error:
        raise ConfigError(f"{path}: file must be writable: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: file must be of a format for figures: {error}") from None


def _ticks(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Label every bar with its context and batch."""
    axes.set_xticks(range(len(rows)), [f"{_short(row['context'])}\nx {row['batch']}" for row in rows], fontsize=8)
    axes.set_xlabel("context in tokens x batch in requests")


def _short(tokens: int) -> str:
    """Return a token count in units of 1024 where it is a multiple."""
    return f"{tokens // 1024}K" if tokens % 1024 == 0 else str(tokens)


def _draw_latency(axes: Axes, rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Draw the step times of one model."""
    heights = [float(row["step_us"]) / 1e3 for row in rows]
    axes.bar(range(len(rows)), heights, color="0.75", width=0.7)
    axes.set_yscale("log")
    axes.margins(y=0.2)
    for index, height in enumerate(heights):
        axes.annotate(
            f"{height:,.0f}" if height >= 100 else f"{height:.3g}",
            (index, height),
            ha="center",
            va="bottom",
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_title(title, fontsize=11)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)


def _tier_colours(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return a colour for every tier that a step waits for, in the order of the rows' columns."""
    waited = {str(row["slowest_tier"]) for row in rows}
    columns = [key.removesuffix("_tokens").replace("_", "-") for key in rows[0] if key.endswith("_tokens")]
    return {name: _TIER_COLOURS[i % len(_TIER_COLOURS)] for i, name in enumerate(columns) if name in waited}


def _draw_shares(axes: Axes, rows: Sequence[Mapping[str, Any]], tiers: Mapping[str, str]) -> None:
    """Draw how the steps of one model divide; the tier's part has the colour of the tier waited for."""
    bottoms = [0.0] * len(rows)
    for key in ("gpu_us", "tier_us", "link_us", "reduction_us"):
        heights = [100.0 * float(row[key]) / float(row["step_us"]) for row in rows]
        colours = [_COLOURS.get(key) or tiers[str(row["slowest_tier"])] for row in rows]
        axes.bar(range(len(rows)), heights, bottom=bottoms, color=colours, width=0.7)
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
    axes.set_ylim(0, 100)
    _ticks(axes, rows)
