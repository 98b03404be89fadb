"""The demonstration: RTL beside the golden model on real tensors, and the decode latency that follows from its cycles.

What each part returns is plain rows; the command ``nearkv demo`` writes and prints them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from golden.attention import attention_fp16_reference, attention_reference, pam_attention
from golden.formats import FP16
from golden.numerics import unit_numerics
from hw.presets import UNIT_PRESETS
from hw.timing import exp as exp_timing
from hw.timing import finish as finish_timing
from hw.timing import processing as processing_timing
from hw.timing import reduction as reduction_timing
from hw.timing.operation import OperationSizes
from sim.model_config import load_model
from sim.record import decode_record
from sim.step import StepRequest
from sim.system_config import load_system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from golden.samples import LayerTensors
    from hw.attend import RtlAttention

__all__ = ["DECODE_POINTS", "attention_row", "cycle_rows", "decode_records", "exp_row", "splits"]

DECODE_POINTS = {
    "llama-3.1-70b": ((8192, 16), (32768, 64), (131072, 16), (131072, 64)),
    "opt-175b": ((512, 64), (1024, 128), (2048, 64), (2048, 256)),
}
"""Contexts in tokens and batches of the decode table, by model."""


def splits(num_tokens: int, num_sources: int) -> list[npt.NDArray[np.intp]]:
    """Return the tokens of every source: dealt in turn, as a bank group deals them to its banks."""
    return [np.arange(source, num_tokens, num_sources) for source in range(num_sources)]


def exp_row(preset: str, codes: npt.NDArray[np.uint16], results: npt.NDArray[np.uint16]) -> dict[str, Any]:
    """Compare what the exponential unit's RTL made of ``codes`` with the bit-exact model and with float64.

    The relative error is over codes whose exact result is a normal number of the format.
    """
    spec = UNIT_PRESETS[preset].exp
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp(FP16.from_codes(codes).astype(np.float64))
    normal = (exact >= FP16.min_normal) & (exact <= FP16.max_finite)
    error = np.abs(FP16.from_codes(results[normal]).astype(np.float64) / exact[normal] - 1)
    return {
        "codes": int(codes.size),
        "equal_to_golden": bool(np.array_equal(results, spec.evaluate_codes(codes))),
        "normal_results": int(normal.sum()),
        "max_relative_error": float(error.max()),
    }


def attention_row(preset: str, tensors: LayerTensors, query: int, rtl: RtlAttention) -> dict[str, Any]:
    """Compare the RTL's attention of one query of every head with the golden model, float64 and the fp16 reference."""
    sizes = UNIT_PRESETS[preset]
    q, k, v, scale = tensors.q[query], tensors.k, tensors.v, tensors.scale
    numerics = unit_numerics(sizes.exp, sizes.processing.lanes, sizes.processing.tile_tokens)
    parts = splits(len(k), sizes.reduction.num_sources)
    golden = pam_attention(q, k, v, scale, parts, numerics, len(parts))
    exact = attention_reference(q, k, v, scale)
    ours = np.abs(rtl.output.astype(np.float64) - exact)
    yardstick = np.abs(attention_fp16_reference(q, k, v, scale).astype(np.float64) - exact)
    return {
        "layer": tensors.layer,
        "tokens": len(k),
        "heads": q.shape[0],
        "equal_to_golden": bool(np.array_equal(FP16.to_codes(rtl.output), FP16.to_codes(golden.output))),
        "max_error": float(ours.max()),
        "rms_error": float(np.sqrt(np.mean(ours**2))),
        "max_error_over_fp16_reference": float(ours.max() / yardstick.max()),
        "rms_error_over_fp16_reference": float(np.sqrt(np.mean(ours**2) / np.mean(yardstick**2))),
    }


def cycle_rows(preset: str, exponentials: int, exp_cycles: int, tokens: int, rtl: RtlAttention) -> list[dict[str, Any]]:
    """Return measured cycles of every unit beside what its formula says.

    Cycles run from the first accepted input, that of the first kv beat for the processing unit, to the
    last output, both included.
    """
    sizes = UNIT_PRESETS[preset]
    operations = len(rtl.output)
    share = len(splits(tokens, sizes.reduction.num_sources)[0])
    operation = processing_timing.cycles(sizes.processing, OperationSizes.of(sizes.processing, share))
    streams = rtl.processing[0].streams
    measured = {
        "processing": int(streams["body"].cycles[-1] - streams["kv"].cycles[0]),
        "reduction": _span(rtl.reduction.streams, "head_i__0", "body_o"),
        "finish": _span(rtl.finish.streams, "head", "output"),
    }
    return [
        {
            "unit": "exp",
            "work": f"{exponentials} operands",
            "measured_cycles": exp_cycles,
            "formula_cycles": exp_timing.cycles(sizes.exp, exponentials),
        },
        {
            "unit": "processing",
            "work": f"{operations} operations of {share} tokens",
            "measured_cycles": measured["processing"],
            "formula_cycles": (operations - 1) * operation.interval + operation.total,
        },
        {
            "unit": "reduction",
            "work": f"{operations} operations of {sizes.reduction.num_sources} states",
            "measured_cycles": measured["reduction"],
            "formula_cycles": reduction_timing.cycles(sizes.reduction, [sizes.reduction.beats] * operations),
        },
        {
            "unit": "finish",
            "work": f"{operations} operations",
            "measured_cycles": measured["finish"],
            "formula_cycles": finish_timing.cycles(sizes.finish, [sizes.finish.beats] * operations),
        },
    ]


def _span(streams: Mapping[str, Any], first: str, last: str) -> int:
    return int(streams[last].cycles[-1] - streams[first].cycles[0]) + 1


def decode_records(system: str, progress: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Yield the decode record of every point of :data:`DECODE_POINTS`."""
    for model, points in DECODE_POINTS.items():
        for context, batch in points:
            progress(f"{model}: context {context}, batch {batch}")
            yield decode_record(load_system(system), load_model(model), StepRequest(context=context, batch=batch))
