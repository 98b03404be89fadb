"""Turns Verilog text into an executable model, once: builds are kept by the hash of everything they depend on.

The C++ runtime of Verilator is compiled once for all designs and linked into each, and its header is parsed once for
all that are compiled alike, so that a build costs the design's own code only. That is a dozen files: one file includes
all that run often, another the code that runs once, before the first cycle, which is half of it and not worth
optimising.
A build appears under its final name when it is complete, so an interrupted one is never taken for a finished one; two
processes that want the same wait for one another.
"""

from __future__ import annotations

import concurrent.futures
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hw.alike import merge_alike
from hw.builds import build_root, digest
from hw.locks import only_one
from hw.toolchain import Toolchain, ToolError, find_toolchain

__all__ = ["SMALL_CODE", "Harness", "build_model"]

SMALL_CODE = ("--inline-mult", "50", "-fno-dfg")
"""Flags for Verilator that leave modules functions of their own, each compiled once for all its places.

Half the code of a bank group, and half the time to build it; for runs too short to earn that back. So are rewrites of
the graph of all signals, which take about a quarter of Verilator's own time.
"""

_COMPILE_FLAGS = ("-std=gnu++17", "-DVERILATOR=1")
_MACROS = ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_SAIF", "TRACE_VCD")
_ONCE = "-O0"
"""Compiler optimisation of code that runs once."""

_SMALL, _LARGE = 500_000, 2_000_000
"""Characters of code below which it does not deserve a file of its own, and above which it is divided."""

_COMPLAINT = re.compile(r"%Warning|%Error|\berror\b")
_RUNTIME_SOURCES = ("verilated.cpp", "verilated_threads.cpp")


@dataclass(frozen=True)
class Harness:
    """The C++ main program that drives a model, and how the model must be made for it.

    Parameters
    ----------
    source : str
        C++ text of the main program; it includes ``Vtop.h``.
    optimise : str
        Compiler optimisation for the code that runs in every cycle.
    verilator_flags, link_flags : tuple of str
        Added to the two commands.
    macros : tuple of str
        Which of Verilator's ``VM_...`` are 1, by name behind the prefix.
    runtime_sources : tuple of str
        Further files of Verilator's runtime to link.
    compile_flags : tuple of str
        Added to the commands that compile, those of the runtime among them.
    """

    source: str
    optimise: str = "-Og"
    verilator_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    runtime_sources: tuple[str, ...] = ()
    compile_flags: tuple[str, ...] = field(default=(), repr=False)


def build_model(verilog: str, top: str, harness: Harness) -> Path:
    """Return an executable of ``verilog`` driven by ``harness``, building it if it is not there yet.

    Parameters
    ----------
    verilog : str
        Complete Verilog text.
    top : str
        Name of its top module.
    harness : Harness
        Main program and build settings.

    Returns
    -------
    Path
        The executable; its folder is named by the hash of texts, settings and tool versions.

    Raises
    ------
    ToolError
        If a tool is missing, Verilator refuses the text or the compiler fails.
    """
    tools = find_toolchain()
    key = digest(verilog, top, repr(harness), *harness.compile_flags, repr(_COMPILE_FLAGS), _ONCE, tools.description)
    folder = build_root() / "rtl" / f"{top}-{key[:16]}"
    executable = folder / top
    if not executable.exists():
        with only_one(folder):
            if not executable.exists():
                _build(tools, folder, verilog, top, harness)
    return executable


def _build(tools: Toolchain, folder: Path, verilog: str, top: str, harness: Harness) -> None:
    sources = (*_RUNTIME_SOURCES, *harness.runtime_sources)
    runtime = [_runtime_object(tools, name, harness.compile_flags) for name in sources]
    with _Workplace(folder) as work:
        source = work / f"{top}.v"
        source.write_text(merge_alike(verilog))
        (work / "main.cpp").write_text(harness.source)
        command = [str(tools.verilator), "--cc", "--exe", "-O3", "--Mdir", str(work), "--prefix", "Vtop"]
        # Amaranth's expressions rely on Verilog's context widths, which Verilator calls suspicious.
        command += ["--top-module", top, "-Wno-WIDTH", "--no-timing", *harness.verilator_flags, str(source)]
        _run(command, env={**os.environ, "VERILATOR_ROOT": str(tools.verilator_root)})
        flags = [*_flags(tools, harness.macros), *harness.compile_flags]
        files = []
        for path, optimise in _joined(work, harness.optimise):
            header = _header(tools, (*flags, optimise))
            files.append((path, [*flags, optimise, "-include", str(header), f"-I{work}"]))
        objects = _compile(tools, files)
        _run([*tools.cxx, *map(str, objects + runtime), "-o", str(work / top), "-pthread", *harness.link_flags])
        for leftover in set(work.iterdir()) - {work / top, source}:
            leftover.unlink()


def _flags(tools: Toolchain, macros: tuple[str, ...] = ()) -> list[str]:
    include = tools.verilator_root / "include"
    defined = [f"-DVM_{name}={int(name in macros)}" for name in _MACROS]
    return [*_COMPILE_FLAGS, *defined, f"-I{include}", f"-I{include / 'vltstd'}"]


def _header(tools: Toolchain, flags: tuple[str, ...]) -> Path:
    """Return a header that includes the runtime's, precompiled for these flags where the compiler is GCC.

    Every file of every design would parse it for a second. GCC finds the precompiled one beside it and takes it if the
    flags are the same; other compilers are given the header as it is.
    """
    folder = build_root() / "headers" / digest(tools.description, *flags)[:16]
    if not folder.exists():
        with only_one(folder):
            if not folder.exists():
                with _Workplace(folder) as work:
                    header = work / "runtime.h"
                    header.write_text('#include "verilated.h"\n')
                    if "clang" not in tools.cxx_version:
                        made = f"{header}.gch"
                        _run([*tools.cxx, *flags, "-x", "c++-header", str(header), "-o", made])
    return folder / "runtime.h"


def _joined(work: Path, optimise: str) -> list[tuple[Path, str]]:
    """Write the files that include those of a design, and return them with the optimisation of each."""
    sources = sorted(work.glob("*.cpp"))
    once = [path for path in sources if path.stem.endswith("__Slow")]
    often = [path for path in sources if path not in once]
    if optimise == _ONCE or _characters(once) < _SMALL:
        often, once = sources, []
    parts = min(os.cpu_count() or 1, 1 + _characters(often) // _LARGE)
    groups: list[list[Path]] = [[] for _ in range(parts)]
    for path in sorted(often, key=lambda path: -path.stat().st_size):
        min(groups, key=_characters).append(path)
    files = []
    for number, (paths, level) in enumerate([*((group, optimise) for group in groups), (once, _ONCE)]):
        file = work / f"joined{number}.cc"
        file.write_text("".join(f'#include "{path.name}"\n' for path in paths))
        if paths:
            files.append((file, level))
    return files


def _characters(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _runtime_object(tools: Toolchain, name: str, compile_flags: tuple[str, ...]) -> Path:
    """Return the object of one file of Verilator's runtime."""
    flags = [*_flags(tools), "-O1", *compile_flags]
    folder = build_root() / "runtime" / f"{Path(name).stem}-{digest(tools.description, repr(flags), name)[:16]}"
    if not folder.exists():
        with only_one(folder):
            if not folder.exists():
                with _Workplace(folder) as work:
                    source = work / "all.cc"
                    source.write_text(f'#include "{name}"\n')
                    _compile(tools, [(source, flags)])
    return folder / "all.o"


def _compile(tools: Toolchain, sources: list[tuple[Path, list[str]]]) -> list[Path]:
    """Compile each file with its flags, side by side, to an object beside it."""
    launcher = [found] if (found := shutil.which("ccache")) else []
    objects = [source.with_suffix(".o") for source, _ in sources]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(_run, [*launcher, *tools.cxx, *flags, "-c", str(source), "-o", str(target)])
            for (source, flags), target in zip(sources, objects, strict=True)
        ]
        for job in jobs:
            job.result()
    return objects


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if result.returncode:
        lines = (result.stderr + result.stdout).splitlines()
        said = next((line for line in lines if _COMPLAINT.search(line)), "no message")
        raise ToolError(f"{Path(command[0]).name} must succeed, it ended with status {result.returncode}: {said}")


class _Workplace:
    """A temporary folder beside ``folder`` that takes its name when the block ends well."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Path:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._work = Path(tempfile.mkdtemp(prefix=f".{self._folder.name}-", dir=self._folder.parent))
        return self._work

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self._work)
            return
        try:
            self._work.rename(self._folder)
        except OSError:  # another process finished the same build first
            shutil.rmtree(self._work)
