"""Time of one tier: hand-counted cases, and the directions in which it may move."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.presets import Value
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import DeviceTable
from hw.timing.tables import TablePoint
from sim import channel_cycles
from sim.channel_cycles import why_not_measured
from sim.model_config import load_model
from sim.system_config import load_system
from sim.tier import IDLE, POWER_CAPS, TierLoad, tier_rate, tier_time

PAM = load_system("pam")
HBM, DDR, SSD = PAM.tiers
FORMULA = dataclasses.replace(HBM, device=dataclasses.replace(HBM.device, channel_preset=None))  # its table left out
LLAMA2 = load_model("llama-2-7b").attention  # 32 heads of 128, none shared
LLAMA3 = load_model("llama-3.1-70b").attention  # 64 query heads on 8 KV heads
US = 1e-6


def test_hbm_by_hand() -> None:
    # 20 requests x 32 heads = 640 pairs on 640 channels, 1024 tokens each, so 16 on each of 64 banks
    time = tier_time(FORMULA, LLAMA2, TierLoad(20, 1024), power_cap="bytes")
    assert time.spread == 1
    # a stack reads 16 pairs x 1024 tokens x 512 B at 1.6 TB/s
    assert time.bounds_s["cap"] == pytest.approx(16 * 1024 * 512 / 1.6e12)
    # a bank reads 16 tokens x 16 columns of 32 B, one each 4 x 0.769 ns
    assert time.bounds_s["column"] == pytest.approx(16 * 16 * 4 * 0.769e-9)
    # one tile of 16 tokens: 2 x 16 x 8 beats; its first V beat waits 22 cycles for the first exponential
    assert time.unit_cycles == 256 + 22
    assert time.bounds_s["unit"] == pytest.approx(278 / 666e6)
    # 16 groups' states of 520 B on a channel's share of 665.6 GB/s outlast 16 x 8 merge cycles on 8 units
    assert time.bounds_s["reduction"] == pytest.approx(16 * 520 / 41.6e9)
    assert time.bound == "cap"
    assert time.stream_s == pytest.approx(5.24288 * US)
    # tRCD + tCL
    assert time.access_s == pytest.approx(38 * 0.769e-9)
    # drain 4 + 3 + 8; 4 states merged in 8 + 32 + 3, 16 states in 8 + 128 + 3 cycles; the wire before the latter
    assert time.exposed_s == pytest.approx((15 + 43 + 139) / 666e6 + 200e-9)
    assert time.read_bytes == 640 * 1024 * 512
    assert time.states == 1


def test_measured_hbm_by_hand() -> None:
    # The same work: 64 tokens in each of 16 bank groups, 4 columns of all banks a token
    time = tier_time(HBM, LLAMA2, TierLoad(20, 1024), power_cap="bytes")
    tck_s = 0.769e-9
    assert time.channel is not None
    # command and query: 12 bursts of 4 cycles, a row's opening beside them
    assert time.access_s == pytest.approx(58 * tck_s)
    # 256 columns, of which 32 are saved up, one in 20.48 ns; refresh is made good under the cap
    assert time.stream_s == pytest.approx((256 - 32) * 20.48e-9, abs=2 * tck_s)
    assert time.bounds_s["cap"] == pytest.approx(16 * 1024 * 512 / 1.6e12)
    # 4 tiles of 16 tokens, a row of keys and one of values each: opening, 31 spaced reads, closing
    assert time.bounds_s["rows"] == pytest.approx(8 * (19 + 31 * 6 + 8 + 19) * tck_s)
    assert time.bound == "cap"
    # The last V column is summed up and joined on the way out; then 16 states go to the logic die, as without a table.
    assert 50 * tck_s < time.channel.tail_s < 58 * tck_s
    assert time.exposed_s == pytest.approx(time.channel.tail_s + 139 / 666e6 + 200e-9)
    assert time.read_bytes == 640 * 1024 * 512


def test_query_heads_that_share_keys_are_passes_over_them() -> None:
    # 80 requests x 8 KV heads = 640 pairs, 8 query heads each: 8 operations a channel
    time = tier_time(HBM, LLAMA3, TierLoad(80, 1024), power_cap="flops")
    assert time.channel is not None
    assert time.stream_s == pytest.approx((8 * 256 - 32) * 20.48e-9, abs=3 * 0.769e-9)
    assert time.read_bytes == 8 * 640 * 1024 * 512
    # A limit of bytes that is paid once for all 8 wants units that hold 8 queries, which those of pam do not.
    assert tier_time(HBM, LLAMA3, TierLoad(80, 1024), power_cap="bytes").channel is None


def test_query_heads_that_share_a_column_read_are_one_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of units with room for 8 queries, made up: 302 cycles to the first column, then 26.6 a column."""
    params = DEVICE_PRESETS["pam-wide"].channel
    period = params.column_period
    assert period is not None
    points = [
        TablePoint(
            head_dim=128,
            walk_tokens=tokens,
            operations=operations,
            queries=8,
            first_column=302,
            last_column=302 + max(0, math.ceil((16 * tokens * operations - 32) * period)),
            last_state=302 + max(0, math.ceil((16 * tokens * operations - 32) * period)) + 567,
        )
        for tokens in (*range(1, 13), *range(29, 33))
        for operations in (1, 2, 4)
    ]
    table = DeviceTable(
        name="pam-wide",
        preset="hbm3-5200-pam",
        clock_hz=1e9 / 0.769,
        points=tuple(points),
        held_out=(),
        verilog_sha256="ab" * 32,
        seed=0,
        versions={},
    )
    monkeypatch.setattr(channel_cycles, "load_table", lambda _: table)
    monkeypatch.setattr(channel_cycles, "_channel_time", vars(channel_cycles)["_channel_time"].__wrapped__)
    wide = dataclasses.replace(HBM, device=dataclasses.replace(HBM.device, channel_preset="pam-wide"))
    # 80 requests x 8 KV heads = 640 pairs, one a channel: 16 tokens a bank, 16 columns each
    assert why_not_measured(wide.device, LLAMA3, power_cap="bytes", fraction=1.0) == ""
    time = tier_time(wide, LLAMA3, TierLoad(80, 1024), power_cap="bytes")
    assert time.channel is not None
    assert time.stream_s == pytest.approx((256 - 32) * 20.48e-9, abs=3 * 0.769e-9)
    assert time.channel.tail_s == pytest.approx(567 * 0.769e-9)
    assert time.read_bytes == 640 * 1024 * 512
    why = why_not_measured(wide.device, LLAMA3, power_cap="flops", fraction=1.0)
    assert why == "operations of 1 query heads are not in the table of pam-wide"


@pytest.mark.parametrize(
    ("changes", "load", "message"),
    [
        ({"head_dim": 256, "v_head_dim": 256}, TierLoad(3, 40), "head dimension 256 is not in the table of pam"),
        ({}, TierLoad(3, 40, 0.5), "selected tokens lie scattered, measured are whole rows"),
        (
            {"num_kv_heads": 8},
            TierLoad(3, 40),
            "operations of 4 query heads are not in the table of pam",
        ),
    ],
)
def test_where_no_table_speaks_the_formula_does(changes: dict[str, int], load: TierLoad, message: str) -> None:
    attention = dataclasses.replace(LLAMA2, **changes)
    assert why_not_measured(HBM.device, attention, power_cap="bytes", fraction=load.fraction) == message
    assert tier_time(HBM, attention, load, power_cap="bytes") == tier_time(FORMULA, attention, load, power_cap="bytes")


def test_a_memory_with_other_numbers_is_not_the_one_measured() -> None:
    assert not why_not_measured(HBM.device, LLAMA2, power_cap="bytes", fraction=1.0)
    for key, value in dict(HBM.device.values()).items():
        if key.startswith("timing.") or key in ("channels", "cap_bytes_per_s", "unit_clock_hz"):
            changed = HBM.device.with_values({key: Value(value.number * 2, value.unit, "test")})
            why = why_not_measured(changed, LLAMA2, power_cap="bytes", fraction=1.0)
            assert why.startswith(f"its RTL was made for {key} ")
    for tier in (DDR, SSD, FORMULA):
        assert why_not_measured(tier.device, LLAMA2, power_cap="bytes", fraction=1.0) == "no channel of it is in RTL"
    # What was measured is what the memory's preset says.
    preset, device = DEVICE_PRESETS["pam"], HBM.device
    organisation = preset.channel.organisation
    assert device.channel_preset == "pam"
    assert preset.channels == device.channels.integer
    assert organisation.banks_per_channel == device.units_per_channel.integer
    assert organisation.banks == device.units_per_group.integer
    assert preset.cap_bytes_per_s == device.cap_bytes_per_s.number == device.cap_flops_per_s.number
    assert preset.channel.timing.clock_ns * 1e-9 == device.timing["tCK"].number


def test_ddr_by_hand() -> None:
    # 1 request x 32 heads on 40 DIMMs: one pair a DIMM; 1280 tokens, 10 on each of 128 banks
    time = tier_time(DDR, LLAMA2, TierLoad(1, 1280), power_cap="bytes")
    assert time.spread == 1
    # 64 columns of 8 B a token, one each 8 x 0.625 ns; the cap of 204.8 GB/s is the same rate
    assert time.bounds_s["column"] == pytest.approx(10 * 64 * 5e-9)
    assert time.bounds_s["cap"] == pytest.approx(1280 * 512 / 204.8e9)
    # 4 lanes: 32 beats a vector, 2 x 10 x 32 cycles and the wait for the exponentials of a single tile
    assert time.unit_cycles == 640 + 7 + 14 - 1
    assert time.access_s == pytest.approx(48 * 0.625e-9)
    # 32 groups' states on the DIMM's pins
    assert time.bounds_s["reduction"] == pytest.approx(32 * 520 / 25.6e9)


def test_ssd_by_hand() -> None:
    # 2 requests x 32 heads = 64 pairs on 64 channels; 4096 tokens x 512 B are 128 pages of 16 KB, 32 rounds of 4 dies
    time = tier_time(SSD, LLAMA2, TierLoad(2, 4096), power_cap="bytes")
    assert time.spread == 1
    page_s = 16384 / 2.4e9
    assert time.access_s == pytest.approx(30 * US)
    assert time.bounds_s["page"] == pytest.approx(31 * 30 * US + 4 * page_s)
    assert time.bound == "page"
    assert time.read_bytes == 64 * 128 * 16384
    # 4096 tokens on 8 units; one reduction unit a channel merges 8 states
    assert time.bounds_s["unit"] == pytest.approx(time.unit_cycles / 1e9)
    assert time.exposed_s == pytest.approx((15 + 8 + 64 + 3) / 1e9)


def test_one_token_still_costs_a_page() -> None:
    time = tier_time(SSD, LLAMA2, TierLoad(1, 1), power_cap="bytes")
    assert time.access_s + time.stream_s == pytest.approx(30 * US + 16384 / 2.4e9)
    assert time.read_bytes == 32 * 16384


def test_scattered_tokens_touch_more_pages_than_they_fill() -> None:
    # 512 of 4096 tokens: 1 - (7/8)^32 = 98.6 % of 128 pages, where 16 would hold them
    scattered = tier_time(SSD, LLAMA2, TierLoad(2, 512, 0.125), power_cap="bytes")
    assert scattered.read_bytes == 64 * 127 * 16384
    assert tier_time(SSD, LLAMA2, TierLoad(2, 512), power_cap="bytes").read_bytes == 64 * 16 * 16384


def test_shared_heads_pass_over_a_column_g_times() -> None:
    # 80 requests x 8 KV heads = 640 pairs, 8 query heads each
    time = tier_time(FORMULA, LLAMA3, TierLoad(80, 1024), power_cap="bytes")
    assert time.unit_cycles == 8 * 278
    assert time.bounds_s["cap"] == pytest.approx(16 * 1024 * 512 / 1.6e12)
    # 2 FLOP an element and query head, 2 bytes an element: 8 FLOP a byte
    flops = tier_time(FORMULA, LLAMA3, TierLoad(80, 1024), power_cap="flops")
    assert flops.bounds_s["cap"] == pytest.approx(8 * 16 * 1024 * 512 / 1.6e12)


def test_caps_agree_without_shared_heads() -> None:
    times = [tier_time(HBM, LLAMA2, TierLoad(20, 1024), power_cap=kind) for kind in POWER_CAPS]
    assert times[0] == times[1]


def test_few_pairs_are_spread_over_channels() -> None:
    time = tier_time(HBM, LLAMA2, TierLoad(1, 65536), power_cap="bytes")
    assert time.spread > 1
    # 32 pairs of 32 MiB over 40 stacks: no faster than all stacks together, but for the 32 columns saved up before
    assert time.stream_s >= 32 * 65536 * 512 / (40 * 1.6e12) - 32 * 20.48e-9


def test_nothing_to_do_takes_no_time() -> None:
    assert tier_time(HBM, LLAMA2, TierLoad(0, 0), power_cap="bytes") == IDLE
    assert IDLE.total_s == 0.0


@pytest.mark.parametrize("tier", [HBM, DDR, SSD], ids=lambda tier: tier.name)
@settings(max_examples=60, deadline=None)
@given(requests=st.integers(1, 500), tokens=st.integers(1, 100_000), more=st.integers(0, 200))
def test_more_work_is_never_faster_and_no_bound_is_beaten(tier, requests: int, tokens: int, more: int) -> None:
    time = tier_time(tier, LLAMA3, TierLoad(requests, tokens), power_cap="bytes")
    least = time.total_s * (1 - 1e-12)  # sums of the same parts in another order
    assert tier_time(tier, LLAMA3, TierLoad(requests + more, tokens), power_cap="bytes").total_s >= least
    assert tier_time(tier, LLAMA3, TierLoad(requests, tokens + more), power_cap="bytes").total_s >= least
    useful = requests * tokens * LLAMA3.kv_bytes
    assert time.total_s >= useful / (tier.count.integer * tier.device.cap_bytes_per_s.number)
    assert time.total_s * tier_rate(tier, LLAMA3, power_cap="bytes") >= requests * tokens * 0.999
    assert time.read_bytes >= useful


@pytest.mark.parametrize(
    ("tier", "key"),
    [
        (HBM, "cap_bytes_per_s"),
        (HBM, "unit_clock_hz"),
        (HBM, "merge_clock_hz"),
        (HBM, "external_bytes_per_s"),
        (DDR, "unit_clock_hz"),
        (DDR, "external_bytes_per_s"),
        (SSD, "page.bus_bytes_per_s"),
        (SSD, "cap_bytes_per_s"),
    ],
)
@pytest.mark.parametrize("load", [TierLoad(1, 100), TierLoad(7, 5000), TierLoad(100, 40_000)])
def test_more_bandwidth_is_never_slower(tier, key: str, load: TierLoad) -> None:
    old = dict(tier.device.values())[key]
    times = []
    for factor in (0.25, 0.5, 1.0, 2.0, 8.0):
        device = tier.device.with_values({key: Value(old.number * factor, old.unit, "test")})
        times.append(tier_time(dataclasses.replace(tier, device=device), LLAMA3, load, power_cap="bytes").total_s)
    assert times == sorted(times, reverse=True)


def test_more_tokens_than_one_command_can_say() -> None:
    one = dataclasses.replace(LLAMA2, num_heads=1, num_kv_heads=1, head_dim=32, v_head_dim=32)
    tokens = 900_000_000
    time = tier_time(SSD, one, TierLoad(1, tokens), power_cap="bytes")
    assert time.total_s > tokens * 128 / (64 * 4 * 16384 / 30e-6)
    alone = dataclasses.replace(SSD, count=Value(1, "1", "test")).with_values(channels=Value(1, "1", "test"))
    # 112,500,000 tokens a unit are 6 operations of 2^24 - 1 tokens and a rest, 4 cycles a token and a wait each
    assert tier_time(alone, one, TierLoad(1, tokens), power_cap="bytes").unit_cycles == pytest.approx(
        4 * tokens / 8, rel=1e-4
    )


def test_every_head_dim_and_ratio_has_a_time() -> None:
    for head_dim in (8, 40, 64, 80, 96, 128, 256):
        for heads in (1, 2, 8, 16):
            shape = dataclasses.replace(
                LLAMA2, num_heads=16, num_kv_heads=heads, head_dim=head_dim, v_head_dim=head_dim
            )
            for tier in PAM.tiers:
                assert tier_time(tier, shape, TierLoad(3, 33), power_cap="bytes").total_s > 0
