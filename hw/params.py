"""Parameters of the hardware units: frozen, validated when made, free of Amaranth.

Everything a unit needs to know at elaboration stands here, and every derived width is a property here,
so that golden models, timing formulas, hardware and the system harness read one object.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from golden.checks import require_int
from golden.exp import POLY6, ExpSpec
from golden.formats import BF16, FP16, FP32, FloatFormat
from golden.numerics import require_unit_formats

__all__ = [
    "FinishParams",
    "ProcessingParams",
    "ReductionParams",
    "ScoreAdderParams",
    "StateJoinParams",
    "StateParams",
]


def _require_exp(exp: object) -> None:
    """Raise unless ``exp`` describes an exponential unit whose results serve as weights."""
    if not isinstance(exp, ExpSpec):
        raise TypeError(f"exp must be an ExpSpec, not {exp!r}")
    if exp.fmt not in (FP16, BF16):
        raise ValueError(f"exp must be of format fp16 or bf16, not {exp.fmt.name!r}")


def _weight_format(exp: ExpSpec) -> FloatFormat:
    """Return the format of the weights that ``exp`` gives; its parameters were checked before."""
    assert isinstance(exp.fmt, FloatFormat)
    return exp.fmt


@dataclass(frozen=True, kw_only=True)
class StateParams:
    """Shape of a partial state ``(m, l, o)`` on its two streams, and of the lanes that carry it.

    Parameters
    ----------
    head_dim : int
        Most elements of ``o``; a multiple of ``lanes`` and at least two beats. Where a unit takes states of any number
        of beats, the bodies themselves tell it, by ``last``.
    lanes : int
        Elements a beat carries and the unit computes at once; a power of two from 2 to 64.
    op_id_bits : int
        Width of the operation id that travels with a state.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not an integer or out of range.
    """

    head_dim: int = 128
    lanes: int = 16
    op_id_bits: int = 8

    def __post_init__(self) -> None:
        require_int("lanes", self.lanes, 2, 64)
        if self.lanes & (self.lanes - 1):
            raise ValueError(f"lanes must be a power of two, not {self.lanes!r}")
        require_int("head_dim", self.head_dim, 2 * self.lanes)
        if self.head_dim % self.lanes:
            raise ValueError(f"head_dim must be a multiple of lanes ({self.lanes}), not {self.head_dim!r}")
        require_int("op_id_bits", self.op_id_bits, 1, 32)

    @property
    def beats(self) -> int:
        """Beats of one vector of ``head_dim`` elements: the most that a body has."""
        return self.head_dim // self.lanes

    @property
    def state_format(self) -> FloatFormat:
        """Format of m, l and o on every wire and in every buffer."""
        return FP32

    @property
    def state_bytes(self) -> int:
        """Bytes of one state (m, l and o): 520 at a head dimension of 128."""
        return self.state_format.bytes * (2 + self.head_dim)

    def replace(self, **changes: Any) -> Self:
        """Return these parameters with ``changes`` applied, validated anew."""
        return replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class ReductionParams(StateParams):
    """Parameters of :class:`hw.units.reduction.ReductionUnit`.

    Parameters
    ----------
    num_sources : int
        Streams of states merged by an operation, each delivering exactly one state; 1 to 256.
    exp : ExpSpec
        The exponential unit that computes the weights; of any family, latency, interval and domain.
    """

    num_sources: int = 4
    exp: ExpSpec = field(default=POLY6)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("num_sources", self.num_sources, 1, 256)
        _require_exp(self.exp)

    @property
    def weight_format(self) -> FloatFormat:
        """Format of the weights and of the exponential's operands."""
        return _weight_format(self.exp)

    @property
    def num_exp(self) -> int:
        """Exponential units that keep one weight a partial of ``head_dim`` elements: ``ceil(exp interval / beats)``."""
        return -(-self.exp.interval_cycles // self.beats)


@dataclass(frozen=True, kw_only=True)
class FinishParams(StateParams):
    """Parameters of :class:`hw.units.finish.FinishUnit`, which turns the root's state into ``o / l``.

    Parameters
    ----------
    output_format : FloatFormat
        Format of the attention output: fp16 or bf16.
    """

    output_format: FloatFormat = FP16

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.output_format, FloatFormat):
            raise TypeError(f"output_format must be a FloatFormat, not {self.output_format!r}")
        if self.output_format not in (FP16, BF16):
            raise ValueError(f"output_format must be fp16 or bf16, not {self.output_format.name!r}")


@dataclass(frozen=True, kw_only=True)
class ProcessingParams(StateParams):
    """Parameters of :class:`hw.units.processing.ProcessingUnit`.

    Parameters
    ----------
    head_dim : int
        Most elements of q, k and v that the unit holds of a token: its slice of the head dimension. A command says
        how many beats an operation has.
    tile_tokens : int
        Most tokens T of a tile; 1 to 4096. The score buffer holds two tiles.
    token_bits : int
        Width of the token counts of an operation.
    slices : int
        Units that share the elements of a token and add their q.k up; a power of two from 1 to 16.
    queries : int
        Most queries G of an operation, which use every beat of k and v in turn: the query heads that share a KV head;
        a power of two from 1 to 16. A command says how many an operation has.
    query_beats : int or None
        Most beats of q that the unit holds, all queries of an operation together, and of o; None is ``queries`` of
        ``head_dim`` elements. Fewer let many queries have a small head dimension, and few a large one.
    exp : ExpSpec
        The exponential unit, one operand a cycle; of any family, latency and domain. Its format is that of the weights.
    kv_format : FloatFormat
        Format of q, k and v: fp16, or bf16, with which the exponential unit may be of either.
    """

    tile_tokens: int = 16
    token_bits: int = 24
    slices: int = 1
    queries: int = 1
    query_beats: int | None = None
    exp: ExpSpec = field(default=POLY6)
    kv_format: FloatFormat = FP16

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("tile_tokens", self.tile_tokens, 1, 4096)
        require_int("token_bits", self.token_bits, 1, 32)
        for name, number in (("slices", self.slices), ("queries", self.queries)):
            require_int(name, number, 1, 16)
            if number & (number - 1):
                raise ValueError(f"{name} must be a power of two, not {number!r}")
        if self.query_beats is not None:
            require_int("query_beats", self.query_beats, self.beats, self.queries * self.beats)
        _require_exp(self.exp)
        require_unit_formats(self.exp, self.kv_format)
        if self.exp.interval_cycles != 1:
            raise ValueError(f"exp must take one operand a cycle, not one in {self.exp.interval_cycles} cycles")

    @property
    def slice_levels(self) -> int:
        """Levels of the tree, outside the unit, that adds the sums of the slices: one cycle each."""
        return self.slices.bit_length() - 1

    @property
    def weight_format(self) -> FloatFormat:
        """Format of the weights, of alpha and of the exponential's operands."""
        return _weight_format(self.exp)

    @property
    def factor_format(self) -> FloatFormat:
        """Format at the multipliers of what k and v meet there, an element of q or a weight: one that holds both."""
        return self.kv_format if self.weight_format == self.kv_format else self.state_format

    @property
    def query_bits(self) -> int:
        """Bits of a query's number: none where there is one."""
        return (self.queries - 1).bit_length()

    @property
    def query_range(self) -> range:
        """Numbers of queries, as the shape of signals: of one bit at least, for Verilog has no vectors of none."""
        return range(max(self.queries, 2))

    @property
    def held_beats(self) -> int:
        """Beats of q, and of o, that the unit has words for."""
        return self.queries * self.beats if self.query_beats is None else self.query_beats

    @property
    def vector_buffer_bytes(self) -> int:
        """Bytes of q and of o, of all queries of an operation."""
        return self.held_beats * self.lanes * (self.kv_format.bytes + self.state_format.bytes)

    @property
    def score_buffer_bytes(self) -> int:
        """Bytes of the score buffer: two tiles of fp32 scores a query, each overwritten in place by its weights."""
        return 2 * self.tile_tokens * self.queries * self.state_format.bytes

    @property
    def buffer_bytes(self) -> int:
        """Bytes of q, o and scores."""
        return self.vector_buffer_bytes + self.score_buffer_bytes


def _require_slices(slices: int) -> None:
    """Raise unless ``slices`` is a power of two from 2 to 16."""
    require_int("slices", slices, 2, 16)
    if slices & (slices - 1):
        raise ValueError(f"slices must be a power of two, not {slices!r}")


@dataclass(frozen=True, kw_only=True)
class ScoreAdderParams:
    """Parameters of :class:`hw.units.score_adder.ScoreAdder`.

    Parameters
    ----------
    slices : int
        Processing units that share the elements of a token; a power of two from 2 to 16.

    Raises
    ------
    TypeError, ValueError
        If it is not.
    """

    slices: int = 4

    def __post_init__(self) -> None:
        _require_slices(self.slices)


@dataclass(frozen=True, kw_only=True)
class StateJoinParams(StateParams):
    """Parameters of :class:`hw.units.state_join.StateJoin`.

    Parameters
    ----------
    head_dim : int
        Most elements of one slice.
    slices : int
        Processing units that share the elements of a token; a power of two from 2 to 16.
    """

    slices: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_slices(self.slices)

    @property
    def processing(self) -> ProcessingParams:
        """The unit of a slice, whose states are joined."""
        return ProcessingParams(
            head_dim=self.head_dim, lanes=self.lanes, op_id_bits=self.op_id_bits, slices=self.slices
        )
