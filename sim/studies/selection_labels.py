"""What it costs a channel to score the labels of all tokens, from which Double Sparsity selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.presets.devices import DEVICE_PRESETS
from hw.timing.label_scan import label_scan
from sim.provenance import Part, combine
from sim.studies.selection import GROUP_TOKENS, HEAD_DIM, PRESETS

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LABEL_DIMS", "label_rows"]

LABEL_DIMS = (8, 16)
"""A sixteenth and an eighth of the 128 channels of a key, in fp16."""


def label_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each device and label size, beside the cycles of all tokens in ``rows``, the selections'.

    Cycles are those to the last column read, as of the selections.
    """
    dense = {row["preset"]: row["cycles"] for row in rows if row["pattern"] == "all"}
    found: list[dict[str, Any]] = []
    for preset in PRESETS:
        params = DEVICE_PRESETS[preset].channel
        for label_dim in LABEL_DIMS:
            scan = label_scan(params, label_dim, GROUP_TOKENS // params.parts_per_group)
            found.append(
                {
                    "name": f"{preset}: labels of {label_dim}",
                    "preset": preset,
                    "label_dim": label_dim,
                    "openings": scan.run.rows,
                    "columns_read": scan.run.columns,
                    "cycles": scan.run.last_column,
                    "score_cycles": scan.run.last_score,
                    "relative_cycles": scan.run.last_column / dense[preset],
                    "bus_cycles": scan.bus_cycles,
                    "useful_share": float(scan.useful_share),
                    "byte_share": label_dim / (2 * HEAD_DIM),
                    "provenance": combine([Part("cycles", "formula-rtl", "hw.timing.score_runs")]).to_dict(),
                    "bus_provenance": combine([Part("bus_cycles", "modelled", "hw.timing.label_scan")]).to_dict(),
                }
            )
    return found
