# amaranth: UnusedElaboratable=no
# A component is made here to read its signature as often as to be written as Verilog.
"""The Verilog modules that a channel is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.device_params import Mapping
from hw.devices.placed import UnderEnable, UnitModule
from hw.units.processing import ProcessingUnit
from hw.units.reduction import ReductionUnit
from hw.units.score_adder import ScoreAdder
from hw.units.state_join import StateJoin

if TYPE_CHECKING:
    from hw.device_params import ChannelParams
    from hw.params import ProcessingParams, ReductionParams

__all__ = ["adder_module", "group_modules", "merge_module", "stage_module", "unit_module"]


def group_modules(params: ChannelParams) -> list[UnitModule]:
    """Return the modules inside a bank group."""
    if params.mapping is Mapping.GROUP:
        return [unit_module(params)]
    modules = [unit_module(params), stage_module(params)]
    return [*modules, adder_module(params)] if params.mapping is Mapping.SPLIT else modules


def unit_module(params: ChannelParams) -> UnitModule:
    """Return the processing unit at a bank, or at a bank group."""
    return UnitModule("nearkv_processing_enabled", _processing, params.processing)


def stage_module(params: ChannelParams) -> UnitModule:
    """Return what makes one state of those of a group's banks."""
    if params.mapping is Mapping.SPLIT:
        return UnitModule("nearkv_state_join_enabled", _state_join, params.processing)
    return UnitModule("nearkv_reduction_enabled", _reduction, params.reduction)


def adder_module(params: ChannelParams) -> UnitModule:
    """Return the adder of the parts of a score."""
    return UnitModule("nearkv_score_adder_enabled", _score_adder, params.processing.slices)


def merge_module(params: ReductionParams) -> UnitModule:
    """Return a unit of the logic die, which merges the states of ``num_sources`` groups or units."""
    return UnitModule(f"nearkv_reduction_of_{params.num_sources}_enabled", _reduction, params)


def _processing(params: ProcessingParams) -> UnderEnable:
    return UnderEnable(ProcessingUnit(params))


def _state_join(params: ProcessingParams) -> UnderEnable:
    return UnderEnable(StateJoin(params))


def _reduction(params: ReductionParams) -> UnderEnable:
    return UnderEnable(ReductionUnit(params))


def _score_adder(slices: int) -> UnderEnable:
    return UnderEnable(ScoreAdder(slices))
