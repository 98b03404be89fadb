"""Cycle of every transfer of :class:`hw.units.processing.ProcessingUnit` under any stalls, by a recurrence.

Equal to the RTL (``tests/hw/test_processing.py``, ``tests/rtl/test_processing.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hw.timing.handshake import Sink, Source
from hw.timing.kv_order import kv_order
from hw.timing.operation import OperationKind
from hw.timing.processing import drain_cycles, score_cycles, token_score_cycles, weight_cycles

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hw.params import ProcessingParams
    from hw.timing.operation import OperationSizes
    from hw.timing.trace import StreamTrace

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Cycles of every transfer, and of every first offer of an output item, counted from the end of reset.

    ``key_operations`` and ``value_tiles`` are the cycles in which those counters first show each operation
    and each tile of a walk. ``scores`` are those in which the scores of operations of scores show, one for every query
    of every token that counts, marked or not.
    """

    command: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    kv: npt.NDArray[np.int64]
    head_presented: npt.NDArray[np.int64]
    head: npt.NDArray[np.int64]
    body_presented: npt.NDArray[np.int64]
    body: npt.NDArray[np.int64]
    key_operations: npt.NDArray[np.int64]
    value_tiles: npt.NDArray[np.int64]
    scores: npt.NDArray[np.int64]


def predict(
    params: ProcessingParams,
    operations: Sequence[OperationSizes],
    *,
    command: StreamTrace | None = None,
    query: StreamTrace | None = None,
    kv: StreamTrace | None = None,
    head: StreamTrace | None = None,
    body: StreamTrace | None = None,
) -> Prediction:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    params : ProcessingParams
    operations : sequence of OperationSizes
        Sizes of each operation, in order.
    command, query, kv : StreamTrace, optional
        Recorded handshakes of the inputs; only the cycles in which items were first offered are used.
        None is a sender that offers an item in every cycle.
    head, body : StreamTrace, optional
        Recorded handshakes of the outputs; only ``ready`` is used. None is a receiver that never stalls.

    Returns
    -------
    Prediction

    Raises
    ------
    ValueError
        If a trace ends before the operations do, or a size is beyond the unit's.
    """
    unit = _Unit(params, Source(command), Source(query), Source(kv), Sink(head), Sink(body))
    for sizes in operations:
        sizes.require_within(params)
        unit.run(sizes)
    return Prediction(
        command=unit.command.transfers,
        query=unit.query.transfers,
        kv=unit.kv.transfers,
        head_presented=unit.head.offers,
        head=unit.head.transfers,
        body_presented=unit.body.offers,
        body=unit.body.transfers,
        key_operations=np.array(unit.key_operations, dtype=np.int64),
        value_tiles=np.array(unit.value_tiles, dtype=np.int64),
        scores=np.array(unit.scores, dtype=np.int64),
    )


class _Unit:
    """The recurrence: what each operation waits for. ``…_free`` is the first cycle in which a part is free again."""

    def __init__(
        self, params: ProcessingParams, command: Source, query: Source, kv: Source, head: Sink, body: Sink
    ) -> None:
        self.params = params
        self.command, self.query, self.kv, self.head, self.body = command, query, kv, head, body
        self.command_free = 0
        self.query_free = 0
        self.place_free: list[int] = []
        self.scored = (0, 0)
        self.front_free = 0
        self.head_free = 0
        self.body_free = 0
        self.issue_free = 0
        self.key_operations: list[int] = []
        self.value_tiles: list[int] = []
        self.scores: list[int] = []

    def run(self, sizes: OperationSizes) -> None:
        """Advance over one operation."""
        commanded = self.command.take(self.command_free)
        # The first beat of a query may come ahead of its command, which says how many there are.
        queried = self.query.take(self._word_free(0))
        for number in range(1, sizes.query_beats):
            query, beat = divmod(number, sizes.beats)
            queried = self.query.take(max(self._word_free(beat * sizes.queries + query), commanded + 1))
        # The last score of the operation before the one before is out.
        prepared = max(commanded + 1, queried + 1, self.head_free, self.scored[0] + 1)
        start = max(prepared, self.front_free)
        self.key_operations.append((prepared if sizes.walk_tokens else start) + 1)
        self.command_free = self.query_free = start + 1
        self.place_free = []
        self.scored = (self.scored[1], 0)
        if sizes.kind is OperationKind.SCORE:
            self._score(sizes, start)
            return
        if not sizes.num_tokens:
            self._give_heads(start + 1, sizes)
        weights: list[int] = []
        more = sizes.queries - 1
        # Cycles of the last use of a beat, and of a V beat that counts.
        last_kv = last_value = start
        for tile in kv_order(sizes.tile_tokens, sizes.walk_tokens):
            live = max(0, min(tile.tokens, sizes.num_tokens - tile.start))
            if tile.kind == "k":
                for _ in range(live * sizes.beats):
                    last_kv = self.kv.take(last_kv + 1) + more
                if live:
                    weights += self._issue(tile.number, live, last_kv, sizes.queries)
                    self.query_free = last_kv + 1
            else:
                for token in range(tile.start, tile.start + live):
                    for _ in range(sizes.beats):
                        # With one use a token, its words of o are not back before the second cycle.
                        paced = last_value + 2 if sizes.query_beats == 1 else last_kv + 1
                        last_kv = last_value = self.kv.take(max(weights[token], self.body_free, paced)) + more
            for _ in range((tile.tokens - live) * sizes.beats):
                last_kv = self.kv.take(last_kv + 1) + more
            if tile.kind == "k":
                self._grant(max(weights[tile.start], self.body_free) if live else last_kv + 2)
        # An operation may start in the very cycle in which the last one's last beat comes.
        self.front_free = last_kv
        if sizes.num_tokens:
            self._give_heads(weights[-1], sizes)
            written = last_value + drain_cycles(self.params, sizes) - sizes.query_beats
            for _ in range(sizes.query_beats):
                written = self.body.put(written) + 1
            self.body_free = written

    def _word_free(self, place: int) -> int:
        """Return the first cycle in which a beat of the next query finds its place free."""
        return self.place_free[place] if place < len(self.place_free) else self.query_free

    def _score(self, sizes: OperationSizes, start: int) -> None:
        """Advance over the keys of an operation of scores."""
        more = sizes.queries - 1
        last_kv = start
        for token in range(sizes.walk_tokens):
            uses = []
            for _ in range(sizes.beats):
                first = self.kv.take(last_kv + 1)
                last_kv = first + more
                uses += range(first, last_kv + 1)
            if token < sizes.num_tokens:
                self.scores += [use + token_score_cycles(self.params) for use in uses[-sizes.queries :]]
            if token == sizes.num_tokens - 1:
                self.place_free = [use + 1 for use in uses]
                self.query_free = last_kv + 1
                self.scored = (self.scored[0], self.scores[-1])
        self.front_free = last_kv

    def _grant(self, cycle: int) -> None:
        """Permit the values of one more tile from ``cycle`` on: in order, one a cycle."""
        self.value_tiles.append(max(cycle, self.value_tiles[-1] + 1) if self.value_tiles else cycle)

    def _give_heads(self, cycle: int, sizes: OperationSizes) -> None:
        """Copy m and l of all queries to the outputs in ``cycle`` or when the last heads have left; then give them."""
        self.head_free = self.head.put(cycle) + 1
        for _ in range(1, sizes.queries):
            self.head.put(self.head_free)

    def _issue(self, number: int, tokens: int, last_key: int, queries: int) -> list[int]:
        """Return the first cycle in which each token's weights of all queries may be used."""
        issue = max(last_key + score_cycles(self.params), self.issue_free)
        if number:
            issue += queries  # the alphas go first
        self.issue_free = issue + tokens * queries
        return [issue + token * queries - 1 + weight_cycles(self.params) for token in range(1, tokens + 1)]
