"""Figure of the study of reduction, drawn from its rows."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, StrMethodFormatter

from sim.comparisons.reduction import CENT_SHARES, LIMIT, PAM_LIMIT
from sim.plots import save_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ["percent", "reduction_figure"]

_COLOURS = ("#4c72b0", "#c44e52", "#55a868", "#8172b3", "#dd8452", "#17becf", "#7f7f7f", "#8c564b")
_DASHES = ("-", "--", ":", "-.")


def reduction_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the exposed share over context: presets with caps on and off, then what banks and shared heads change.

    Both axes are logarithmic; a ring marks the fewest tokens below 1 %. Beside the curves stand PAM's claim and the
    softmax and norm unit of CENT.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of :func:`sim.studies.reduction.reduction_rows`.
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
    panels = {title: curves for title, curves in _panels(rows).items() if curves}
    figure = Figure(figsize=(5.4 * len(panels), 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, curves) in zip(drawn, panels.items(), strict=True):
        for number, curve in enumerate(curves):
            _draw(axes, [row for row in rows if row["curve"] == curve], number)
        _frame(axes, title, [row["context"] for row in rows])
    drawn[0].set_ylabel("reduction exposed, share of attention's time")
    first = rows[0]
    figure.suptitle(
        f"one stack, query heads of d {first['head_dim']}, at least {first['heads']}, refresh on, Verilated channel "
        "and logic die; ring: fewest tokens below 1 %",
        fontsize=10,
    )
    save_figure(figure, path)


def percent(share: float, _tick: int | None = None) -> str:
    """Return the label of a tick, in percent with as many digits as its share has: a tenth of a percent is not 0 %."""
    return f"{100 * share:g}%"


def _panels(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the curves of each panel: presets and caps, then what banks or shared heads change, beside them."""
    curves = {row["curve"]: row for row in rows}
    shared = [name for name, row in curves.items() if row["group"] > 1]
    plain = [name for name in curves if name not in shared and "banks a group" not in name and "groups a" not in name]

    def beside(preset: str) -> list[str]:
        others = [
            name for name, row in curves.items() if row["preset"] == preset and name not in plain and name not in shared
        ]
        return [name for name in (preset, *others) if name in curves] if others else []

    alone = [name for name in plain if any(name == other.rpartition(", g = ")[0] for other in shared)]
    return {
        "devices and caps": plain,
        "pam: banks and groups": beside("pam"),
        "pam-wide: banks": beside("pam-wide"),
        "heads that share keys and values": [*alone, *shared] if shared else [],
    }


def _draw(axes: Axes, rows: Sequence[Mapping[str, Any]], number: int) -> None:
    """Draw one curve, and where it falls below 1 %."""
    colour = _COLOURS[number % len(_COLOURS)]
    fewest: int | None = rows[0]["below_one_percent"]
    label = rows[0]["curve"] + ("" if fewest is None else f": {fewest:,} tokens")
    axes.plot(
        [row["context"] for row in rows],
        [row["exposed_share"] for row in rows],
        color=colour,
        linestyle=_DASHES[number % len(_DASHES)],
        marker=".",
        label=label,
    )
    for row in rows:
        if row["context"] == fewest:
            place = [row["context"]], [row["exposed_share"]]
            axes.plot(*place, marker="o", markersize=9, markerfacecolor="none", color=colour)


def _frame(axes: Axes, title: str, contexts: Sequence[int]) -> None:
    """Draw references and axes of a panel."""
    low, high = min(contexts), max(contexts)
    for share, text in ((PAM_LIMIT, "PAM claims less"), (LIMIT, "1 %")):
        axes.axhline(share, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate(text, (high, share), ha="right", va="bottom", fontsize=8, color="0.4")
    cent = [(context, share) for context, share in CENT_SHARES.items() if low <= context <= high]
    label = "CENT's softmax and norm unit, of a block"
    axes.plot([x for x, _ in cent], [y for _, y in cent], "x", color="0.3", markersize=7, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("context, tokens of each head")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(percent))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelrotation=45, labelsize=8)
    axes.grid(color="0.93")
    axes.set_axisbelow(True)
    axes.legend(fontsize=7.5, loc="lower left", frameon=False)
