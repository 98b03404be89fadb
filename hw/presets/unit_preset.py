"""What a size of every unit is: parameters that fit together, each with its unit and its source."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from golden.exp import ExpSpec
from golden.formats import FloatFormat
from golden.retrieval.index_spec import ScoreSpec
from hw.dma_crossed_params import DmaCrossedParams
from hw.dma_engine_params import DmaParams
from hw.dma_params import AddressParams, PathParams
from hw.gather_params import GatherParams
from hw.index_score_params import IndexScoreParams
from hw.params import FinishParams, ProcessingParams, ReductionParams, ScoreAdderParams, StateJoinParams
from hw.presets.value import Deviation, Value
from hw.top_k_params import TopKParams, TopKShardParams

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["UnitParams", "UnitPreset"]

UnitParams = (
    ExpSpec
    | ProcessingParams
    | ReductionParams
    | FinishParams
    | ScoreAdderParams
    | StateJoinParams
    | IndexScoreParams
    | TopKShardParams
    | TopKParams
    | GatherParams
    | DmaParams
    | DmaCrossedParams
)
"""Parameters of any unit."""

_EXP_SOURCE = "golden.exp: fitted here (golden.exp.fit) to the exponential over all codes of its format"


@dataclass(frozen=True, kw_only=True)
class UnitPreset:
    """One size of every unit, so that they fit together.

    Parameters
    ----------
    name : str
        Name on the command line.
    description : str
        What it is for.
    exp : ExpSpec
        The exponential unit, alone.
    processing, reduction, finish : ProcessingParams, ReductionParams, FinishParams
        The other units.
    score_adder, state_join : ScoreAdderParams, StateJoinParams or None
        What joins processing units that share the elements of a token; None where none do.
    index_score : IndexScoreParams or None
        What scores index keys; None where nothing is selected.
    top_k : TopKParams or None
        The shards and the merge that select by score; None where nothing is selected.
    gather : GatherParams or None
        What reads the rows of selected ids; None where nothing is selected.
    dma : DmaParams or None
        An end of the DMA, in one clock and with its link in another; None where its memory has none here.
    sources : dict of str to str
        Source of each size by its name; ``"other"`` covers the rest.
    deviations : tuple of Deviation
        Printed sizes that were not used.

    Raises
    ------
    ValueError
        If the units disagree about the state that travels between them or about the format of tensors, or a source is
        missing.
    """

    name: str
    description: str
    exp: ExpSpec
    processing: ProcessingParams
    reduction: ReductionParams
    finish: FinishParams
    score_adder: ScoreAdderParams | None = None
    state_join: StateJoinParams | None = None
    index_score: IndexScoreParams | None = None
    top_k: TopKParams | None = None
    gather: GatherParams | None = None
    dma: DmaParams | None = None
    sources: dict[str, str]
    deviations: tuple[Deviation, ...] = ()

    def __post_init__(self) -> None:
        for key in ("head_dim", "lanes", "op_id_bits"):
            found = {getattr(unit, key) for unit in (self.processing, self.reduction, self.finish)}
            if len(found) != 1:
                raise ValueError(f"{key} must be one number in all units of preset {self.name}, not {sorted(found)}")
        if self.finish.output_format != self.processing.kv_format:
            raise ValueError(
                f"output_format of preset {self.name} must be its kv_format {self.processing.kv_format.name}, "
                f"not {self.finish.output_format.name}"
            )
        if not self.sources.get("other"):
            raise ValueError(f"sources of preset {self.name} must have an entry 'other', not {sorted(self.sources)}")

    @property
    def units(self) -> dict[str, UnitParams]:
        """Parameters by unit name, in the order in which data meets the units, what joins slices, selection."""
        units: dict[str, UnitParams | None] = {
            "exp": self.exp,
            "processing": self.processing,
            "reduction": self.reduction,
            "finish": self.finish,
            "score_adder": self.score_adder,
            "state_join": self.state_join,
            "index_score": self.index_score,
            "top_k_shard": self.top_k and self.top_k.shard,
            "top_k_merge": self.top_k,
            "gather": self.gather,
            "dma": self.dma,
            "dma_crossed": self.dma and DmaCrossedParams(dma=self.dma),
        }
        return {name: params for name, params in units.items() if params is not None}

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every size as ``unit.field`` with unit and source."""
        for unit, params in self.units.items():
            for name, value in _sizes(params):
                unit_of_value = _unit_of(name, value)
                shown = value.name if isinstance(value, ExpSpec | FloatFormat) else value
                shown = "none" if shown is None else shown
                if isinstance(value, AddressParams | PathParams):
                    unit_of_value, shown = "name", value.description
                if isinstance(shown, tuple):
                    shown = " ".join(str(entry) for entry in shown)
                source = _EXP_SOURCE if unit == "exp" else self.sources.get(name, self.sources["other"])
                yield f"{unit}.{name}", Value(shown, unit_of_value, source)


def _sizes(params: UnitParams | ScoreSpec) -> Iterator[tuple[str, Any]]:
    """Yield the sizes of a unit by name."""
    for item in fields(params):
        value: Any = getattr(params, item.name)
        if isinstance(value, ScoreSpec):
            yield from _sizes(value)
        elif not isinstance(value, TopKShardParams | DmaParams):  # a unit of its own
            yield item.name, value


def _unit_of(name: str, value: object) -> str:
    """Return the unit of a size from its name and its type."""
    if isinstance(value, tuple):
        return "names" if any(isinstance(entry, str) for entry in value) else "integers"
    if name.endswith(("_bytes", "_cycles")):
        return name.rpartition("_")[2]
    if isinstance(value, str | ExpSpec | FloatFormat):
        return "name"
    return "bits" if name.endswith("_bits") else "1"
