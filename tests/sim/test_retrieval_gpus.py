"""Promise: the GPUs' part, and attention on GPUs alone, take what is counted by hand."""

from __future__ import annotations

import pytest

from sim.calibration import factors
from sim.gpu import roofline_s
from sim.model_config import parse_model
from sim.retrieval.gpu_layers import gpu_layer, weight_bytes
from sim.retrieval.presets import load_retrieval_system, retrieval_names
from sim.retrieval.record import retrieval_record
from sim.retrieval.request import RetrievalRequest
from sim.retrieval.step import retrieval_step
from tests.sim.test_retrieval_step import ALONE, DEEPSEEK, KARAT, LLAMA, MILLION, MINIMAX, OFFLOAD, stages


def test_experts_and_exchanges_of_a_layer() -> None:
    layer = DEEPSEEK.layers[-1]
    found = gpu_layer(KARAT, DEEPSEEK, layer, 8)
    # 8 requests touch 256 (1 - (248/256)^8) = 57.3 experts of 3 x 7,168 x 2,048 bytes; 32 GPUs read 1.79 each.
    distinct = 256 * (1 - (248 / 256) ** 8)
    expert = 3 * 7168 * 2048
    traffic = distinct * expert + 64 * 2 * (7168 + 2048) * 2
    shared = roofline_s(KARAT.group, 0.0, expert + 7168 * 256 + 2 * 2 * (7168 + 2048) * 2)
    assert found.feed_forward_s == pytest.approx(shared + traffic / (32 * 4.8e12 * 0.85))
    # Two requests a group of 8 GPUs: one token each at most, to 32 (1 - (31/32)^8) GPUs, 31 of 32 of them others.
    others = 32 * (1 - (31 / 32) ** 8) * 31 / 32
    far = others * 7168 * 2 * 24 / 31
    assert found.alltoall_s == pytest.approx(2 * (10e-6 + far / 50e9))
    # Two all-reduces of two tokens over NVLink.
    assert found.allreduce_s == pytest.approx(2 * (15e-6 + 2 * 7 / 8 * 2 * 7168 * 2 / 87.7e9))
    assert found.norms_s == pytest.approx(2 * 2 * 2 * 7168 * 2 / (4.8e12 * 0.85))


def test_a_gpu_reads_a_whole_expert_or_none() -> None:
    one = gpu_layer(KARAT, DEEPSEEK, DEEPSEEK.layers[-1], 1)
    # One token meets 8 experts on 8 of 32 GPUs: each of these reads one, as if all did.
    expert = 3 * 7168 * 2048
    assert one.feed_forward_s >= expert / (4.8e12 * 0.85)


def test_index_projections_and_replicas_are_counted() -> None:
    # Every group has everything but the experts; index: 64 x 128 from the query's latent, a key, a weight a head.
    index = 61 * (1536 * 64 * 128 + 7168 * 128 + 7168 * 64)
    experts = 58 * 256 * 3 * 7168 * 2048
    assert weight_bytes(KARAT, DEEPSEEK) == experts + 4 * (DEEPSEEK.parameters - experts + index)
    # MiniMax weighs no heads: 4 queries of 128 and a key from the residual stream.
    index = 57 * 6144 * (4 + 1) * 128
    experts = 57 * 128 * 3 * 6144 * 3072
    assert weight_bytes(KARAT, MINIMAX) == 2 * (experts + 4 * (MINIMAX.parameters - experts + index))


def test_gpus_alone_read_and_merge() -> None:
    found = stages(ALONE, DEEPSEEK)
    memory = 8 * 4.8e12 * factors()["gpu_attention_utilisation"].value
    assert found["score"].seconds == pytest.approx(1_000_001 * 132 / memory)
    assert found["select"].seconds == pytest.approx(1_000_001 * 8 / memory)
    assert found["gather"].seconds == pytest.approx(2048 * 1152 / memory)
    # One latent for 8 GPUs: 128 states of 514 fp32 numbers are summed.
    assert found["merge"].seconds == pytest.approx(15e-6 + 2 * 7 / 8 * 128 * 514 * 4 / 87.7e9)
    # Eight KV heads need no merge.
    assert "merge" not in stages(ALONE, LLAMA)
    assert "index query out" not in found


def test_offloaded_kv_comes_over_the_hosts_links() -> None:
    found = stages(OFFLOAD, DEEPSEEK)
    assert found["gather"].seconds == pytest.approx(2 * 0.3e-6 + 2048 * 1152 / (8 * 64e9))
    assert found["gather"].bound == "link"
    memories = {memory.name: memory for memory in retrieval_step(OFFLOAD, DEEPSEEK, MILLION).memories}
    assert memories["gpu"].kv_bytes == 0
    assert memories["gpu"].index_bytes == 8 * 1_000_001 * 61 * 132
    assert memories["host"].kv_bytes == 8 * 1_000_001 * 70272
    assert memories["host"].room_bytes == 16 * 10**12


def test_every_server_of_gpus_decodes() -> None:
    tiny = parse_model(
        '{"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,'
        ' "intermediate_size": 512, "vocab_size": 1000}',
        where="here",
        name="tiny",
    )
    for name in retrieval_names():
        record = retrieval_record(load_retrieval_system(name), tiny, RetrievalRequest(context=5, batch=1))
        assert record["active_tokens"] == 6
        assert record["step_us"] > 0
