"""Operations of a channel, and the rows in which the KV heads they read lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.selection import SelectionForm
from hw.device_params import Mapping
from hw.memory.kv_rows import KvRows, key_rows, kv_rows
from hw.timing.operation import OperationKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hw.device_params import ChannelParams

__all__ = ["ChannelOperation", "KvHead", "PlacedOperation", "place_operations", "shared_head", "shared_pass"]


@dataclass(frozen=True, kw_only=True)
class ChannelOperation:
    """One query, or several that share every column read, over the tokens of one KV head in one channel.

    Parameters
    ----------
    query : ndarray of uint16, shape (head_dim,) or (queries, head_dim)
        Codes of q.
    keys, values : sequence of ndarray of uint16, shape (tokens, head_dim)
        Codes of the tokens of each simulated part; a part may have none. Keys that only scores are asked of may have no
        values at all: an empty sequence.
    tokens : ndarray of int, shape (parts,)
        Token counts of all parts of the channel; those of the simulated ones are the lengths of ``keys``.
    scale : float
        Factor of the scores.
    kv_head : int or None
        Operations of one number read the same rows, one pass each, as the query heads that share a KV head do; None
        has rows that no other operation reads.
    append_part : int or None
        Part whose last token is new: the operation writes it before it reads it, and ``tokens`` counts it. A context
        is what was there before: one token less. Where there are no values, its key is written alone.
    positions : ndarray of int or None
        Positions that are read, ascending; None is all. They are the same in all parts, for the banks read in lock
        step: where parts attend to different ones, this is their union (:func:`golden.selection.union`).
    wanted : ndarray of bool, shape (parts, len(positions)), or None
        Of those positions, the ones whose tokens each part attends to; None is all that it owns.
    form : SelectionForm
        How the channel is told of positions and marks.
    kind : OperationKind
        Attention, or the scores of all tokens alone.
    """

    query: npt.NDArray[np.uint16]
    keys: Sequence[npt.NDArray[np.uint16]]
    values: Sequence[npt.NDArray[np.uint16]]
    tokens: npt.NDArray[np.int64]
    scale: float
    kv_head: int | None = None
    append_part: int | None = None
    positions: npt.NDArray[np.int64] | None = None
    wanted: npt.NDArray[np.bool_] | None = None
    form: SelectionForm = SelectionForm.LIST
    kind: OperationKind = OperationKind.ATTENTION

    @property
    def walk_tokens(self) -> int:
        """Tokens of each part that are read."""
        return int(self.tokens.max(initial=0)) if self.positions is None else len(self.positions)

    @property
    def head_dim(self) -> int:
        """Elements of a query, a key or a value."""
        return self.query.shape[-1]

    @property
    def queries(self) -> npt.NDArray[np.uint16]:
        """Codes of q, of shape (queries, head_dim)."""
        return np.atleast_2d(self.query)

    @property
    def marks(self) -> npt.NDArray[np.bool_]:
        """For each part, which tokens of the walk it attends to; of shape (parts, walk_tokens)."""
        positions = np.arange(self.walk_tokens) if self.positions is None else self.positions
        owned = positions < self.tokens[:, np.newaxis]
        return owned if self.wanted is None else owned & self.wanted

    @property
    def counted_tokens(self) -> npt.NDArray[np.int64]:
        """Of the walk, the tokens of each part up to the last one that it attends to."""
        return (self.marks * np.arange(1, self.walk_tokens + 1)).max(axis=1, initial=0)

    def require_wanted(self) -> None:
        """Raise ValueError unless what parts want is among the positions, and theirs."""
        if self.wanted is None:
            return
        shape = (len(self.tokens), self.walk_tokens)
        if self.positions is None or self.wanted.shape != shape:
            given = "no positions" if self.positions is None else f"shape {self.wanted.shape}"
            raise ValueError(f"wanted must have one row a part and one column a position {shape}, not {given}")
        strange = np.argwhere(self.wanted & (self.positions >= self.tokens[:, np.newaxis]))
        if len(strange):
            part, index = strange[0]
            raise ValueError(
                f"wanted must name tokens that a part has, not {self.positions[index]} in part {part} of "
                f"{self.tokens[part]}"
            )

    def require_fit(self, parts: int) -> None:
        """Raise ValueError unless counts, new token and positions fit a channel of ``parts`` parts."""
        if len(self.tokens) != parts:
            raise ValueError(f"tokens must be counts of the {parts} parts of a channel, not of {len(self.tokens)}")
        if self.positions is not None:
            rising = np.diff(self.positions, prepend=-1) > 0
            if not (rising.all() and (self.positions < self.tokens.max(initial=0)).all()):
                raise ValueError(
                    f"positions must ascend from 0 or more to less than {self.tokens.max(initial=0)}, "
                    f"not {self.positions.tolist()!r}"
                )
        self.require_wanted()
        if len(self.values) != len(self.keys) and (len(self.values) or self.kind is OperationKind.ATTENTION):
            raise ValueError(f"values must be those of the {len(self.keys)} parts of keys, not of {len(self.values)}")
        if self.append_part is None:
            return
        if len(self.values) and self.kind is OperationKind.SCORE:
            raise ValueError(
                f"append_part must be None for scores of keys that have values, not {self.append_part}: attention "
                "writes both"
            )
        require_int("append_part", self.append_part, 0, parts - 1)
        place = int(self.tokens[self.append_part]) - 1
        if place < 0:
            raise ValueError(f"tokens of part {self.append_part} must count its new token, not be 0")
        if self.positions is not None and place not in self.positions:
            raise ValueError(f"positions must hold the new token's {place}: a token is written when it is first read")


@dataclass(frozen=True, kw_only=True)
class KvHead:
    """Rows of a KV head.

    Parameters
    ----------
    rows : KvRows
        Rows of all its tokens, when it has most of them.
    key_row, value_row : int
        First row of keys, and of values, counted over the banks that a part's rows go to in turn.
    keys, values : list of ndarray of uint16, shape (tokens, head_dim)
        What they hold before the first operation, in each simulated part; no values where there are none at all.
    """

    rows: KvRows
    key_row: int
    value_row: int
    keys: list[npt.NDArray[np.uint16]]
    values: list[npt.NDArray[np.uint16]]

    @property
    def end_row(self) -> int:
        """The row behind the last one."""
        return self.value_row + self.rows.tiles if self.values else self.key_row + self.rows.tiles


@dataclass(frozen=True, kw_only=True)
class PlacedOperation:
    """An operation, the rows it reads, and the tiles in which it walks them: the tokens it attends to alone."""

    operation: ChannelOperation
    head: KvHead
    walk: KvRows


def shared_head(operation: ChannelOperation, queries: Sequence[npt.NDArray[np.uint16]]) -> list[ChannelOperation]:
    """Return one operation for each of ``queries`` on the KV head of ``operation``, which must have a number.

    Every one reads all the rows: ``len(queries)`` passes. A new token is written in the first.

    Raises
    ------
    ValueError
        If ``operation`` has no ``kv_head``.
    """
    if operation.kv_head is None:
        raise ValueError("kv_head must be a number that the operations share, not None")
    later = replace(operation, append_part=None)
    return [replace(later if number else operation, query=query) for number, query in enumerate(queries)]


def shared_pass(operation: ChannelOperation, queries: Sequence[npt.NDArray[np.uint16]]) -> ChannelOperation:
    """Return one operation for all of ``queries`` on the KV head of ``operation``, which reads the rows once."""
    return replace(operation, query=np.stack(queries))


def place_operations(
    params: ChannelParams, operations: Sequence[ChannelOperation]
) -> tuple[list[PlacedOperation], list[KvHead]]:
    """Give every KV head rows, one head behind the other, and every operation its walk over them.

    Keys and values of a tile begin in the same bank: up to ``turn_banks - 1`` rows stay free between keys and values.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    operations : sequence of ChannelOperation
        In the order in which they run.

    Returns
    -------
    list of PlacedOperation
        One an operation.
    list of KvHead
        Heads in the order of their rows.

    Raises
    ------
    TypeError, ValueError
        If an operation does not fit the channel, or finds other tokens in its head than those before it left there.
    """
    groups: dict[tuple[str, int], list[ChannelOperation]] = {}
    names = []
    for number, operation in enumerate(operations):
        operation.require_fit(params.parts)
        if operation.positions is not None and params.mapping is Mapping.GROUP:
            raise ValueError(
                "positions must be None for units at the bank groups, which read all tokens, "
                f"not {operation.positions.tolist()!r}"
            )
        _require_room(params, operation)
        own = operation.kv_head is None
        names.append(("own", number) if own else ("head", operation.kv_head))
        groups.setdefault(names[-1], []).append(operation)
    heads: dict[tuple[str, int], KvHead] = {}
    row = 0
    for name, members in groups.items():
        keys, values = _history(members)
        most = max(int(member.tokens.max(initial=0)) for member in members)
        rows = _rows_of(params, members[0], most)
        value_row = row + -(-rows.tiles // params.turn_banks) * params.turn_banks
        heads[name] = KvHead(rows=rows, key_row=row, value_row=value_row, keys=keys, values=values)
        row = heads[name].end_row
    placed = [
        PlacedOperation(
            operation=operation,
            head=heads[name],
            walk=_rows_of(params, operation, operation.walk_tokens),
        )
        for name, operation in zip(names, operations, strict=True)
    ]
    return placed, list(heads.values())


def _rows_of(params: ChannelParams, operation: ChannelOperation, tokens: int) -> KvRows:
    """Return the rows of ``tokens`` tokens a part, with values or without."""
    return (kv_rows if operation.values else key_rows)(params, operation.head_dim, tokens)


def _require_room(params: ChannelParams, operation: ChannelOperation) -> None:
    """Raise ValueError unless the units have room for the queries of an operation, and for as many o."""
    unit = params.processing
    queries = len(operation.queries)
    require_int("queries", queries, 1, unit.queries)
    beats = key_rows(params, operation.head_dim, 0).beats
    wanted = queries * beats * unit.lanes * (unit.kv_format.bytes + unit.state_format.bytes)
    if wanted > unit.vector_buffer_bytes:
        raise ValueError(
            f"q and o of {queries} queries of {operation.head_dim} elements must have at most the "
            f"{unit.vector_buffer_bytes} B that a unit has for them, not {wanted} B"
        )


def _history(members: Sequence[ChannelOperation]) -> tuple[list[npt.NDArray[np.uint16]], list[npt.NDArray[np.uint16]]]:
    """Return the keys and values that a head holds before its first operation; raise unless the others build on it."""
    before = [_before(member) for member in members]
    for number in range(1, len(members)):
        earlier = members[number - 1]
        counts, keys, values = before[number]
        same = earlier.head_dim == members[number].head_dim and np.array_equal(earlier.tokens, counts)
        for had, has in ((earlier.keys, keys), (earlier.values, values)):
            same = (
                same
                and len(had) == len(has)
                and all(np.array_equal(one, other) for one, other in zip(had, has, strict=True))
            )
        if not same:
            raise ValueError(
                f"operation {number} of KV head {members[number].kv_head} must find the tokens that the one before it "
                "left, it names others"
            )
    return before[0][1:]


def _before(
    operation: ChannelOperation,
) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.uint16]], list[npt.NDArray[np.uint16]]]:
    """Return the counts of all parts, the keys and the values that an operation finds: all but its new token."""
    counts = np.array(operation.tokens)
    keys, values = list(operation.keys), list(operation.values)
    part = operation.append_part
    if part is not None:
        counts[part] -= 1
        if part < len(keys):
            keys[part] = keys[part][:-1]
            if values:
                values[part] = values[part][:-1]
    return counts, keys, values
