"""Promise: ``nearkv compare fidelity`` shows how far means are from single tokens, with most tokens on drives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sim.cli import main
from sim.model_config import load_model
from sim.placement import kv_room
from sim.serving.parameters import ServerParams
from sim.system_config import load_system
from sim.tiering.rooms import with_room
from tests.sim.test_serve import write_trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("policy", ["pam", "static"])
def test_means_stay_within_their_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str) -> None:
    draw = np.random.default_rng(8)
    rows = [(0.1 * number, int(draw.integers(300, 3000)), int(draw.integers(20, 90))) for number in range(40)]
    trace = write_trace(tmp_path, rows)
    arguments = ["compare", "fidelity", "--trace", trace, "--requests", "30", "--policy", policy]
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    found = {row["name"].split(": ")[1]: row for row in record["rows"]}
    assert set(found) == {"p50 tbt", "p99 tbt", "read far away"} | ({"moved"} if policy == "pam" else set())
    for row in found.values():
        assert row["within"]
        assert row["ratio"] == pytest.approx(row["ours"] / row["reference"], rel=1e-9)
        assert "30 requests" in row["note"]
        assert row["outside_share"] > 0.5
    assert record["provenance"]["class"] == "modelled"


def test_the_table_names_what_lies_outside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write_trace(tmp_path, [(0.0, 500, 10)] * 4)
    assert main(["compare", "fidelity", "--trace", trace]) == 0
    assert "of the tokens outside HBM" in capsys.readouterr().out


def test_room_is_what_was_asked_for() -> None:
    pam, model, params = load_system("pam"), load_model("llama-3.1-8b"), ServerParams()
    little = with_room(pam, model, params, (1000, 2000))
    rooms = kv_room(little, model, tokens=8192, sampled=256)
    assert rooms[0] == 1000 * 131_072
    assert 2000 * 131_072 <= rooms[1] < 2000 * 131_072 + 40
    assert rooms[2] == kv_room(pam, model, tokens=8192, sampled=256)[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "best"), "policy must be a known name, not 'best'"),
        (("--requests", "0"), "--requests must be an integer from 1"),
        (("--model", "llama-9"), "model must be"),
        (("--seed", "-1"), "--seed must be an integer from 0"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    trace = write_trace(tmp_path, [(0.0, 10, 2)])
    assert main(["compare", "fidelity", "--trace", trace, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
