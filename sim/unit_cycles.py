"""Cycles of the hardware units at a model's sizes: the one place where the harness asks :mod:`hw.timing`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hw.presets import UNIT_PRESETS
from hw.timing import finish, processing, reduction
from hw.timing.operation import OperationSizes
from sim.errors import ConfigError
from sim.provenance import Part

if TYPE_CHECKING:
    from sim.models import Attention

__all__ = [
    "OperationCycles",
    "StageCycles",
    "finish_cycles",
    "merge_cycles",
    "operation_cycles",
    "state_bytes",
    "unit_dim",
    "unit_parts",
]


@dataclass(frozen=True)
class StageCycles:
    """Cycles of a stage that takes one operation after the other.

    Parameters
    ----------
    interval : int
        From one operation to the next, sustained.
    latency : int
        One operation alone, first state in to last beat out.
    """

    interval: int
    latency: int


def unit_dim(preset: str, attention: Attention) -> int:
    """Return the head dimension of units of ``preset``: the model's, up to whole beats, and at least two of them.

    Keys and values fill as many beats as the longer of the two.
    """
    lanes = UNIT_PRESETS[preset].processing.lanes
    return max(2 * lanes, -(-max(attention.key_dim, attention.value_dim) // lanes) * lanes)


@dataclass(frozen=True)
class OperationCycles:
    """Cycles of a processing unit for one query over its tokens.

    Parameters
    ----------
    interval : int
        From the first column of an operation to that of the next.
    drain : int
        From the last column to the last beat of the state.
    """

    interval: int
    drain: int


@cache
def operation_cycles(preset: str, attention: Attention, num_tokens: int) -> OperationCycles:
    """Return the cycles of a processing unit for one query over ``num_tokens`` tokens.

    More tokens than the command's count can say are taken as several operations, one after the other.
    """
    params = UNIT_PRESETS[preset].processing.replace(head_dim=unit_dim(preset, attention))
    longest = (1 << params.token_bits) - 1
    whole, rest = divmod(num_tokens, longest)
    parts = [processing.cycles(params, OperationSizes.of(params, longest))] * whole
    if rest or not whole:
        parts.append(processing.cycles(params, OperationSizes.of(params, rest)))
    return OperationCycles(sum(part.interval for part in parts), parts[-1].drain)


@cache
def merge_cycles(preset: str, attention: Attention, num_sources: int) -> StageCycles:
    """Return the cycles of a reduction unit that merges ``num_sources`` states an operation."""
    head_dim = unit_dim(preset, attention)
    try:
        params = UNIT_PRESETS[preset].reduction.replace(head_dim=head_dim, num_sources=num_sources)
    except ValueError as error:
        raise ConfigError(f"reduction unit of preset {preset}: {error}") from None
    interval = num_sources * reduction.interval_cycles(params)
    return StageCycles(interval, reduction.cycles(params, [params.beats]))


@cache
def finish_cycles(preset: str, attention: Attention) -> StageCycles:
    """Return the cycles of the division by l."""
    params = UNIT_PRESETS[preset].finish.replace(head_dim=unit_dim(preset, attention))
    return StageCycles(finish.interval_cycles(params), finish.cycles(params, [params.beats]))


def state_bytes(attention: Attention) -> int:
    """Return the bytes of one state on a wire: m, l and o in fp32, at the model's own head dimension."""
    return 4 * (2 + attention.value_dim)


def unit_parts(preset: str, merge_preset: str) -> tuple[Part, ...]:
    """Return where the cycles of a memory's units come from."""
    return (
        Part("processing unit cycles", "formula-rtl", f"hw.timing.processing at the sizes of {preset}"),
        Part(
            "reduction unit cycles", "formula-rtl", f"hw.timing.reduction at the sizes of {preset} and {merge_preset}"
        ),
    )
