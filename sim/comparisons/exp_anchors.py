"""Published exponential units beside ours, each number with its reference, domain and sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.exp.catalogue import UNITS
from golden.exp.oracle import exact_exp, rounded_exp
from golden.formats import FloatFormat
from sim.comparisons.row import comparison_row
from sim.studies.exp_targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from golden.exp import ExpSpec

__all__ = ["ANCHORS", "Anchor", "anchor_rows", "wanted_units"]

_SMALLEST_BF16 = "smallest bf16 as accurate as SoftEx"
_SOFTEX_METHOD = "schraudolph-corrected-bf16"
_FPEX_BF16 = "smallest bf16 as accurate as fpEX"

_SOFTEX = "SoftEx EXPU, arXiv:2412.06321, github.com/belanoa/softex @77f219db, measured from its RTL"
_VEXP = "VEXP, arXiv:2504.11227"
_FA4 = "FlashAttention-4, github.com/Dao-AILab/flash-attention, flash_attn/cute/utils.py; measured from its constants"
_ALL_CODES = "against exact exp, every code with a normal result"
_UNIFORM = "against exact exp, x uniform over the range of normal results"
_METHOD = "exact arithmetic, one interval of width ln 2; ours is fitted to rounded results, not to this"


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """One published number.

    Parameters
    ----------
    name : str
        Design and number.
    value : float
        The number.
    unit : str
        Its unit.
    source : str
        Where it stands or how it was measured.
    basis : str
        Reference, domain and sampling.
    ours : str
        Our unit: a name, or one of the two searches.
    metric : str
        Key of the row, or of :data:`_METRICS`.
    more : bool
        More is better.
    """

    name: str
    value: float
    unit: str
    source: str
    basis: str
    ours: str
    metric: str
    more: bool = False


def _errors(design: str, source: str, ours: str, **values: tuple[float, str, str]) -> tuple[Anchor, ...]:
    """Return anchors of relative errors: metric, then value, what it is, basis."""
    return tuple(
        Anchor(
            name=f"{design}: {what}", value=value, unit="relative", source=source, basis=basis, ours=ours, metric=metric
        )
        for metric, (value, what, basis) in values.items()
    )


def _share(design: str, value: float, source: str, basis: str, ours: str, metric: str) -> Anchor:
    return Anchor(
        name=f"{design}: correctly rounded",
        value=value,
        unit="share",
        source=source,
        basis=basis,
        ours=ours,
        metric=metric,
        more=True,
    )


ANCHORS = (
    *_errors(
        "SoftEx bf16",
        _SOFTEX,
        _SMALLEST_BF16,
        max_rel=(8.749e-3, "largest error", _ALL_CODES),
        mean_rel_uniform=(1.963e-3, "mean error", _UNIFORM),
    ),
    _share("SoftEx bf16", 0.966, _SOFTEX, "every code with a normal result", _SMALLEST_BF16, "correctly_rounded"),
    Anchor(
        name="SoftEx bf16: area",
        value=1170.0,
        unit="GE",
        source=f"{_SOFTEX}, in sg13g2: 1,170 to 1,252 GE over four tool paths; 1,204 in ASAP7, 1,332 in sky130",
        basis="combinational, subnormal results flushed; theirs by abc's default script",
        ours=_SMALLEST_BF16,
        metric="area_ge",
    ),
    *_errors(
        "VEXP bf16",
        f"{_VEXP}: max 0.78 %, mean 0.14 %; 0.7752 % and 0.1412 % measured from SoftEx's RTL",
        _SOFTEX_METHOD,
        max_rel_rounded=(7.752e-3, "largest error", "against correctly rounded exp, every code with a normal result"),
        mean_rel_rounded_uniform=(1.412e-3, "mean error", "against correctly rounded exp, x uniform"),
    ),
    *_errors(
        "I-BERT i-exp, degree 2",
        "I-BERT, github.com/kssteven418/I-BERT, quant_modules.py; measured from its constants",
        "poly2-f14",
        method=(3.31e-3, "largest error", _METHOD),
    ),
    *_errors("FlashAttention-4, degree 3", _FA4, "poly3-f16", method=(8.76e-5, "largest error", _METHOD)),
    _share("FlashAttention-4, degree 3, to fp16", 0.920, _FA4, "|x| >= 2^-10, normal result", "poly3-f16", "far"),
    *_errors(
        "Softermax, 4 segments",
        "Softermax, arXiv:2103.09301: few linear segments, 4 of them; the best lines possible",
        "linear-4-12",
        method=(1.9e-3, "largest error", _METHOD),
    ),
    *_errors(
        "ITA, shift only",
        "ITA, ISLPED 2023, github.com/pulp-platform/ITA @ba96519b: 2^round(t); measured",
        "schraudolph",
        max_rel=(0.41, "largest error", "one exponential against exact exp; theirs int8, ours every fp16 code"),
        mean_rel_uniform=(0.175, "mean error", "one exponential against exact exp, x uniform; theirs int8"),
    ),
    *_errors(
        "fpEX bf16",
        "fpEX, github.com/Sh-Anand/fpEX @ab0cf6f5, measured from its bit-exact model",
        _FPEX_BF16,
        max_rel=(7.67e-3, "largest error", _ALL_CODES),
        mean_rel_uniform=(1.56e-3, "mean error", "against exact exp; theirs: sampling not recorded, ours x uniform"),
    ),
    _share("fpEX bf16", 0.919, "as above", "theirs: sampling not recorded", _FPEX_BF16, "correctly_rounded"),
)
"""Numbers of published units; an area is that of the library named."""


def _method(spec: ExpSpec) -> float:
    """Return the largest relative error of the method without word lengths, over ``[-ln 2, 0)``."""
    x = -np.log(2) * np.arange(1, 8193) / 8192
    return float(np.abs(spec.evaluate_float(x) / np.exp(x) - 1).max())


def _far(spec: ExpSpec) -> float:
    """Return the share correctly rounded over operands of at least 2^-10 with a normal result."""
    fmt = spec.fmt
    assert isinstance(fmt, FloatFormat)
    codes = np.arange(1 << fmt.bits)
    exact = exact_exp(fmt)
    with np.errstate(invalid="ignore"):
        large = np.abs(fmt.from_codes(codes).astype(np.float64)) >= 2.0**-10
    counts = large & (exact >= fmt.min_normal) & (rounded_exp(fmt) < fmt.inf_code)
    right = np.count_nonzero(spec.evaluate_codes(codes)[counts] == rounded_exp(fmt)[counts])
    return float(right / np.count_nonzero(counts))


_METRICS: dict[str, Callable[[ExpSpec], float]] = {"method": _method, "far": _far}


def wanted_units() -> list[str]:
    """Return the names of the units that :func:`anchor_rows` needs: those named, and all of bf16 to search."""
    named = [anchor.ours for anchor in ANCHORS if anchor.ours in UNITS]
    searched = [name for name, spec in UNITS.items() if spec.fmt.name == "bf16"]
    return list(dict.fromkeys([*named, *searched]))


def anchor_rows(measured: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row an anchor.

    Parameters
    ----------
    measured : sequence of mapping
        Rows of :func:`sim.studies.exp.exp_rows` with the units of :func:`wanted_units`.
    """
    rows = {row["name"]: row for row in measured}
    softex = next(target for target in TARGETS if target.format == "bf16")
    # As accurate as fpEX is: its largest and mean error, and its share of correctly rounded results.
    limits = {anchor.metric: anchor.value for anchor in ANCHORS if anchor.ours == _FPEX_BF16}
    found = {
        _SMALLEST_BF16: _smallest(row for row in measured if softex.admits(row)),
        _FPEX_BF16: _smallest(
            row
            for row in measured
            if row["format"] == "bf16"
            and row["domain"] == "full"
            and row["parameters"]["evaluation"] == "combinational"
            and row["max_rel"] <= limits["max_rel"]
            and row["mean_rel_uniform"] <= limits["mean_rel_uniform"]
            and row["correctly_rounded"] >= limits["correctly_rounded"]
        ),
    }
    result: list[dict[str, Any]] = []
    for anchor in ANCHORS:
        name = found.get(anchor.ours, anchor.ours)
        ours = None if name is None else _value(anchor.metric, name, rows)
        good = ours is not None and (ours >= anchor.value if anchor.more else ours <= anchor.value)
        note = f"{anchor.basis}; ours: {name or 'none as accurate'}"
        if anchor.metric == "area_ge":
            note += f"; their method in our RTL by our script: {rows[_SOFTEX_METHOD]['area_ge']:,.0f} GE"
        result.append(
            comparison_row(
                anchor.name,
                anchor.value,
                ours,
                unit=anchor.unit,
                source=anchor.source,
                within=good,
                note=note,
            )
        )
    return result


def _smallest(rows: Any) -> str | None:
    best = min(rows, key=lambda row: row["area_ge"], default=None)
    return None if best is None else str(best["name"])


def _value(metric: str, name: str, rows: Mapping[str, Mapping[str, Any]]) -> float:
    return _METRICS[metric](UNITS[name]) if metric in _METRICS else float(rows[name][metric])
