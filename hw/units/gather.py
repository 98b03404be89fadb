"""The gather unit in Amaranth: selected ids become bursts of memory, adjacent rows in one."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.gather_params import GatherParams
from hw.units.gather_ids import RowIds, id_layout
from hw.units.top_k_layouts import selected_layout

__all__ = ["Gather", "burst_layout", "rows_layout"]


def rows_layout(params: GatherParams) -> data.StructLayout:
    """Where the rows of an operation lie, as :class:`golden.retrieval.bursts.Rows` says it.

    ``burst_rows`` is at most ``max_burst_rows``; 0 is as good as 1.
    """
    return data.StructLayout(
        {
            "base": params.address_bits,
            "stride": params.row_bits,
            "row_bytes": params.row_bits,
            "burst_rows": params.rows_bits,
        }
    )


def burst_layout(params: GatherParams) -> data.StructLayout:
    """One burst; or, with ``end``, the end of an operation, which is no burst and has the operation's ``fault``."""
    return data.StructLayout(
        {
            "address": params.address_bits,
            "length": params.length_bits,
            "rows": params.rows_bits,
            "end": 1,
            "fault": 1,
        }
    )


class Gather(wiring.Component):
    """Addresses of the rows of selected ids.

    Overview
    --------
    The row of id n begins at ``base + n * stride`` and has ``row_bytes`` bytes: 1,152 for a token of multi-head latent
    attention in 16 bits, 128 times that for a block of tokens, n then being the block. An id that is its predecessor's
    plus one joins its burst, where ``stride`` equals ``row_bytes`` and the burst has fewer than ``burst_rows`` rows.

    Protocol
    --------
    Plain ready/valid streams. An operation is one transfer on ``rows``, then ids on ``selected`` up to and with an end,
    as :class:`hw.units.top_k_shard.TopKShard` gives them: a row of ids at a time, which
    :class:`hw.units.gather_ids.RowIds` takes apart. Out come its bursts and one transfer marked ``end``, all other
    fields of which are 0 but ``fault``: that of the end that came in, or an address of the operation did not fit
    ``address_bits``. Ids may come in any order of rows; bursts keep it. ``bursts`` is registered; ``rows.ready``
    depends on the state alone, ``selected.ready`` follows ``bursts.ready`` combinationally, and lets what comes first
    of an operation in before its ``rows``.

    Timing
    ------
    Ids 4, 5 and 9 (R where rows lie, 4+ what has 4 and 5, E the end)::

        cycle      0  1  2  3  4  5  6  7  8
        rows       R  .  .  .  .  .  .  .  R
        selected   4+ .  9  E  .  .  .  .  .
        bursts     .  .  .  .  .  .  4+ 9  E

    Latency and throughput
    ----------------------
    An id a cycle. A burst leaves four cycles after the transfer of what ends it, alone or the first of its row; from
    the end's transfer on ``selected`` to that on ``bursts`` there are 5 cycles, 4 with no id at all, and ``rows`` is
    ready again in the cycle of the end's transfer or, stalled, after it entered the register.
    :func:`hw.timing.gather.predict` gives every cycle of a stalled run.

    Numerics
    --------
    Integers; no sum wraps silently (``fault``). :func:`golden.retrieval.bursts.bursts`
    (``tests/rtl/test_gather.py``).

    Parameters
    ----------
    params : GatherParams
        Sizes.

    Members
    -------
    rows : ``In(stream.Signature(rows_layout(params)))``
        Operations.
    selected : ``In(stream.Signature(selected_layout(id_bits, lanes)))``
        Rows of ids and ends.
    bursts : ``Out(stream.Signature(burst_layout(params)))``
        Bursts and ends.

    Raises
    ------
    TypeError
        If ``params`` is not a GatherParams.
    """

    rows: stream.Interface
    selected: stream.Interface
    bursts: stream.Interface

    def __init__(self, params: GatherParams) -> None:
        if not isinstance(params, GatherParams):
            raise TypeError(f"params must be a GatherParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "rows": In(stream.Signature(rows_layout(params))),
                "selected": In(stream.Signature(selected_layout(params.id_bits, params.lanes))),
                "bursts": Out(stream.Signature(burst_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the product, the open burst and the output register."""
        m = Module()
        params = self.params
        setup = Signal(rows_layout(params))
        busy = Signal()
        m.d.comb += self.rows.ready.eq(~busy)
        with m.If(self.rows.valid & self.rows.ready):
            m.d.sync += [setup.eq(self.rows.payload), busy.eq(1)]

        m.submodules.ids = ids = RowIds(params)
        wiring.connect(m, wiring.flipped(self.selected), ids.selected)

        # The id's product waits here until the open burst has taken it or given way.
        item_valid, item_ready, ending = Signal(), Signal(), Signal()
        item = Signal(id_layout(params.id_bits))
        product = Signal(params.id_bits + params.row_bits)
        incoming = ids.ids.payload
        m.d.comb += ids.ids.ready.eq(busy & ~ending & (~item_valid | item_ready))
        with m.If(item_ready):
            m.d.sync += item_valid.eq(0)
        with m.If(ids.ids.valid & ids.ids.ready):
            m.d.sync += [item_valid.eq(1), item.eq(incoming), product.eq(incoming.id * setup.stride)]
            m.d.sync += ending.eq(incoming.end)

        # The open burst.
        is_open, fault = Signal(), Signal()
        burst = Signal(burst_layout(params))
        expected = Signal(params.id_bits + 1)
        free, joins, sends, opens = Signal(), Signal(), Signal(), Signal()
        address = Signal(max(params.address_bits, len(product)) + 1)
        m.d.comb += [
            free.eq(~self.bursts.valid | self.bursts.ready),
            address.eq(setup.base + product),
            joins.eq(
                is_open
                & ~item.end
                & (item.id == expected)
                & (setup.stride == setup.row_bytes)
                & (burst.rows < setup.burst_rows)
            ),
            # What can't join makes the open burst leave; an end stays for its own turn after it.
            sends.eq(item_valid & free & ~joins & (is_open | item.end)),
            opens.eq(item_valid & ~item.end & ~joins & (~is_open | free)),
            item_ready.eq(item_valid & (joins | opens | (item.end & ~is_open & free))),
        ]
        with m.If(item_valid & joins):
            m.d.sync += [burst.length.eq(burst.length + setup.row_bytes), burst.rows.eq(burst.rows + 1)]
        with m.If(opens):
            m.d.sync += [
                burst.address.eq(address),
                burst.length.eq(setup.row_bytes),
                burst.rows.eq(1),
                fault.eq(fault | address[params.address_bits :].any()),
            ]
        with m.If(item_ready):
            m.d.sync += expected.eq(item.id + 1)
        with m.If(opens | sends):
            m.d.sync += is_open.eq(opens)

        ends = sends & ~is_open
        with m.If(self.bursts.ready):
            m.d.sync += self.bursts.valid.eq(0)
        with m.If(sends):
            m.d.sync += [self.bursts.valid.eq(1), self.bursts.payload.eq(burst)]
        with m.If(ends):
            m.d.sync += [
                self.bursts.payload.eq(0),
                self.bursts.payload.end.eq(1),
                self.bursts.payload.fault.eq(item.fault | fault),
            ]
            m.d.sync += [busy.eq(0), ending.eq(0), fault.eq(0)]
        return m
