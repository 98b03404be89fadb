"""Order, latency, interval and cycles of :class:`hw.units.processing.ProcessingUnit`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the
recurrence of :func:`predict` with any stalls on any stream (``tests/hw/test_processing.py``,
``tests/rtl/test_processing.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.timing.handshake import Sink, Source
from hw.timing.kv_order import Tile, kv_order, kv_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from hw.params import ProcessingParams
    from hw.timing.trace import StreamTrace

__all__ = [
    "OperationCycles",
    "Prediction",
    "Tile",
    "cycles",
    "drain_cycles",
    "exposed_cycles",
    "kv_order",
    "kv_vectors",
    "predict",
    "score_cycles",
    "weight_cycles",
]


def _levels(params: ProcessingParams) -> int:
    """Levels of the adder tree over the lanes."""
    return params.lanes.bit_length() - 1


def score_cycles(params: ProcessingParams) -> int:
    """Cycles from the last K beat of a tile to the issue of its first exponential.

    One for each of: input register, multiply, every level of the tree, accumulate, scale, maximum.
    """
    return _levels(params) + 5


def weight_cycles(params: ProcessingParams) -> int:
    """Cycles from the issue of an exponential to the first V beat that its weight may meet.

    Buffer read, subtract and round, the exponential unit, buffer write.
    """
    return 3 + params.exp.latency_cycles + 1


def drain_cycles(params: ProcessingParams) -> int:
    """Cycles from the last kv beat of an operation to its last body beat.

    Input register, multiply, all levels and the last adder, then one beat of o a cycle through the
    output register.
    """
    return _levels(params) + 3 + params.beats


def exposed_cycles(params: ProcessingParams, num_tokens: int) -> int:
    """Cycles in which an unstalled operation's V beats wait for exponentials, in closed form.

    Parameters
    ----------
    params : ProcessingParams
    num_tokens : int
        Tokens of the operation, any number.

    Notes
    -----
    Let D = ``score_cycles + weight_cycles`` (last K beat of a tile -> first V beat, one more behind an
    alpha), F = T * beats the beats of a full tile, C those of the last one. One tile waits D - 1. Else
    the first tile waits ``max(0, D - 1 - (beats of K1))``, and a tile j behind it
    ``max(0, D - (beats of V(j-1) and K(j+1)) - wait(j-1))``: with D > 2F, that is with tiles too small
    to hide an exponential at all, the waits of the middle tiles alternate between 0 and D - 2F.
    """
    if num_tokens <= 0:
        return 0
    delay = score_cycles(params) + weight_cycles(params)
    tiles = -(-num_tokens // params.tile_tokens)
    full = params.tile_tokens * params.beats
    count = num_tokens - (tiles - 1) * params.tile_tokens
    short = count * params.beats
    if tiles == 1:
        return delay - 1
    if tiles == 2:
        first = max(0, delay - 1 - short)
        # The scores of a short tile can be there before the exponentials of the full one have all been issued.
        late = max(params.tile_tokens - short, 0)
        return first + max(0, late + delay - full - first)
    first = max(0, delay - 1 - full)
    middle, pairs = tiles - 3, (tiles - 3) // 2
    step = max(0, delay - 2 * full)
    before = first if middle == 0 else (0 if middle % 2 else step)
    penultimate = max(0, delay - full - short - before)
    last = max(0, delay - full - penultimate)
    return first + pairs * step + penultimate + last


@dataclass(frozen=True, kw_only=True)
class OperationCycles:
    """Cycles of one operation without stalls.

    Parameters
    ----------
    kv_beats : int
        Beats of the kv stream, one a cycle.
    exposed : int
        Cycles in which V beats wait for exponentials.
    drain : int
        Cycles from the last kv beat to the last body beat; 0 if there is none.
    interval : int
        Cycles from the first kv beat of this operation to that of the next in back-to-back operation.
    total : int
        Cycles from the first kv beat to the last body beat.
    """

    kv_beats: int
    exposed: int
    drain: int
    interval: int
    total: int


def cycles(params: ProcessingParams, num_tokens: int) -> OperationCycles:
    """Return the cycles of an operation of ``num_tokens`` tokens, in closed form.

    With commands and queries offered in time, kv beats offered in every cycle and head and body taken at
    once::

        interval = 2 * num_tokens * beats + exposed         num_tokens >= 1
        total    = interval - 1 + drain

    An empty operation reads no kv beat; it holds the unit for ``beats + 1`` cycles, in which the next
    query is loaded, and its total is 0.

    Parameters
    ----------
    params : ProcessingParams
    num_tokens : int
        Tokens of the operation, 0 or more.

    Raises
    ------
    ValueError
        If ``num_tokens`` is negative or does not fit the command.
    """
    limit = (1 << params.token_bits) - 1
    if not 0 <= num_tokens <= limit:
        raise ValueError(f"num_tokens must be from 0 to {limit}, not {num_tokens!r}")
    if num_tokens == 0:
        return OperationCycles(kv_beats=0, exposed=0, drain=0, interval=params.beats + 1, total=0)
    kv_beats = 2 * num_tokens * params.beats
    exposed = exposed_cycles(params, num_tokens)
    drain = drain_cycles(params)
    interval = kv_beats + exposed
    return OperationCycles(
        kv_beats=kv_beats, exposed=exposed, drain=drain, interval=interval, total=interval - 1 + drain
    )


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Cycles of every transfer, and of every first offer of an output item, counted from the end of reset."""

    command: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    kv: npt.NDArray[np.int64]
    head_presented: npt.NDArray[np.int64]
    head: npt.NDArray[np.int64]
    body_presented: npt.NDArray[np.int64]
    body: npt.NDArray[np.int64]


def predict(
    params: ProcessingParams,
    operations: Sequence[int],
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
    operations : sequence of int
        Tokens of each operation, in order.
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
        If a trace ends before the operations do.
    """
    unit = _Unit(params, Source(command), Source(query), Source(kv), Sink(head), Sink(body))
    for num_tokens in operations:
        unit.run(num_tokens)
    return Prediction(
        command=unit.command.transfers,
        query=unit.query.transfers,
        kv=unit.kv.transfers,
        head_presented=unit.head.offers,
        head=unit.head.transfers,
        body_presented=unit.body.offers,
        body=unit.body.transfers,
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
        self.front_free = 0
        self.head_free = 0
        self.body_free = 0
        self.issue_free = 0

    def run(self, num_tokens: int) -> None:
        """Advance over one operation."""
        params = self.params
        commanded = self.command.take(self.command_free)
        queried = max([self.query.take(self.query_free) for _ in range(params.beats)])
        start = max(commanded + 1, queried + 1, self.front_free, self.head_free)
        self.command_free = start + 1
        if num_tokens == 0:
            self.query_free = self.front_free = start + 1
            self.head_free = self.head.put(start + 1) + 1
            return
        weights: list[int] = []
        last_kv = start
        for tile in kv_order(params.tile_tokens, num_tokens):
            if tile.kind == "k":
                for _ in range(tile.tokens * params.beats):
                    last_kv = self.kv.take(start + 1)
                weights += self._issue(tile, last_kv)
                self.query_free = last_kv + 1
                continue
            for token in range(tile.start, tile.start + tile.tokens):
                for _ in range(params.beats):
                    last_kv = self.kv.take(max(weights[token], self.body_free))
        # An operation may start in the very cycle in which the last one's last V beat comes.
        self.front_free = last_kv
        self.head_free = self.head.put(weights[-1]) + 1
        written = last_kv + drain_cycles(params) - params.beats
        for _ in range(params.beats):
            written = self.body.put(written) + 1
        self.body_free = written

    def _issue(self, tile: Tile, last_key: int) -> list[int]:
        """Return the first cycle in which each token's weight may be used."""
        issue = max(last_key + score_cycles(self.params), self.issue_free)
        if tile.number:
            issue += 1  # alpha goes first
        self.issue_free = issue + tile.tokens
        return [issue + token + weight_cycles(self.params) for token in range(tile.tokens)]
