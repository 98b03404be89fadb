"""Latency, interval and cycles of :class:`hw.units.processing.ProcessingUnit`.

The closed form equals the RTL to the cycle, without stalls; :func:`hw.timing.processing_prediction.predict` does with
any (``tests/hw/test_processing.py``, ``tests/rtl/test_processing.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.timing.operation import OperationKind

if TYPE_CHECKING:
    from hw.params import ProcessingParams
    from hw.timing.operation import OperationSizes

__all__ = [
    "OperationCycles",
    "cycles",
    "drain_cycles",
    "exposed_cycles",
    "score_cycles",
    "token_score_cycles",
    "weight_cycles",
]


def _levels(params: ProcessingParams) -> int:
    """Levels of the adder tree over the lanes."""
    return params.lanes.bit_length() - 1


def score_cycles(params: ProcessingParams) -> int:
    """Cycles from the last use of the last K beat of a tile to the issue of its first exponential.

    One for each of: input register, multiply, every level of the tree over the lanes, accumulate, every
    level of the tree over the slices, scale, maximum.
    """
    return _levels(params) + params.slice_levels + 5


def token_score_cycles(params: ProcessingParams) -> int:
    """Cycles from the last use of a token's last K beat to its score, of an operation of scores.

    All of :func:`score_cycles` but the maximum.
    """
    return score_cycles(params) - 1


def weight_cycles(params: ProcessingParams) -> int:
    """Cycles from the issue of an exponential to the first V beat that its weight may meet.

    Buffer read, subtract and round, the exponential unit, buffer write.
    """
    return 3 + params.exp.latency_cycles + 1


def drain_cycles(params: ProcessingParams, sizes: OperationSizes) -> int:
    """Cycles from the last use of an operation's last V beat that is not dropped to its last body beat.

    Input register, multiply, all levels and the last adder, then one beat of o a cycle through the
    output register, query by query.
    """
    return _levels(params) + 3 + sizes.query_beats


def exposed_cycles(params: ProcessingParams, sizes: OperationSizes) -> int:
    """Cycles in which the kv stream of an unstalled operation waits, in closed form.

    Parameters
    ----------
    params : ProcessingParams
    sizes : OperationSizes

    Notes
    -----
    Let g be the queries, D = ``score_cycles + weight_cycles + g - 1`` (last use of the last K beat of a tile -> first V
    beat, for which a token's weights of all queries have to be there; behind the g alphas g more), K(j) and V(j) the
    cycles in which the beats of tile j are used, g a beat, H(j) those of them, at the end of K(j), that are dropped;
    without a tile j they are 0. The first tile waits ``max(0, D - 1 - H(0) - K(1))`` for its weights, and a tile j
    behind it ``max(0, D + g - 1 - H(j) - V(j-1) - K(j+1) - wait(j-1))``: with D + g - 1 > V + K, that is with tiles too
    small to hide an exponential at all, the waits of the middle tiles alternate between 0 and D + g - 1 - V - K. Tiles
    without a token that counts wait for nothing.

    A token of one beat and one query comes every second cycle: ``V(j) = 2 * tokens - 1``, of which ``tokens - 1`` are
    idle, and one more where V follows V.
    """
    return _waits(params, sizes)[0]


def _waits(params: ProcessingParams, sizes: OperationSizes) -> tuple[int, bool]:
    """Return the exposed cycles, and whether the last tile's values waited for their weights to the end."""
    if not sizes.num_tokens:
        return 0, False
    beats, queries, tile_tokens, tiles = sizes.query_beats, sizes.queries, sizes.tile_tokens, sizes.live_tiles
    delay = score_cycles(params) + weight_cycles(params) + queries - 1
    paced = beats == 1
    full_keys = tile_tokens * beats
    full_values = 2 * tile_tokens - 1 if paced else full_keys
    count = sizes.num_tokens - (tiles - 1) * tile_tokens

    def keys(tile: int) -> int:
        return max(0, min(tile_tokens, sizes.walk_tokens - tile * tile_tokens)) * beats

    hidden = keys(tiles - 1) - count * beats
    slack = delay - 1 - (hidden if tiles == 1 else 0) - keys(1)
    wait = max(0, slack)
    idle = sizes.num_tokens - tiles if paced else 0
    total = wait + idle

    # Tiles between the first and the last two are alike: their waits alternate.
    middle = max(0, tiles - 3)
    delay += queries - 1
    spare = delay - full_values - full_keys
    total += middle // 2 * max(0, spare)
    if middle % 2:
        wait = max(0, spare - wait)
        total += wait
    elif middle:
        wait = max(0, spare - max(0, spare - wait))
    for tile in range(max(1, tiles - 2), tiles):
        last = tile == tiles - 1
        # The scores of a short second tile can be there before the exponentials of the first have all been issued.
        late = max(0, tile_tokens * queries - count * beats) if tile == 1 and last else 0
        slack = late + delay - (hidden if last else 0) - full_values - keys(tile + 1) - wait
        least = int(paced and not keys(tile + 1))
        wait = max(least, slack)
        slack -= least
        total += wait
    return total, slack >= 0


def _tail_cycles(sizes: OperationSizes) -> int:
    """Cycles of the beats, all dropped, behind the last V beat that counts."""
    keys = max(0, sizes.walk_tokens - (sizes.live_tiles + 1) * sizes.tile_tokens)
    return (sizes.walk_tokens - sizes.num_tokens + keys) * sizes.query_beats


@dataclass(frozen=True, kw_only=True)
class OperationCycles:
    """Cycles of one operation without stalls.

    Parameters
    ----------
    kv_beats : int
        Beats of the kv stream, each used in as many cycles as there are queries.
    exposed : int
        Cycles in which V beats wait for exponentials, or for each other where a token has one beat.
    tail : int
        Cycles of the beats, all dropped, behind the last V beat that counts; of all beats where none does.
    drain : int
        Cycles from the last use of the last V beat that counts to the last body beat; 0 if there is none. Of an
        operation of scores, from that of the last K beat that counts to its score.
    interval : int
        Cycles from the first kv beat of this operation to that of the next in back-to-back operation.
    total : int
        Cycles from the first kv beat to the last body beat, or the last score.
    """

    kv_beats: int
    exposed: int
    tail: int
    drain: int
    interval: int
    total: int


def cycles(params: ProcessingParams, sizes: OperationSizes) -> OperationCycles:
    """Return the cycles of an operation, in closed form.

    With commands and queries offered in time, kv beats offered in every cycle, head and body taken at
    once, and no more beats in all queries of the next operation::

        interval = 2 * walk_tokens * beats * queries + exposed        (walk_tokens >= 1)
        total    = interval - 1 - tail + drain                        (num_tokens >= 1)

    The interval is a cycle longer where the last V beat of tokens of one beat and one query takes its weight in the
    very cycle in which it is there: the head leaves a cycle later, and the next operation starts behind it.

    An operation of scores reads keys alone, and waits for nothing but the queries of the next one, which come in from
    its last token that counts on; the next one being one of scores, too, of no more beats and queries::

        interval = walk_tokens * beats * queries + max(0, (beats - 1) * (queries - 1) + 2 - dropped)
        total    = num_tokens * beats * queries - 1 + token_score_cycles

    with the uses ``dropped`` behind that token. That holds while scores of two operations before are not on their way
    when an operation starts, so where an interval takes half of ``token_score_cycles``.

    An operation without a walk reads no kv beat; it holds the unit for ``beats * queries + 1`` cycles, in which the
    next queries are loaded. The total of one without tokens is 0.

    Parameters
    ----------
    params : ProcessingParams
    sizes : OperationSizes

    Raises
    ------
    ValueError
        If a size is beyond the unit's.
    """
    sizes.require_within(params)
    if sizes.walk_tokens == 0:
        return OperationCycles(kv_beats=0, exposed=0, tail=0, drain=0, interval=sizes.query_beats + 1, total=0)
    uses = sizes.kv_beats * sizes.queries
    if sizes.num_tokens == 0:
        return OperationCycles(kv_beats=sizes.kv_beats, exposed=0, tail=uses, drain=0, interval=uses, total=0)
    if sizes.kind is OperationKind.SCORE:
        return _score_operation(params, sizes)
    exposed, tight = _waits(params, sizes)
    tail = _tail_cycles(sizes)
    span = uses + exposed
    drain = drain_cycles(params, sizes)
    alone = sizes.num_tokens % sizes.tile_tokens == 1 or sizes.tile_tokens == 1
    behind_head = int(sizes.query_beats == 1 and alone and tight and tail == 0)
    return OperationCycles(
        kv_beats=sizes.kv_beats,
        exposed=exposed,
        tail=tail,
        drain=drain,
        interval=span + behind_head,
        total=span - 1 - tail + drain,
    )


def _score_operation(params: ProcessingParams, sizes: OperationSizes) -> OperationCycles:
    """Return the cycles of an operation of scores with tokens that count."""
    counted = sizes.num_tokens * sizes.query_beats
    tail = (sizes.walk_tokens - sizes.num_tokens) * sizes.query_beats
    exposed = max(0, (sizes.beats - 1) * (sizes.queries - 1) + 2 - tail)
    drain = token_score_cycles(params)
    return OperationCycles(
        kv_beats=sizes.kv_beats,
        exposed=exposed,
        tail=tail,
        drain=drain,
        interval=counted + tail + exposed,
        total=counted - 1 + drain,
    )
