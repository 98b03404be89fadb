"""Promise: a server's step takes what a decode step of the same loads takes, and what a hand counts for the rest."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sim.attention import attention_time, state_send_s, tier_times
from sim.calibration import factors
from sim.decode import decode_step
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model
from sim.serving.batch import StepWork
from sim.serving.gpu_model import GpuStepModel
from sim.serving.host import ServerFactors
from sim.serving.step_model import TierStepModel
from sim.serving.tier_grid import TierGrid, neighbours
from sim.step import StepRequest
from sim.system_config import load_system
from sim.tier import TierLoad, tier_rate, tier_time
from sim.tiering.migration import Migration
from sim.tiering.sparsity import LABEL_PLACES, SCORERS, Sparsity

if TYPE_CHECKING:
    from sim.system import System

PAM = load_system("pam")
LLAMA = load_model("llama-3.1-8b")
NO_HOST = ServerFactors(attention_utilisation=0.8, tile_utilisation=0.5, kernel_s=0.0)
COMPUTE = factors()["gpu_compute_utilisation"].value
MEMORY = factors()["gpu_memory_utilisation"].value


def work(
    tokens: tuple[int, ...] = (0, 0, 0),
    requests: tuple[int, ...] = (0, 0, 0),
    *,
    appended: tuple[int, ...] = (0, 0, 0),
    prompt: tuple[int, ...] = (0, 0, 0),
    context: tuple[int, ...] = (0, 0, 0),
    pairs: int = 0,
    ending: int = 0,
    swapped: int = 0,
) -> StepWork:
    return StepWork(
        decoding=sum(appended),
        tier_tokens=tokens,
        tier_requests=requests,
        prompt_requests=int(any(prompt)),
        prompt_tokens=sum(prompt),
        prompt_pairs=pairs,
        prompt_context=context,
        decode_appended=appended,
        prompt_appended=prompt,
        ending=ending,
        swapped_tokens=swapped,
    )


@pytest.mark.parametrize("model", ["llama-3.1-8b", "opt-66b", "mixtral-8x7b", "gpt3-175b"])
@pytest.mark.parametrize("batch", [1, 16, 40])
def test_equal_requests_take_a_decode_step(model: str, batch: int) -> None:
    shape = load_model(model)
    # 1,024 attended tokens are a point of the grid.
    step = decode_step(PAM, shape, StepRequest(context=1023, batch=batch))
    ours = TierStepModel(PAM, shape, NO_HOST, power_cap="bytes").step_s(
        work((batch * 1024, 0, 0), (batch, 0, 0), appended=(batch, 0, 0), ending=batch)
    )
    assert ours == pytest.approx(step.total_s, rel=1e-12)


def test_attention_over_three_tiers_is_that_of_their_loads() -> None:
    model = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes")
    asked = work((40 * 512, 20 * 256, 8 * 128), (40, 20, 8), appended=(20, 12, 8), ending=40)
    alone = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes")
    alone.step_s(work((40 * 512, 0, 0), (40, 0, 0), appended=(40, 0, 0), ending=40))
    loads = {"hbm-pim": TierLoad(40, 512), "ddr-pim": TierLoad(20, 256), "ssd-pim": TierLoad(8, 128)}
    layer = attention_time(
        PAM,
        LLAMA.attention,
        loads,
        tier_times(PAM, LLAMA.attention, loads, power_cap="bytes"),
        batch=40,
        appended={"hbm-pim": 20, "ddr-pim": 12, "ssd-pim": 8},
    )
    total = model.step_s(asked)
    assert model.attention_s == pytest.approx(32 * layer.attention_s, rel=1e-12)
    assert model.gpu_s == pytest.approx(alone.gpu_s, rel=1e-12)
    assert total == pytest.approx(model.gpu_s + model.attention_s, rel=1e-12)


def test_the_grid_is_exact_below_128_and_interpolates_above() -> None:
    assert neighbours(1.0) == (1, 2, 0.0)
    assert neighbours(127.0) == (127, 128, 0.0)
    assert neighbours(128.5) == (128, 130, 0.25)
    assert neighbours(1026.0) == (1024, 1040, 0.125)
    assert neighbours(0.25) == (1, 2, 0.0)


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("model", ["llama-3.1-70b", "opt-66b"])
def test_the_error_of_the_grid_is_bounded(index: int, model: str) -> None:
    draw = random.Random(7)
    tier, attention = PAM.tiers[index], load_model(model).attention
    grid = TierGrid(PAM, tier, attention, power_cap="bytes")
    errors: list[float] = []
    for _ in range(120):
        requests, tokens = draw.choice([1, 2, 3, 7, 16, 40, 100, 250]), int(2 ** draw.uniform(0, 17))
        state_s = state_send_s(PAM, attention, tier.name, requests)
        exact = tier_time(tier, attention, TierLoad(requests, tokens), power_cap="bytes", state_s=state_s).total_s
        errors.append(abs(grid.time(requests, tokens).total_s / exact - 1))
    assert max(errors) < 0.15
    assert sum(errors) / len(errors) < 0.005


def test_a_decode_step_on_a_gpu_by_hand() -> None:
    server = GPU_SERVERS["rtx-4090"]
    kernels = ServerFactors(attention_utilisation=0.8, tile_utilisation=0.5, kernel_s=1e-6)
    found = GpuStepModel(server, LLAMA, kernels).step_s(
        StepWork(
            decoding=10,
            tier_tokens=(12_000,),
            tier_requests=(10,),
            prompt_requests=0,
            prompt_tokens=0,
            prompt_pairs=0,
            prompt_context=(0,),
            decode_appended=(10,),
            prompt_appended=(0,),
            ending=10,
            swapped_tokens=0,
        )
    )
    # 32 layers of 4,096 x (4,096 + 2 x 1,024 + 4,096) and 3 x 4,096 x 14,336 weights, and the head; 16 bit each.
    weights = 2 * (32 * (4096 * 10240 + 3 * 4096 * 14336) + 128256 * 4096)
    keys_and_values = 12_000 * 131_072
    # Weights are read at 0.935 of the rate, as measured; 32 layers launch 11 kernels each.
    least = weights / (1.008e12 * 0.935) + keys_and_values / (1.008e12 * 0.8) + 32 * 11 * 1e-6
    # Activations of ten tokens are some 25 MB of logits and inputs more, and operations of a tenth of the reads' time
    # hide all but a hundredth of it.
    assert least < found < least * 1.01


def test_a_prompt_on_a_gpu_by_hand() -> None:
    pairs = 4096 * 4097 // 2
    found = GpuStepModel(GPU_SERVERS["rtx-pro-6000"], LLAMA, NO_HOST).step_s(
        StepWork(
            decoding=0,
            tier_tokens=(0,),
            tier_requests=(0,),
            prompt_requests=1,
            prompt_tokens=4096,
            prompt_pairs=pairs,
            prompt_context=(0,),
            decode_appended=(0,),
            prompt_appended=(4096,),
            ending=1,
            swapped_tokens=0,
        )
    )
    products = 2 * 4096 * 32 * (4096 * 10240 + 3 * 4096 * 14336)
    attention = 32 * 4 * pairs * 32 * 128
    head = 2 * 128256 * 4096 / (1.792e12 * 0.935)
    # 14 GB of weights and 13 of activations are read in 16 ms of the 136 that their products take: 0.7 % more.
    assert found == pytest.approx((products + attention) / (503.8e12 * COMPUTE) + head, rel=1e-2)


def test_scatter_fetch_and_swap_by_hand() -> None:
    model = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes")
    model.step_s(work(prompt=(0, 100, 60), context=(500, 0, 40), pairs=1, swapped=10))
    # 131,072 bytes a token. 160 tokens cross PCIe, 60 NVMe: what waits longest is the drive, at 40 GB/s.
    assert model.scatter_s == pytest.approx(0.3e-6 + 10e-6 + 60 * 131_072 / 40e9)
    assert model.fetch_s == pytest.approx(0.3e-6 + 10e-6 + 40 * 131_072 / 40e9)
    assert model.swap_s == pytest.approx(0.3e-6 + 10 * 131_072 / 512e9)
    assert model.attention_s == 0.0


def test_more_bandwidth_is_never_slower_for_one_step() -> None:
    asked = work((64 * 900, 32 * 700, 16 * 300), (64, 32, 16), appended=(32, 16, 16), prompt=(64, 32, 9), pairs=5565)
    base = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes").step_s(asked)
    for tier in PAM.tiers:
        cap = dict(tier.device.values())["cap_bytes_per_s"]
        faster = tier.with_values(cap_bytes_per_s=type(cap)(cap.number * 2, cap.unit, cap.source))
        assert TierStepModel(PAM.with_tier(faster), LLAMA, NO_HOST, power_cap="bytes").step_s(asked) <= base


def test_a_step_is_no_shorter_than_its_bytes_on_any_link() -> None:
    asked = work((64 * 900, 32 * 700, 16 * 300), (64, 32, 16), appended=(32, 16, 16), prompt=(64, 3200, 900), pairs=9)
    found = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes").step_s(asked)
    far = 131_072 * (3200 + 900 + 16 + 16)
    assert found > far / PAM.links["pcie"].bytes_per_s
    assert found > 131_072 * (900 + 16) / PAM.links["nvme"].bytes_per_s
    assert found > LLAMA.weight_bytes / (8 * PAM.gpu_bytes_per_s) * 0.93  # weights but the embedding's


def _moving(swaps: tuple[int, int]) -> StepWork:
    return replace(work((1000, 0, 0), (1, 0, 0), appended=(1, 0, 0), ending=1), swaps=swaps)


def test_moves_by_hand_hidden_behind_the_gpus_and_waited_for() -> None:
    model = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes")
    still = model.step_s(_moving((0, 0)))
    # 131,072 B a token. Between DDR and drives: 10 us of the drives' link; 256 dies read 16 KiB in 30 us and program as
    # much in 750 us. Between HBM and DDR: 0.3 us; each token read, written and read back at the DIMMs' 40 x 25.6 GB/s.
    far_s = 10e-6 + 9000 * 131_072 / 16384 / 256 * (30e-6 + 750e-6)
    near_s = 0.3e-6 + 0.1e-6 + 3 * 70_000 * 131_072 / 1.024e12
    gpu_s = model.gpu_s
    assert model.step_s(_moving((0, 9000))) == pytest.approx(still + far_s - 2 * gpu_s, rel=1e-9)
    assert (model.hidden_s, model.migration_s) == pytest.approx((2 * gpu_s, far_s - 2 * gpu_s), rel=1e-9)
    assert model.step_s(_moving((70_000, 0))) == pytest.approx(still + near_s - gpu_s, rel=1e-9)
    # A few tokens take less than the GPUs' part.
    assert model.step_s(_moving((10, 1))) == pytest.approx(still, rel=1e-12)
    # A pair between HBM and DDR is two tokens on every link between the two, the drives' link has none of it.
    carried = Migration(PAM, LLAMA).link_bytes((3, 5))
    assert carried == {
        "in-package": 6 * 131_072,
        "pcie": 6 * 131_072,
        "memory-bus": (6 + 10) * 131_072,
        "nvme": 10 * 131_072,
    }


@pytest.mark.parametrize(("place", "scorer"), [*itertools.product(LABEL_PLACES, SCORERS)])
def test_labels_are_read_before_attention(place: str, scorer: str) -> None:
    sparsity = Sparsity(name="double", label_place=place, scorer=scorer)
    # 8 channels of 2 B for each of 8 KV heads, 32 layers.
    assert sparsity.label_bytes(LLAMA.attention) == 128
    asked = replace(
        work((500, 0, 0), (4, 0, 0), appended=(4, 0, 0), ending=4),
        tier_held=(2000, 1000, 1000),
        tier_pages=(0.0, 0.0, 0.0),
    )
    model = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes", sparsity=sparsity)
    model.step_s(asked)
    held = (4000, 0, 0) if place == "nearest" else (2000, 1000, 1000)
    read = [tokens * 128 * 32 for tokens in held]
    rates = [tier_rate(tier, LLAMA.attention, power_cap="bytes") * 4096 for tier in PAM.tiers]
    if scorer == "gpu":
        # HBM by the GPUs; 32 times the drives' latency, and the slowest of two links.
        far = 32 * max(0.3e-6 + sum(read[1:]) / 32 / 512e9, 10.3e-6 + max(sum(read[1:]) / 512e9, read[2] / 40e9) / 32)
        expected = max(read[0] / (26.624e12 * MEMORY), far if place == "own" else 0.0)
    else:
        expected = max(amount / rate for amount, rate in zip(read, rates, strict=True))
    assert model.scan_s == pytest.approx(expected, rel=1e-9)


def test_scattered_tokens_take_the_pages_that_they_touch() -> None:
    model = TierStepModel(PAM, LLAMA, NO_HOST, power_cap="bytes")
    # 64 requests of 8 KV heads on 64 channels: 8 times 100 pages, in rounds of 4 dies, 30 us each, in every layer.
    asked = replace(
        work((0, 0, 64 * 128), (0, 0, 64), appended=(0, 0, 64), ending=64),
        tier_held=(0, 0, 64 * 4096),
        tier_pages=(0.0, 0.0, 64 * 100.0),
    )
    model.step_s(asked)
    pages_s = 32 * (30e-6 + (8 * 100 / 4 - 1) * 30e-6 + 4 * 16384 / 2.4e9)
    assert model.attention_s == pytest.approx(pages_s, rel=0.03)
    assert model.attention_s > pages_s


def test_more_bandwidth_is_never_slower_for_one_step_of_a_policy() -> None:
    draw = random.Random(6)
    for _ in range(20):
        held = [draw.randint(1, 200_000) for _ in range(3)]
        read = [draw.randint(1, tokens) for tokens in held]
        asked = replace(
            work(tuple(read), (9, 9, 9), appended=(9, 0, 0), ending=9),
            tier_held=tuple(held),
            tier_pages=(0.0, 0.0, read[2] * 0.5),
            swaps=(draw.randint(0, 5000), draw.randint(0, 500)),
        )
        base = _with_labels_s(PAM, asked)
        # No step is shorter than what any memory reads at its rate, or than what moves through its ports.
        for tier, tokens, touched, up, down in zip(
            PAM.tiers, read, asked.tier_pages, (0, *asked.swaps), (*asked.swaps, 0), strict=True
        ):
            device, count = tier.device, tier.count.integer
            least = tokens * 131_072 / (device.cap_bytes_per_s.number * count)
            if device.page is not None:
                heads = 32 * LLAMA.attention.num_kv_heads
                least = max(least, heads * touched * 16384 / (tier.channels * device.page.read_bytes_per_s))
            assert base >= least
            moved_s = (up + down) * 131_072 / (device.external_bytes_per_s.number * count)
            assert device.page is not None or base >= moved_s
        for tier, name in itertools.product(PAM.tiers, ("cap_bytes_per_s", "external_bytes_per_s")):
            rate = dict(tier.device.values())[name]
            faster = tier.with_values(**{name: type(rate)(rate.number * 2, rate.unit, rate.source)})
            assert _with_labels_s(PAM.with_tier(faster), asked) <= base * (1 + 1e-12)


def _with_labels_s(system: System, asked: StepWork) -> float:
    sparsity = Sparsity(name="double")
    return TierStepModel(system, LLAMA, NO_HOST, power_cap="bytes", sparsity=sparsity).step_s(asked)
