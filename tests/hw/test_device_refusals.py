# amaranth: UnusedElaboratable=no
"""Promise: a device that makes no sense is refused when it is made, with what was wanted and what was given."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from hw.device_params import ChannelBenchParams, ChannelParams, Mapping
from hw.devices.append_walk import AppendWalk
from hw.devices.bank_group import BankGroup
from hw.devices.broadcaster import Broadcaster
from hw.devices.cells import Cells
from hw.devices.channel_bench import ChannelBench
from hw.devices.clock_enable import ClockEnable
from hw.devices.logic_die import LogicDie, LogicDieBench
from hw.devices.memory_model import MemoryModel
from hw.devices.memory_rules import RuleWatch
from hw.devices.power_cap import PowerCap
from hw.devices.row_walk import RowWalk
from hw.devices.sequencer import ChannelSequencer
from hw.devices.state_link import StateLink
from hw.logic_die_params import LogicDieParams
from hw.presets.devices import DEVICE_PRESETS

SPLIT = DEVICE_PRESETS["attacc"].channel
WHOLE = DEVICE_PRESETS["pam-wide"].channel


def _refused(make: Any, message: str, error: type[Exception] = ValueError) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        make()


@pytest.mark.parametrize(
    ("component", "name", "kind"),
    [
        (AppendWalk, "params", "ChannelParams"),
        (BankGroup, "params", "ChannelParams"),
        (Broadcaster, "params", "ChannelParams"),
        (RowWalk, "params", "ChannelParams"),
        (lambda params: ChannelSequencer(params, parts=1), "params", "ChannelParams"),
        (ChannelBench, "bench", "ChannelBenchParams"),
        (LogicDie, "params", "LogicDieParams"),
        (LogicDieBench, "params", "LogicDieParams"),
        (StateLink, "params", "LogicDieParams"),
        (MemoryModel, "params", "MemoryModelParams"),
        (RuleWatch, "params", "MemoryModelParams"),
    ],
)
@pytest.mark.parametrize("given", [None, 16, SPLIT.processing, {"channel": SPLIT}])
def test_parameters_of_another_kind(component: Any, name: str, kind: str, given: object) -> None:
    _refused(lambda: component(given), f"{name} must be a {kind}, not {given!r}", TypeError)


@pytest.mark.parametrize(
    ("field", "given", "kind"),
    [
        ("organisation", SPLIT.timing, "Organisation"),
        ("timing", None, "DramTiming"),
        ("mapping", "split", "Mapping"),
        ("processing", SPLIT.reduction, "ProcessingParams"),
        ("reduction", SPLIT.processing, "ReductionParams"),
        ("logic_ratio", 0.5, "Fraction"),
        ("column_period", 12, "Fraction"),
    ],
)
def test_a_channel_of_parts_of_another_kind(field: str, given: object, kind: str) -> None:
    _refused(lambda: SPLIT.replace(**{field: given}), f"{field} must be a {kind}, not {given!r}", TypeError)


@pytest.mark.parametrize("field", ["channels", "pseudochannels", "ranks", "bankgroups", "banks", "rows", "columns"])
def test_a_memory_with_none_of_something(field: str) -> None:
    _refused(lambda: replace(SPLIT.organisation, **{field: 0}), f"{field} must be at least 1, not 0")


def _organised(channel: ChannelParams, **changes: int) -> ChannelParams:
    """Return the channel on a memory with other numbers, its bytes counted anew."""
    memory = channel.organisation
    sizes = {name: changes.get(name, getattr(memory, name)) for name in ("banks", "columns", "dq_bits")}
    column_bytes = sizes["dq_bits"] * memory.burst_length // 8
    cells = memory.channels * memory.groups_per_channel * sizes["banks"] * memory.rows * sizes["columns"]
    made = replace(memory, **sizes, column_bytes=column_bytes, capacity_bytes=cells * column_bytes)
    return channel.replace(organisation=made)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _organised(SPLIT, dq_bits=64), "a beat of the processing unit must be a column of 64 B, not 32 B"),
        (lambda: _organised(SPLIT, dq_bits=16), "a beat of the processing unit must be a column of 16 B, not 32 B"),
        (
            lambda: SPLIT.replace(processing=SPLIT.processing.replace(lanes=8)),
            "a beat of the processing unit must be a column of 32 B, not 16 B",
        ),
        (lambda: _organised(SPLIT, banks=8), "slices must be 8 for mapping 'split', not 4"),
        (lambda: SPLIT.replace(mapping=Mapping.WHOLE), "slices must be 1 for mapping 'whole', not 4"),
        (lambda: WHOLE.replace(mapping=Mapping.SPLIT), "slices must be 4 for mapping 'split', not 1"),
        (
            lambda: WHOLE.replace(reduction=WHOLE.reduction.replace(num_sources=2)),
            "num_sources of the reduction unit must be the 4 banks of a group, not 2",
        ),
        (
            lambda: WHOLE.replace(reduction=WHOLE.reduction.replace(head_dim=64)),
            "the reduction unit must take states of 256 elements in 16 lanes, not 64 in 16",
        ),
        (
            lambda: WHOLE.replace(reduction=WHOLE.reduction.replace(lanes=8)),
            "the reduction unit must take states of 256 elements in 16 lanes, not 256 in 8",
        ),
        (
            lambda: SPLIT.replace(processing=SPLIT.processing.replace(tile_tokens=4)),
            "tile_tokens must be at least the 8 tokens that a row holds at the largest head dimension, not 4",
        ),
        (lambda: SPLIT.replace(logic_ratio=Fraction(0)), "logic_ratio must be above 0 and at most 1, not 0"),
        (lambda: SPLIT.replace(logic_ratio=Fraction(5, 4)), "logic_ratio must be above 0 and at most 1, not 5/4"),
        (
            lambda: SPLIT.replace(logic_ratio=Fraction(1, 50)),
            f"a column every {SPLIT.timing.n_ccdab} cycles must leave the logic two cycles, it leaves ",
        ),
        (
            lambda: SPLIT.replace(column_period=Fraction(1)),
            f"column_period must be at least the memory's own {SPLIT.timing.n_ccdab} cycles, or None, not 1",
        ),
        (lambda: SPLIT.replace(cap_burst_columns=1), "cap_burst_columns must be from 2 to 4096, not 1"),
    ],
)
def test_a_channel_whose_parts_do_not_fit(make: Any, message: str) -> None:
    _refused(make, message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChannelBenchParams(channel=SPLIT, groups=0), "groups must be from 1 to 16, not 0"),
        (lambda: ChannelBenchParams(channel=SPLIT, groups=17), "groups must be from 1 to 16, not 17"),
        (
            lambda: ChannelBenchParams(channel=SPLIT, rows=SPLIT.organisation.rows + 1),
            f"rows must be from 1 to {SPLIT.organisation.rows}, not {SPLIT.organisation.rows + 1}",
        ),
        (lambda: ChannelSequencer(SPLIT, parts=0), "parts must be from 1 to 16, not 0"),
        (lambda: ChannelSequencer(SPLIT, parts=17), "parts must be from 1 to 16, not 17"),
        (lambda: ChannelSequencer(WHOLE, parts=65), "parts must be from 1 to 64, not 65"),
        (lambda: Cells(0, 4), "width must be at least 1, not 0"),
        (lambda: Cells(8, 0), "depth must be at least 1, not 0"),
        (
            lambda: LogicDieParams(channel=SPLIT, fan_ins=(3, 5)),
            "fan_ins must multiply to the 16 bank groups, not (3, 5)",
        ),
        (lambda: LogicDieParams(channel=SPLIT, group_states=0), "group_states must be at least 1, not 0"),
    ],
)
def test_more_than_there_is_and_less_than_one(make: Any, message: str) -> None:
    _refused(make, message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChannelBenchParams(channel=None, groups=1), "channel must be a ChannelParams, not None"),
        (lambda: LogicDieParams(channel=SPLIT.reduction), "channel must be a ChannelParams, not ReductionParams("),
        (lambda: LogicDieParams(channel=SPLIT, fan_ins=16), "fan_ins must be a tuple, not 16"),
        (lambda: LogicDieParams(channel=SPLIT, fan_ins=(2.0, 8)), "fan_ins must be an integer, not 2.0"),
        (lambda: ClockEnable(0.5), "ratio must be a Fraction, not 0.5"),
        (lambda: PowerCap(12, 32), "period must be a Fraction, not 12"),
        (lambda: Cells("8", 4), "width must be an integer, not '8'"),
        (lambda: ChannelSequencer(SPLIT, parts=True), "parts must be an integer, not True"),
    ],
)
def test_numbers_and_fields_of_another_kind(make: Any, message: str) -> None:
    _refused(make, message, TypeError)
