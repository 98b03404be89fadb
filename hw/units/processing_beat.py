"""What a kv beat of the processing unit is: the tag that goes through the pipeline beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["beat_layout", "token_shape"]


def beat_layout(params: ProcessingParams) -> data.StructLayout:
    """Return the layout of what a kv beat is; it travels beside the beat through the pipeline.

    A beat goes through once for every query, query after query. ``is_value`` tells V from K, ``slot`` is the half of
    the score buffer that its tile has, ``query`` the number of the query that uses the beat and ``again`` that another
    one follows; of g queries, query j's use of beat b has the ``index`` b * g + j in the token. ``beat_last`` is the
    token's end; ``tile_first`` the first tile of the operation, ``token_first`` and ``token_last`` the ends of a tile
    as far as its tokens count, ``final`` the last token of its kind that counts, ``skip`` that its token is passed
    over. ``scored`` says that the operation is one of scores, ``turn`` which of two contexts is the operation's. Of
    values, ``token_first`` lasts to the first token of the tile that is not, and ``tile_first`` to the first of the
    operation.
    """
    return data.StructLayout(
        {
            "is_value": 1,
            "slot": 1,
            "index": range(params.held_beats),
            "query": params.query_range,
            "again": 1,
            "beat_last": 1,
            "tile_first": 1,
            "token_first": 1,
            "token_last": 1,
            "final": 1,
            "skip": 1,
            "scored": 1,
            "turn": 1,
        }
    )


def token_shape(params: ProcessingParams) -> Shape:
    """Return the shape of a token's number in its tile; one bit at least, for Verilog has no vectors of none."""
    return unsigned(max((params.tile_tokens - 1).bit_length(), 1))
