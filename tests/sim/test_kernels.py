"""Promise: kernels are counted, queries beside prompts pay for whole tiles, products take what was measured of them."""

from __future__ import annotations

import pytest

from sim.gpu import roofline_s
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model
from sim.serving.batch import StepWork
from sim.serving.gpu_model import GpuStepModel
from sim.serving.host import ServerFactors
from sim.serving.kernels import layer_kernels, tile_flops

LLAMA = load_model("llama-3.1-8b")
NO_HOST = ServerFactors(attention_utilisation=0.8, tile_utilisation=0.5, kernel_s=0.0)


def test_queries_beside_prompts_fill_tiles_of_their_own() -> None:
    # 100 requests of 1,000 tokens: every one of 32 query heads multiplies 64 queries of 128 elements with each key and
    # value. Alone their keys and values are read; beside a prompt tiles take longer.
    server = GPU_SERVERS["rtx-4090"]
    assert tile_flops(LLAMA.attention, 100_000) == 64 * 100_000 * 32 * 2 * (128 + 128)
    alone, beside = GpuStepModel(server, LLAMA, NO_HOST), GpuStepModel(server, LLAMA, NO_HOST)
    asked = {"decoding": 100, "tier_requests": (100,), "decode_appended": (100,), "ending": 100, "swapped_tokens": 0}
    for model, prompt in ((alone, 0), (beside, 1)):
        model.step_s(
            StepWork(
                tier_tokens=(100_000,),
                prompt_requests=prompt,
                prompt_tokens=prompt,
                prompt_pairs=prompt,
                prompt_context=(0,),
                prompt_appended=(prompt,),
                **asked,
            )
        )
    assert alone.attention_s == pytest.approx(100_000 * 131_072 / (1.008e12 * 0.8))
    assert beside.attention_s == pytest.approx(32 * 64 * 100_000 * 32 * 512 / (165.2e12 * 0.5))


def test_kernels_of_a_layer() -> None:
    # Mixtral has no shared experts, DeepSeek's sparse layers have; its first three are dense.
    assert layer_kernels(LLAMA.layers[0]) == 11
    assert layer_kernels(load_model("mixtral-8x7b").layers[0]) == 16
    deepseek = load_model("deepseek-v3.2")
    assert [layer_kernels(deepseek.layers[index]) for index in (0, 3)] == [11, 19]
    assert tile_flops(deepseek.attention, 1000) == 0.0


@pytest.mark.parametrize(
    ("name", "tokens", "measured_us", "limit"),
    [
        ("rtx-pro-6000-server", 1, 159.04, 0.02),
        ("rtx-pro-6000-server", 64, 171.019, 0.05),
        ("rtx-pro-6000-server", 128, 180.726, 0.05),
        ("rtx-pro-6000-server", 256, 210.625, 0.12),
        ("rtx-pro-6000-server", 512, 349.548, 0.05),
        ("rtx-4090", 1, 247.292, 0.02),
        ("rtx-4090", 48, 277.765, 0.05),
        ("rtx-4090", 64, 279.041, 0.05),
        ("rtx-4090", 128, 314.081, 0.12),
    ],
)
def test_a_product_is_near_what_was_measured(name: str, tokens: int, measured_us: float, limit: float) -> None:
    # Up and gate of Llama-3.1-8B, from dense.csv of casys-kaist/LLMServingSim: 4,096 x 28,672 weights.
    weights, activations = 4096 * 28672, tokens * (4096 + 28672)
    found = roofline_s(GPU_SERVERS[name], 2.0 * tokens * weights, 2 * (weights + activations))
    assert found == pytest.approx(measured_us * 1e-6, rel=limit)
