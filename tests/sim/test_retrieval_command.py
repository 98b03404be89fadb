"""Promise: ``nearkv decode`` with retrieval prints one record or one line of refusal, and takes its options alone."""

from __future__ import annotations

import json

import pytest

from sim.cli import main
from tests.sim.test_cli import refused

STEP = ("decode", "--system", "karat", "--model", "deepseek-v3.2", "--context", "1000000", "--batch", "8")
TIERED = ("decode", "--system", "pam", "--model", "llama-3.1-70b", "--context", "100", "--batch", "1")


def record(capsys: pytest.CaptureFixture[str], *arguments: str):
    """Record that the command prints."""
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_json_is_one_object_and_the_same_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    first = record(capsys, *STEP)
    assert first == record(capsys, *STEP)
    assert (first["system"], first["method"], first["batch"]) == ("karat", "trained", 8)


def test_tables_name_stages_classes_and_what_overlaps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(STEP) == 0
    text = " ".join(capsys.readouterr().out.split())
    for part in ("score", "select", "gather", "attend", "output back", "[formula-rtl]", "[modelled]", "128 x pnm"):
        assert part in text
    assert "serial: GPUs wait for attention in every layer" in text
    assert "attention reads at 0.85 of its memory's peak (pnm_memory_utilisation); at 0.98 (gpu_attention_util" in text
    assert "most requests of this context that fit: 896" in text
    assert "energy_j: null: no source for what a bit" in text
    assert "J: GPUs at board power and devices at design power" in text


@pytest.mark.parametrize("system", ["karat", "gpu-only-h200"])
def test_design_powers_bound_the_energy(capsys: pytest.CaptureFixture[str], system: str) -> None:
    found = record(capsys, *STEP[:2], system, *STEP[3:])
    assert found["energy_j"] is None
    # 32 GPUs of 700 W and 128 devices of 175 W, or 64 GPUs: the 44.8 kW at which arXiv:2608.03555 compares both.
    assert found["energy_bound_j"] == pytest.approx(44_800 * found["step_us"] * 1e-6, rel=1e-9)


def test_options_reach_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    llama = (*STEP[:4], "llama-3.1-70b", *STEP[5:])
    found = record(capsys, *llama, "--method", "quest", "--budget", "512", "--dense-layers", "2")
    assert (found["method"], found["budget"], found["dense_layers"]) == ("quest", 512, 2)
    attended = [(layer["count"], layer["attended_tokens"]) for layer in found["layers"]]
    assert sorted(attended) == [(2, 1_000_001), (78, 512)]
    fewer = record(capsys, *STEP, "--set", "pnm.count=4", "--set", "pnm.device.core_clock_hz=1e9")
    assert [device["count"] for device in fewer["devices"]] == [32, 4]
    assert fewer["devices"][1]["clock_hz"] == 1e9
    assert fewer["step_us"] > record(capsys, *STEP)["step_us"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (*STEP, "--keep", "0.5"),
            "--keep must be left out for system karat, whose memories are no tiers, it is given",
        ),
        ((*STEP, "--allow-mla"), "--allow-mla must be left out for system karat, whose memories are no tiers"),
        ((*TIERED, "--method", "quest"), "--method must be left out for system pam, which has no retrieval"),
        ((*TIERED, "--dense-layers", "0"), "--dense-layers must be left out for system pam, which has no retrieval"),
        ((*TIERED, "--set", "gpu.count=3"), "--set must be left out for system pam, which has no retrieval"),
        ((*STEP, "--set", "gpu.count"), "--set must be NAME=X, such as pnm.count=64, not 'gpu.count'"),
        ((*STEP, "--set", "gpu.count=many"), "--set gpu.count must be a number above 0, not 'many'"),
        ((*STEP, "--set", "gpu.cuont=8"), "number of the system must be a known name, not 'gpu.cuont'; nearest: gpu.c"),
        ((*STEP, "--budget", "0"), "--budget must be an integer from 1 to 999999999999, not '0'"),
        ((*STEP, "--method", "clusters"), "method must be a known name, not 'clusters'"),
        ((*STEP, "--set", "pnm.count=1"), "on one of 1 PNM devices must fit in 549755813888 bytes, not 626592626592"),
        (("decode", "--system", "karrat", *STEP[3:]), "system must be a known name or the path of a .toml file"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(capsys, *arguments)
