"""Figure of a run: how latencies are distributed, and what each memory holds and moves over time."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from sim.plots import save_figure
from sim.serving.machine import tier_names
from sim.serving.metrics import latencies_s

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from sim.serving.service import Service

__all__ = ["most_held", "serve_figure", "time_bins"]

_BINS = 200
_TIER_COLOURS = ("#f2c14e", "#e0862e", "#8a5a2b", "#55a868", "#64b5cd")
_BELOW: dict[str, Any] = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.16),
    "ncols": 3,
    "frameon": False,
    "fontsize": 8,
}
"""Legends under the axes, where no curve is."""
_LATENCIES = {"ttft": "#4c72b0", "tpot": "#c44e52", "e2e": "#55a868", "tbt": "#8172b3"}


def serve_figure(service: Service, path: Path) -> None:
    """Draw cumulative shares of latencies; over time, what each memory holds, and bytes a second read and written.

    Parameters
    ----------
    service : Service
        With at least one step.
    path : Path
        File to write; its suffix decides the format.

    Raises
    ------
    ConfigError
        If the file can't be written.
    """
    figure = Figure(figsize=(14.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    latencies, occupancy, traffic = figure.subplots(1, 3)
    _draw_latencies(latencies, service)
    _draw_occupancy(occupancy, service)
    _draw_traffic(traffic, service)
    title = f"{service.model.name} on {service.machine.name}, trace {service.trace.name}"
    figure.suptitle(
        f"{title}: {service.log.steps:,} steps, {service.request.plan.policy_name} {service.request.fill}", fontsize=11
    )
    save_figure(figure, path)


def _draw_latencies(axes: Axes, service: Service) -> None:
    """Draw the share of requests, or gaps, below each latency."""
    states, log = service.states, service.log
    done = np.flatnonzero(states.is_done(np.arange(len(states))))
    times = latencies_s(states, done[done >= service.first_measured])
    curves = {name: (times[name], np.ones(len(times[name]))) for name in ("ttft", "tpot", "e2e")}
    curves["tbt"] = (np.array(log.gap_s), np.array(log.gap_counts, np.float64))
    for name, (values, counts) in curves.items():
        if not len(values):
            continue
        order = np.argsort(values, kind="stable")
        share = np.cumsum(counts[order]) / counts.sum()
        # Thousands of points would draw the same line.
        chosen = np.unique(np.searchsorted(share, np.linspace(0.0, 1.0, 1000)).clip(max=len(values) - 1))
        axes.step(1e3 * values[order][chosen], share[chosen], where="post", color=_LATENCIES[name], label=name)
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("ms")
    axes.set_ylabel("share below")
    axes.set_title("latencies", fontsize=11)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
    axes.grid(color="0.93")
    axes.legend(**_BELOW)


def time_bins(
    ends_s: npt.NDArray[np.float64], values: npt.NDArray[np.float64], edges_s: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the sums of ``values`` of the steps that end within each bin.

    Parameters
    ----------
    ends_s : ndarray, shape (steps,)
        Ends of steps, rising.
    values : ndarray, shape (steps,)
    edges_s : ndarray, shape (bins + 1,)
        A step that ends at an edge belongs to the bin before it.
    """
    totals = np.concatenate([[0.0], np.cumsum(values)])
    return np.diff(totals[np.searchsorted(ends_s, edges_s, side="right")])


def most_held(
    ends_s: npt.NDArray[np.float64], held: npt.NDArray[np.float64], edges_s: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the most that each memory holds at any time of each bin, shape (bins, tiers).

    Parameters
    ----------
    ends_s : ndarray, shape (steps,)
        Ends of steps, rising.
    held : ndarray, shape (steps, tiers)
        What the memories hold from the end of a step to that of the next; nothing before the first.
    edges_s : ndarray, shape (bins + 1,)
    """
    begun = np.searchsorted(ends_s, edges_s, side="right")
    since = np.concatenate([np.zeros((1, held.shape[1])), held])
    return np.array([since[first : end + 1].max(axis=0) for first, end in itertools.pairwise(begun)])


def _draw_occupancy(axes: Axes, service: Service) -> None:
    """Draw the most that each memory holds in each of 200 spans, one upon the other."""
    log = service.log
    edges_s = np.linspace(0.0, log.end_s, _BINS + 1)
    moments_s = edges_s[1:]
    names = tier_names(service.machine)
    blocks = np.array(log.occupied, np.float64).reshape(-1, len(names))
    held = most_held(np.array(log.queue_s), blocks, edges_s) * service.block_bytes / 2**30
    used = [index for index in range(len(names)) if held[:, index].any()]
    axes.stackplot(
        moments_s,
        [held[:, index] for index in used],
        labels=[names[index] for index in used],
        colors=[_TIER_COLOURS[index % len(_TIER_COLOURS)] for index in used],
    )
    axes.set_xlim(0.0, log.end_s)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("simulated s")
    axes.set_ylabel("GiB of keys and values")
    axes.set_title("occupancy, the most in each span", fontsize=11)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    if used:
        axes.legend(**_BELOW)


def _draw_traffic(axes: Axes, service: Service) -> None:
    """Draw bytes a second that each memory reads for attention, that are written to it, and that change places."""
    log, per_token = service.log, service.model.kv_bytes_per_token
    ends_s = np.array(log.queue_s)
    # Bins of a few steps would rise and fall with their number.
    edges_s = np.linspace(0.0, log.end_s, max(20, min(_BINS, log.steps // 10)) + 1)
    middles_s, width_s = (edges_s[1:] + edges_s[:-1]) / 2, edges_s[1]
    read = np.array([work.tier_tokens for work in log.works], np.float64)
    read += np.array([work.prompt_context for work in log.works], np.float64)
    written = np.array([work.prompt_appended for work in log.works], np.float64)
    written += np.array([work.decode_appended for work in log.works], np.float64)
    names = tier_names(service.machine)
    moved = np.zeros_like(read)
    # Of a pair that changes places, the token that comes nearer; as many go the other way.
    moved[:, 1:] = np.array([work.swaps or (0.0,) * (len(names) - 1) for work in log.works])
    for index, name in enumerate(names):
        colour = _TIER_COLOURS[index % len(_TIER_COLOURS)]
        for what, tokens, line in (("read", read, "-"), ("written", written, ":"), ("swapped nearer", moved, "--")):
            if tokens[:, index].any():
                rate = time_bins(ends_s, tokens[:, index], edges_s) * per_token / width_s / 1e9
                axes.plot(middles_s, np.where(rate > 0.0, rate, np.nan), line, color=colour, label=f"{name}, {what}")
    axes.set_xlim(0.0, log.end_s)
    axes.set_yscale("log")
    axes.set_xlabel("simulated s")
    axes.set_ylabel("GB/s of all layers")
    axes.set_title("traffic of keys and values", fontsize=11)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.grid(color="0.93")
    axes.legend(**_BELOW)
