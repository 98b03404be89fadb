"""Cycles of a pass over labels: a few channels of every key, from which Double Sparsity picks the tokens to attend to.

A label lies as a key of as many elements would: in columns of its own, in every bank that holds a slice. One column is
the least, however few elements there are. An operation of scores reads them; no value is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.memory.kv_rows import key_rows
from hw.timing.score_runs import ScoreRunCycles, score_run_cycles

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["LabelScan", "label_scan"]


@dataclass(frozen=True, kw_only=True)
class LabelScan:
    """A pass over the labels of one KV head in a channel.

    Parameters
    ----------
    run : ScoreRunCycles
        Columns, rows and cycles of the operation up to the scores out of the bank groups, refresh left out.
    bus_cycles : int
        Cycles in which the scores of all groups are on the bus of a pseudo-channel, at the pace of its bursts, while
        labels are read: as long as they are fewer, the bus holds nothing up. The bus is modelled, not in the RTL.
    useful_share : Fraction
        Part of the elements read that belong to labels.
    """

    run: ScoreRunCycles
    bus_cycles: int
    useful_share: Fraction


def label_scan(params: ChannelParams, label_dim: int, part_tokens: int) -> LabelScan:
    """Return the cycles of a pass over the labels of ``part_tokens`` tokens in every part.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    label_dim : int
        Elements of a label, from 1 to ``params.head_dim``.
    part_tokens : int
        Tokens of every part, 1 or more.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range.

    Notes
    -----
    :func:`hw.timing.score_runs.score_run_cycles`, equal to the RTL, and::

        bus = ceil(n * parts * 4 B / pseudo-channels / column_bytes) * n_ccds
    """
    require_int("label_dim", label_dim, 1, params.head_dim)
    run = score_run_cycles(params, label_dim, part_tokens)
    organisation, unit = params.organisation, params.processing
    beats = key_rows(params, label_dim, part_tokens).beats
    score_bytes = part_tokens * params.parts * unit.state_format.bytes
    bursts = -(-score_bytes // (organisation.pseudochannels * organisation.column_bytes))
    return LabelScan(
        run=run,
        bus_cycles=bursts * params.timing.n_ccds,
        useful_share=Fraction(label_dim, beats * unit.lanes * unit.slices),
    )
