"""The study of selection: what attention to a part of the tokens costs banks that are read in lock step.

Parts of a channel (bank groups where a token is split, else banks) read the same positions. Where they select
different ones, the union is read, and every part takes its own. Four ways to select a share of the tokens:

``random`` and ``runs``
    each part selects that share of its own positions, at random or in aligned runs of 16;
``random, agreed`` and ``runs, agreed``
    the same positions in all parts;
``context runs``
    aligned runs of 16 tokens of the context, which is dealt to the parts token by token.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.selection import Selected, dealt, union
from hw.presets.devices import DEVICE_PRESETS
from sim.parallel import spread
from sim.provenance import Part, combine
from sim.studies.kept import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from hw.device_params import ChannelParams

__all__ = ["GROUP_TOKENS", "PATTERNS", "PRESETS", "SelectionPoint", "draw", "points", "selection_rows"]

PRESETS = ("attacc", "pam", "pam-wide")
GROUP_TOKENS = 2048
"""Tokens of every bank group: a thirty-second of those of one bank of it is a run."""
HEAD_DIM = 128
RUN = 16
"""Tokens of a run."""
SHARES = (8, 32)
"""One token of so many is selected."""
PATTERNS = ("random", "random, agreed", "runs", "runs, agreed", "context runs")


@dataclass(frozen=True, kw_only=True)
class SelectionPoint:
    """One operation: a device preset, one token of ``share`` selected, and how."""

    preset: str
    pattern: str
    share: int
    seed: int

    @property
    def params(self) -> ChannelParams:
        """The channel."""
        return DEVICE_PRESETS[self.preset].channel

    @property
    def part_tokens(self) -> int:
        """Tokens of every part."""
        return GROUP_TOKENS // self.params.parts_per_group

    def selected(self) -> Selected:
        """Return positions and marks."""
        rng = np.random.default_rng([self.seed, self.share, PATTERNS.index(self.pattern) if self.share > 1 else 0])
        return draw(rng, self.pattern, self.share, parts=self.params.parts, part_tokens=self.part_tokens)


def draw(rng: np.random.Generator, pattern: str, share: int, *, parts: int, part_tokens: int) -> Selected:
    """Return a selection of one token of ``share``, which divides ``part_tokens``, by one of :data:`PATTERNS`."""

    def pick(tokens: int, run: int) -> npt.NDArray[np.int64]:
        starts = rng.choice(tokens // run, tokens // share // run, replace=False) * run
        return (np.sort(starts)[:, np.newaxis] + np.arange(run)).ravel()

    if pattern == "context runs":
        return dealt(pick(parts * part_tokens, RUN), parts)
    run = RUN if pattern.startswith("runs") else 1
    agreed = pattern.endswith("agreed")
    first = pick(part_tokens, run)
    return union([first, *(first if agreed else pick(part_tokens, run) for _ in range(parts - 1))])


def points(seed: int) -> list[SelectionPoint]:
    """Return the points of the study: all tokens, then each share in every pattern, of each device."""
    found: list[SelectionPoint] = []
    for preset in PRESETS:
        found.append(SelectionPoint(preset=preset, pattern=PATTERNS[0], share=1, seed=seed))
        for share in SHARES:
            found += [SelectionPoint(preset=preset, pattern=name, share=share, seed=seed) for name in PATTERNS]
    return found


def selection_rows(
    chosen: Sequence[SelectionPoint], *, jobs: int = 1, progress: Callable[[str], None] = lambda text: None
) -> list[dict[str, Any]]:
    """Return a row for each of ``chosen``, in their order; ``progress`` is told of each that is done.

    Every device must come with all tokens first: the others are compared with that. Cycles are those of the memory
    clock to the last column read, without refresh.

    Raises
    ------
    hw.cosim.CosimError
        If a rule of the memory was broken, or units lost something.
    """
    runs: dict[int, dict[str, Any]] = {}
    for place, run in spread(_measured, ((point,) for point in chosen), jobs=jobs):
        runs[place] = run
        point = chosen[place]
        progress(f"[{len(runs):2}/{len(chosen)}] {_name(point)}: {run['last_column']:,} cycles")
    dense: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    for place, point in enumerate(chosen):
        run, selected = runs[place], point.selected()
        if point.share == 1:
            dense[point.preset] = run["last_column"]
        relative = run["last_column"] / dense[point.preset]
        origin = Part("cycles of the channel", "measured-rtl", f"Verilog {run['verilog_sha256']}")
        rows.append(
            {
                "name": _name(point),
                "preset": point.preset,
                "mapping": point.params.mapping.value,
                "pattern": point.pattern if point.share > 1 else "all",
                "wanted_share": float(Fraction(1, point.share)),
                "head_dim": HEAD_DIM,
                "parts": point.params.parts,
                "part_tokens": point.part_tokens,
                "wanted_tokens": float(selected.wanted.sum()) / point.params.parts,
                "positions_read": len(selected.positions),
                "openings": run["openings"],
                "columns_read": run["columns"],
                "cycles": run["last_column"],
                "state_cycles": run["last_state"],
                "relative_cycles": relative,
                "useful_share": float(selected.wanted.mean()),
                "speedup_share": 1 / (point.share * relative),
                "clock_ns": point.params.timing.clock_ns,
                "verilog_sha256": run["verilog_sha256"],
                "provenance": combine([origin]).to_dict(),
            }
        )
    return rows


def _name(point: SelectionPoint) -> str:
    return f"{point.preset}: {'all' if point.share == 1 else f'1/{point.share} {point.pattern}'}"


def _measured(point: SelectionPoint) -> dict[str, Any]:
    """Return the run of a point, from the build folder if it is there."""
    from hw.measure import channel_sha256
    from hw.measure_selection import measure_selection

    selected = point.selected()
    sha256 = channel_sha256(point.params)
    causes = (sha256, selected.positions.tobytes().hex(), np.packbits(selected.wanted).tobytes().hex(), str(HEAD_DIM))

    def make() -> bytes:
        run = measure_selection(point.params, selected, part_tokens=point.part_tokens, head_dim=HEAD_DIM)
        return json.dumps(asdict(run)).encode()

    return {**json.loads(kept("selection", causes, make)), "verilog_sha256": sha256}
