"""Placement: tokens are conserved, room is respected, and each policy does what it says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.decode import decode_step
from sim.errors import CapacityError, ConfigError
from sim.model_config import load_model
from sim.placement import PLACEMENTS, apportion, kv_room
from sim.step import StepRequest, active_context
from sim.system_config import load_system

PAM = load_system("pam")
OPT = load_model("opt-175b")
GIB = 2**30


def test_room_is_what_weights_activations_and_reserve_leave() -> None:
    # 640 GiB of stacks, 8 GiB reserve; activations by hand for one request: 8 GPUs x 4 x 12288 x 2 B of residual
    # streams, 2 x 49152 and 2 x 96 x 128 elements of 2 B, 50272 logits of 4 B
    activations = 8 * 4 * 12288 * 2 + (2 * 49152 + 2 * 96 * 128) * 2 + 50272 * 4
    rooms = kv_room(PAM, OPT, tokens=1, sampled=1)
    assert rooms == [640 * GIB - 8 * GIB - OPT.weight_bytes - activations, 1280 * GIB, 8 * 10**12]


def test_opt_175b_fills_hbm_then_ddr_then_ssd() -> None:
    step = decode_step(PAM, OPT, StepRequest(context=2048, batch=256))
    hbm, ddr, ssd = step.placement
    assert hbm.new_tokens == 256
    assert hbm.tokens + 256 == hbm.room_tokens == hbm.room_bytes // 4718592
    assert ddr.tokens == ddr.room_tokens == 1280 * GIB // 4718592 == 291271
    assert hbm.tokens + ddr.tokens + ssd.tokens == 2048 * 256
    assert 0 < ssd.tokens < ssd.room_tokens
    # 2304 GiB of KV, of which 306 GiB or so fit beside 326 GiB of weights
    assert ssd.tokens * 4718592 / GIB == pytest.approx(718.6, abs=0.5)


@pytest.mark.parametrize("policy", PLACEMENTS)
@settings(max_examples=40, deadline=None)
@given(context=st.integers(1, 60_000), batch=st.integers(1, 300))
def test_tokens_are_conserved_and_fit(policy: str, context: int, batch: int) -> None:
    try:
        step = decode_step(PAM, OPT, StepRequest(context=context, batch=batch, placement=policy))
    except CapacityError as error:
        assert error.wanted_bytes == batch * (context + 1) * OPT.kv_bytes_per_token > error.available_bytes
        return
    assert sum(tier.tokens for tier in step.placement) == context * batch
    assert sum(tier.new_tokens for tier in step.placement) == batch
    assert all(0 <= tier.tokens + tier.new_tokens <= tier.room_tokens for tier in step.placement)
    assert all((tier.tokens + tier.new_tokens) * OPT.kv_bytes_per_token <= tier.room_bytes for tier in step.placement)


def test_by_capacity_fills_every_tier_to_the_same_fraction() -> None:
    placed = decode_step(PAM, OPT, StepRequest(context=2048, batch=256, placement="by-capacity")).placement
    fractions = [tier.tokens / (tier.room_tokens - tier.new_tokens) for tier in placed]
    assert fractions == pytest.approx([fractions[0]] * 3, rel=1e-4)


def test_balanced_tiers_finish_together_where_there_is_room() -> None:
    model = load_model("llama-2-7b")
    step = decode_step(PAM, model, StepRequest(context=16384, batch=64, placement="balanced"))
    hbm, ddr, ssd = step.placement
    # 448 GiB at 64 and 8.19 TB/s: DDR gets its share, the drives' page read alone takes as long as HBM for all of it
    assert hbm.tokens > ddr.tokens > ssd.tokens
    entry = step.layers[0]
    times = {name: entry.out_s[name] + time.total_s + entry.gather_s[name] for name, time in entry.tiers.items()}
    assert times["ddr-pim"] == pytest.approx(times["hbm-pim"], rel=0.15)
    top_down = decode_step(PAM, model, StepRequest(context=16384, batch=64))
    assert step.total_s < top_down.total_s


def test_what_does_not_fit_says_bytes_wanted_and_had() -> None:
    with pytest.raises(CapacityError) as caught:
        decode_step(PAM, OPT, StepRequest(context=8192, batch=256))
    wanted = 256 * 8193 * 4718592
    assert caught.value.wanted_bytes == wanted
    assert str(caught.value).startswith(
        f"KV cache of 256 requests of 8192 tokens and the step's own must fit in {caught.value.available_bytes} bytes, "
        f"not {wanted} bytes (hbm-pim "
    )


def test_weights_that_do_not_fit() -> None:
    # 405 B parameters of 16 bit are 756 GiB; there is no preset of that size, so the shape is made larger here.
    import dataclasses

    huge = dataclasses.replace(OPT, layers=OPT.layers * 2)
    with pytest.raises(
        CapacityError, match="weights of opt-175b, activations and reserve must fit in 687194767360 bytes"
    ):
        decode_step(PAM, huge, StepRequest(context=1, batch=1))


@given(total=st.integers(0, 10**6), weights=st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_apportion_is_exact_and_within_the_weights(total: int, weights: list[int]) -> None:
    total = min(total, sum(weights))
    shares = apportion(total, weights)
    assert sum(shares) == total
    assert all(0 <= share <= weight for share, weight in zip(shares, weights, strict=True))
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - total * weight / max(1, sum(weights))) < 1


def test_keep_rounds_up_to_tokens() -> None:
    assert [active_context(n, 0.125) for n in (1, 8, 9, 16, 17)] == [1, 1, 2, 2, 3]
    assert active_context(30, 0.1) == 3
    assert active_context(7, 1.0) == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context": 0}, "context must be an integer of at least 1, not 0"),
        ({"batch": -1}, "batch must be an integer of at least 1, not -1"),
        ({"batch": 1.5}, "batch must be an integer of at least 1, not 1.5"),
        ({"keep": 0.0}, "keep must be above 0 and at most 1, not 0.0"),
        ({"keep": float("nan")}, "keep must be above 0 and at most 1, not nan"),
        ({"power_cap": "watts"}, "power cap must be a known name, not 'watts'; "),
    ],
)
def test_requests_out_of_range(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StepRequest(**({"context": 8, "batch": 1} | changes))  # pyright: ignore[reportArgumentType]
    assert str(caught.value).startswith(message)


def test_unknown_placement() -> None:
    with pytest.raises(ConfigError, match=r"placement must be a known name, not 'topdown'; nearest: top-down"):
        decode_step(PAM, OPT, StepRequest(context=8, batch=1, placement="topdown"))
