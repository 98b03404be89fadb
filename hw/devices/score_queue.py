"""Where the scores of a bank group wait for the bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.devices.layouts import score_layout
from hw.timing.score_queue import READING_LEVEL, queue_depth
from hw.units.processing_scores import token_score_signature

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["ScoreQueue"]


class ScoreQueue(wiring.Component):
    """Put the scores that a group's parts have of one position side by side, and keep them in order.

    Protocol
    --------
    Units that read in lock step give the scores of one position and one query in the same cycle of the logic, or none
    where they pass over their token; an item says which parts have one, and there is none where no part has. Items
    come in the order of positions, of one position in that of queries, operation by operation.

    A column is on its way for long, and nothing stops it: ``free`` tells the sequencer to read no further while more
    than :data:`hw.timing.score_queue.READING_LEVEL` items wait, and there is room for all that may still come. What
    comes against this is lost and raises ``overrun``, which stays high.

    Timing
    ------
    The bus takes nothing for a while; eight scores are on their way when ``free`` falls::

        reads    r r r r r r r r .............. r r r
        level    0 1 2 3 4 5 6 7 8 9 10 11 . 8 7 .. 3
        free     1 1 1 1 0 0 0 0 ............... 1 1

    Latency and throughput
    ----------------------
    Two cycles of the memory clock; an item a cycle.

    Resources
    ---------
    :func:`hw.timing.score_queue.queue_depth` items, of 32 bits a part, its mark, an id and a position.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    enable : In(1)
        Cycles of the logic, in which ``i`` counts.
    i : ``In(token_score_signature).array(parts_per_group)``
        Scores of the units, of one unit a part.
    o : Out(stream of score_layout)
        The items, in the memory clock.
    free : Out(1)
        Columns of an operation of scores may be read.
    overrun : Out(1)
        An item was lost.
    """

    enable: Signal
    i: list[wiring.PureInterface]
    o: stream.Interface
    free: Signal
    overrun: Signal

    def __init__(self, params: ChannelParams) -> None:
        self.params = params
        super().__init__(
            {
                "enable": In(1),
                "i": In(token_score_signature(params.processing)).array(params.parts_per_group),
                "o": Out(stream.Signature(score_layout(params))),
                "free": Out(1),
                "overrun": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the item and its queue."""
        m = Module()
        layout = score_layout(self.params)
        m.submodules.queue = queue = SyncFIFOBuffered(width=layout.size, depth=queue_depth(self.params))
        item = Signal(layout)
        for number, port in enumerate(self.i):
            m.d.comb += [
                item.parts[number].eq(port.valid),
                item.scores[number].eq(port.token.score),
            ]
        # Those that have a score say the same of it.
        for port in self.i:
            with m.If(port.valid):
                m.d.comb += [item.op_id.eq(port.token.op_id), item.position.eq(port.token.position)]
        m.d.comb += [
            queue.w_data.eq(Value.cast(item)),
            queue.w_en.eq(self.enable & Cat(port.valid for port in self.i).any()),
            self.o.valid.eq(queue.r_rdy),
            self.o.payload.eq(queue.r_data),
            queue.r_en.eq(self.o.ready),
            self.free.eq(queue.level <= READING_LEVEL),
        ]
        with m.If(queue.w_en & ~queue.w_rdy):
            m.d.sync += self.overrun.eq(1)
        return m
