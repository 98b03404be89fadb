"""Promise: a decode step through a pipeline is that of serving, of its slowest stage, with the same tokens in place."""

from __future__ import annotations

import json

import pytest

from sim.cli import main
from sim.decode import decode_step
from sim.model_config import load_model
from sim.serving.batch import StepWork
from sim.serving.host import ServerFactors
from sim.serving.machine import step_model
from sim.serving.parallelism import Parallelism
from sim.step import StepRequest
from sim.system_config import load_system

PAM, LLAMA = load_system("pam"), load_model("llama-3.1-70b")
NO_HOST = ServerFactors(attention_utilisation=0.8, tile_utilisation=0.4, kernel_s=0.0)


@pytest.mark.parametrize("micro", [1, 2, 4])
@pytest.mark.parametrize("context", [4096, 32_768])
def test_serving_takes_the_same_time(context: int, micro: int) -> None:
    request = StepRequest(context=context, batch=64, pipeline_parallel=2, micro_batches=micro)
    step = decode_step(PAM, LLAMA, request)
    held = tuple(tier.tokens + tier.new_tokens for tier in step.placement)
    assert sum(held) == 64 * (context + 1)
    none = (0, 0, 0)
    work = StepWork(
        decoding=64,
        tier_tokens=held,
        tier_requests=tuple(64 if tokens else 0 for tokens in held),
        prompt_requests=0,
        prompt_tokens=0,
        prompt_pairs=0,
        prompt_context=none,
        decode_appended=tuple(tier.new_tokens for tier in step.placement),
        prompt_appended=none,
        ending=64,
        swapped_tokens=0,
    )
    plan = Parallelism(tensor_parallel=4, pipeline_parallel=2, micro_batches=micro)
    serving = step_model(PAM, LLAMA, NO_HOST, power_cap="bytes", parallelism=plan)
    # Serving interpolates between loads.
    assert step.total_s == pytest.approx(serving.step_s(work), rel=5e-3)


def test_a_stage_has_half_of_all_and_one_micro_batch_waits_as_long_as_it_works() -> None:
    whole = decode_step(PAM, LLAMA, StepRequest(context=4096, batch=64))
    one = decode_step(PAM, LLAMA, StepRequest(context=4096, batch=64, pipeline_parallel=2, micro_batches=1))
    assert one.bubble_s == pytest.approx(one.total_s / 2, rel=1e-12)
    assert [tier.count.integer for tier in one.system.tiers] == [20, 20, 4]
    assert sum(entry.count for entry in one.layers) == 40
    assert [tier.tokens for tier in one.placement] == [tier.tokens for tier in whole.placement]
    alone = decode_step(PAM, LLAMA, StepRequest(context=4096, batch=64, tensor_parallel=8))
    assert alone.total_s == whole.total_s
    assert (whole.send_s, whole.bubble_s) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tp", "4"), None),
        (("--pp", "3"), "tp times pp must be the 8 GPUs of pam"),
        (("--micro-batches", "2"), "micro-batches must be 1 without a pipeline"),
        (("--pp", "0"), "--pp must be an integer from 1"),
    ],
)
def test_the_command_divides_or_refuses(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str | None
) -> None:
    command = ["decode", "--system", "pam", "--model", "llama-3.1-70b", "--context", "100", "--batch", "8", *options]
    assert main([*command, "--json"]) == (0 if message is None else 2)
    shown = capsys.readouterr()
    if message is not None:
        assert message in shown.err
        assert shown.err.count("\n") == 1
        return
    record = json.loads(shown.out)
    assert (record["tensor_parallel"], record["pipeline_parallel"], record["micro_batches"]) == (4, 2, 2)
    parts = record["gpu_us"] + record["attention_us"] + record["send_us"] + record["bubble_us"]
    assert record["step_us"] == pytest.approx(parts, rel=1e-9)
    assert [device["count"] for device in record["devices"]] == [20, 20, 4]
    assert main(command) == 0
    assert "2 stages of 4 GPUs, 2 micro-batches" in capsys.readouterr().out


def test_options_of_steps_are_refused_where_a_scenario_has_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--scenario", "worked-example", "--pp", "2"]) == 2
    assert "--pp must not be given with --scenario" in capsys.readouterr().err
    assert (
        main(["decode", "--system", "karat", "--model", "glm-5.2", "--context", "10", "--batch", "1", "--tp", "2"]) == 2
    )
    assert "--tp must be left out for system karat" in capsys.readouterr().err
