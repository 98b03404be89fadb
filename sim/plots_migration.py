"""Figure of the study of migration, drawn from its rows."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sim.plots import save_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ["migration_figure"]

_COLOURS = (
    *("#4c72b0", "#e0862e", "#55a868", "#8172b3", "#17becf", "#c44e52", "#937860", "#da8bc3", "#8c8c8c"),
    *("#bcbd22", "#333333"),
)
_MARKERS = ("o", "s", "^")
_LINEAR_BELOW = 0.1


def migration_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw rates if there are any, reads and writes of flash, the host's way over the DMA's, by how much steps grow.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of ``nearkv study migration``.
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
    figure = Figure(figsize=(21.0, 11.0), layout="constrained")
    FigureCanvasAgg(figure)
    by_kind = {
        kind: [row for row in rows if row["kind"] == kind] for kind in dict.fromkeys(row["kind"] for row in rows)
    }
    panels = {"rate": _draw_rates, "flash read": _draw_reads, "flash write": _draw_writes, "host": _draw_host}
    drawn = [kind for kind in panels if kind in by_kind]
    grid = figure.add_gridspec(2, len(drawn), height_ratios=(1.0, 1.25))
    for column, kind in enumerate(drawn):
        panels[kind](figure.add_subplot(grid[0, column]), by_kind[kind])
    _draw_steps(figure.add_subplot(grid[1, :]), [row for row in by_kind["step"] if row["swaps"]])
    save_figure(figure, path)


def _draw_rates(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw what of a link is tokens, both directions at once, over its beats; dashes are memories that take no time."""
    both = [row for row in rows if row["direction"] == "both" and row["unit"] == "of the link"]
    links = sorted({str(row["link_beats"]) for row in both}, key=Fraction, reverse=True)
    for number, point in enumerate(dict.fromkeys(str(row["point"]) for row in both)):
        for memories, style in zip(dict.fromkeys(row["memories"] for row in both), ("--", "-"), strict=False):
            line = [row for row in both if row["point"] == point and row["memories"] == memories]
            line.sort(key=lambda row: links.index(row["link_beats"]))
            axes.plot(
                [links.index(row["link_beats"]) for row in line],
                [100 * row["reached"] for row in line],
                color=_COLOURS[number % len(_COLOURS)],
                linestyle=style,
                marker="o" if style == "-" else "x",
                markersize=5,
                label=point if style == "-" else None,
            )
    for asked in sorted({row["asked"] for row in both if row["asked"] is not None}):
        axes.axhline(100 * asked, color="black", linewidth=0.8)
    axes.set_xticks(range(len(links)), links)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("beats that the link takes, of cycles")
    axes.set_ylabel("bytes of tokens, % of the link's")
    axes.set_title("the DMA, both directions; dashes: no rows")
    axes.legend(frameon=False, fontsize=8)
    _frame(axes)


def _draw_reads(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw the rate of what is wanted over the slots wanted of a page, with the bytes read for each beside it."""
    wanted = [row["wanted_slots"] for row in rows]
    axes.plot(wanted, [row["wanted_bytes_per_s"] / 1e9 for row in rows], color=_COLOURS[0], marker="o")
    for row in rows:
        axes.annotate(
            f"{row['reached']:g} read",
            (row["wanted_slots"], row["wanted_bytes_per_s"] / 1e9),
            xytext=(6, -12),
            textcoords="offset points",
            fontsize=9,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(wanted, [str(count) for count in wanted])
    axes.set_xlim(0.8, 2.2 * wanted[-1])
    axes.set_ylim(3, 100)
    axes.set_xlabel(f"slots wanted of the {rows[0]['page_slots']} of a page")
    axes.set_ylabel("GB/s of wanted bytes, all drives")
    axes.set_title("reads from flash; bytes read a byte wanted")
    _frame(axes)


def _draw_writes(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw the bytes programmed for each byte written over how full the flash is."""
    axes.plot([100 * row["fill"] for row in rows], [row["reached"] for row in rows], color=_COLOURS[1], marker="o")
    axes.set_xlabel("slots in use, % of those of all pages")
    axes.set_ylabel("bytes programmed a byte written")
    axes.set_ylim(bottom=0)
    axes.set_title("demotions to flash, slots overwritten at random")
    _frame(axes)


def _draw_host(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw the host's time over the DMA's by bytes that lie together, and what is asked."""
    calls = list(dict.fromkeys(row["call_us"] for row in rows))
    for share, style in zip(dict.fromkeys(row["memory_share"] for row in rows), ("-", "--"), strict=False):
        for call, colour in zip(calls, _COLOURS, strict=False):
            line = [row for row in rows if row["memory_share"] == share and row["call_us"] == call]
            axes.plot(
                [row["piece_bytes"] for row in line],
                [row["reached"] for row in line],
                color=colour,
                linestyle=style,
                marker="o",
                markersize=4,
                label=f"{call:g} us a copy, {share:.0%} of the memory",
            )
    axes.axhline(rows[0]["asked"], color="black", linewidth=1.0)
    axes.annotate(
        f"{rows[0]['asked']:g}x, as PAM says",
        (rows[-1]["piece_bytes"], rows[0]["asked"]),
        ha="right",
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=9,
    )
    pieces = list(dict.fromkeys(row["piece_bytes"] for row in rows))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(pieces, [_size(piece) for piece in pieces])
    axes.set_xlabel("bytes that lie together")
    axes.set_ylabel("host's time over the DMA's")
    axes.set_title("copy to the host, re-layout, copy back")
    axes.legend(frameon=False, fontsize=8)
    _frame(axes)


def _draw_steps(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw by how much each step grows, a bar a manner, and attention alone with nothing hidden as a line over them."""
    steps = list(dict.fromkeys(_step(row) for row in rows))
    kinds = list(dict.fromkeys(str(row["manner"]) for row in rows))
    width = 0.85 / len(kinds)
    for number, kind in enumerate(kinds):
        mine = [row for row in rows if row["manner"] == kind]
        places = [steps.index(_step(row)) + (number - (len(kinds) - 1) / 2) * width for row in mine]
        heights = [100 * row["reached"] for row in mine]
        axes.bar(places, heights, width, color=_COLOURS[number], label=kind)
        for place, height in zip(places, heights, strict=True):
            label = "0" if not height else f"{height:.2g}"
            axes.annotate(label, (place, height), ha="center", va="bottom", fontsize=7.5)
    first = [row for row in rows if row["manner"] == kinds[0]]
    axes.scatter(
        [steps.index(_step(row)) - 0.47 for row in first],
        [100 * row["unhidden_us"] / row["attention_us"] for row in first],
        marker="D",
        s=28,
        color="0.25",
        label="moved, of attention alone, nothing hidden",
        zorder=3,
    )
    asked = 100 * next(row["asked"] for row in rows if row["asked"] is not None)
    axes.axhline(asked, color="black", linewidth=1.0)
    axes.annotate(f"asked: at most {asked:g} %", (-0.55, asked), va="bottom", fontsize=9)
    axes.set_yscale("symlog", linthresh=_LINEAR_BELOW)
    axes.set_ylim(0, 1000)
    axes.set_yticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    axes.set_xlim(-0.6, len(steps) - 0.4)
    axes.set_xticks(range(len(steps)), ["\n".join(step) for step in steps], fontsize=8.5)
    axes.set_ylabel("growth of the step, %")
    axes.set_title("0.7 % of the tokens move in every step (each way: up, and as many down)")
    axes.legend(frameon=False, ncols=3, loc="upper left", fontsize=9)
    _frame(axes)


def _step(row: Mapping[str, Any]) -> tuple[str, str, str]:
    kept = "dense" if row["keep"] == 1 else f"keep {row['keep']:g}"
    return str(row["model"]), f"{row['context']:,} x {row['batch']}", f"{kept}, {row['step_us'] / 1e3:,.0f} ms"


def _size(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GB"


def _frame(axes: Axes) -> None:
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
