"""Promise: a size that cannot work is refused when the parameters are made, with the value that was given."""

from __future__ import annotations

import re
from typing import Any

import pytest

from golden.exp import POLY6, POLY6_SERIAL
from golden.exp.catalogue import UNITS
from golden.formats import BF16, FP8_E4M3, FP16, FP32
from hw.params import FinishParams, ProcessingParams, ReductionParams, StateParams

_BF16_EXP = POLY6.replace(fmt=BF16)
_FIXED_EXP = next(spec for spec in UNITS.values() if spec.fmt.name == "q5.10" and spec.interval_cycles == 1)


@pytest.mark.parametrize(
    ("cls", "arguments", "error", "message"),
    [
        (StateParams, {"lanes": 3}, ValueError, "lanes must be a power of two, not 3"),
        (StateParams, {"lanes": 1}, ValueError, "lanes must be from 2 to 64, not 1"),
        (StateParams, {"lanes": 128}, ValueError, "lanes must be from 2 to 64, not 128"),
        (StateParams, {"lanes": 16.0}, TypeError, "lanes must be an integer, not 16.0"),
        (StateParams, {"lanes": True}, TypeError, "lanes must be an integer, not True"),
        (StateParams, {"head_dim": 72}, ValueError, "head_dim must be a multiple of lanes (16), not 72"),
        (StateParams, {"head_dim": 16}, ValueError, "head_dim must be at least 32, not 16"),
        (StateParams, {"op_id_bits": 0}, ValueError, "op_id_bits must be from 1 to 32, not 0"),
        (ReductionParams, {"num_sources": 0}, ValueError, "num_sources must be from 1 to 256, not 0"),
        (ReductionParams, {"num_sources": "4"}, TypeError, "num_sources must be an integer, not '4'"),
        (ReductionParams, {"exp": None}, TypeError, "exp must be an ExpSpec, not None"),
        (ProcessingParams, {"tile_tokens": 0}, ValueError, "tile_tokens must be from 1 to 4096, not 0"),
        (ProcessingParams, {"token_bits": 33}, ValueError, "token_bits must be from 1 to 32, not 33"),
        (ProcessingParams, {"slices": 3}, ValueError, "slices must be a power of two, not 3"),
        (ProcessingParams, {"slices": 32}, ValueError, "slices must be from 1 to 16, not 32"),
        (ProcessingParams, {"queries": 6}, ValueError, "queries must be a power of two, not 6"),
        (ProcessingParams, {"queries": 0}, ValueError, "queries must be from 1 to 16, not 0"),
        (ProcessingParams, {"queries": 4, "query_beats": 33}, ValueError, "query_beats must be from 8 to 32, not 33"),
        (ProcessingParams, {"query_beats": 7}, ValueError, "query_beats must be from 8 to 8, not 7"),
        (ProcessingParams, {"query_beats": 8.0}, TypeError, "query_beats must be an integer, not 8.0"),
        (ReductionParams, {"exp": _FIXED_EXP}, ValueError, "exp must be of format fp16 or bf16, not 'q5.10'"),
        (ProcessingParams, {"exp": _FIXED_EXP}, ValueError, "exp must be of format fp16 or bf16, not 'q5.10'"),
        (
            ProcessingParams,
            {"exp": _BF16_EXP},
            ValueError,
            "exponential unit must be of format fp16 with kv_format fp16, not 'bf16'",
        ),
        (ProcessingParams, {"kv_format": "bf16"}, TypeError, "kv_format must be a FloatFormat, not 'bf16'"),
        (ProcessingParams, {"kv_format": FP32}, ValueError, "kv_format must be fp16 or bf16, not 'fp32'"),
        (ProcessingParams, {"kv_format": FP8_E4M3}, ValueError, "kv_format must be fp16 or bf16, not 'fp8_e4m3'"),
        (FinishParams, {"output_format": 16}, TypeError, "output_format must be a FloatFormat, not 16"),
        (FinishParams, {"output_format": FP32}, ValueError, "output_format must be fp16 or bf16, not 'fp32'"),
        (ProcessingParams, {"exp": 6}, TypeError, "exp must be an ExpSpec, not 6"),
        (
            ProcessingParams,
            {"exp": POLY6_SERIAL},
            ValueError,
            "exp must take one operand a cycle, not one in 8 cycles",
        ),
    ],
)
def test_what_is_refused(cls: Any, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        cls(**arguments)


def test_sizes_that_follow() -> None:
    params = StateParams(head_dim=128, lanes=16)
    assert params.beats == 8
    assert params.state_bytes == 520  # 4 B m, 4 B l, 128 x 4 B o
    assert FinishParams(head_dim=80).beats == 5
    assert [ProcessingParams(slices=slices).slice_levels for slices in (1, 2, 4, 8, 16)] == [0, 1, 2, 3, 4]
    assert ProcessingParams(tile_tokens=16).score_buffer_bytes == 128  # 2 tiles x 16 scores x 4 B
    shared = ProcessingParams(queries=8, tile_tokens=16)
    assert shared.vector_buffer_bytes == 8 * 128 * (2 + 4)
    assert shared.buffer_bytes == 8 * 128 * 6 + 8 * 128
    fewer = shared.replace(query_beats=32)  # 512 elements
    assert (fewer.held_beats, fewer.vector_buffer_bytes) == (32, 3072)


def test_formats_that_follow() -> None:
    """A multiplier meets q and weights: where they are of two formats it takes fp32, which holds both."""
    assert (FinishParams().output_format, ProcessingParams().factor_format) == (FP16, FP16)
    mixed = ProcessingParams(kv_format=BF16)
    assert (mixed.weight_format, mixed.factor_format) == (FP16, FP32)
    brain = ProcessingParams(kv_format=BF16, exp=_BF16_EXP)
    assert (brain.weight_format, brain.factor_format) == (BF16, BF16)
    assert ReductionParams(exp=_BF16_EXP).weight_format == BF16


@pytest.mark.parametrize(
    ("head_dim", "lanes", "num_exp"),
    # One weight a partial: a serial unit takes an operand every 8 cycles, a partial every head_dim / lanes.
    [(128, 16, 1), (112, 16, 2), (64, 16, 2), (48, 16, 3), (32, 16, 4), (256, 16, 1)],
)
def test_serial_exponentials_are_multiplied_to_keep_the_rate(head_dim: int, lanes: int, num_exp: int) -> None:
    assert ReductionParams(head_dim=head_dim, lanes=lanes, exp=POLY6_SERIAL).num_exp == num_exp
    assert ReductionParams(head_dim=head_dim, lanes=lanes).num_exp == 1


def test_a_variant_is_validated_too() -> None:
    assert StateParams().replace(head_dim=64).head_dim == 64
    with pytest.raises(ValueError, match="multiple of lanes"):
        StateParams().replace(head_dim=65)
