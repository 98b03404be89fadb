"""Scoring and selection in Amaranth: a scoring unit before each shard of the top-k unit."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.index_score_params import IndexSelectParams
from hw.units.index_score import IndexScore
from hw.units.index_score_layouts import command_layout, query_layout
from hw.units.top_k import TopK
from hw.units.top_k_layouts import scan_layout, selected_layout

__all__ = ["IndexSelect"]


class IndexSelect(wiring.Component):
    """Ids of the k keys with the largest scores, of keys that lie in several places.

    Overview
    --------
    :class:`hw.units.index_score.IndexScore` before each shard of :class:`hw.units.top_k.TopK`: scores go from one to
    the other without leaving the place of their keys.

    Protocol
    --------
    Plain ready/valid streams, those of the two units. An operation is k on ``command``, and in each place a scan of as
    many scores as the command on ``score`` gives, which may come in either order, the query and the keys.

    Latency and throughput
    ----------------------
    Those of the units (:mod:`hw.timing.index_score`, :mod:`hw.timing.top_k`); a shard takes a score a cycle once its
    scan has come, so that it holds up none.

    Numerics
    --------
    :func:`golden.retrieval.topk.top_k` of :func:`golden.retrieval.index_score.index_scores`
    (``tests/rtl/test_index_select.py``).

    Parameters
    ----------
    params : IndexSelectParams
        Sizes.

    Members
    -------
    command : ``In(stream.Signature(k_bits))``
        k of each operation.
    scan, selected : In, Out, arrays of streams
        As of the shards.
    score, query, keys : In, arrays of streams
        As ``command``, ``query`` and ``keys`` of the scoring units.

    Raises
    ------
    TypeError
        If ``params`` is not an IndexSelectParams.
    """

    command: stream.Interface
    scan: list[stream.Interface]
    selected: list[stream.Interface]
    score: list[stream.Interface]
    query: list[stream.Interface]
    keys: list[stream.Interface]

    def __init__(self, params: IndexSelectParams) -> None:
        if not isinstance(params, IndexSelectParams):
            raise TypeError(f"params must be an IndexSelectParams, not {params!r}")
        self.params = params
        score, top_k = params.score, params.top_k
        selected = selected_layout(top_k.shard.id_bits, top_k.shard.lanes)
        super().__init__(
            {
                "command": In(stream.Signature(top_k.k_bits)),
                "scan": In(stream.Signature(scan_layout(top_k.shard))).array(top_k.shards),
                "selected": Out(stream.Signature(selected)).array(top_k.shards),
                "score": In(stream.Signature(command_layout(score))).array(top_k.shards),
                "query": In(stream.Signature(query_layout(score))).array(top_k.shards),
                "keys": In(stream.Signature(score.beat_bits)).array(top_k.shards),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the units."""
        m = Module()
        m.submodules.top_k = top_k = TopK(self.params.top_k)
        wiring.connect(m, wiring.flipped(self.command), top_k.command)
        for number in range(self.params.top_k.shards):
            m.submodules[f"score_{number}"] = score = IndexScore(self.params.score)
            wiring.connect(m, score.scores, top_k.scores[number])
            wiring.connect(m, top_k.selected[number], wiring.flipped(self.selected[number]))
            for outer, inner in (
                (self.scan[number], top_k.scan[number]),
                (self.score[number], score.command),
                (self.query[number], score.query),
                (self.keys[number], score.keys),
            ):
                wiring.connect(m, wiring.flipped(outer), inner)
        return m
