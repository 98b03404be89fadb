"""Area and latency of the top-k unit beside a sorter that keeps as many scores."""

from __future__ import annotations

from typing import Any

from hw.conversion import convert_once
from hw.liberty import Library, read_library
from hw.presets import UNIT_PRESETS
from hw.synth_parts import module_areas, sum_areas
from hw.timing.top_k import select_cycles
from hw.units.sorted_list import SortedList, SortedListParams
from hw.units.top_k_merge import TopKMerge
from hw.units.top_k_shard import TopKShard

__all__ = ["beside_a_sorter"]

_FEW, _MORE = 16, 32
"""Places of the sorters that are synthesised; what one place more takes is their difference over that of these."""

_DEPTH = 1024
"""Scores of the shard that is synthesised: but for the store, which is left out, depth changes widths of counts."""

_TOKENS = (65_536, 1_000_000)


def beside_a_sorter() -> dict[str, object]:
    """Synthesise the logic of a KARAT device's selection, and places of a sorter of as many as it selects.

    Both stand in each channel: a sorter takes a score a cycle, and the best scores may all lie in one channel.

    Returns
    -------
    dict
        Gate equivalents and flip-flops of both in a channel, the bytes of a shard's store beside them, and cycles from
        the last score to the last id: of a sorter the least, as many as it gives out and one.
    """
    params = UNIT_PRESETS["karat"].top_k
    assert params is not None, "the preset has units of selection"
    library = read_library(None)
    small = params.shard.replace(depth=_DEPTH)
    shard = _logic(convert_once(TopKShard, small, name="nearkv_top_k_shard"), "nearkv_top_k_shard", library)
    merge = _logic(convert_once(TopKMerge, params, name="nearkv_top_k_merge"), "nearkv_top_k_merge", library)
    few, more = (_sorter(count, params.shard.id_bits, library) for count in (_FEW, _MORE))
    place = {name: (more[name] - few[name]) / (_MORE - _FEW) for name in few}
    rows = [-(-tokens // (params.shards * params.shard.lanes)) for tokens in _TOKENS]
    return {
        "k": params.max_k,
        "shards": params.shards,
        "shard_ge": shard["area_ge"],
        "shard_flip_flops": shard["flip_flops"],
        "shard_store_bytes": params.shard.store_bytes,
        "merge_ge": merge["area_ge"],
        "tokens": list(_TOKENS),
        "select_cycles": [select_cycles(params, count, params.shards - 1, count) for count in rows],
        "sorter_place_ge": place["area_ge"],
        "sorter_ge": few["area_ge"] + (params.max_k - _FEW) * place["area_ge"],
        "sorter_flip_flops": few["flip_flops"] + (params.max_k - _FEW) * place["flip_flops"],
        "sorter_cycles": params.max_k + 1,
        "library": library.name,
    }


def _sorter(places: int, id_bits: int, library: Library) -> dict[str, float]:
    params = SortedListParams(places=places, id_bits=id_bits)
    name = "nearkv_sorted_list"
    return _logic(convert_once(SortedList, params, name=name), name, library)


def _logic(text: str, top: str, library: Library) -> dict[str, Any]:
    """Return area and flip-flops of a unit without its arrays."""
    logic = sum_areas(area.logic for area in module_areas(text, top, library))
    return {"area_ge": logic.area_ge, "flip_flops": logic.flip_flops}
