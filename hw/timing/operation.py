"""Sizes that the command of a processing unit gives an operation: checked here, for the hardware cannot refuse any."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING

from golden.checks import require_int, require_type

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["OperationKind", "OperationSizes"]


class OperationKind(Enum):
    """What a unit makes of keys: attention, which reads values too and gives states, or their scores alone."""

    ATTENTION = 0
    SCORE = 1


@dataclass(frozen=True, kw_only=True)
class OperationSizes:
    """Sizes of one operation, named as in :func:`hw.layouts.command_layout`; made by :meth:`of` for a unit.

    Parameters
    ----------
    num_tokens : int
        First tokens of the walk, up to the last one that is attended to; 0 or more. Those among them that are marked
        take the time of all others.
    walk_tokens : int
        Tokens whose keys and values stream by, ``num_tokens`` or more; the unit drops the others.
    beats : int
        Beats of a token's key or value, 1 or more.
    tile_tokens : int
        Tokens of a tile, 1 or more.
    queries : int
        Queries that use every beat of a key or value in turn, 1 or more.
    kind : OperationKind
        What is made of the keys; an operation of scores has no values.

    Raises
    ------
    TypeError, ValueError
        If a size is not an integer or out of range.
    """

    num_tokens: int
    walk_tokens: int
    beats: int
    tile_tokens: int
    queries: int = 1
    kind: OperationKind = OperationKind.ATTENTION

    def __post_init__(self) -> None:
        require_int("num_tokens", self.num_tokens, 0)
        require_int("walk_tokens", self.walk_tokens, self.num_tokens)
        require_int("beats", self.beats, 1)
        require_int("tile_tokens", self.tile_tokens, 1)
        require_int("queries", self.queries, 1)
        require_type("kind", self.kind, OperationKind)

    @classmethod
    def of(
        cls,
        params: ProcessingParams,
        num_tokens: int,
        *,
        walk_tokens: int | None = None,
        beats: int | None = None,
        tile_tokens: int | None = None,
        queries: int = 1,
        kind: OperationKind = OperationKind.ATTENTION,
    ) -> OperationSizes:
        """Return the sizes of an operation that a unit of these parameters can run.

        Parameters
        ----------
        params : ProcessingParams
            The unit.
        num_tokens : int
            As for the class.
        walk_tokens, beats, tile_tokens : int, optional
            As for the class; None is ``num_tokens``, and the largest that the unit has.
        queries, kind : int, OperationKind
            As for the class.

        Raises
        ------
        TypeError, ValueError
            If a size is not an integer, out of range or beyond the unit's.
        """
        sizes = cls(
            num_tokens=num_tokens,
            walk_tokens=num_tokens if walk_tokens is None else walk_tokens,
            beats=params.beats if beats is None else beats,
            tile_tokens=params.tile_tokens if tile_tokens is None else tile_tokens,
            queries=queries,
            kind=kind,
        )
        sizes.require_within(params)
        return sizes

    def require_within(self, params: ProcessingParams) -> None:
        """Raise unless a unit of these parameters can run the operation.

        Raises
        ------
        ValueError
            If a size is beyond the unit's.
        """
        most_tokens = (1 << params.token_bits) - 1
        require_int("num_tokens", self.num_tokens, 0, most_tokens)
        require_int("walk_tokens", self.walk_tokens, 0, most_tokens)
        require_int("beats", self.beats, 1, params.beats)
        require_int("tile_tokens", self.tile_tokens, 1, params.tile_tokens)
        require_int("queries", self.queries, 1, params.queries)
        if self.query_beats > params.held_beats:
            raise ValueError(
                f"queries must be at most {params.held_beats // self.beats} of {self.beats} beats, not {self.queries!r}"
            )

    @property
    def command_fields(self) -> dict[str, int]:
        """These sizes as the fields of a command."""
        fields = asdict(self)
        fields["last_query"] = fields.pop("queries") - 1
        fields["kind"] = self.kind.value
        return fields

    @property
    def query_beats(self) -> int:
        """Beats of all queries, and of all bodies."""
        return self.queries * self.beats

    @property
    def live_tiles(self) -> int:
        """Tiles of the walk that hold any of the first ``num_tokens``."""
        return -(-self.num_tokens // self.tile_tokens)

    @property
    def walk_tiles(self) -> int:
        """Tiles of the walk."""
        return -(-self.walk_tokens // self.tile_tokens)

    @property
    def kv_beats(self) -> int:
        """Beats of the kv stream, those that are dropped included."""
        kinds = 2 if self.kind is OperationKind.ATTENTION else 1
        return kinds * self.walk_tokens * self.beats
