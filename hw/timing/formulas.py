"""Latency and interval of every unit as text, with the variables spelled out and a worked number.

Each text is an expression in Python syntax whose names are the variables listed beside it; the worked
number comes from the unit's own timing module, and the test suite evaluates the text and holds the two equal.
"""

from __future__ import annotations

from functools import singledispatch

from golden.exp import ExpSpec, PolynomialSpec
from hw.dma_crossed_params import DmaCrossedParams
from hw.dma_engine_params import DmaParams
from hw.gather_params import GatherParams
from hw.index_score_params import IndexScoreParams
from hw.params import FinishParams, ProcessingParams, ReductionParams, ScoreAdderParams, StateJoinParams
from hw.timing import dma, dma_crossed, finish, processing, reduction, score_adder, selection_formulas, state_join
from hw.timing.formula import Formula
from hw.timing.operation import OperationSizes
from hw.top_k_params import TopKParams, TopKShardParams

__all__ = ["Formula", "interval_formula", "latency_formula"]


@singledispatch
def latency_formula(params: object) -> Formula:
    """Return the cycles from the first accepted input of an operation to its first valid output, without stalls.

    Raises
    ------
    TypeError
        If ``params`` are not those of a unit.
    """
    raise TypeError(f"params must be those of a unit, not {params!r}")


@singledispatch
def interval_formula(params: object) -> Formula:
    """Return the cycles between successive operations that follow one another without stalls.

    Raises
    ------
    TypeError
        If ``params`` are not those of a unit.
    """
    raise TypeError(f"params must be those of a unit, not {params!r}")


@latency_formula.register
def _(params: ExpSpec) -> Formula:
    return _exp_formula(params, params.latency_cycles)


@interval_formula.register
def _(params: ExpSpec) -> Formula:
    if params.evaluation == "serial":
        return _exp_formula(params, params.interval_cycles)
    return Formula(formula="1", variables={}, values={}, cycles=params.interval_cycles)


def _exp_formula(params: ExpSpec, cycles: int) -> Formula:
    """Return ``cycles`` by what they follow from: the degree of a polynomial, the registers of a pipeline, nothing."""
    if params.evaluation == "combinational":
        return Formula(formula="0", variables={}, values={}, cycles=cycles)
    if params.registers:
        meaning = {"registers": "registers behind the block"}
        return Formula(formula="registers", variables=meaning, values={"registers": params.registers}, cycles=cycles)
    if isinstance(params, PolynomialSpec) and params.scheme == "horner":
        meaning = {"degree": "degree of the polynomial"}
        formula = f"degree + {cycles - params.degree}"
        return Formula(formula=formula, variables=meaning, values={"degree": params.degree}, cycles=cycles)
    if params.evaluation == "pipelined":
        meaning = {"steps": "steps of the datapath"}
        return Formula(formula="steps", variables=meaning, values={"steps": params.steps}, cycles=cycles)
    return Formula(formula=str(cycles), variables={}, values={}, cycles=cycles)


@latency_formula.register
def _(params: ReductionParams) -> Formula:
    alone = params.num_sources == 1
    variables = {
        "num_sources": "states an operation merges",
        "exp_latency": "latency of the exponential unit in cycles",
        "beats": "beats of each body, head_dim / lanes",
    }
    values = {
        "num_sources": params.num_sources,
        "exp_latency": params.exp.latency_cycles,
        "beats": params.beats,
    }
    return Formula(
        formula="6" if alone else "max(3, exp_latency + 6 - beats) + (num_sources - 1) * beats + 3",
        variables={} if alone else variables,
        values={} if alone else values,
        cycles=reduction.latency_cycles(params),
    )


@interval_formula.register
def _(params: ReductionParams) -> Formula:
    return Formula(
        formula="num_sources * max(ceil(head_dim / lanes), ceil(exp_interval / num_exp))",
        variables={
            "num_sources": "states an operation merges",
            "head_dim": "elements of o",
            "lanes": "elements a beat",
            "exp_interval": "interval of the exponential unit in cycles",
            "num_exp": "exponential units, used in turn",
        },
        values={
            "num_sources": params.num_sources,
            "head_dim": params.head_dim,
            "lanes": params.lanes,
            "exp_interval": params.exp.interval_cycles,
            "num_exp": params.num_exp,
        },
        cycles=params.num_sources * reduction.interval_cycles(params),
    )


_SIGNIFICAND = {"significand_bits": "stored significand bits of l"}


@latency_formula.register
def _(params: FinishParams) -> Formula:
    return Formula(
        formula="ceil((significand_bits + 3) / 2) + 4",
        variables=_SIGNIFICAND,
        values={"significand_bits": params.state_format.significand_bits},
        cycles=finish.latency_cycles(params),
    )


@interval_formula.register
def _(params: FinishParams) -> Formula:
    return Formula(
        formula="max(ceil(head_dim / lanes), ceil((significand_bits + 3) / 2) + 1)",
        variables={"head_dim": "elements of o", "lanes": "elements a beat", **_SIGNIFICAND},
        values={
            "head_dim": params.head_dim,
            "lanes": params.lanes,
            "significand_bits": params.state_format.significand_bits,
        },
        cycles=finish.interval_cycles(params),
    )


_EXAMPLE_TOKENS = 2048


def _processing_values(params: ProcessingParams) -> tuple[dict[str, str], dict[str, int]]:
    variables = {
        "num_tokens": "tokens of the operation, at least 1, none of them dropped",
        "head_dim": "elements of q, k and v, at least two beats",
        "lanes": "elements a beat",
        "queries": "queries that share the tokens",
        "exposed": "cycles in which values wait for exponentials, hw.timing.processing.exposed_cycles",
    }
    values = {
        "num_tokens": _EXAMPLE_TOKENS,
        "head_dim": params.head_dim,
        "lanes": params.lanes,
        "queries": _example(params).queries,
        "exposed": processing.exposed_cycles(params, _example(params)),
    }
    return variables, values


def _example(params: ProcessingParams) -> OperationSizes:
    """Return an operation of the largest head dimension, and of as many queries as the unit holds of it."""
    return OperationSizes.of(params, _EXAMPLE_TOKENS, queries=params.held_beats // params.beats)


@latency_formula.register
def _(params: ProcessingParams) -> Formula:
    variables, values = _processing_values(params)
    return Formula(
        formula="2 * num_tokens * ceil(head_dim / lanes) * queries + exposed + tree_levels + 3",
        variables={**variables, "tree_levels": "levels of the adder tree, log2(lanes)"},
        values={**values, "tree_levels": params.lanes.bit_length() - 1},
        cycles=processing.cycles(params, _example(params)).total - (_example(params).query_beats - 1),
    )


@interval_formula.register
def _(params: ProcessingParams) -> Formula:
    variables, values = _processing_values(params)
    return Formula(
        formula="2 * num_tokens * ceil(head_dim / lanes) * queries + exposed",
        variables=variables,
        values=values,
        cycles=processing.cycles(params, _example(params)).interval,
    )


@latency_formula.register
def _(params: ScoreAdderParams) -> Formula:
    return Formula(
        formula="levels",
        variables={"levels": "levels of the tree, log2(slices)"},
        values={"levels": params.slices.bit_length() - 1},
        cycles=score_adder.latency_cycles(params.slices),
    )


@interval_formula.register
def _(_params: ScoreAdderParams) -> Formula:
    return Formula(formula="1", variables={}, values={}, cycles=1)


@latency_formula.register
def _(_params: StateJoinParams) -> Formula:
    return Formula(formula="2", variables={}, values={}, cycles=state_join.LATENCY_CYCLES)


@interval_formula.register
def _(params: StateJoinParams) -> Formula:
    beats = params.slices * params.beats
    return Formula(
        formula="slices * ceil(head_dim / lanes)",
        variables={"slices": "states joined", "head_dim": "elements of a slice of o", "lanes": "elements a beat"},
        values={"slices": params.slices, "head_dim": params.head_dim, "lanes": params.lanes},
        cycles=state_join.cycles(params.processing, [beats, beats]) - state_join.cycles(params.processing, [beats]),
    )


latency_formula.register(IndexScoreParams, selection_formulas.score_latency)
interval_formula.register(IndexScoreParams, selection_formulas.score_interval)
latency_formula.register(TopKShardParams, selection_formulas.shard_latency)
interval_formula.register(TopKShardParams, selection_formulas.shard_interval)
latency_formula.register(TopKParams, selection_formulas.merge_latency)
interval_formula.register(TopKParams, selection_formulas.merge_interval)
latency_formula.register(DmaParams, dma.latency_formula_of)
interval_formula.register(DmaParams, dma.interval_formula_of)
latency_formula.register(DmaCrossedParams, dma_crossed.latency_formula_of)
interval_formula.register(DmaCrossedParams, dma_crossed.interval_formula_of)
latency_formula.register(GatherParams, selection_formulas.gather_latency)
interval_formula.register(GatherParams, selection_formulas.gather_interval)
