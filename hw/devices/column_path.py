"""The way of a column from the banks of a group to the unit that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.bank_group import column_layout
from hw.layouts import kv_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["ColumnPath"]


class ColumnPath(wiring.Component):
    """Pass the column of whichever bank has one, in the same cycle.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    columns : In(ArrayLayout(column_layout, banks))
        What the banks read; no more than one of them in a cycle.
    valid, beat : Out
        What one of them read.
    collided : Out(1)
        Two had a column in one cycle, and one was lost; stays high.
    """

    columns: data.View
    valid: Signal
    beat: data.View
    collided: Signal

    def __init__(self, params: ChannelParams) -> None:
        self.banks = params.organisation.banks
        super().__init__(
            {
                "columns": In(data.ArrayLayout(column_layout(params), self.banks)),
                "valid": Out(1),
                "beat": Out(kv_layout(params.processing)),
                "collided": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the choice."""
        m = Module()
        valid = Signal(self.banks)
        m.d.comb += [
            valid.eq(Cat(*(self.columns[bank].valid for bank in range(self.banks)))),
            self.valid.eq(valid.any()),
        ]
        for bank in range(self.banks):
            with m.If(valid[bank]):
                m.d.comb += self.beat.eq(self.columns[bank].beat)
        # A number with one bit set has none in common with its predecessor.
        with m.If((valid & (valid - 1)[: self.banks]).any()):
            m.d.sync += self.collided.eq(1)
        return m
