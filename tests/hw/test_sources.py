"""Promise: kept Verilog follows from the sources its unit imports, all of them, and from no others."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import pytest

import hw
from hw import sources
from hw.conversion import convert_once
from hw.sources import classes_of, source_digest, source_files

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = """
import importlib, sys
{modules}
from hw.conversion import convert
convert({component}, name="unit")
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("golden", "hw")))
"""

_LOGIC_DIE = """hw.devices.logic_die.LogicDieBench(
    hw.logic_die_params.LogicDieParams(channel=hw.presets.devices.DEVICE_PRESETS["attacc"].channel)
)"""


@pytest.mark.parametrize(
    ("modules", "component"),
    [
        (["hw.units.finish", "hw.params"], "hw.units.finish.FinishUnit(hw.params.FinishParams(head_dim=4, lanes=2))"),
        (["hw.devices.logic_die", "hw.presets.devices", "hw.logic_die_params"], _LOGIC_DIE),
    ],
    ids=["unit", "device"],
)
def test_everything_that_making_a_unit_loads_is_among_its_sources(modules: list[str], component: str) -> None:
    """A fresh process tells what it loaded, the import statements inside functions run; the sources hold all of it."""
    imports = "\n".join(f"import {name}" for name in modules)
    program = _PROGRAM.format(modules=imports, component=component)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert loaded >= {*modules, "hw.float", "golden.formats"}
    assert loaded <= source_files([*modules, "hw.conversion"]).keys()


def test_nothing_that_makes_hardware_loads_modules_by_name() -> None:
    """What the import statements do not show would not count."""
    files = source_files(["hw.conversion", "hw.devices.channel_bench", "hw.devices.logic_die", "hw.units.finish"])
    assert len(files) > 80
    for name, file in files.items():
        assert not {"import_module", "__import__", "exec_module"} & set(file.read_text().split("(")), name
        assert "import_module(" not in file.read_text(), name


def test_reports_tools_and_presets_are_not_sources_of_a_device() -> None:
    files = source_files(["hw.conversion", "hw.devices.channel_bench", "hw.device_params"])
    assert files.keys() >= {"hw.devices.sequencer", "hw.units.processing", "hw.memory.rules", "golden.exp.spec", "hw"}
    assert not files.keys() & {"hw.measure", "hw.synth", "hw.cosim", "hw.presets", "hw.verilog", "golden.exp.fit"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a package whose module ``unit`` imports ``deep`` through a function, another module and a cycle."""
    texts = {
        "__init__.py": "",
        "unit.py": "from made import inner\n\ndef make(params):\n    from made.inner.near import FOUND\n",
        "other.py": "",
        "inner/__init__.py": "",
        "inner/near.py": "from .deep import FOUND\nimport math\n",
        "inner/deep.py": "from made.unit import make\nFOUND = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / "made" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "made" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    _forget()
    yield tmp_path / "made"
    _forget()


def _forget() -> None:
    """Let the next look read the files again, as a new process does."""
    for function in (sources._digest, sources._text, sources._path, sources._imports):
        function.cache_clear()


def test_imports_are_followed_through_functions_packages_and_cycles(package: Path) -> None:
    assert list(source_files(["made.unit"])) == [
        "made",
        "made.inner",
        "made.inner.deep",
        "made.inner.near",
        "made.unit",
    ]
    assert source_files(["made.unit"])["made.inner"] == package / "inner" / "__init__.py"
    assert list(source_files(["made.other"])) == ["made", "made.other"]
    assert source_files(["numpy"]).keys() == {"numpy"} | source_files(["numpy"]).keys()
    assert source_files([]) == {}


@pytest.mark.parametrize(
    ("file", "changes"), [("unit.py", True), ("inner/deep.py", True), ("__init__.py", True), ("other.py", False)]
)
def test_the_hash_changes_with_every_source_and_with_nothing_else(package: Path, file: str, changes: bool) -> None:
    before = source_digest(["made.unit"])
    (package / file).write_text((package / file).read_text() + "# changed\n")
    assert source_digest(["made.unit"]) == before, "a process goes on with the code that it loaded"
    _forget()
    assert (source_digest(["made.unit"]) != before) == changes


class _Colour(Enum):
    RED = 1


@dataclass(frozen=True)
class _Inner:
    colour: _Colour


@dataclass(frozen=True)
class _Outer:
    parts: tuple[_Inner, ...]
    named: dict[str, float]


def test_the_classes_of_nested_parameters_are_found() -> None:
    found = set(classes_of(_Outer((_Inner(_Colour.RED),), {"a": 1.0})))
    assert found == {_Outer, tuple, _Inner, _Colour, dict, str, float}


def test_text_is_made_once_and_again_for_other_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = []
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path))
    monkeypatch.setattr(hw.conversion, "convert", lambda *_, **__: made.append(1) or "module kept;\n")

    def ask(params: object = 1) -> str:
        return convert_once(_make, params, name="kept")

    assert ask() == ask() == "module kept;\n"
    assert len(made) == 1
    ask(params=2)
    assert len(made) == 2
    monkeypatch.setattr(hw.conversion, "source_digest", lambda _: "other")
    ask()
    assert len(made) == 3


def _make(params: object) -> object:
    return params
