"""``nearkv compare genz``, steps of ``compare attacc``: with a peer's inputs ours is the peer's, and rows say so."""

from __future__ import annotations

import json
import math

import pytest

from sim.calibration import factors
from sim.cli import main
from sim.comparisons.attacc_step import GPU_STEPS, PIM_STEPS, attacc_step_rows
from sim.comparisons.genz import STEPS, genz_rows
from sim.comparisons.gpu_step import StepParts, at_full_rate, decode_parts, step_rows
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model

ROW_KEYS = {"name", "reference", "ours", "ours_default", "ratio", "unit", "source", "within", "fit", "note"}


def test_genz_rows() -> None:
    rows = {row["name"]: row for row in genz_rows()}
    # 11 steps, twice; three parts of 8 of them, two of the 3 on one GPU, which has nothing to exchange.
    assert len(rows) == 2 * (3 * 8 + 2 * 3)
    assert all(set(row) == ROW_KEYS and not row["fit"] and row["unit"] == "ms" for row in rows.values())
    alike = {name: row for name, row in rows.items() if "GenZ's inputs" in name}
    assert len(alike) == 30
    assert all(row["within"] and row["ratio"] == pytest.approx(1.0, abs=0.025) for row in alike.values())
    # With our own factors 19 of 30 hold, all of attention.
    own = {name: row for name, row in rows.items() if name not in alike}
    assert sum(row["within"] for row in own.values()) == 19
    assert all(row["within"] for name, row in own.items() if "attention" in name)
    # The public figures of the steps, to the digits that were printed.
    assert rows["opt-175b, 8 GPUs, batch 1: step"]["reference"] == pytest.approx(24.20, abs=5e-3)
    assert rows["llama-2-70b, 8 GPUs, batch 64: step"]["reference"] == pytest.approx(15.24, abs=5e-3)
    assert rows["llama-3.1-8b, 1 GPU, batch 16: step"]["reference"] == pytest.approx(8.83, abs=5e-3)


def test_ours_without_genz_by_hand() -> None:
    row = next(row for row in genz_rows() if row["name"] == "llama-3.1-8b, 1 GPU, batch 1: attention")
    # 2,048 tokens of 131,072 B at 2,039 GB/s and the share that was fitted, and its default.
    bytes_read, rate = 2048 * 131_072, 2.039e12
    fitted = factors()["gpu_attention_utilisation"]
    assert row["ours"] == pytest.approx(1e3 * bytes_read / (rate * fitted.value))
    assert row["ours_default"] == pytest.approx(1e3 * bytes_read / (rate * fitted.default))


def test_attacc_steps() -> None:
    rows = {row["name"]: row for row in attacc_step_rows()}
    assert len(rows) == 2 * 3 * len(GPU_STEPS) + len(PIM_STEPS)
    assert all(set(row) == ROW_KEYS for row in rows.values())
    alike = {name: row for name, row in rows.items() if "AttAcc's inputs" in name}
    assert all(row["within"] for row in alike.values())
    own = [row for name, row in rows.items() if "on GPUs" in name and name not in alike]
    assert [row["within"] for row in own] == [False] * 12
    assert all(row["ratio"] == pytest.approx(1.0, abs=0.02) for name, row in alike.items() if "step" not in name)
    assert all(0.93 < row["ratio"] < 0.96 for name, row in alike.items() if "step" in name)
    # Two norms of 6.87 us and an activation of 8.29 us in each of 96 layers are 2.1 of the 30.9 ms; bytes add little.
    first = "GPT-175B on GPUs, batch 1, AttAcc's inputs: step"
    assert alike[first]["ours"] == pytest.approx(0.882 * 30.92 + 96 * 22.03e-3, rel=2e-3)
    memories = {name: row for name, row in rows.items() if "in memory" in name}
    assert [name for name, row in memories.items() if not row["within"]] == [
        "GPT-175B in memory, bank, batch 1, 2048 tokens: attention",
        "GPT-175B in memory, buffer, batch 16, 2048 tokens: attention",
    ]
    assert memories["GPT-175B in memory, buffer, batch 16, 2048 tokens: attention"]["ours"] is None
    row = memories["GPT-175B in memory, bank, batch 16, 2048 tokens: attention"]
    # 12 heads of 16 requests over 5 stacks: 39 on the fullest, 3 on its fullest channel.
    assert math.ceil(12 * 16 / 5) == 39
    assert "39 heads on the fullest stack, 3 on a channel" in row["note"]


def test_parts_of_a_step_add_up_and_full_rate_is_the_peak() -> None:
    server, model = GPU_SERVERS["gpu-only"], load_model("llama-2-7b")
    memory = factors()["gpu_memory_utilisation"].value
    found = decode_parts(at_full_rate(server), model, tokens=512, batch=1, attention_utilisation=memory, head=False)
    # 4 x 4,096^2 and 3 x 4,096 x 11,008 weights in 32 layers; activations are a thousandth.
    weights = 2 * 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    keys_and_values = 512 * model.kv_bytes_per_token
    least = (weights + keys_and_values) / (8 * 3.35e12)
    assert found.attention_s == pytest.approx(keys_and_values / (8 * 3.35e12))
    assert least + found.exchange_s < found.step_s < 1.002 * least + found.exchange_s
    longer = decode_parts(at_full_rate(server), model, tokens=512, batch=1, attention_utilisation=memory, head=True)
    assert longer.step_s > found.step_s


@pytest.mark.parametrize(("scale", "held"), [(1.149, True), (1.151, False), (0.851, True), (0.849, False)])
def test_the_limit_of_a_row(scale: float, held: bool) -> None:
    reference = StepParts(2.0, 1.0, 0.0)
    mine = StepParts(2.0 * scale, scale, 9.0)
    rows = step_rows("x", reference, mine, mine, source="s", note="n")
    assert [row["name"] for row in rows] == ["x: step", "x: attention"]
    assert [row["within"] for row in rows] == [held, held]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "genz", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["rows"]) == 6 * len(STEPS) - 6
    assert record["provenance"]["class"] == "modelled"
    assert main(["compare", "genz"]) == 0
    out = capsys.readouterr().out
    assert "a GB of 2^30 bytes" in out
    assert max(map(len, out.splitlines())) <= 120
