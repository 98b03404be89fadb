"""The queue of the DMA's descriptors: checks each as a whole, keeps those that are sound, gives their tokens."""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.descriptors import Status
from hw.dma_engine_params import DmaParams
from hw.interface.dma_layouts import completion_layout, segment_layout, token_layout

__all__ = ["DescriptorQueue"]

_CHECKS = (Status.ZERO_LENGTH, Status.UNMAPPED, Status.MISALIGNED, Status.OVERLAP, Status.SAME_PLACE)


class DescriptorQueue(wiring.Component):
    """Take descriptors segment by segment, refuse what must be, and hand out tokens in order.

    Overview
    --------
    The checks are those of :func:`golden.dma.descriptors.check_segments`, a slot being the granule, and the first of
    its reasons counts. A memory that is neither end of the link is UNMAPPED, this one itself SAME_PLACE. A descriptor
    that finds ``queue_depth`` others accepted and not ended, or has more than ``max_segments`` segments, is refused
    with QUEUE_FULL, whatever else is wrong with it, and may be given again. What is refused has no effect.

    Protocol
    --------
    Plain ready/valid streams. Each descriptor ends in one completion: refused here, or ended by whoever takes its
    tokens, who then raises ``ended`` for a cycle.

    Timing
    ------
    A descriptor of two segments of one token each::

        cycle   0   1   2   3   4   5
        i       A0  A1  .   .   B0  .
        o       .   .   .   .   A0  A1

    Latency and throughput
    ----------------------
    3 cycles from a descriptor's last segment to its first token; a token a cycle. A
    descriptor of n segments takes 2 n cycles.

    Numerics
    --------
    None; statuses equal the golden model's (``tests/hw/test_descriptor_queue.py``).

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    i : In(stream of segment_layout)
        Descriptors.
    o : Out(stream of token_layout)
        Tokens of accepted ones.
    refused : Out(stream of completion_layout)
        Completions of the others.
    ended : In(1)
        An accepted descriptor has ended.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: DmaParams) -> None:
        require_type("params", params, DmaParams)
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(segment_layout(params))),
                "o": Out(stream.Signature(token_layout(params))),
                "refused": Out(stream.Signature(completion_layout(params))),
                "ended": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the list of the descriptor that is coming in, the checks, the queue and the count of tokens."""
        m = Module()
        params = self.params
        space = params.space.space
        granule_bits = space.slot_bytes.bit_length() - 1
        entry_layout = data.StructLayout(
            {
                "tag": 32,
                "move": 1,
                "compressed": 1,
                "slot": params.source_bits,
                "tokens": params.address_bits - granule_bits,
                "ends": 1,
            }
        )
        m.submodules.entries = entries = SyncFIFOBuffered(
            width=entry_layout.size, depth=params.queue_depth * params.max_segments
        )

        told = self.i.payload
        count, place = Signal(range(params.max_segments + 1)), Signal(range(params.max_segments + 1))
        starts = [Signal(params.address_bits, name=f"start_{number}") for number in range(params.max_segments)]
        ends = [Signal(params.address_bits + 1, name=f"end_{number}") for number in range(params.max_segments)]
        end, accepting, keeping, taken = Signal(params.address_bits + 1), Signal(), Signal(), Signal()
        found, flags, long = Signal(len(_CHECKS)), Signal(len(_CHECKS)), Signal()
        overlaps = [
            (count > number) & (told.source < kept_end) & (kept_start < end)
            for number, (kept_start, kept_end) in enumerate(zip(starts, ends, strict=True))
        ]
        m.d.comb += [
            end.eq(told.source + told.length),
            self.i.ready.eq(~keeping & (~self.refused.valid | self.refused.ready)),
            taken.eq(self.i.valid & self.i.ready),
            found.eq(
                flags
                | Cat(
                    told.length == 0,
                    (end > space.capacity_bytes)
                    | (told.last & (told.destination != params.memory) & (told.destination != params.peer)),
                    (told.source[:granule_bits] | told.length[:granule_bits]) != 0,
                    Cat(*overlaps).any(),
                    told.last & (told.destination == params.memory),
                )
            ),
        ]

        pending = Signal(range(params.queue_depth + 1))
        full = Signal()
        status = Signal(4)
        m.d.comb += [
            full.eq((pending == params.queue_depth) | long | (count == params.max_segments)),
            accepting.eq(taken & told.last & ~full & ~found.any()),
            status.eq(Mux(full, Status.QUEUE_FULL, 0)),
        ]
        for number, reason in reversed(list(enumerate(_CHECKS))):
            with m.If(~full & found[number]):
                m.d.comb += status.eq(reason)
        with m.If(self.refused.ready):
            m.d.sync += self.refused.valid.eq(0)
        with m.If(taken):
            m.d.sync += [flags.eq(found), long.eq(long | (count == params.max_segments))]
            for number, (kept_start, kept_end) in enumerate(zip(starts, ends, strict=True)):
                with m.If(count == number):
                    m.d.sync += [kept_start.eq(told.source), kept_end.eq(end), count.eq(number + 1)]
            with m.If(told.last):
                m.d.sync += [flags.eq(0), long.eq(0)]
                with m.If(~accepting):
                    m.d.sync += [
                        count.eq(0),
                        self.refused.valid.eq(1),
                        self.refused.payload.tag.eq(told.tag),
                        self.refused.payload.status.eq(status),
                        self.refused.payload.done.eq(0),
                    ]
        m.d.sync += pending.eq(pending + accepting - self.ended)

        # The list is moved to the queue once the whole of it is found sound.
        entry = Signal(entry_layout)
        final = Signal()
        m.d.comb += [
            final.eq(place + 1 == count),
            entry.slot.eq(starts[0] >> granule_bits),
            entry.tokens.eq((ends[0] - starts[0]) >> granule_bits),
            entry.ends.eq(final),
            entries.w_data.eq(entry),
            entries.w_en.eq(keeping),
        ]
        with m.If(accepting):
            m.d.sync += keeping.eq(1)
        with m.If(keeping):
            m.d.sync += place.eq(place + 1)
            for kept in (starts, ends):
                m.d.sync += [front.eq(behind) for front, behind in pairwise(kept)]
            with m.If(final):
                m.d.sync += [place.eq(0), count.eq(0), keeping.eq(0)]
        for name in ("tag", "move", "compressed"):
            kept = Signal.like(told[name], name=f"kept_{name}")
            m.d.comb += entry[name].eq(kept)
            with m.If(accepting):
                m.d.sync += kept.eq(told[name])

        out = Signal(entry_layout)
        number, last = Signal(params.address_bits - granule_bits), Signal()
        m.d.comb += [
            out.eq(entries.r_data),
            last.eq(number + 1 == out.tokens),
            self.o.valid.eq(entries.r_rdy),
            *(self.o.payload[name].eq(out[name]) for name in ("tag", "move", "compressed")),
            self.o.payload.slot.eq(out.slot + number),
            self.o.payload.ends.eq(out.ends & last),
            entries.r_en.eq(self.o.ready & last),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += number.eq(Mux(last, 0, number + 1))
        return m
