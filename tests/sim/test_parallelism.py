"""Promise: GPUs that share a model keep and read all of it, and a pipeline takes what its stages take, beat by beat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sim.calibration import factors
from sim.cli import main
from sim.collectives import send_s
from sim.errors import CapacityError, ConfigError
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model
from sim.serving.batch import StepWork
from sim.serving.host import ServerFactors
from sim.serving.machine import step_model, tier_room_bytes
from sim.serving.parallelism import Parallelism, choose_parallelism, kv_copies, stage_machine, stage_models
from sim.serving.parameters import ServerParams
from sim.serving.pipeline import PipelineStepModel, micro_batch
from sim.system_config import load_system

if TYPE_CHECKING:
    from pathlib import Path

PAM, SERVER = load_system("pam"), GPU_SERVERS["gpu-only"]
NO_HOST = ServerFactors(attention_utilisation=0.8, tile_utilisation=0.5, kernel_s=0.0)


def work(decoding: int = 0, prompt: int = 0) -> StepWork:
    return StepWork(
        decoding=decoding,
        tier_tokens=(decoding * 1000,),
        tier_requests=(decoding,),
        prompt_requests=int(prompt > 0),
        prompt_tokens=prompt,
        prompt_pairs=prompt * (prompt + 1) // 2,
        prompt_context=(0,),
        decode_appended=(decoding,),
        prompt_appended=(prompt,),
        ending=decoding + int(prompt > 0),
        swapped_tokens=0,
    )


@pytest.mark.parametrize(
    ("tensor", "pipeline", "micro", "found"),
    [
        (None, None, None, (8, 1, 1)),
        (8, None, None, (8, 1, 1)),
        (4, None, None, (4, 2, 2)),
        (None, 4, None, (2, 4, 4)),
        (2, 4, 8, (2, 4, 8)),
        (1, 8, 1, (1, 8, 1)),
    ],
)
def test_what_is_not_given_follows(
    tensor: int | None, pipeline: int | None, micro: int | None, found: tuple[int, int, int]
) -> None:
    assert choose_parallelism(PAM, tensor=tensor, pipeline=pipeline, micro_batches=micro) == Parallelism(
        tensor_parallel=found[0], pipeline_parallel=found[1], micro_batches=found[2]
    )


@pytest.mark.parametrize(("tensor", "pipeline", "micro"), [(3, None, None), (4, 4, None), (None, 3, None), (16, 1, 1)])
def test_all_gpus_work(tensor: int | None, pipeline: int | None, micro: int | None) -> None:
    with pytest.raises(ConfigError, match="tp times pp must be the 8 GPUs of pam, not tp"):
        choose_parallelism(PAM, tensor=tensor, pipeline=pipeline, micro_batches=micro)


def test_micro_batches_need_a_pipeline() -> None:
    with pytest.raises(ConfigError, match="micro-batches must be 1 without a pipeline, not 2"):
        choose_parallelism(PAM, tensor=8, pipeline=1, micro_batches=2)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "opt-66b", "qwen3-30b-a3b", "deepseek-v3.2"])
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_stages_have_every_layer_and_weight_once(name: str, stages: int) -> None:
    model = load_model(name)
    parts = stage_models(model, stages)
    assert tuple(layer for part in parts for layer in part.layers) == model.layers
    assert max(len(part.layers) for part in parts) - min(len(part.layers) for part in parts) <= 1
    shared = model.vocab * model.hidden if model.tied and stages > 1 else 0
    assert sum(part.parameters for part in parts) == model.parameters + shared
    assert sum(part.kv_bytes_per_token for part in parts) == model.kv_bytes_per_token


def test_more_stages_than_layers() -> None:
    with pytest.raises(ConfigError, match="pp must be at most the 32 layers of llama-3"):
        stage_models(load_model("llama-3.1-8b"), 33)


def test_a_stage_has_its_share_of_the_machine() -> None:
    stage = stage_machine(PAM, 2)
    assert stage.gpu.count.integer == 4
    counts = {tier.name: tier.count.integer for tier in stage.tiers}  # type: ignore[union-attr]
    assert counts == {"hbm-pim": 20, "ddr-pim": 20, "ssd-pim": 4}
    rates = {link.name: link.bytes_per_s for tier in stage.tiers for link in tier.path}  # type: ignore[union-attr]
    assert rates == {name: link.bytes_per_s / 2 for name, link in PAM.links.items()}
    assert stage_machine(PAM, 1) is PAM
    assert stage_machine(SERVER, 4).gpu.count.integer == 2
    with pytest.raises(ConfigError, match="pp must divide the 4 devices of ddr-pim, not 8"):
        stage_machine(load_system("pam-seed"), 8)


@pytest.mark.parametrize(
    ("name", "gpus", "copies"),
    [
        ("llama-3.1-70b", 1, 1.0),
        ("llama-3.1-70b", 8, 1.0),
        ("llama-3.1-70b", 16, 2.0),
        ("llama-3.1-70b", 6, 1.5),
        ("qwen3-30b-a3b", 8, 2.0),
        ("deepseek-v3.2", 8, 8.0),
    ],
)
def test_copies_are_the_heads_that_gpus_hold(name: str, gpus: int, copies: float) -> None:
    attention = load_model(name).attention
    held = [-(-attention.stored_heads // gpus)] * gpus  # heads of the busiest, of each
    assert kv_copies(attention, gpus) == copies == sum(held) / attention.stored_heads


def test_room_is_that_of_the_tightest_stage() -> None:
    model, params = load_model("llama-3.1-70b"), ServerParams(token_budget=256, max_running=16)
    whole = tier_room_bytes(PAM, model, params, 0)
    split = tier_room_bytes(PAM, model, params, 0, choose_parallelism(PAM, tensor=4, pipeline=2, micro_batches=None))
    # DDR and drives hold nothing else; of the GPUs' memory the halves have equal weights but for rounding.
    assert split[1:] == [room // 163_840 // 2 * 2 * 163_840 for room in whole[1:]]
    assert split[0] == pytest.approx(whole[0], rel=1e-3)
    # Qwen3's 4 KV heads on 8 GPUs are kept twice, in two stages of 4 once.
    qwen = load_model("qwen3-30b-a3b")
    (eight,) = tier_room_bytes(SERVER, qwen, params, 0)
    pipeline = choose_parallelism(SERVER, tensor=4, pipeline=2, micro_batches=None)
    (four,) = tier_room_bytes(SERVER, qwen, params, 0, pipeline)
    assert four == pytest.approx(2 * eight, rel=0.01)
    huge = load_model("deepseek-v3.2")
    with pytest.raises(CapacityError, match=r"must fit in \d+ bytes, not \d+ bytes \(31 layers on 4 GPUs\)"):
        tier_room_bytes(SERVER, huge, params, 0, pipeline)


class Fixed:
    """A stage that takes a time for each token."""

    def __init__(self, token_s: float) -> None:
        self.token_s, self.spent_s = token_s, 0.0

    def step_s(self, work: StepWork) -> float:
        self.spent_s += self.token_s * work.tokens
        return self.token_s * work.tokens

    def parts_s(self) -> dict[str, float]:
        return {"stage": self.spent_s}


def walked_s(stages: int, micro: int, beat_s: float, steps: int = 40) -> float:
    """Return the mean time of a step: each micro-batch waits for its stage and for its own token of the step before."""
    free, done = [0.0] * stages, [0.0] * micro
    ends: list[float] = []
    for _ in range(steps):
        for batch in range(micro):
            now = done[batch]
            for stage in range(stages):
                now = max(now, free[stage]) + beat_s
                free[stage] = now
            done[batch] = now
        ends.append(max(done))
    return (ends[-1] - ends[9]) / (steps - 10)


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("micro", [1, 2, 3, 4, 8])
def test_a_step_is_that_of_a_pipeline_walked_beat_by_beat(stages: int, micro: int) -> None:
    layout = Parallelism(tensor_parallel=2, pipeline_parallel=stages, micro_batches=micro)
    # Different objects that are alike, the last a little slower than all before.
    fixed = [Fixed(1e-5 + 1e-7 * stage) for stage in range(stages)]
    model = PipelineStepModel(fixed, layout, SERVER.gpu, hidden=4096)
    found = model.step_s(work(decoding=48))
    tokens = 48 // micro
    sent = send_s(SERVER.gpu.collectives, tokens * 4096 * 2, 450e9)
    beat_s = tokens * fixed[-1].token_s + sent
    assert found == pytest.approx(walked_s(stages, micro, beat_s))
    parts = model.parts_s()
    assert sum(parts.values()) == pytest.approx(found)
    assert parts["bubble"] == pytest.approx(max(0, stages - micro) * beat_s)
    assert parts["send"] == pytest.approx(micro * sent)


def test_a_micro_batch_is_the_largest_part() -> None:
    asked = work(decoding=10, prompt=7)
    assert micro_batch(asked, 1) is asked
    part = micro_batch(asked, 4)
    assert (part.decoding, part.prompt_tokens, part.tier_tokens, part.ending) == (3, 2, (2500,), 3)


def test_one_token_is_one_micro_batch_and_passes_every_stage() -> None:
    model = load_model("llama-3.1-70b")
    layout = choose_parallelism(SERVER, tensor=2, pipeline=4, micro_batches=None)
    four = step_model(SERVER, model, NO_HOST, power_cap="bytes", parallelism=layout)
    staged = four.step_s(work(decoding=1))
    # Two GPUs read 20 layers and, in the last stage, the head; four times that, and all-reduces of 2 GPUs.
    layers = 2 * 20 * 8192 * (2 * 8192 + 2 * 1024 + 3 * 28672)
    weights_s = 4 * (layers + 2 * 128256 * 8192) / (2 * 3.35e12 * factors()["gpu_memory_utilisation"].value)
    exchange_s = 160 * (6.6e-6 + 2 * 0.6e-6)
    assert weights_s + exchange_s < staged < 1.01 * (weights_s + exchange_s)
    assert four.parts_s()["bubble"] == pytest.approx(0.75 * staged)


def write_trace(folder: Path) -> str:
    lines = ["arrived_at,num_prefill_tokens,num_decode_tokens"]
    lines += [f"{0.01 * number},{100 + 37 * number},{1 + number % 30}" for number in range(40)]
    path = folder / "trace.csv"
    path.write_text("\n".join(lines))
    return str(path)


def served(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["serve", *arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    del record["wall_s"], record["host"]
    return record


@pytest.mark.parametrize("system", ["pam", "gpu-only"])
def test_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str) -> None:
    options = ("--system", system, "--model", "llama-3.1-8b", "--trace", write_trace(tmp_path))
    plain = served(capsys, *options)
    same = served(capsys, *options, "--tp", "8", "--pp", "1", "--micro-batches", "1")
    del plain["manifest"], same["manifest"]  # what was given is an input
    assert json.dumps(plain) == json.dumps(same)
    assert (plain["tensor_parallel"], plain["pipeline_parallel"], plain["kv_copies"]) == (8, 1, 1.0)
    record = served(capsys, *options, "--pp", "2")
    assert (record["tensor_parallel"], record["pipeline_parallel"], record["micro_batches"]) == (4, 2, 2)
    assert record["served"] == plain["served"] == 40
    assert record["tokens_out"] == plain["tokens_out"]
    assert sum(record["parts_s"].values()) == pytest.approx(record["busy_s"], rel=1e-9)
    assert record["parts_s"]["send"] > 0
    written = [sum(tier["written_bytes"] for tier in found["tiers"]) for found in (plain, record)]
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tp", "3"], "tp times pp must be the 8 GPUs of pam, not tp 3, pp not given"),
        (["--tp", "0"], "--tp must be an integer from 1"),
        (["--micro-batches", "2"], "micro-batches must be 1 without a pipeline, not 2"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    trace = write_trace(tmp_path)
    assert main(["serve", "--system", "pam", "--model", "llama-3.1-8b", "--trace", trace, *options]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert message in captured.err
