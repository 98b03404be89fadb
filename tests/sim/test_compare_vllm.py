"""``nearkv compare vllm``: recordings as their publishers sum them up, rows, and a fit that finds planted factors."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sim.calibration import factors
from sim.cli import main
from sim.comparisons.vllm import RUNS, Times, read_recording, simulate, vllm_rows
from sim.comparisons.vllm_fit import fit_factors, least, residuals
from sim.errors import ConfigError
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model
from sim.serving.gpu_part import GpuPart
from sim.serving.host import SERVER_FACTORS, ServerFactors, calibrated_factors, default_factors
from sim.traces import TraceRequest
from tests.helpers.data import data_file

if TYPE_CHECKING:
    from pathlib import Path

ROW_KEYS = {"name", "reference", "ours", "ours_default", "ratio", "unit", "source", "within", "fit", "note"}

# Medians and 90th percentiles in ms, from the summaries that lie beside the recordings: of the time from the engine's
# taking a request to its first token, and of TPOT.
SUMMARIES = {
    "RTX PRO 6000, Llama-3.1-8B": (9442.7, 16852.7, 33.4, 36.5),
    "RTX 4090, Llama-3.1-8B": (60110.9, 121121.7, 30.8, 38.1),
    "RTX PRO 6000, Qwen3-30B-A3B": (138.8, 5182.6, 48.9, 52.2),
}


@pytest.mark.parametrize("entry", RUNS, ids=lambda entry: entry.name)
def test_recordings_have_the_published_percentiles(entry: object) -> None:
    requests, times = read_recording(data_file("validation", entry.file))  # type: ignore[attr-defined]
    assert len(requests) == 300
    *taken, tpot_50, tpot_90 = SUMMARIES[entry.name]  # type: ignore[attr-defined]
    assert np.percentile(1e3 * times.tpot_s, [50, 90]) == pytest.approx([tpot_50, tpot_90], abs=0.051)
    # From the user's request it is up to two steps more.
    waited = np.percentile(1e3 * times.ttft_s, [50, 90])
    assert ((waited > taken) & (waited < np.array(taken) + 2 * 56.0)).all()


def test_times_to_first_token_count_from_the_request(tmp_path: Path) -> None:
    # The engine takes the second request 0.3 s after it came, the first at once: its clock then shows 50.
    path = tmp_path / "recording.jsonl"
    rows = ((7, 3, 1000.0, 50.0, 50.5, 52.5), (9, 2, 1001.0, 51.3, 52.0, 53.0))
    keys = ("input_toks", "output_toks", "arrival_time", "queued_ts", "first_token_ts", "last_token_ts")
    path.write_text("\n".join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows))
    requests, times = read_recording(path)
    assert [(entry.arrival_s, entry.input_tokens) for entry in requests] == [(0.0, 7), (1.0, 9)]
    assert times.ttft_s.tolist() == pytest.approx([0.5, 1.0])
    assert times.tpot_s.tolist() == pytest.approx([1.0, 1.0])
    assert times.makespan_s == pytest.approx(3.0)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    folder = data_file("validation", RUNS[0].file).parent
    assert main(["compare", "vllm", "--data", str(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    # Three runs, and that of a mixture once more with experts met uniformly.
    assert len(record["rows"]) == 16
    assert sum("experts met uniformly" in row["name"] for row in record["rows"]) == 4
    assert all(set(row) == ROW_KEYS for row in record["rows"])
    # The run that factors were fitted to never counts as reached.
    assert [row["within"] for row in record["rows"] if row["fit"]] == [False] * 4
    # The two runs that were predicted hold, whichever way experts are met.
    assert all(row["within"] for row in record["rows"] if not row["fit"])
    assert all(row["ratio"] == pytest.approx(row["ours"] / row["reference"]) for row in record["rows"])
    fitted = [row["ratio"] for row in record["rows"] if row["fit"]]
    assert max(abs(ratio - 1) for ratio in fitted) < 0.05
    assert record["provenance"]["class"] == "modelled"
    # At their defaults the factors add nothing to a roofline: steps of the card fitted to come out too short.
    assert all(row["ours_default"] < row["reference"] for row in record["rows"] if row["fit"])


def test_two_cards_share_the_experts() -> None:
    # 170 requests at a time meet 123.7 of the 128 experts; each card reads half of these, and all other weights.
    card = GPU_SERVERS["rtx-pro-6000-server"]
    two = dataclasses.replace(
        card, gpu=dataclasses.replace(card.gpu, count=dataclasses.replace(card.gpu.count, value=2))
    )
    model = load_model("qwen3-30b-a3b")
    network = model.layers[0].feed_forward
    met = network.distinct_experts(170, model.expert_skew)
    assert met == pytest.approx(123.7, abs=0.1)
    weights = 48 * (2048 * 5120 + 4096 * 2048 + met * 3 * 2048 * 768 / 2)
    rings = 96 * two.gpu.collectives.seconds(1, 170 * 2048 * 2 / 2, 28.5e9)
    found = GpuPart(two, model, default_factors(), groups=2).products_s(170, 85)
    shortest = 2 * weights / (1.597e12 * 0.935) + rings
    assert shortest < found < 1.03 * shortest


def times(scale: float) -> Times:
    return Times(scale * np.array([0.1, 0.2]), scale * np.array([0.01, 0.02]), 10 * scale)


def test_rows_hold_within_their_limits() -> None:
    recorded = {entry.name: times(1.0) for entry in RUNS}
    rows = vllm_rows(recorded, {name: times(1.12) for name in recorded}, {name: times(0.5) for name in recorded})
    by_name = {row["name"]: row for row in rows}
    row = by_name["RTX 4090, Llama-3.1-8B: TPOT p50"]
    assert (row["reference"], row["ours"], row["ours_default"]) == pytest.approx((15.0, 16.8, 7.5))
    assert not row["within"]
    assert by_name["RTX 4090, Llama-3.1-8B: makespan"]["within"]
    assert by_name["RTX PRO 6000, Qwen3-30B-A3B: TTFT p50"]["within"]
    assert not by_name["RTX PRO 6000, Llama-3.1-8B: TTFT p50"]["within"]


def test_planted_factors_are_found() -> None:
    entry = RUNS[0]
    draw = np.random.default_rng(5)
    requests = [
        TraceRequest(line=0, arrival_s=0.05 * number, input_tokens=int(inputs), output_tokens=int(outputs))
        for number, (inputs, outputs) in enumerate(
            zip(draw.integers(100, 2000, 40), draw.integers(50, 200, 40), strict=True)
        )
    ]
    planted = ServerFactors(attention_utilisation=0.7, tile_utilisation=0.4, kernel_s=5e-6)
    found, rms = fit_factors(entry, requests, simulate(entry, requests, planted), say=lambda text: None)
    assert rms < 5e-3
    # Both lengthen every step: half a millisecond of 352 kernels may go to the other.
    assert found.kernel_s == pytest.approx(5e-6, abs=1.5e-6)
    assert found.attention_utilisation == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize("bottom", [(0.3, 0.6, 0.5), (0.9, 0.1, 0.45), (1.2, 0.4, -0.1)])
def test_a_simplex_finds_the_bottom_of_a_bowl_or_the_nearest_face(bottom: tuple[float, ...]) -> None:
    # Axes that are twice and three times as steep; a bottom outside the cube is met on its faces.
    at = np.array(bottom)
    found, value = least(lambda point: float((((point - at) * [1, 2, 3]) ** 2).sum()), np.full(3, 0.5), rounds=100)
    assert found == pytest.approx(np.clip(at, 0.0, 1.0), abs=0.01)
    assert value == pytest.approx(((np.clip(at, 0.0, 1.0) - at) * [1, 2, 3]) @ ((found - at) * [1, 2, 3]), abs=0.01)


def test_residuals_take_every_second_request() -> None:
    one = Times(np.array([1.0, 9.0, 3.0]), np.array([0.02, 9.0, 0.01]), 1.0)
    other = Times(np.array([0.0, 1.0, 1.0]), np.array([0.01, 1.0, 0.01]), 1.0)
    assert residuals(one, other) == pytest.approx(np.log([2.0, 1.0, 2.0, 2.0]))


def test_factors_come_in_the_order_of_their_names() -> None:
    assert dataclasses.astuple(calibrated_factors()) == tuple(factors()[name].value for name in SERVER_FACTORS)
    assert default_factors().kernel_s == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "recording must hold requests, it is empty"),
        ("{}", "line 1 must have the numbers input_toks"),
        ("[1]\n", "line 1 must have the numbers"),
        ("x", "line 1 must have the numbers"),
    ],
)
def test_recordings_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_recording(path)
    with pytest.raises(ConfigError, match="must be a readable text file"):
        read_recording(tmp_path / "none.jsonl")
