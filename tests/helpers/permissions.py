"""What the permissions of a processing unit must say of every kv beat of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hw.timing.kv_order import kv_order
from hw.timing.processing_prediction import predict
from tests.helpers.processing import STREAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.params import ProcessingParams
    from tests.helpers.processing import Operation
    from tests.helpers.streams import StreamBench

__all__ = ["Counters", "KvBeat", "check_permissions", "kv_plan"]


@dataclass(frozen=True)
class KvBeat:
    """One beat of the kv stream: its operation, its tile over all walks for V, if its token counts, and its queries."""

    operation: int
    tile: int
    is_value: bool
    counts: bool
    queries: int

    def allowed(self, key_operations: int, value_tiles: int) -> bool:
        return value_tiles > self.tile if self.is_value else key_operations > self.operation


def kv_plan(operations: Sequence[Operation]) -> list[KvBeat]:
    """Every beat of these operations, in the order of the stream."""
    plan: list[KvBeat] = []
    tiles = 0
    for number, op in enumerate(operations):
        sizes = op.sizes
        for tile in kv_order(sizes.tile_tokens, sizes.walk_tokens):
            for token in range(tile.start, tile.start + tile.tokens):
                beat = KvBeat(number, tiles + tile.number, tile.kind == "v", token < sizes.num_tokens, sizes.queries)
                plan += [beat] * sizes.beats
        tiles += sizes.walk_tiles
    return plan


@dataclass
class Counters:
    """Both counters of every cycle, without the modulus; each may rise by one a cycle."""

    key_operations: list[int] = field(default_factory=list)
    value_tiles: list[int] = field(default_factory=list)

    @property
    def last(self) -> tuple[int, int]:
        """Both counters as the last cycle showed them."""
        return self.key_operations[-1], self.value_tiles[-1]

    def sample(self, key_operations: int, value_tiles: int) -> None:
        """Add one cycle's values as the ports show them."""
        for counter, value in ((self.key_operations, key_operations), (self.value_tiles, value_tiles)):
            before = counter[-1] if counter else 0
            step = (value - before) % 4
            assert step <= 1, f"a counter must rise by one at most, it went from {before % 4} to {value}"
            counter.append(before + step)


def check_permissions(params: ProcessingParams, operations: Sequence[Operation], bench: StreamBench, counters) -> None:
    """Hold ``kv.ready`` of every cycle against the counters of that cycle, and those against the recurrence.

    Whatever is allowed is taken, if no beat was taken in the cycle before, or in as many as that one has queries; what
    counts and is not allowed is not: a permission never comes a cycle late.
    """
    plan = kv_plan(operations)
    kv = bench.trace("kv")
    taken = kv.valid & kv.ready
    position = np.concatenate(([0], np.cumsum(taken)))
    free = 0
    for cycle in range(int(np.searchsorted(position, len(plan)))):
        beat = plan[position[cycle]]
        shown = counters.key_operations[cycle], counters.value_tiles[cycle]
        allowed = beat.allowed(*shown)
        what = f"cycle {cycle}, counters {shown}: {beat}"
        if allowed and cycle >= free:
            assert kv.ready[cycle], f"an allowed beat must be taken, {what}"
        if taken[cycle]:
            free = cycle + max(2, beat.queries)
        if not allowed and (beat.counts or not beat.is_value):
            assert not kv.ready[cycle], f"a beat that can be taken must be allowed, {what}"
        assert shown[0] <= beat.operation + 2, f"at most one operation may be allowed ahead, {what}"
        assert shown[1] <= beat.tile + 1 + beat.is_value, f"no tile may be allowed before its keys are in, {what}"
    predicted = predict(params, [op.sizes for op in operations], **{name: bench.trace(name) for name in STREAMS})
    for name in ("key_operations", "value_tiles"):
        risen = np.flatnonzero(np.diff(getattr(counters, name), prepend=0))
        np.testing.assert_array_equal(risen, getattr(predicted, name), err_msg=name)
