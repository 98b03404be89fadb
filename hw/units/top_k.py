"""The top-k unit in Amaranth: shards and the merge between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.top_k_params import TopKParams
from hw.units.top_k_layouts import scan_layout, score_layout, selected_layout
from hw.units.top_k_merge import TopKMerge
from hw.units.top_k_shard import TopKShard

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.top_k_params import TopKShardParams

__all__ = ["TopK"]


class TopK(wiring.Component):
    """Ids of the k largest scores, exactly, ties to the lower id.

    Overview
    --------
    :class:`hw.units.top_k_shard.TopKShard` times ``shards``, and one :class:`hw.units.top_k_merge.TopKMerge`. Each
    shard stands where its keys lie and gives out its own ids, so that nothing but counts and digits crosses between
    them; where shards are far apart, the two are placed by themselves.

    Why radix selection: its time depends on how many scores there are, not on what they are or in which order they
    come; histograms of shards add up, so that sharding costs a tree of adders; and k is a number in a register, where
    a sorter (:class:`hw.units.sorted_list.SortedList`) has a comparator and a register for each of k places: 80 times
    the logic of a shard at k = 2,048 (``python -m hw.benches sorter``).

    Protocol
    --------
    An operation is k on ``command``, a scan on each ``scan[s]`` and its scores on ``scores[s]``; out come ids and one
    end on each ``selected[s]``. A shard without scores has a scan of count 0. The ids of shard s, ``base`` added, are
    lower than those of shard s + 1.

    Latency and throughput
    ----------------------
    With R the most rows any shard sweeps, D digits, B = ``2**digit_bits`` and L = ``ceil(log2(shards))``, from the last
    score to the end at shard s, which sweeps R_s rows (:func:`hw.timing.top_k.select_cycles`)::

        (D - 1) (R + B + L + 4) + B + L + s + 10 + R_s

    At 15,625 scores a shard, 32 lanes and 64 shards that is 4,189 cycles: 2.1 % of the time in which the keys come at
    1.2 TB/s and 132 B, 12.9 cycles of 1.83 GHz a key and channel.
    At 65,536 tokens it is 4.0 %, below 5 % from there on (``tests/hw/test_top_k.py``); with fewer tokens the sweeps are
    short, and the counts' way to the merge and back decides. Where the ids taken lie changes nothing: a row's leave
    together, if they all crowd in one shard, too.

    Numerics
    --------
    :func:`golden.retrieval.topk.top_k` of all scores (``tests/rtl/test_top_k.py``).

    Parameters
    ----------
    params : TopKParams
        Sizes.
    make_shard : callable
        Makes each shard from its parameters: a component with the members of the shard, such as one whose Verilog is
        written elsewhere.

    Members
    -------
    command : ``In(stream.Signature(k_bits))``
        k of each operation.
    scan, scores : In, arrays of ``shards`` streams
        As of the shard.
    selected : Out, array of ``shards`` streams
        As of the shard.

    Raises
    ------
    TypeError
        If ``params`` is not a TopKParams.
    """

    command: stream.Interface
    scan: list[stream.Interface]
    scores: list[stream.Interface]
    selected: list[stream.Interface]

    def __init__(self, params: TopKParams, make_shard: Callable[[TopKShardParams], Any] = TopKShard) -> None:
        if not isinstance(params, TopKParams):
            raise TypeError(f"params must be a TopKParams, not {params!r}")
        self.params = params
        self._make_shard = make_shard
        shard = params.shard
        super().__init__(
            {
                "command": In(stream.Signature(params.k_bits)),
                "scan": In(stream.Signature(scan_layout(shard))).array(params.shards),
                "scores": In(stream.Signature(score_layout(shard))).array(params.shards),
                "selected": Out(stream.Signature(selected_layout(shard.id_bits, shard.lanes))).array(params.shards),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place shards and merge."""
        m = Module()
        m.submodules.merge = merge = TopKMerge(self.params)
        wiring.connect(m, wiring.flipped(self.command), merge.command)
        for number in range(self.params.shards):
            m.submodules[f"shard_{number}"] = shard = self._make_shard(self.params.shard)
            for outer, inner in (
                (self.scan[number], shard.scan),
                (self.scores[number], shard.scores),
                (self.selected[number], shard.selected),
            ):
                wiring.connect(m, wiring.flipped(outer), inner)
            wiring.connect(m, shard.counts, merge.counts[number])
            wiring.connect(m, merge.choice[number], shard.choice)
        return m
