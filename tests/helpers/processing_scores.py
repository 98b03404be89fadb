"""Operations of scores for the processing unit: a unit whose scores are a stream, and what it must send, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from golden.formats import FP32
from golden.numerics import unit_numerics
from golden.scores import token_scores
from hw.layouts import token_score_layout
from hw.timing.operation import OperationKind
from hw.timing.processing_prediction import predict
from tests.helpers.processing import STREAMS
from tests.helpers.processing_group import processing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.params import ProcessingParams
    from tests.helpers.processing import Operation
    from tests.helpers.streams import StreamBench

__all__ = ["WithScores", "attending", "check_score_cycles", "check_scores", "scoring"]


class WithScores(wiring.Component):
    """A unit, or a group of units, whose scores a bench sees as a stream; they do not wait for its ``ready``."""

    def __init__(self, params: ProcessingParams) -> None:
        self.unit = processing(params)
        members = {name: self.unit.signature.members[name] for name in STREAMS}
        super().__init__({**members, "scores": Out(stream.Signature(token_score_layout(params)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = self.unit
        for name in STREAMS:
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.unit, name))
        m.d.comb += [
            self.scores.valid.eq(self.unit.token_score.valid),
            self.scores.payload.eq(self.unit.token_score.token),
        ]
        return m


def scoring(operation: Operation) -> Operation:
    """Return the operation with its keys alone, for scores."""
    return replace(operation, sizes=replace(operation.sizes, kind=OperationKind.SCORE))


def attending(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that give states."""
    return [op for op in operations if op.sizes.kind is OperationKind.ATTENTION]


def _scoring_only(operations: Sequence[Operation]) -> list[Operation]:
    return [op for op in operations if op.sizes.kind is OperationKind.SCORE]


def check_scores(params: ProcessingParams, operations: Sequence[Operation], payloads: Sequence[int]) -> None:
    """Demand the golden model's scores, bit for bit, of every token that counts and is not marked, in order."""
    expected = []
    for op in _scoring_only(operations):
        fmt = params.kv_format
        numerics = unit_numerics(params.exp, params.lanes, op.sizes.tile_tokens, params.slices, fmt)
        q, k = fmt.from_codes(op.q), fmt.from_codes(op.k[: op.num_tokens])
        codes = FP32.to_codes(token_scores(q, k, float(op.scale), numerics))
        expected += [
            ((op.op_id + query) % (1 << params.op_id_bits), token, int(codes[token, query]))
            for token in range(op.num_tokens)
            if not op.skips[token]
            for query in range(op.sizes.queries)
        ]
    layout = token_score_layout(params)
    found = [layout.from_bits(payload) for payload in payloads]
    assert [(item.op_id, item.position, item.score) for item in found] == expected


def check_score_cycles(
    params: ProcessingParams, operations: Sequence[Operation], bench: StreamBench, *, stalled: bool
) -> None:
    """Demand every transfer of every stream, and every score, in its predicted cycle."""
    traces = {name: bench.trace(name) for name in STREAMS} if stalled else {}
    predicted = predict(params, [op.sizes for op in operations], **traces)
    for name in STREAMS:
        np.testing.assert_array_equal(bench.trace(name).transfers, getattr(predicted, name), err_msg=name)
    sent = [
        np.repeat(~op.skips[: op.num_tokens], op.sizes.queries) for op in _scoring_only(operations) if op.num_tokens
    ]
    chosen = np.concatenate(sent) if sent else np.zeros(0, bool)
    np.testing.assert_array_equal(np.flatnonzero(bench.trace("scores").valid), predicted.scores[chosen])
