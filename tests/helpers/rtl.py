"""Builds a component with Verilator and runs cocotb tests on it, demanding that exactly the expected number ran."""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import cocotb_tools.config
from cocotb_tools.runner import get_runner

from hw.builds import build_root, digest
from hw.native_arithmetic import native_cpp
from hw.verilate import SMALL_CODE, Harness, build_model
from hw.waves import traced, wave_file
from tests.helpers.bench_verilog import verilog_of, with_bench
from tests.helpers.streams import StreamWords

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

__all__ = ["case", "run_cocotb", "stream_words"]

_REWRITTEN = {"COCOTB_REWRITE_ASSERTION_FILES": "tests/*.py"}
"""Where assertions tell their values: in tests alone, as every run would compile all of NumPy and Amaranth for it."""

_CASE, _STREAMS = "NEARKV_TEST_CASE", "NEARKV_TEST_STREAMS"


def case() -> Any:
    """Return what the caller of :func:`run_cocotb` passed as ``case``; for use inside cocotb tests."""
    return json.loads(os.environ[_CASE])


def stream_words() -> StreamWords:
    """Return the layout of the words around the unit under test; for use inside cocotb tests."""
    return StreamWords(**json.loads(os.environ[_STREAMS]))


def run_cocotb(
    unit: Component | type[Component],
    *parameters: object,
    module: str,
    expected: int,
    case: object = None,
    seed: int = 1,
    name: str = "dut",
    platform: object = None,
) -> None:
    """Run the cocotb tests of ``module`` on ``unit``.

    Parameters
    ----------
    unit, parameters : Component, or class and its parameters
        Unit under test, as :func:`verilog_of` takes it; its Verilog decides which build is used.
    module : str
        Dotted name of the module with the cocotb tests.
    expected : int
        Number of tests that must have run.
    case : object
        Anything JSON can carry; the tests read it with :func:`case`.
    seed : int
        Regression seed; every test derives and logs its own.
    name : str
        Top module name.
    platform : object
        What the Verilog is made for, as :func:`verilog_of` takes it.

    Raises
    ------
    AssertionError
        If another number of tests ran, or one failed.
    """
    verilog = verilog_of(unit, *parameters, name=name, platform=platform)
    verilog, name, words = with_bench(verilog, name)
    run = _Run(verilog, name, module, seed, {_CASE: json.dumps(case), _STREAMS: json.dumps(asdict(words))})
    wave = wave_file(name)
    results = run.run()
    if wave:
        run.run(wave, next((test for test, passed in results.items() if not passed), None))
    failed = [test for test, passed in results.items() if not passed]
    assert not failed, f"cocotb tests of {module} must pass on {name}, {', '.join(failed)} did not, see {run.folder}"
    assert len(results) == expected, f"{expected} cocotb tests of {module} must run, {len(results)} did"


@dataclass(frozen=True)
class _Run:
    """The cocotb tests of ``module`` on one design, to be run plainly or with a waveform."""

    verilog: str
    top: str
    module: str
    seed: int
    environment: dict[str, str]

    @property
    def folder(self) -> Path:
        """Where results and logs go: one folder a test of pytest, as several may run the same design at once."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "test").rsplit("::", 1)[-1].split(" ")[0].replace("/", "_")
        return build_root() / "runs" / f"{self.top}-{digest(self.verilog)[:16]}" / test

    def run(self, wave: Path | None = None, only: str | None = None) -> dict[str, bool]:
        """Run all tests, or ``only`` one, and return which passed."""
        harness = _harness(native_cpp(self.verilog))
        executable = build_model(self.verilog, self.top, traced(harness) if wave else harness)
        self.folder.mkdir(parents=True, exist_ok=True)
        # Inside the simulation pytest looks for its settings from this folder upwards, and would put the checkout that
        # has the builds, which may be another one, before that of the tests.
        (self.folder / "pytest.ini").touch()
        results = self.folder / "results.xml"
        results.unlink(missing_ok=True)
        # Under pytest the runner ends with SystemExit when a test fails.
        with contextlib.suppress(SystemExit):
            get_runner("verilator").test(
                test_module=self.module,
                hdl_toplevel=self.top,
                hdl_toplevel_lang="verilog",
                build_dir=executable.parent,
                test_dir=self.folder,
                seed=self.seed,
                extra_env=self.environment | _REWRITTEN,
                results_xml=str(results),
                test_args=["--trace", "--trace-file", str(wave)] if wave else [],
                test_filter=f"{re.escape(only)}$" if only else None,
            )
        assert results.exists(), (
            f"cocotb tests of {self.module} must end on {self.top}, they did not, see {self.folder}"
        )
        cases = ElementTree.parse(results).iter("testcase")
        return {case.attrib["name"]: case.find("failure") is None and case.find("error") is None for case in cases}


@cache
def _harness(functions: str) -> Harness:
    """Return cocotb's main program, with the C++ functions that the design calls."""
    libraries = cocotb_tools.config.libs_dir
    return Harness(
        source=functions + Path(cocotb_tools.config.share_dir, "lib", "verilator", "verilator.cpp").read_text(),
        verilator_flags=("--vpi", "--public-depth", "1", "--timescale", "1ns/1ps", *SMALL_CODE),
        link_flags=(f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator"),
        runtime_sources=("verilated_vpi.cpp",),
    )
