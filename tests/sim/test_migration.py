"""Promise: moving tokens in the background of a step costs what a hand count says, and the step notices no less."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.background import Flow, Phase, hidden_parts
from sim.decode import decode_step
from sim.migration import Manner, Swap, background, swaps
from sim.model_config import load_model
from sim.spare import is_attention, slot_share, spare_share, step_phases
from sim.step import StepRequest, StepTime
from sim.system_config import load_system

if TYPE_CHECKING:
    from sim.models import Model
    from sim.system import System

PAM = load_system("pam")
LLAMA, OPT = load_model("llama-3.1-70b"), load_model("opt-175b")
MOVED = Manner(moved=0.007, last=0.001, link_share=0.5, read_amplification=4.0, program_bytes_per_s=20e6)


def step(model: Model, context: int, batch: int, keep: float = 1.0, system: System = PAM) -> StepTime:
    return decode_step(system, model, StepRequest(context=context, batch=batch, keep=keep))


# Room that phases have.


def test_room_by_hand() -> None:
    phases = [Phase("a", 1.0, {"memory": 0.5, "link": 1.0}), Phase("b", 3.0, {"memory": 1.0, "link": 0.1})]
    flows = [Flow("first", {"memory": 2.0, "link": 1.0}), Flow("second", {"link": 1.0})]
    first, second = hidden_parts(flows, phases)
    # a: the memory sets the pace, 1 * 0.5 / 2; b: the link, 3 * 0.1 / 1.
    assert first == {"a": pytest.approx(0.25), "b": pytest.approx(0.3)}
    # Of the link a has 1 - 0.25 left for a second, b nothing.
    assert second == {"a": pytest.approx(0.75), "b": pytest.approx(0.0, abs=1e-12)}


def test_more_room_than_is_needed_is_taken_in_proportion() -> None:
    phases = [Phase("a", 1.0, {"memory": 0.5}), Phase("b", 3.0, {"memory": 1.0}), Phase("none", 0.0, {"memory": 1.0})]
    (found,) = hidden_parts([Flow("one", {"memory": 0.1})], phases)
    # Room for 5 and for 30 of it.
    assert found == {"a": pytest.approx(1 / 7), "b": pytest.approx(6 / 7), "none": 0.0}


@given(
    st.lists(st.tuples(*(st.floats(0.01, 10) for _ in range(2))), min_size=1, max_size=4),
    st.lists(st.tuples(st.floats(0, 10), *(st.floats(0, 1) for _ in range(2))), min_size=1, max_size=5),
)
def test_no_resource_is_used_more_than_it_is_idle(
    demands: list[tuple[float, float]], given_phases: list[tuple[float, float, float]]
) -> None:
    flows = [Flow(str(n), {"memory": memory, "link": link}) for n, (memory, link) in enumerate(demands)]
    phases = [Phase(str(n), time, {"memory": a, "link": b}) for n, (time, a, b) in enumerate(given_phases)]
    found = hidden_parts(flows, phases)
    assert all(sum(parts.values()) <= 1 + 1e-9 for parts in found)
    for phase in phases:
        for name, idle in phase.idle.items():
            used = sum(parts[phase.name] * flow.demands_s[name] for parts, flow in zip(found, flows, strict=True))
            assert used <= phase.duration_s * idle + 1e-9


# What a step leaves to spare.


@pytest.mark.parametrize("keep", [1.0, 0.125])
@pytest.mark.parametrize(("model", "context", "batch"), [(LLAMA, 8192, 16), (LLAMA, 131072, 64), (OPT, 1024, 128)])
def test_phases_add_up_to_the_step(model: Model, context: int, batch: int, keep: float) -> None:
    found = step(model, context, batch, keep)
    phases = step_phases(PAM, model.attention, found)
    assert sum(phase.duration_s for phase in phases) == pytest.approx(found.total_s)
    assert sum(phase.duration_s for phase in phases if is_attention(phase)) == pytest.approx(found.attention_s)
    assert all(0.0 <= idle <= 1.0 for phase in phases for idle in phase.idle.values())
    assert len({phase.name for phase in phases}) == len(phases)


def test_products_leave_what_memory_bound_gpus_do_not_read() -> None:
    # All products wait for the weights, at 0.85 of the pins (calibration.toml).
    products, *others = step_phases(PAM, LLAMA.attention, step(LLAMA, 32768, 64))
    assert products.idle["hbm-pim"] == pytest.approx(0.15, abs=1e-6)
    assert products.idle["ddr-pim"] == products.idle["pcie up"] == 1.0
    assert others[0].idle["hbm-pim"] == 1.0
    links = next(phase for phase in others if phase.name == "links")
    assert (links.idle["memory-bus"], links.idle["nvme down"], links.idle["ddr-pim"]) == (0.0, 0.0, 1.0)


def test_a_slot_in_a_pause_by_hand() -> None:
    # HBM: 16 columns of 32 B, 4 clocks apart and 2 on the pins each; rows opened and closed twice, 38 clocks.
    assert slot_share(PAM.tier("hbm-pim").device, 512) == pytest.approx(32 / (76 + 64))
    # A DIMM's chip: 64 columns of 8 B, 8 apart, 4 on its pins; 48 clocks twice.
    assert slot_share(PAM.tier("ddr-pim").device, 512) == pytest.approx(256 / (96 + 512))


def test_slots_are_spared_where_the_power_limit_decides_alone() -> None:
    (layer,) = step(OPT, 2048, 256).layers
    bounds = {name: time.bound for name, time in layer.tiers.items()}
    assert bounds == {"hbm-pim": "cap", "ddr-pim": "column", "ssd-pim": "page"}
    spared = {name: spare_share(PAM.tier(name), OPT.attention, time) for name, time in layer.tiers.items()}
    assert spared["ddr-pim"] == spared["ssd-pim"] == 0.0
    # The channel was measured: its rows alone would take less than a third of what the limit makes of them.
    time = layer.tiers["hbm-pim"]
    assert time.channel is not None
    busy_s = time.access_s + time.channel.rows_s + time.channel.refresh_cycles * 0.769e-9
    assert spared["hbm-pim"] == pytest.approx((1 - busy_s / time.total_s) * 32 / 140)
    assert 0.6 * 32 / 140 < spared["hbm-pim"] < 32 / 140


def test_slots_are_spared_by_formula_without_a_measured_channel() -> None:
    (layer,) = step(LLAMA, 32768, 64).layers
    time = layer.tiers["hbm-pim"]
    assert (time.bound, time.channel) == ("cap", None)
    busy_s = time.access_s + time.bounds_s["column"]
    assert spare_share(PAM.tier("hbm-pim"), LLAMA.attention, time) == pytest.approx(
        (1 - busy_s / time.total_s) * 32 / 140
    )
    assert layer.tiers["ddr-pim"].bound == "unit"
    assert spare_share(PAM.tier("ddr-pim"), LLAMA.attention, layer.tiers["ddr-pim"]) == 0.0


# Swaps.


def held(*tokens: int, context: int = 1000, batch: int = 100) -> StepTime:
    """Return a step of which nothing but the placement matters."""
    found = step(LLAMA, 8192, 16)
    names = ("hbm-pim", "ddr-pim", "ssd-pim")
    placed = tuple(
        replace(tier, name=name, tokens=count) for tier, name, count in zip(found.placement, names, tokens, strict=True)
    )
    return replace(found, placement=placed, request=StepRequest(context=context, batch=batch))


def test_swaps_by_hand() -> None:
    # 100,000 tokens: 700 move, 350 each way; 100 of them between the last two.
    assert swaps(held(40_000, 40_000, 20_000), MOVED) == (
        Swap("hbm-pim", "ddr-pim", 250),
        Swap("ddr-pim", "ssd-pim", 100),
    )
    assert swaps(held(60_000, 40_000, 0), MOVED) == (Swap("hbm-pim", "ddr-pim", 350),)
    assert swaps(held(60_000, 0, 40_000), MOVED) == (Swap("hbm-pim", "ssd-pim", 350),)
    assert swaps(held(100_000, 0, 0), MOVED) == ()
    # No memory gives more than it holds, and a part of a token is a token.
    assert swaps(held(99_970, 30, 0), MOVED) == (Swap("hbm-pim", "ddr-pim", 30),)
    assert swaps(held(50, 40, 11, context=101, batch=1), MOVED) == (
        Swap("hbm-pim", "ddr-pim", 0),
        Swap("ddr-pim", "ssd-pim", 1),
    )


def test_time_of_a_swap_by_hand() -> None:
    found = held(60_000, 40_000, 0)
    whole = background(PAM, LLAMA, found, MOVED, step_phases(PAM, LLAMA.attention, found))
    size = 350 * 80 * 8 * 512
    assert whole.moved_bytes == 2 * size
    # Read, written and read back; half of the links' bytes are the tokens'.
    assert whole.demands_s == {
        "hbm-pim": pytest.approx(3 * size / (40 * 665.6e9)),
        "ddr-pim": pytest.approx(3 * size / (40 * 25.6e9)),
        "pcie up": pytest.approx(2 * size / 512e9),
        "pcie down": pytest.approx(2 * size / 512e9),
        "memory-bus": pytest.approx(4 * size / 1.024e12),
    }
    assert whole.unhidden_s == whole.demands_s["ddr-pim"]


def test_time_of_a_swap_with_flash_by_hand() -> None:
    found = held(0, 60_000, 40_000)
    phases = step_phases(PAM, LLAMA.attention, found)
    size = 350 * 80 * 8 * 512
    whole = background(PAM, LLAMA, found, MOVED, phases)
    # 64 channels of 4 dies: a page of 16 KB each in 30 us, read 4 times over; 20 MB/s of programs each.
    assert whole.demands_s == {
        "ddr-pim": pytest.approx(3 * size / 1.024e12),
        "ssd-pim": pytest.approx(4 * size / (256 * 16384 / 30e-6) + size / (256 * 20e6)),
        "memory-bus": pytest.approx(4 * size / 1.024e12),
        "nvme up": pytest.approx(2 * size / 40e9),
        "nvme down": pytest.approx(2 * size / 40e9),
    }
    # What flash has kept is not sent: up only, written and read back above.
    kept = background(PAM, LLAMA, found, replace(MOVED, keeping=("ssd",)), phases)
    assert kept.moved_bytes == 2 * size
    assert kept.demands_s == {
        "ddr-pim": pytest.approx(2 * size / 1.024e12),
        "ssd-pim": pytest.approx(4 * size / (256 * 16384 / 30e-6)),
        "memory-bus": pytest.approx(2 * size / 1.024e12),
        "nvme up": pytest.approx(2 * size / 40e9),
    }


def test_time_of_a_swap_that_units_at_the_banks_check_by_hand() -> None:
    found = held(60_000, 40_000, 0)
    phases = step_phases(PAM, LLAMA.attention, found)
    whole = background(PAM, LLAMA, found, replace(MOVED, checker="banks"), phases)
    size = 350 * 80 * 8 * 512
    # Read and written over the pins, read back at 1.6 TB/s a stack and 204.8 GB/s a DIMM, and a column of 32 or 8 B
    # for the check sum of each 512 B.
    assert whole.demands_s["hbm-pim"] == pytest.approx(size / 40 * ((2 + 1 / 16) / 665.6e9 + 1 / 1.6e12))
    assert whole.demands_s["ddr-pim"] == pytest.approx(size / 40 * ((2 + 1 / 64) / 25.6e9 + 1 / 204.8e9))
    with pytest.raises(ValueError, match=r"^checker must be one of pins, banks, not 'none'$"):
        replace(MOVED, checker="none")
    for share in (0.0, 1.1):
        with pytest.raises(ValueError, match=rf"^bus_share must be above 0 and at most 1, not {share}$"):
            replace(MOVED, bus_share=share)


# What the step notices.


def test_a_step_hides_what_its_gpus_leave_time_for() -> None:
    found = step(LLAMA, 32768, 64)
    phases = step_phases(PAM, LLAMA.attention, found)
    manner = replace(MOVED, link_share=1.0)
    little = background(PAM, LLAMA, found, manner, phases)
    assert little.exposed_s == 0.0
    assert sum(little.hidden_s.values()) == pytest.approx(little.unhidden_s)
    # The DIMMs set the pace in products, all-reduces and merge alike: what of it crosses the GPUs' reads of weights is
    # the products' part of that time, in time of the stacks.
    durations = {phase.name: phase.duration_s for phase in phases}
    products = durations["products"] / sum(durations[name] for name in ("products", "all-reduce", "root"))
    assert little.hidden_s["products"] == pytest.approx(products * little.unhidden_s)
    assert little.crossed_s == pytest.approx(products * little.demands_s["hbm-pim"])
    # Twice as much takes the DIMMs longer than the GPUs' part and the merge; attention keeps them busy till its end.
    much = background(PAM, LLAMA, found, replace(manner, moved=0.014), phases)
    dimms_s = 3 * 14681 * 327_680 / 1.024e12
    (layer,) = found.layers
    assert much.unhidden_s == pytest.approx(dimms_s)
    assert much.exposed_s == pytest.approx(dimms_s - found.gpu_s - layer.count * layer.root_s)
    # Attention alone has the merge only.
    alone = background(PAM, LLAMA, found, manner, [phase for phase in phases if is_attention(phase)])
    assert alone.exposed_s == pytest.approx(alone.unhidden_s - layer.count * layer.root_s)


def test_no_step_is_shorter_than_what_moves_meanwhile() -> None:
    found = step(LLAMA, 32768, 64)
    slow = replace(MOVED, link_share=0.01)
    whole = background(PAM, LLAMA, found, slow, step_phases(PAM, LLAMA.attention, found))
    assert found.total_s + whole.exposed_s >= max(whole.demands_s.values())
    assert whole.exposed_s == pytest.approx(max(whole.demands_s.values()) - found.total_s)


def test_nothing_moves_where_all_tokens_lie_in_one_memory() -> None:
    found = step(OPT, 512, 64)
    whole = background(PAM, OPT, found, MOVED, step_phases(PAM, OPT.attention, found))
    assert (whole.swaps, whole.moved_bytes, whole.exposed_s, whole.unhidden_s) == ((), 0, 0.0, 0.0)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 0.05), st.floats(0.0, 0.05), st.sampled_from([(32768, 64), (131072, 64)]))
def test_to_move_more_never_costs_less(first: float, second: float, sizes: tuple[int, int]) -> None:
    found = step(LLAMA, *sizes)
    phases = step_phases(PAM, LLAMA.attention, found)
    less, more = (
        background(PAM, LLAMA, found, replace(MOVED, moved=moved, last=0.0), phases)
        for moved in sorted((first, second))
    )
    assert less.exposed_s <= more.exposed_s + 1e-12
    assert more.exposed_s <= max(more.unhidden_s, *more.demands_s.values(), 0.0) + 1e-12
