"""The order in which a processing unit reads keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = ["Tile", "kv_order", "kv_vectors"]


class Tile(NamedTuple):
    """A run of consecutive tokens of one kind in the kv stream.

    ``kind`` says keys or values, ``number`` which tile of the operation, ``start`` its first token and
    ``tokens`` how many it has.
    """

    kind: Literal["k", "v"]
    number: int
    start: int
    tokens: int


def kv_order(tile_tokens: int, num_tokens: int) -> Iterator[Tile]:
    """Yield the order of the kv stream of one operation: K0, K1, V0, K2, V1, ..., K_last, V_(last-1), V_last.

    The keys of a tile run one tile ahead of its values, so that the exponentials of a tile have the
    time in which the next tile's keys are read. Every token has the ``beats`` of its operation.

    Parameters
    ----------
    tile_tokens : int
        Tokens T of a tile; the last tile holds the rest.
    num_tokens : int
        Tokens of the walk, those that a unit drops included; with 0 nothing is read.

    Raises
    ------
    ValueError
        If ``tile_tokens`` is below 1 or ``num_tokens`` below 0.
    """
    if tile_tokens < 1:
        raise ValueError(f"tile_tokens must be at least 1, not {tile_tokens!r}")
    if num_tokens < 0:
        raise ValueError(f"num_tokens must be at least 0, not {num_tokens!r}")
    tiles = -(-num_tokens // tile_tokens)

    def tile(kind: Literal["k", "v"], index: int) -> Tile:
        start = index * tile_tokens
        return Tile(kind, index, start, min(tile_tokens, num_tokens - start))

    for index in range(tiles):
        yield tile("k", index)
        if index:
            yield tile("v", index - 1)
    if tiles:
        yield tile("v", tiles - 1)


def kv_vectors(tile_tokens: int, k: npt.NDArray[Any], v: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the rows of ``k`` and ``v`` in the order of the kv stream.

    Parameters
    ----------
    tile_tokens : int
        Tokens T of a tile.
    k, v : ndarray, shape (num_tokens, head_dim)
        Keys and values, or codes of them.

    Returns
    -------
    ndarray, shape (2 * num_tokens, head_dim)

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    if k.shape != v.shape:
        raise ValueError(f"v must have the shape of k {k.shape}, not {v.shape}")
    rows = {"k": k, "v": v}
    parts = [rows[tile.kind][tile.start : tile.start + tile.tokens] for tile in kv_order(tile_tokens, len(k))]
    return np.concatenate([k[:0], *parts])
