"""Promise: groups of GPUs that share experts read everything else each, experts once, and exchange what a ring does."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from sim.cli import main
from sim.errors import ConfigError
from sim.expert_parallel import exchanged_bytes, group_of, grouped_layer_time, grouped_weight_bytes
from sim.gpu import layer_time
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model
from sim.serving.batch import StepWork
from sim.serving.machine import tier_room_bytes
from sim.serving.parallelism import choose_parallelism
from sim.serving.parameters import ServerParams
from sim.system_config import load_system

if TYPE_CHECKING:
    from pathlib import Path

SERVER = GPU_SERVERS["gpu-only"]
MIXTURE, DENSE = load_model("mixtral-8x7b"), load_model("llama-2-7b")


@pytest.mark.parametrize("model", [MIXTURE, DENSE], ids=lambda model: model.name)
@pytest.mark.parametrize("tokens", [1, 7, 256])
def test_one_group_is_all_gpus(model: object, tokens: int) -> None:
    layer = model.layers[0]  # type: ignore[attr-defined]
    assert grouped_layer_time(SERVER, model, layer, tokens, 1) == layer_time(SERVER, model, layer, tokens)  # type: ignore[arg-type]


def test_a_dense_layer_is_that_of_a_group() -> None:
    layer = DENSE.layers[0]
    own = layer_time(group_of(SERVER, 4), DENSE, layer, 3)
    found = grouped_layer_time(SERVER, DENSE, layer, 11, 4)  # 3 tokens in the largest group
    assert found.total_s == own.total_s
    assert (found.flops, found.read_bytes) == (4 * own.flops, 4 * own.read_bytes)
    assert exchanged_bytes(SERVER, DENSE, layer, 11) == 0.0


def test_a_mixture_by_hand() -> None:
    layer, tokens = MIXTURE.layers[0], 64
    found = grouped_layer_time(SERVER, MIXTURE, layer, tokens, 8)
    expert = 3 * 4096 * 14336
    met = 8 * (1 - 0.75**64)
    attention = 4096 * (4096 + 2 * 1024) + 4096 * 4096
    # One GPU a group reads attention's weights for its 8 tokens; all together the experts for 64.
    own = attention * 2 + 8 * 2 * (4096 + 4096 + 2 * 1024 + 4096 + 4096)
    read = max(met, 8) * expert * 2 + 2 * 64 * 2 * (4096 + 14336) * 2
    rate = 3.35e12 * 0.85
    ring = SERVER.gpu.collectives.seconds(7, 7 / 8 * tokens * 4096 * 2, 450e9)
    small = 8 * 2 * (2 * 4096) / rate  # what a layer without a dense network still moves
    assert found.total_s == pytest.approx(own / rate + small + read / (8 * rate) + 2 * ring, rel=1e-3)
    assert exchanged_bytes(SERVER, MIXTURE, layer, tokens) == 2 * 7 / 8 * tokens * 4096 * 2


def test_a_step_takes_what_it_takes_the_busiest_group() -> None:
    # 64 tokens of which one of 8 groups has 50: attention's products and both rings are those of 50 in each group, the
    # experts are met by 64.
    layer = MIXTURE.layers[0]
    most, even = (grouped_layer_time(SERVER, MIXTURE, layer, tokens, 8) for tokens in (8 * 50, 64))
    found = grouped_layer_time(SERVER, MIXTURE, layer, 64, 8, 50)
    assert found.allreduce_s == most.allreduce_s > even.allreduce_s
    assert (found.flops, found.read_bytes) == (even.flops, even.read_bytes)
    assert even.matrices_s < found.matrices_s < most.matrices_s


def test_parts_of_prompts_are_dealt_whole() -> None:
    asked = StepWork(
        decoding=7,
        tier_tokens=(700,),
        tier_requests=(7,),
        prompt_requests=3,
        prompt_tokens=600,
        prompt_pairs=1000,
        prompt_context=(0,),
        decode_appended=(7,),
        prompt_appended=(600,),
        ending=7,
        swapped_tokens=0,
        prompt_parts=(100, 200, 300),
    )
    # The first group has the first and the third part, and as many as four that decode.
    assert asked.busiest_tokens(2) == (4 + 400, 400 / 600)
    assert asked.busiest_tokens(1) == (607, 1.0)
    assert asked.busiest_tokens(4) == (2 + 300, 0.5)


def test_a_gpu_reads_a_whole_expert_or_none() -> None:
    # A token meets 2 experts on 2 of 8 GPUs: each of these reads one, as if all did.
    one = grouped_layer_time(SERVER, MIXTURE, MIXTURE.layers[0], 1, 8)
    expert = 3 * 4096 * 14336 * 2
    assert one.matrices_s > expert / (3.35e12 * 0.85)


def test_weights_and_room() -> None:
    experts = 32 * 8 * 3 * 4096 * 14336
    rest = MIXTURE.parameters - experts
    assert grouped_weight_bytes(MIXTURE, 1) == MIXTURE.weight_bytes
    assert grouped_weight_bytes(MIXTURE, 8) == 2 * (experts + 8 * rest)
    params = ServerParams(token_budget=2048, max_running=64)
    (whole,) = tier_room_bytes(SERVER, MIXTURE, params, 0)
    layout = choose_parallelism(SERVER, tensor=None, pipeline=None, micro_batches=None, data=8)
    (grouped,) = tier_room_bytes(SERVER, MIXTURE, params, 0, layout)
    assert whole - grouped == pytest.approx(7 * 2 * rest, rel=0.1)


@pytest.mark.parametrize(
    ("tensor", "pipeline", "data", "message"),
    [
        (3, None, 2, "dp times tp must be the 8 GPUs of gpu-only, not dp 2, tp 3"),
        (None, None, 3, "dp times tp must be the 8 GPUs of gpu-only, not dp 3, tp not given"),
        (None, 2, 2, "dp must be 1 with a pipeline of 2 stages, not 2"),
    ],
)
def test_groups_that_cannot_be(tensor: int | None, pipeline: int | None, data: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        choose_parallelism(SERVER, tensor=tensor, pipeline=pipeline, micro_batches=None, data=data)
    with pytest.raises(ConfigError, match="dp must be 1 on pam, whose memories serve all requests, not 2"):
        choose_parallelism(load_system("pam"), tensor=None, pipeline=None, micro_batches=None, data=2)


def test_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.csv"
    lines = [f"{0.01 * number},{100 + 37 * number},{1 + number % 30}" for number in range(40)]
    trace.write_text("\n".join(["arrived_at,num_prefill_tokens,num_decode_tokens", *lines]))
    options = ("serve", "--system", "gpu-only", "--model", "mixtral-8x7b", "--trace", str(trace), "--json")
    records: list[dict[str, object]] = []
    for more in ((), ("--dp", "1"), ("--dp", "8")):
        assert main([*options, *more]) == 0
        record = json.loads(capsys.readouterr().out)
        del record["wall_s"], record["host"]
        records.append(record)
    assert json.dumps(records[0]) == json.dumps(records[1])
    assert records[2]["data_parallel"] == 8
    assert records[2]["tensor_parallel"] == 1
    assert records[2]["tokens_out"] == records[0]["tokens_out"]
    assert records[2]["energy_j"] != records[0]["energy_j"]
    assert dataclasses.asdict(choose_parallelism(SERVER, tensor=1, pipeline=None, micro_batches=None, data=8)) == {
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "micro_batches": 1,
        "data_parallel": 8,
    }
