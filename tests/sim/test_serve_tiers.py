"""Promise: ``nearkv serve`` counts what every policy reads and moves, the same on every run, in both fidelities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sim.cli import main
from sim.model_config import load_model
from sim.placement import kv_room
from sim.system_config import load_system
from sim.tiering.policies import POLICIES
from sim.tiering.sparsity import Sparsity
from tests.sim.test_serve import served, write_trace

if TYPE_CHECKING:
    from pathlib import Path

LLAMA = load_model("llama-3.1-8b")
TOKEN = 131_072


def small_system(folder: Path, near: int, middle: int) -> str:
    """PAM with room for ``near`` and ``middle`` tokens of the model in its nearest memories, at their full rates."""
    pam = load_system("pam")
    room = kv_room(pam, LLAMA, tokens=8192, sampled=256)[0]
    reserved = pam.gpu.reserved_bytes.integer + room - near * TOKEN
    path = folder / "small.toml"
    path.write_text(
        f'name = "small"\nbase = "pam"\ndescription = "little room"\nsource = "test"\n'
        f'[gpu]\nreserved_bytes = {{ value = {reserved}, unit = "bytes", source = "test" }}\n'
        f'[[tiers]]\nname = "ddr-pim"\n'
        f'values.capacity_bytes = {{ value = {middle * TOKEN // 40}, unit = "bytes", source = "test" }}\n',
        encoding="utf-8",
    )
    return str(path)


def options(folder: Path, *, requests: int = 6) -> tuple[str, ...]:
    """Return what serves requests of 1,000 and 60 tokens, all at once, of which less than half lie near."""
    trace = write_trace(folder, [(0.0, 1000, 60)] * requests)
    return ("--system", small_system(folder, 2000, 2000), "--model", "llama-3.1-8b", "--trace", trace)


DOUBLE = ("--sparsity", "double", "--label-place", "own")


@pytest.mark.parametrize("fidelity", ["exact", "aggregate"])
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_reads_moves_and_bytes_add_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, fidelity: str
) -> None:
    record = served(capsys, *options(tmp_path), *DOUBLE, "--policy", policy, "--fidelity", fidelity)
    assert (record["policy"], record["fidelity"], record["sparsity"]) == (policy, fidelity, "double")
    assert (record["served"], record["refused"], record["unfinished"]) == (6, 0, 0)
    # Steps 1 to 59 of every request read an eighth of its 1,001 to 1,059 tokens, rounded up.
    read = 6 * sum(-(-tokens // 8) for tokens in range(1001, 1060))
    tiers = record["tiers"]
    assert sum(tier["attended_tokens"] for tier in tiers) == pytest.approx(read, abs=2)
    assert record["far_tokens"] == pytest.approx(sum(tier["attended_tokens"] for tier in tiers[1:]), abs=2)
    assert sum(tier["written_bytes"] for tier in tiers) == 6 * 1059 * TOKEN
    assert all(tier["peak_bytes"] <= tier["room_bytes"] for tier in tiers)
    assert record["moved_tokens"] == sum(move["tokens"] for move in record["moves"])
    moved = [move["bytes"] for move in record["moves"]]
    assert moved == [move["tokens"] * TOKEN for move in record["moves"]]
    # Both ways over three links between the nearest two, over two between the others.
    assert sum(link["moved_bytes"] for link in record["links"]) == 3 * moved[0] + 2 * moved[1]
    assert (record["moved_tokens"] == 0) == (policy == "static")
    assert (record["moves"][0]["tokens"] == 0) >= (policy == "pam-seed-step")
    assert sum(record["parts_s"].values()) == pytest.approx(record["busy_s"], rel=1e-9)
    assert record["parts_s"]["migration"] == record["migration"]["exposed_s"]
    # A token step by step, 16 B of labels a KV head and layer: no step is shorter than these at the memory's rate.
    assert record["labels"]["bytes_per_token_and_layer"] == 128
    assert record["parts_s"]["labels"] > 0.0


def test_policies_move_what_is_read_nearer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {
        policy: served(capsys, *options(tmp_path), *DOUBLE, "--policy", policy, "--fidelity", "exact")
        for policy in ("static", "pam", "predictive", "oracle")
    }
    far = {policy: record["far_tokens"] for policy, record in found.items()}
    assert far["oracle"] < far["predictive"] < far["static"]
    assert far["oracle"] < far["pam"] < far["static"]
    assert found["pam"]["tbt_ms"]["p50"] < found["static"]["tbt_ms"]["p50"]


@pytest.mark.parametrize("fidelity", ["exact", "aggregate"])
def test_the_same_bytes_on_every_run_and_others_with_another_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fidelity: str
) -> None:
    def run(seed: str) -> str:
        arguments = (*options(tmp_path), *DOUBLE, "--policy", "pam", "--fidelity", fidelity, "--seed", seed)
        record = served(capsys, *arguments)
        del record["wall_s"], record["host"], record["manifest"]
        return json.dumps(record)

    assert run("1") == run("1")
    # Means draw nothing.
    assert (run("1") == run("2")) == (fidelity == "aggregate")


def test_reads_follow_parameters_of_the_locality(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pam = (*options(tmp_path), *DOUBLE, "--policy", "pam")
    fitted = served(capsys, *pam)
    assert served(capsys, *pam, "--locality", "fitted,recent=20")["moved_tokens"] == fitted["moved_tokens"]
    # Reads that never come again are not worth moving for; where nearly all do, far fewer are read far away.
    fleeting = served(capsys, *pam, "--locality", "fitted,steady_share=0.0,fleeting_memory=0.0")
    report = ("--report", str(tmp_path / "report"))
    steady = served(capsys, *pam, "--locality", "fitted,steady_memory=0.98,fleeting_memory=0.9", *report)
    assert steady["far_tokens"] < fitted["far_tokens"] < fleeting["far_tokens"]
    assert (tmp_path / "report" / "serve.png").stat().st_size > 10_000
    assert fleeting["locality_changes"] == {"steady_share": 0.0, "fleeting_memory": 0.0}


def test_where_everything_is_read_policies_move_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(policy: str) -> dict[str, Any]:
        record = served(capsys, *options(tmp_path), "--policy", policy)
        return {key: record[key] for key in ("tbt_ms", "moved_tokens", "tiers", "sim_s")}

    assert run("pam") == run("static")
    assert run("pam")["moved_tokens"] == 0


def test_labels_in_the_nearest_memory_take_its_room(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Drives alone have room for 61 million tokens, whose labels of 4,096 B are more than all of the nearest memory.
    arguments = ("serve", *options(tmp_path), "--sparsity", "double")
    assert main(list(arguments)) == 2
    error = capsys.readouterr().err
    assert "labels of the" in error
    assert "must fit in" in error
    assert error.count("\n") == 1
    pam = ("--system", "pam", "--model", "llama-3.1-8b", "--trace", write_trace(tmp_path, [(0.0, 10, 2)]))
    assert served(capsys, *pam, "--sparsity", "double", "--labels", "int4")["served"] == 1


def test_an_eighth_of_the_tokens_is_not_an_eighth_of_the_bytes() -> None:
    fp16, int4 = Sparsity(name="double"), Sparsity(name="double", label_format="int4")
    assert fp16.byte_ratio(LLAMA.attention, stored=8000, attended=1000) == pytest.approx(512 / 80)
    assert int4.byte_ratio(LLAMA.attention, stored=8000, attended=1000) == pytest.approx(512 / 68)
    assert Sparsity().byte_ratio(LLAMA.attention, stored=8000, attended=8000) == 1.0


def test_token_and_byte_ratio_of_a_run_and_where_labels_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 99 steps of 801 to 899 tokens, an eighth of them, rounded up; 32 layers of 8 KV heads.
    trace = write_trace(tmp_path, [(0.0, 800, 100)])
    run = ("--system", "pam", "--model", "llama-3.1-8b", "--trace", trace, "--sparsity", "double")
    stored = sum(range(801, 900))
    attended = sum(-(-tokens // 8) for tokens in range(801, 900))
    record = served(capsys, *run, "--labels", "int4")
    assert record["token_ratio"] == pytest.approx(stored / attended, rel=1e-12)
    # About 106 tokens by chance over 16 groups: 6.6 in each, 11 or 12 in the fullest.
    assert record["tiers"][0]["fullest_group"] == pytest.approx(1.7, abs=0.1)
    assert [tier["fullest_group"] for tier in record["tiers"][1:]] == [None, None]
    # 512 B of keys and values a head, 4 B of labels: 8 channels of 4 bits.
    assert record["byte_ratio"] == pytest.approx(512 * stored / (512 * attended + 4 * stored), rel=1e-12)
    assert record["labels"]["scanned_bytes"] == {"hbm-pim": stored * 4 * 8 * 32, "ddr-pim": 0, "ssd-pim": 0}
    assert main(["serve", *run, "--labels", "int4"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    ratios = f"{record['token_ratio']:.2f} times fewer tokens, {record['byte_ratio']:.2f} times fewer bytes"
    assert f"double: {ratios} attended to than stored" in shown
    assert "int4 labels, 32 bytes a token and layer, place nearest, scorer memory" in shown
    dense = served(capsys, *run[:-2])
    assert (dense["token_ratio"], dense["byte_ratio"], dense["labels"]) == (1.0, 1.0, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "pan"), "policy must be a known name, not 'pan'"),
        (("--sparsity", "dens"), "sparsity must be a known name, not 'dens'"),
        (("--fidelity", "both"), "fidelity must be a known name, not 'both'"),
        (("--locality", "x"), "locality must be a known name, not 'x'"),
        (("--locality", "fitted,window=3"), "parameter of the locality must be a known name, not 'window'"),
        (("--locality", "fitted,recent=0"), "locality: recent must be at least 1, not 0"),
        (("--locality", "fitted,recent=2.5"), "locality: recent must be"),
        (("--locality", "fitted,steady_rate=2"), "locality: steady_rate must be above 0 and below 1, not 2"),
        (("--locality", "fitted,recent"), "--locality must be NAME,KEY=X"),
        (("--labels", "fp8"), "label format must be a known name, not 'fp8'"),
        (("--label-place", "far"), "label place must be a known name, not 'far'"),
        (("--scorer", "cpu"), "scorer must be a known name, not 'cpu'"),
        (("--swap-budget", "2"), "--swap-budget must be a number from 0 to 1, not '2'"),
        (("--swap-budget", "nan"), "--swap-budget must be a number from 0 to 1, not 'nan'"),
        (("--ratio", "3"), "--ratio must be two numbers above 0 as in 4:1, not '3'"),
        (("--ratio", "0:1"), "--ratio must be two numbers above 0 as in 4:1, not '0:1'"),
        (("--ratio", "inf:1"), "--ratio must be two numbers above 0 as in 4:1, not 'inf:1'"),
        (("--score", "max"), "score must be a known name, not 'max'"),
        (("--system", "rtx-4090", "--sparsity", "double"), "rtx-4090 must have several memories"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    trace = write_trace(tmp_path, [(0.0, 10, 2)])
    assert main(["serve", "--system", "pam", "--model", "llama-3.1-8b", "--trace", trace, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
