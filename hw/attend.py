"""Attention computed by the RTL: processing units, reduction unit and finish unit, Verilated, on given tensors.

The tokens of every head are dealt to ``num_sources`` processing units as a bank group deals them to its
banks; each unit's states go to the reduction unit, the merged states to the finish unit. The units run one
after another on recorded streams, so that every cycle count is that of the unit without stalls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP32, FloatFormat
from hw.cosim import StreamRun, run_streams
from hw.layouts import command_layout, output_layout
from hw.payloads import pack, pack_vectors, unpack
from hw.timing.kv_order import kv_vectors
from hw.timing.operation import OperationSizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from hw.params import FinishParams, ProcessingParams, ReductionParams

__all__ = ["RtlAttention", "attend"]


@dataclass(frozen=True)
class RtlAttention:
    """What the hardware answered.

    Parameters
    ----------
    output : ndarray of float16 or bfloat16, shape (num_heads, head_dim)
        Attention output of every head, in the finish unit's format.
    empty, fault : ndarray of bool, shape (num_heads,)
        The flags that came with it.
    processing : tuple of StreamRun
        Run of each processing unit.
    reduction, finish : StreamRun
        Runs of the other two.
    """

    output: npt.NDArray[Any]
    empty: npt.NDArray[np.bool_]
    fault: npt.NDArray[np.bool_]
    processing: tuple[StreamRun, ...]
    reduction: StreamRun
    finish: StreamRun


def attend(
    q: npt.NDArray[Any],
    k: npt.NDArray[Any],
    v: npt.NDArray[Any],
    scale: float,
    *,
    splits: Sequence[Sequence[int] | npt.NDArray[np.intp]],
    params: tuple[ProcessingParams, ReductionParams, FinishParams],
    verilog: Mapping[str, tuple[str, str]],
) -> RtlAttention:
    """Compute attention of one query a head over all tokens with the Verilated units.

    Parameters
    ----------
    q : ndarray of float, shape (num_heads, head_dim)
        Queries, rounded to the processing unit's format as k and v are. ``head_dim`` may be below the units': zeros
        fill the rest, which changes no result.
    k, v : ndarray of float, shape (num_tokens, num_kv_heads, head_dim)
        Keys and values; ``num_heads`` is a multiple of ``num_kv_heads``.
    scale : float
        Factor of every score.
    splits : sequence of index sequences
        Tokens of each source of the reduction unit; a part may be empty.
    params : tuple
        Sizes of processing, reduction and finish unit.
    verilog : mapping of str to (text, top)
        Verilog of ``processing``, ``reduction`` and ``finish``.

    Raises
    ------
    ValueError
        If the number of splits is not the reduction unit's number of sources.
    """
    processing, reduction, finish = params
    if len(splits) != reduction.num_sources:
        raise ValueError(f"splits must number {reduction.num_sources}, as the sources do, not {len(splits)}")
    num_heads, head_dim = q.shape
    group = num_heads // k.shape[1]
    layout = command_layout(processing)
    fmt = processing.kv_format
    op_ids = [head % (1 << processing.op_id_bits) for head in range(num_heads)]

    runs = []
    states: dict[str, list[int]] = {}
    for source, split in enumerate(splits):
        indices = np.asarray(split, dtype=np.intp)
        sizes = OperationSizes.of(processing, len(indices)).command_fields
        commands = [pack(layout, op_id=op_id, scale=int(FP32.to_codes(scale)), **sizes) for op_id in op_ids]
        kv = [
            kv_vectors(
                processing.tile_tokens,
                _codes(fmt, k[indices, head // group], processing.head_dim),
                _codes(fmt, v[indices, head // group], processing.head_dim),
            )
            for head in range(num_heads)
        ]
        full = 0 if indices.size == 0 else processing.beats
        run = run_streams(
            *verilog["processing"],
            {
                "command": commands,
                "query": pack_vectors(_codes(fmt, q, processing.head_dim), processing.lanes),
                "kv": pack_vectors(np.concatenate(kv), processing.lanes),
            },
            {"head": num_heads, "body": num_heads * full},
        )
        runs.append(run)
        states[f"head_i__{source}"] = run.streams["head"].payloads
        states[f"body_i__{source}"] = run.streams["body"].payloads

    empty = all(len(split) == 0 for split in splits)
    merged = run_streams(
        *verilog["reduction"],
        states,
        {"head_o": num_heads, "body_o": 0 if empty else num_heads * reduction.beats},
    )
    finished = run_streams(
        *verilog["finish"],
        {"head": merged.streams["head_o"].payloads, "body": merged.streams["body_o"].payloads},
        {"output": num_heads * (1 if empty else finish.beats)},
    )
    beats = [unpack(output_layout(finish), beat) for beat in finished.streams["output"].payloads]
    finals = [beat for beat in beats if beat["last"]]
    codes = np.array([beat["o"] for beat in beats]).reshape(num_heads, -1)
    if empty:
        # One beat of zeros each, whatever the head dimension.
        codes = np.tile(codes, finish.beats)
    return RtlAttention(
        output=finish.output_format.from_codes(codes[:, :head_dim]),
        empty=np.array([beat["empty"] for beat in finals], dtype=bool),
        fault=np.array([beat["fault"] for beat in finals], dtype=bool),
        processing=tuple(runs),
        reduction=merged,
        finish=finished,
    )


def _codes(fmt: FloatFormat, values: npt.NDArray[Any], head_dim: int) -> npt.NDArray[np.uint16]:
    """Return the codes of the rows of ``values``, each filled with zeros up to ``head_dim``."""
    padding = [(0, 0)] * (values.ndim - 1) + [(0, head_dim - values.shape[-1])]
    return fmt.to_codes(np.pad(values, padding))
