"""Latency and interval of the parts of a device as text, as :mod:`hw.timing.formulas` has those of units.

Cycles of the memory clock, the largest head dimension, no refresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.memory.kv_rows import kv_rows
from hw.timing import channel_runs, logic_die
from hw.timing.channel import streamed_row_cycles
from hw.timing.formulas import Formula

if TYPE_CHECKING:
    from hw.device_params import ChannelParams
    from hw.logic_die_params import LogicDieParams

__all__ = ["channel_interval", "channel_latency", "logic_die_interval", "logic_die_latency"]

_EXAMPLE_ROWS = 64

_ROWS = {"rows": "rows of keys of an operation, as many of values; at least 2, all full"}
_ROW = {"row": "cycles that a row adds to a run of many, hw.timing.channel.streamed_row_cycles"}
_CAP = {
    "row_columns": "columns of a row",
    "period_numerator": "cycles that the power cap grants for period_denominator columns",
    "period_denominator": "columns of which the power cap speaks",
}


def _values(params: ChannelParams) -> dict[str, int]:
    row = kv_rows(params, params.head_dim, 0)
    columns = row.tile_tokens * row.beats
    values = {"rows": _EXAMPLE_ROWS, "row": streamed_row_cycles(params, columns), "row_columns": columns}
    if params.column_period is not None:
        values["period_numerator"] = params.column_period.numerator
        values["period_denominator"] = params.column_period.denominator
    return values


def channel_latency(params: ChannelParams) -> Formula:
    """Return the cycles from the start to the last beat of a group's state, for one operation.

    By the phase of the logic's clock they are one less.
    """
    values = _values(params) | {
        "lead": channel_runs.lead_cycles(params, params.head_dim),
        "spacing": params.timing.n_ccdab,
        "tail": channel_runs.tail_cycles(params, params.head_dim),
    }
    variables = _ROWS | {
        **_ROW,
        "row_columns": _CAP["row_columns"],
        "lead": "cycles to the first column, hw.timing.channel_runs.lead_cycles",
        "spacing": "cycles between two columns, n_ccdab",
        "tail": "cycles behind the last column, hw.timing.channel_runs.tail_cycles",
    }
    busy = "(2 * rows - 1) * row + (row_columns - 1) * spacing"
    if params.column_period is not None:
        values["burst"] = params.cap_burst_columns
        variables |= _CAP | {"burst": "columns that may be saved up"}
        capped = "ceil((2 * rows * row_columns - burst) * period_numerator / period_denominator)"
        busy = f"max({busy}, {capped})"
    return Formula(
        formula=f"lead + {busy} + tail",
        variables=variables,
        values=values,
        cycles=channel_runs.run_cycles(params, params.head_dim, _EXAMPLE_ROWS).last_state,
    )


def channel_interval(params: ChannelParams) -> Formula:
    """Return the cycles from one operation to the next, sustained."""
    values, variables, formula = _values(params), _ROWS | _ROW, "2 * rows * row"
    if params.column_period is None:
        del values["row_columns"]
    else:
        variables |= _CAP
        formula = f"max({formula}, ceil(2 * rows * row_columns * period_numerator / period_denominator))"
    return Formula(
        formula=formula,
        variables=variables,
        values=values,
        cycles=channel_runs.interval_cycles(params, params.head_dim, _EXAMPLE_ROWS),
    )


def _link(params: LogicDieParams) -> tuple[dict[str, str], dict[str, int]]:
    variables = {
        "link_groups": "bank groups that share the bus of a pseudo-channel",
        "spacing": "cycles between two bursts, n_ccds",
        "bursts": "bursts of a beat of a body",
        "beats": "beats of a body, head_dim / lanes",
    }
    values = {
        "link_groups": params.link_groups,
        "spacing": params.channel.timing.n_ccds,
        "bursts": params.body_bursts,
        "beats": params.channel.reduction.beats,
    }
    return variables, values


def logic_die_latency(params: LogicDieParams) -> Formula:
    """Return the cycles from the states of an operation, offered at once, to the last beat of the root's."""
    variables, values = _link(params)
    return Formula(
        formula="link_groups * spacing * (1 + bursts * beats) + 4 * beats + 12",
        variables=variables,
        values=values,
        cycles=logic_die.latency_cycles(params, params.channel.reduction.beats),
    )


def logic_die_interval(params: LogicDieParams) -> Formula:
    """Return the fewest cycles an operation takes, sustained; the RTL stays within 10 % of them."""
    variables, values = _link(params)
    ratio = params.channel.logic_ratio
    return Formula(
        formula="max(link_groups * spacing * (1 + bursts * beats), ceil(fan_in * beats * memory / logic))",
        variables=variables
        | {"fan_in": "sources of the largest unit", "memory": "cycles of the memory", "logic": "of the logic in them"},
        values=values | {"fan_in": max(params.fan_ins), "memory": ratio.denominator, "logic": ratio.numerator},
        cycles=-int(-logic_die.interval_cycles(params, params.channel.reduction.beats) // 1),
    )
