"""Names beside points of a figure, so that none lies on a point or on another name."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves the keyword arguments of its methods untyped)

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["place_labels"]

_POINT = 6.0
_ANGLES = tuple(math.radians(angle) for angle in (20, -20, 160, -160, 55, -55, 125, -125, 90, -90, 0, 180))
_DISTANCES = (6.0, 14.0, 26.0, 42.0, 62.0, 86.0, 114.0)

Box = tuple[float, float, float, float]


def place_labels(
    axes: Axes,
    labels: Sequence[tuple[float, float, str]],
    points: Sequence[tuple[float, float]],
    fontsize: float = 7.0,
) -> None:
    """Write each label near its point, with a line to it where it had to go further off.

    Parameters
    ----------
    axes : Axes
        Laid out: its place in the picture must not change afterwards.
    labels : sequence of (x, y, text)
        In data units; placed in their order.
    points : sequence of (x, y)
        All points that no label may cover.
    fontsize : float
        In points.

    Notes
    -----
    Greedy: for each label the nearest free place of a few angles and distances; if none is free, the least covered.
    Widths are estimated from the number of letters, so that placing needs no renderer.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    scale = figure.dpi / 72
    place = axes.transData.transform
    taken: list[Box] = [_around(*(float(value) for value in place(point)), size=_POINT * scale) for point in points]
    frame = axes.get_window_extent()
    for x, y, text in sorted(labels):
        px, py = (float(value) for value in place((x, y)))
        width, height = 0.66 * fontsize * scale * len(text), 1.4 * fontsize * scale
        best: tuple[float, Box, float] | None = None
        for distance in _DISTANCES:
            for angle in _ANGLES:
                dx, dy = distance * scale * math.cos(angle), distance * scale * math.sin(angle)
                left = px + dx - (width if dx < -1 else 0 if dx > 1 else width / 2)
                box = (left, py + dy - height / 2, left + width, py + dy + height / 2)
                outside = box[0] < frame.x0 or box[2] > frame.x1 or box[1] < frame.y0 or box[3] > frame.y1
                cover = sum(_overlap(box, other) for other in taken) + (1e6 if outside else 0)
                if best is None or cover < best[0]:
                    best = (cover, box, distance)
            if best is not None and best[0] == 0:
                break
        assert best is not None
        _, box, distance = best
        taken.append(box)
        centre = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        label = axes.annotate(
            text,
            (x, y),
            xytext=((centre[0] - px) / scale, (centre[1] - py) / scale),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=fontsize,
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
            if distance > _DISTANCES[1]
            else None,
            zorder=4,
        )
        # The layout is done; a label must not move what it was placed against.
        label.set_in_layout(False)


def _around(x: float, y: float, *, size: float) -> Box:
    return (x - size / 2, y - size / 2, x + size / 2, y + size / 2)


def _overlap(one: Box, other: Box) -> float:
    """Return the area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)
