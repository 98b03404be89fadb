"""Cycles of a pass over labels: a few channels of every key, from which Double Sparsity picks the tokens to attend to.

A label lies as a key of as many elements would: in columns of its own, in every bank that holds a slice. One column is
the least, however few elements there are. Its score is q . label, which leaves the device; no value is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.timing.channel import row_cycles

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["LabelScan", "label_scan"]


@dataclass(frozen=True, kw_only=True)
class LabelScan:
    """A pass over the labels of one KV head in a channel.

    Parameters
    ----------
    columns, rows : int
        Columns of all banks that are read, and rows that are opened for them.
    read_cycles : Fraction
        Cycles from the first opening to the end of the last row, refresh left out.
    score_cycles : int
        Cycles in which the scores are on the bus of a pseudo-channel, at the pace of its bursts.
    useful_share : Fraction
        Part of the elements read that belong to labels.
    """

    columns: int
    rows: int
    read_cycles: Fraction
    score_cycles: int
    useful_share: Fraction

    @property
    def cycles(self) -> Fraction:
        """The larger of the two: scores leave while labels are read."""
        return max(self.read_cycles, Fraction(self.score_cycles))


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
    With ``c = ceil(label_dim / (lanes * slices))`` columns a token, ``t = floor(columns / c)`` tokens a row and R the
    row time of :func:`hw.timing.channel.row_cycles`::

        read  = max(sum of R over ceil(n / t) rows, n * c * column_period)
        score = ceil(n * groups * parts_per_group * 4 B / pseudo-channels / column_bytes) * n_ccds

    The first n_cl, and the sums of the last token, come on top. No unit holds a score back, so there is no wait. The
    processing unit has no way out for a score of a whole token yet: this is a model, not a measurement.
    """
    require_int("label_dim", label_dim, 1, params.head_dim)
    require_int("part_tokens", part_tokens, 1)
    organisation, unit = params.organisation, params.processing
    beats = -(-label_dim // (unit.lanes * unit.slices))
    tile_tokens = organisation.columns // beats
    full, rest = divmod(part_tokens, tile_tokens)
    opened = full * row_cycles(params, tile_tokens * beats) + (row_cycles(params, rest * beats) if rest else 0)
    columns = part_tokens * beats
    score_bytes = part_tokens * params.parts * unit.state_format.bytes
    bursts = -(-score_bytes // (organisation.pseudochannels * organisation.column_bytes))
    return LabelScan(
        columns=columns,
        rows=full + (rest > 0),
        read_cycles=max(Fraction(opened), columns * (params.column_period or Fraction(0))),
        score_cycles=bursts * params.timing.n_ccds,
        useful_share=Fraction(label_dim, beats * unit.lanes * unit.slices),
    )
