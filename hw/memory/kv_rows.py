"""How the keys and values of one operation lie in the rows of a channel's banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from hw.timing.kv_order import kv_order

if TYPE_CHECKING:
    import numpy.typing as npt

    from hw.device_params import ChannelParams

__all__ = ["KvRows", "deal", "key_rows", "kv_rows", "row_images", "row_visits", "token_places"]


@dataclass(frozen=True, kw_only=True)
class KvRows:
    """Rows of the tokens of one KV head in a channel: a row of keys, and one of values, for each tile.

    Parameters
    ----------
    head_dim : int
        Elements of a key.
    beats : int
        Columns of a token in one bank.
    tile_tokens : int
        Tokens of a row.
    walk_tokens : int
        Tokens of the longest part; every part is walked that far.
    tiles, tile_columns, last_columns : int
        Rows of keys (and of values), columns read of each, and of the last.
    """

    head_dim: int
    beats: int
    tile_tokens: int
    walk_tokens: int
    tiles: int
    tile_columns: int
    last_columns: int

    @property
    def columns(self) -> int:
        """Columns of keys and values that are read."""
        return 2 * self.walk_tokens * self.beats


def deal(num_tokens: int, parts: int) -> npt.NDArray[np.int64]:
    """Return how many tokens each part has when token t goes to part ``t % parts``.

    Raises
    ------
    TypeError, ValueError
        If ``num_tokens`` is below 0 or ``parts`` below 1.
    """
    require_int("num_tokens", num_tokens, 0)
    require_int("parts", parts, 1)
    return (num_tokens + parts - 1 - np.arange(parts)) // parts


def kv_rows(params: ChannelParams, head_dim: int, walk_tokens: int) -> KvRows:
    """Return the rows of an operation.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    head_dim : int
        Elements of a key, from 1 to ``params.head_dim``. It is filled with zeros up to whole columns in every bank
        that holds a slice.
    walk_tokens : int
        Tokens of the longest part, 0 or more.

    Raises
    ------
    TypeError, ValueError
        If the head dimension is out of range, a row holds more tokens than the processing unit's score buffer, or the
        rows are more than a bank has.
    """
    rows = _rows(params, head_dim, walk_tokens)
    if rows.tile_tokens > params.processing.tile_tokens:
        raise ValueError(
            f"head_dim {head_dim} puts {rows.tile_tokens} tokens in a row: the score buffer must hold a tile of as "
            f"many, it holds {params.processing.tile_tokens}"
        )
    _require_rows(params, 2 * rows.tiles)
    return rows


def key_rows(params: ChannelParams, head_dim: int, walk_tokens: int) -> KvRows:
    """Return the rows of keys that have no values, whose scores alone are asked for.

    Parameters are those of :func:`kv_rows`; a row may hold any number of tokens, for no score is kept.

    Raises
    ------
    TypeError, ValueError
        If the head dimension is out of range, or the rows are more than a bank has.
    """
    rows = _rows(params, head_dim, walk_tokens)
    _require_rows(params, rows.tiles)
    return rows


def _require_rows(params: ChannelParams, rows: int) -> None:
    """Raise ValueError unless a part has that many rows."""
    if rows > params.part_rows:
        where = "bank" if params.turn_banks == 1 else "bank group"
        raise ValueError(f"rows must be at most the {params.part_rows} of a {where}, not {rows}")


def _rows(params: ChannelParams, head_dim: int, walk_tokens: int) -> KvRows:
    """Return how tokens lie in rows, however many there are."""
    require_int("head_dim", head_dim, 1, params.head_dim)
    require_int("walk_tokens", walk_tokens, 0)
    beats = -(-head_dim // (params.processing.lanes * params.processing.slices))
    tile_tokens = params.organisation.columns // beats
    tiles = -(-walk_tokens // tile_tokens)
    return KvRows(
        head_dim=head_dim,
        beats=beats,
        tile_tokens=tile_tokens,
        walk_tokens=walk_tokens,
        tiles=tiles,
        tile_columns=tile_tokens * beats,
        last_columns=(walk_tokens - (tiles - 1) * tile_tokens) * beats if tiles else 0,
    )


def token_places(rows: KvRows, positions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where the tokens at ``positions`` of a part lie: row behind the first of its kind, and first column."""
    tile, slot = np.divmod(positions, rows.tile_tokens)
    return tile, slot * rows.beats


def row_visits(rows: KvRows, positions: npt.NDArray[np.int64]) -> list[int]:
    """Return the columns read of each row that is opened when the tokens at ``positions`` are attended to, in order.

    Keys and values are walked by tiles of ``rows.tile_tokens`` tokens in the order of
    :func:`hw.timing.kv_order.kv_order`; tokens that follow each other in one row share its opening.
    """
    tile, _ = token_places(rows, positions)
    visits: list[int] = []
    open_row = None
    for part in kv_order(rows.tile_tokens, len(positions)):
        for place in tile[part.start : part.start + part.tokens]:
            if (part.kind, place) != open_row:
                open_row = (part.kind, place)
                visits.append(0)
            visits[-1] += rows.beats
    return visits


def row_images(rows: KvRows, vectors: npt.NDArray[np.uint16], *, lanes: int, slices: int) -> npt.NDArray[np.uint16]:
    """Return the columns that hold the keys, or the values, of one part.

    Parameters
    ----------
    rows : KvRows
        From :func:`kv_rows`.
    vectors : ndarray of uint16, shape (num_tokens, head_dim)
        Codes; no more tokens than ``rows.walk_tokens``.
    lanes, slices : int
        Elements of a column, and banks that a token is cut over.

    Returns
    -------
    ndarray of uint16, shape (slices, tiles, tile_columns, lanes)
        Zero where there is no token.

    Raises
    ------
    ValueError
        If there are more tokens than the rows hold.
    """
    num_tokens, head_dim = vectors.shape
    if num_tokens > rows.walk_tokens:
        raise ValueError(f"vectors must number at most {rows.walk_tokens}, not {num_tokens}")
    width = rows.beats * lanes
    filled = np.zeros((rows.tiles * rows.tile_tokens, slices * width), np.uint16)
    filled[:num_tokens, :head_dim] = vectors
    split = filled.reshape(rows.tiles, rows.tile_tokens, slices, rows.beats, lanes)
    return split.transpose(2, 0, 1, 3, 4).reshape(slices, rows.tiles, rows.tile_columns, lanes)
