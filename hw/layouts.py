"""Payloads of the streams between units, each a function of the parameters.

The same layout object shapes the port, packs stimulus and unpacks results, in both simulators.
The first field sits at bit 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data

if TYPE_CHECKING:
    from hw.params import FinishParams, ProcessingParams, StateParams

__all__ = [
    "body_layout",
    "command_layout",
    "head_layout",
    "kv_layout",
    "output_layout",
    "token_score_layout",
    "vector_layout",
]


def head_layout(params: StateParams) -> data.StructLayout:
    """Head of a partial state: who it belongs to, its scalars and its two flags.

    ``op_id`` names the operation, ``empty`` says that no token contributed (m, l and o then mean
    nothing and no body follows), ``fault`` that operation ids disagreed somewhere below; ``m`` is the
    running maximum and ``l`` the running sum, fp32 codes, base e.
    """
    bits = params.state_format.bits
    return data.StructLayout({"op_id": params.op_id_bits, "empty": 1, "fault": 1, "m": bits, "l": bits})


def body_layout(params: StateParams) -> data.StructLayout:
    """One beat of a partial state's unnormalised output o: ``lanes`` fp32 codes; ``last`` ends the state."""
    return data.StructLayout({"o": data.ArrayLayout(params.state_format.bits, params.lanes), "last": 1})


def command_layout(params: ProcessingParams) -> data.StructLayout:
    """Command of one operation of a processing unit.

    ``kind`` is the value of an :class:`hw.timing.operation.OperationKind`, ``scale`` the fp32 code of 1/sqrt(head_dim),
    ``last_query`` the number of the operation's last query, counted from 0: 0 in a unit of one, which does not look.
    The other numbers are those of :class:`hw.timing.operation.OperationSizes`, which refuses the ones that a unit can't
    work with.
    """
    return data.StructLayout(
        {
            "op_id": params.op_id_bits,
            "kind": 1,
            "num_tokens": params.token_bits,
            "walk_tokens": params.token_bits,
            "beats": range(params.beats + 1),
            "tile_tokens": range(params.tile_tokens + 1),
            "last_query": params.query_range,
            "scale": params.state_format.bits,
        }
    )


def token_score_layout(params: ProcessingParams) -> data.StructLayout:
    """Score of one token of an operation of scores: its query's ``op_id``, the token's ``position`` in the walk.

    ``score`` is q . k times the scale, an fp32 code.
    """
    return data.StructLayout(
        {"op_id": params.op_id_bits, "position": params.token_bits, "score": params.state_format.bits}
    )


def vector_layout(params: ProcessingParams) -> data.ArrayLayout:
    """One beat of q, k or v: ``lanes`` codes of the KV format."""
    return data.ArrayLayout(params.kv_format.bits, params.lanes)


def kv_layout(params: ProcessingParams) -> data.StructLayout:
    """One beat of k or v, and ``skip``, the same in all beats of a token, where the unit is to pass over it."""
    return data.StructLayout({"data": vector_layout(params), "skip": 1})


def output_layout(params: FinishParams) -> data.StructLayout:
    """One beat of the attention output, with its operation's id and flags; ``last`` ends the vector."""
    return data.StructLayout(
        {
            "op_id": params.op_id_bits,
            "empty": 1,
            "fault": 1,
            "o": data.ArrayLayout(params.output_format.bits, params.lanes),
            "last": 1,
        }
    )
