"""The command line: results on standard output, one line and exit code 2 for bad input, the same bytes every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hw.presets.devices import DEVICE_PRESETS
from sim.cli import main
from sim.commands.names import hardware

STEP = ["decode", "--system", "pam", "--model", "llama-3.1-70b", "--context", "4096", "--batch", "8"]
ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sim.cli", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        check=False,
        timeout=120,
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Message of a refusal; nothing on standard output, one line on standard error, exit code 2."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("\n")
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("nearkv: error: ")
    return captured.err.removeprefix("nearkv: error: ").removesuffix("\n")


def changed(option: str, value: str) -> list[str]:
    """Arguments of the step with one option's value replaced."""
    arguments = list(STEP)
    arguments[arguments.index(option) + 1] = value
    return arguments


def test_decode_json_is_one_object_and_the_same_bytes_every_time() -> None:
    results = [run(*STEP, "--json", PYTHONHASHSEED=seed) for seed in ("0", "1", "random")]
    assert all(result.returncode == 0 for result in results)
    assert all(result.stderr == b"" for result in results)
    assert len({result.stdout for result in results}) == 1
    record = json.loads(results[0].stdout)
    assert record["step_us"] > 0
    assert record["manifest"]["config_sha256"]


def test_opt_175b_through_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--system=pam", "--model=opt-175b", "--context=2048", "--batch=256", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["kv_bytes_total"] == 2304 * 2**30
    assert all(device["tokens"] > 0 for device in record["devices"])


def test_manifest_follows_the_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    hashes = set()
    for arguments in (STEP, changed("--batch", "9"), changed("--system", "pam-seed"), [*STEP, "--keep", "0.5"]):
        assert main([*arguments, "--json"]) == 0
        hashes.add(json.loads(capsys.readouterr().out)["manifest"]["config_sha256"])
    assert len(hashes) == 4


def test_tables_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(STEP) == 0
    out = capsys.readouterr().out
    assert "llama-3.1-70b on pam: one decode step" in out
    assert "power cap read as bytes; as flops the step takes" in out
    assert max(map(len, out.splitlines())) <= 120


def test_tables_where_the_terminal_knows_ascii_only() -> None:
    result = run(*STEP, PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert result.stderr == b""
    assert result.stdout.decode("ascii").count("|") > 20


def test_presets_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    presets = json.loads(capsys.readouterr().out)["presets"]
    assert {preset["kind"] for preset in presets} >= {"unit", "device", "system", "model", "policy"}
    for preset in presets:
        assert set(preset) >= {"kind", "name", "fields", "deviations"}
        for field in preset["fields"].values():
            assert set(field) == {"value", "unit", "source"}
            assert field["unit"]
            assert field["source"]


def test_presets_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    out = capsys.readouterr().out
    assert "device hbm3-pim" in out
    assert "deviation timing.tBL: printed 4; used 2" in out


def test_no_amaranth_without_hardware() -> None:
    code = (
        "import sys; from sim.cli import main; "
        f"assert main({STEP!r}) == 0 and main(['presets', '--json']) == 0; "
        "sys.exit('amaranth' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--system", "pan", "system must be a known name or the path of a .toml file, not 'pan'; nearest: pam"),
        (
            "--model",
            "llama3.1-70b",
            "model must be a known name or the path of a config.json, not 'llama3.1-70b'; nearest: llama-3.1-70b",
        ),
        ("--model", "/no/such.json", "/no/such.json: model file must be readable: No such file or directory"),
        ("--model", "/", "/: model file must be readable: Is a directory"),
        ("--model", "", "model must be a known name or the path of a config.json, not ''; one of: deepseek-v3.2"),
        ("--context", "0", "--context must be an integer from 1 to 999999999999, not '0'"),
        ("--context", "-4", "--context must be an integer from 1 to 999999999999, not '-4'"),
        ("--context", "1e3", "--context must be an integer from 1 to 999999999999, not '1e3'"),
        ("--context", "9" * 5000, "--context must be an integer from 1 to 999999999999, not '999"),
        ("--batch", "0", "--batch must be an integer from 1 to 999999999999, not '0'"),
        ("--batch", "2.5", "--batch must be an integer from 1 to 999999999999, not '2.5'"),
        ("--batch", "", "--batch must be an integer from 1 to 999999999999, not ''"),
        ("--batch", "999999999999", "weights of llama-3.1-70b, activations and reserve must fit in "),
        ("--context", "999999999999", "KV cache of 8 requests of 999999999999 tokens and the step's own must fit in "),
    ],
)
def test_bad_decode_input(capsys: pytest.CaptureFixture[str], option: str, value: str, message: str) -> None:
    assert refused(capsys, *changed(option, value)).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*STEP, "--placement", "top"], "placement must be a known name, not 'top'; nearest: top-down"),
        ([*STEP, "--power-cap", "byte"], "power cap must be a known name, not 'byte'; nearest: bytes"),
        ([*STEP, "--keep", "0"], "--keep must be a number above 0 and at most 1, not '0'"),
        ([*STEP, "--keep", "1.5"], "--keep must be a number above 0 and at most 1, not '1.5'"),
        ([*STEP, "--keep", "nan"], "--keep must be a number above 0 and at most 1, not 'nan'"),
        ([*STEP, "--keep", "some"], "--keep must be a number above 0 and at most 1, not 'some'"),
        (["decode"], "--system, --model, --context, --batch must be given unless --scenario is (see nearkv decode"),
        ([], "the following arguments are required: COMMAND (see nearkv --help)"),
        (["decod"], "argument COMMAND: invalid choice: 'decod'"),
        ([*STEP, "--speed", "9"], "unrecognized arguments: --speed 9 (see nearkv --help)"),
        (["verilog", "reductoin"], "unit must be a known name, not 'reductoin'; nearest: reduction"),
        (["verilog", "memory_model"], "unit must be hardware, not 'memory_model', which is for simulation only"),
        (["verilog", "channel_bench"], "unit must be hardware, not 'channel_bench', which is for simulation only"),
        (["verilog", "pam-wid"], "unit must be a known name, not 'pam-wid'; nearest: pam-wide"),
        (["verilog", "pam", "--preset", "tiny"], "--preset must go with units, not with device 'pam', which has sizes"),
        (["verilog", "state_join", "--preset", "pam-root"], "unit must be one that preset pam-root has, exp, "),
        (["verilog", "--preset", "pam-hmb"], "preset must be a known name, not 'pam-hmb'; nearest: pam-hbm"),
    ],
)
def test_bad_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert refused(capsys, *arguments).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not json", "model file must be JSON, it is not (line 1, column 1)"),
        (b"\xff\xfe", "model file must be UTF-8 text, it is not"),
        (b'{"hidden_size": 4096}', "key num_attention_heads or n_head or n_heads must be present, it is missing"),
        (b"{}", "key hidden_size or n_embd or d_model must be present, it is missing"),
    ],
)
def test_bad_model_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert refused(capsys, *changed("--model", str(path))) == f"{path}: {message}"


def test_bad_input_from_the_shell() -> None:
    result = run(*changed("--context", "0"), "--json")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == b"nearkv: error: --context must be an integer from 1 to 999999999999, not '0'\n"


def test_help_has_examples_and_lists_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [[], ["demo"], ["presets"], ["verilog"], ["area"], ["decode"], ["study"], ["study", "exp"]]
    commands += [["compare"], ["compare", "exp-seed"], ["compare", "exp-anchors"], ["compare", "area"]]
    for command in commands:
        with pytest.raises(SystemExit) as caught:
            main([*command, "--help"])
        assert caught.value.code == 0
        shown = capsys.readouterr().out
        assert "example" in shown, command
        assert "%%" not in shown, command


def test_a_reader_that_leaves_early_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "sim.cli", "presets", "--json"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), errors) == (0, b"")


def test_verilog_writes_files_and_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["verilog", "exp", "--preset", "tiny", "-o", str(tmp_path / "rtl"), "--json"]) == 0
    captured = capsys.readouterr()
    (unit,) = json.loads(captured.out)["units"]
    assert set(unit) >= {"kind", "name", "preset", "file", "sha256", "ports", "latency_cycles", "interval_cycles"}
    assert Path(unit["file"]).read_text().count("module nearkv_exp(") == 1
    for key in ("latency_cycles", "interval_cycles"):
        assert set(unit[key]) == {"formula", "variables", "example"}
    assert "generating exp" in captured.err


def test_verilog_into_what_is_no_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    assert main(["verilog", "exp", "--preset", "tiny", "-o", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith("nearkv: error: --output must be a folder that can be written to, ")


def test_no_name_is_every_unit_of_the_preset_and_every_device() -> None:
    units = ["exp", "score_adder"]
    every = {"units": units, "simulated": ()}
    assert hardware([], None, **every) == (units, list(DEVICE_PRESETS))
    assert hardware([], "tiny", **every) == (units, [])
    assert hardware([], "pam-root", **every) == (["exp"], [])
    assert hardware(["pam", "exp", "pam"], None, **every) == (["exp"], ["pam"])
