"""Presets: every number has unit and source, deviations are shown, and what one refers to exists."""

from __future__ import annotations

import dataclasses

import pytest

from hw.presets import DEFAULT_UNIT_PRESET, MEMORY_PRESETS, UNIT_PRESETS, Deviation, UnitPreset, Value
from hw.presets.devices import DEVICE_PRESETS
from sim.catalogue import catalogue
from sim.provenance import CLASSES, Part, combine
from sim.system_config import load_system, system_names


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: f"{entry.kind} {entry.name}")
def test_every_number_has_unit_and_source(entry) -> None:
    assert entry.fields
    for name, value in entry.fields.items():
        assert value.unit, name
        assert len(value.source) > 3, name
    for deviation in entry.deviations:
        assert all(dataclasses.astuple(deviation)), deviation.field


def test_catalogue_holds_every_kind() -> None:
    kinds = {entry.kind for entry in catalogue()}
    assert kinds == {"unit", "device", "dram", "drive", "link", "system", "model", "policy", "calibration", "energy"}
    names = [(entry.kind, entry.name) for entry in catalogue()]
    assert len(set(names)) == len(names)


def test_memories_refer_to_unit_presets_and_count_right() -> None:
    for device in MEMORY_PRESETS.values():
        assert {device.unit_preset, device.merge_preset} <= set(UNIT_PRESETS)
        sources = UNIT_PRESETS[device.unit_preset].reduction.num_sources
        assert device.units_per_group.integer == sources
        assert device.units_per_channel.integer % sources == 0
    assert DEFAULT_UNIT_PRESET in UNIT_PRESETS


def test_pam_memories_as_published() -> None:
    pam = load_system("pam")
    hbm, ddr, ssd = pam.tiers
    units = [tier.channels * tier.device.units_per_channel.integer for tier in pam.tiers]
    assert units == [40_960, 5_120, 64 * 8]
    assert [tier.raw_bytes for tier in pam.tiers] == [640 * 2**30, 1280 * 2**30, 8 * 10**12]
    rates = [tier.count.integer * tier.device.cap_bytes_per_s.number for tier in pam.tiers]
    assert [round(rate / rates[2]) for rate in rates] == [444, 57, 1]
    lanes = [UNIT_PRESETS[tier.device.unit_preset].processing.lanes for tier in pam.tiers]
    assert lanes == [16, 4, 16]
    assert [tier.device.unit_clock_hz.number for tier in pam.tiers] == [666e6, 500e6, 1e9]
    assert [hbm.shared_with_gpu, ddr.shared_with_gpu, ssd.shared_with_gpu] == [True, False, False]
    assert hbm.device.merge_units_per_channel.integer * hbm.device.channels.integer == 128
    assert ssd.device.page is not None
    assert ssd.device.page.page_bytes.integer == 16384


@pytest.mark.parametrize(
    ("system", "field"),
    [
        ("pam", "tiers.hbm-pim.timing.tBL"),
        ("pam", "tiers.hbm-pim.capacity_bytes"),
        ("pam", "tiers.ddr-pim.units_per_channel"),
        ("pam", "tiers.ssd-pim.capacity_bytes"),
        ("pam", "tiers.ssd-pim.interface area share"),
        ("pam", "parallelism"),
        ("pam-seed", "tiers.ddr-pim.device"),
    ],
)
def test_printed_numbers_that_were_not_used_are_listed(system: str, field: str) -> None:
    assert field in {deviation.field for deviation in load_system(system).all_deviations()}


def test_seed_system_says_what_it_takes_from_pam() -> None:
    assert system_names() == ["pam", "pam-16tb", "pam-seed"]
    values = dict(load_system("pam-seed").values())
    own = {name for name, value in values.items() if value.source.startswith("seed text")}
    assert own == {
        "links.memory-bus.bytes_per_s",
        "tiers.hbm-pim.cap_bytes_per_s",
        "tiers.hbm-pim.cap_flops_per_s",
        "tiers.ddr-pim.count",
        "tiers.ddr-pim.external_bytes_per_s",
        "tiers.ddr-pim.cap_bytes_per_s",
        "tiers.ddr-pim.cap_flops_per_s",
    }
    rest = {name: value for name, value in values.items() if name not in own}
    assert rest.pop("tiers.ddr-pim.capacity_bytes").source.startswith("not in the seed")
    assert all(value.source.startswith("taken from pam: ") for value in rest.values())
    assert values["tiers.ddr-pim.cap_bytes_per_s"].number * 4 == 200e9


def test_both_printed_capacities_of_drives_are_there() -> None:
    pam, large = load_system("pam"), load_system("pam-16tb")
    assert [tier.raw_bytes for tier in pam.tiers[:2]] == [tier.raw_bytes for tier in large.tiers[:2]]
    assert (pam.tiers[2].raw_bytes, large.tiers[2].raw_bytes) == (8 * 10**12, 16 * 10**12)
    field = "tiers.ssd-pim.capacity_bytes"
    assert [field in {entry.field for entry in system.all_deviations()} for system in (pam, large)] == [True, False]


def test_buffers_of_a_bank_by_hand() -> None:
    """Q in fp16 and o in fp32, 6 B an element; two rows of fp32 scores a query, in a row as many as fit at least."""
    assert DEVICE_PRESETS["pam"].buffer_bytes == 32 * 6 + 2 * 32 * 4 == 448
    assert DEVICE_PRESETS["pam-wide"].buffer_bytes == 1024 * 6 + 2 * 8 * 4 * 8 == 6656
    assert dict(DEVICE_PRESETS["pam-wide"].values())["queries"].value == 8


def test_unit_presets_fit_together() -> None:
    tiny = UNIT_PRESETS["tiny"]
    joins, selection = ["score_adder", "state_join"], ["index_score", "top_k_shard", "top_k_merge", "gather"]
    assert list(tiny.units) == ["exp", "processing", "reduction", "finish", *joins, *selection, "dma", "dma_crossed"]
    with pytest.raises(ValueError, match=r"head_dim must be one number in all units of preset tiny, not \[8, 16\]"):
        dataclasses.replace(tiny, processing=tiny.processing.replace(head_dim=16))
    with pytest.raises(ValueError, match=r"sources of preset tiny must have an entry 'other', not \[\]"):
        dataclasses.replace(tiny, sources={})
    assert isinstance(tiny, UnitPreset)


@pytest.mark.parametrize(
    ("unit", "source", "message"),
    [
        ("", "x", "unit of a preset value must say something, not ''"),
        ("s", "", "source of a preset value must say something, not ''"),
    ],
)
def test_values_without_unit_or_source_are_refused(unit: str, source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Value(1, unit, source)


def test_values_convert_only_what_they_are() -> None:
    assert Value(3.0, "1", "x").integer == 3
    with pytest.raises(TypeError, match=r"value must be a whole number, not 2\.5"):
        _ = Value(2.5, "1", "x").integer
    with pytest.raises(TypeError, match="value must be a number, not 'fp16'"):
        _ = Value("fp16", "name", "x").number


def test_memory_numbers_can_be_replaced_by_name() -> None:
    device = MEMORY_PRESETS["ssd-pim"]
    changed = device.with_values({"page.page_read_s": Value(5e-6, "s", "x"), "channels": Value(4, "1", "x")})
    assert changed.page is not None
    assert changed.page.page_read_s.number == 5e-6
    assert changed.channels.integer == 4
    with pytest.raises(KeyError, match="nothing"):
        device.with_values({"nothing": Value(1, "1", "x")})
    assert Deviation("a", "b", "c", "d").to_dict() == {"field": "a", "printed": "b", "used": "c", "reason": "d"}


def test_the_weakest_part_decides() -> None:
    parts = [Part(kind, kind, "x") for kind in CLASSES]
    for index in range(len(parts)):
        assert combine(parts[: index + 1]).kind == CLASSES[index]
        assert combine(reversed(parts[: index + 1])).kind == CLASSES[index]
    nested = combine([combine(parts[:2]), combine(parts[1:3]), parts[0]])
    assert nested.kind == CLASSES[2]
    assert [part.kind for part in nested.parts] == list(CLASSES[:3])
    with pytest.raises(ValueError, match="items must hold at least one part, not none"):
        combine([])
    with pytest.raises(ValueError, match=r"kind must be one of measured-rtl, .*, not 'guessed'"):
        Part("x", "guessed", "x")
    with pytest.raises(ValueError, match="source of x must say where the number comes from, not be empty"):
        Part("x", "modelled", "")
