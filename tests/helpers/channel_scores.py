"""Operations of scores in a channel: made, run, and held against the golden model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP32
from golden.numerics import unit_numerics
from golden.scores import token_scores
from hw.channel_load import load_items
from hw.channel_operation import place_operations
from hw.channel_run import ChannelOperation, TokenScore, bench_verilog, run_channel
from hw.channel_streams import operation_streams
from hw.cosim import run_streams
from hw.devices.layouts import score_layout
from hw.memory.kv_rows import key_rows
from hw.payloads import unpack
from hw.timing.operation import OperationKind
from tests.helpers.channels import assert_legal, assert_states, make_channel_operation, platform_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.channel_run import ChannelRun
    from hw.device_params import ChannelParams

__all__ = ["checked_scores", "expected_scores", "interrupted_scores", "score_operation", "scored"]


def scored(operation: ChannelOperation) -> ChannelOperation:
    """Return the operation for scores, on keys that have no values."""
    return replace(operation, kind=OperationKind.SCORE, values=())


def score_operation(
    params: ChannelParams, rng: np.random.Generator, *, queries: int = 1, **options: Any
) -> ChannelOperation:
    """Return an operation of scores of random numbers; options are those of :func:`make_channel_operation`."""
    base = scored(make_channel_operation(params, rng, **options))
    more = [make_channel_operation(params, rng, head_dim=base.head_dim, tokens=0).query for _ in range(queries - 1)]
    return replace(base, query=np.stack([base.query, *more])) if more else base


def expected_scores(params: ChannelParams, operations: Sequence[ChannelOperation], group: int = 0) -> list[TokenScore]:
    """Return what a group must give: by positions, queries and parts, whatever the channel does when."""
    unit = params.processing
    found = []
    first_query = 0
    for op in operations:
        queries = op.queries
        if op.kind is OperationKind.SCORE:
            plan = key_rows(params, op.head_dim, op.walk_tokens)
            width = plan.beats * unit.lanes * unit.slices
            numerics = unit_numerics(unit.exp, unit.lanes, unit.tile_tokens, unit.slices, unit.kv_format)

            def filled(codes: np.ndarray, width: int = width) -> np.ndarray:
                return unit.kv_format.from_codes(np.pad(codes, [(0, 0), (0, width - codes.shape[-1])]))

            parts = range(group * params.parts_per_group, (group + 1) * params.parts_per_group)
            codes = [
                FP32.to_codes(token_scores(filled(queries), filled(op.keys[part]), op.scale, numerics))
                for part in parts
            ]
            positions = np.arange(op.walk_tokens) if op.positions is None else op.positions
            found += [
                TokenScore(
                    (first_query + query) % (1 << unit.op_id_bits),
                    place,
                    number,
                    int(codes[number][position, query]),
                )
                for place, position in enumerate(positions)
                for query in range(len(queries))
                for number, part in enumerate(parts)
                if op.marks[part, place]
            ]
        first_query += len(queries)
    return found


def checked_scores(
    params: ChannelParams, operations: Sequence[ChannelOperation], *, rows: int = 1024, **options: Any
) -> tuple[ChannelRun, dict[str, int]]:
    """Return a run of both kinds of operations that answered as the golden models do, and its counts of commands."""
    groups = options.get("groups", 1)
    run = run_channel(params, operations, rows=rows, **({"platform": platform_of(params)} | options))
    for group in range(groups):
        assert run.token_scores(group) == expected_scores(params, operations, group)
    assert_states(run, [op for op in operations if op.kind is OperationKind.ATTENTION], groups)
    return run, assert_legal(run, refreshing=bool(options.get("first_refresh_cycles")))


def interrupted_scores(
    params: ChannelParams, operations: Sequence[ChannelOperation], *, restart: int, rows: int = 1024
) -> list[TokenScore]:
    """Return the scores that come of the second operation on when the first one is ended by a reset.

    The first one's command and queries must be in by the cycle ``restart`` of the run; the last operation is one of
    attention, by whose state the end is known.
    """
    placed, heads = place_operations(params, operations)
    text, top = bench_verilog(params, groups=1, rows=rows)
    load = list(load_items(params, heads, groups=1, rows=rows))
    # Loading takes a cycle an item; the run begins in the cycle that follows.
    again = len(load) + 2 + restart
    streams = operation_streams(params, placed)
    inputs = {"load": load, "setup": [0, 0], "restart": [1], **streams}
    later = [0] + [again + 2] * (len(operations) - 1)
    earliest = {"setup": [0, again + 2], "restart": [again], "operation": later}
    last = placed[-1]
    wanted = {"head__0": 1, "body__0": last.walk.beats * params.processing.slices}
    found = run_streams(text, top, inputs, wanted, earliest=earliest, max_cycles=200_000).streams
    assert not found["alarm"].payloads
    assert [int(cycle) for cycle in found["restart"].cycles] == [again]
    layout = score_layout(params)
    items = zip(found["score__0"].cycles, found["score__0"].payloads, strict=True)
    kept = [unpack(layout, payload) for cycle, payload in items if cycle > again + 1]
    return [
        TokenScore(item["op_id"], item["position"], part, int(item["scores"][part]))
        for item in kept
        for part in range(params.parts_per_group)
        if item["parts"] >> part & 1
    ]
