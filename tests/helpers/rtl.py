"""Builds a component with Verilator and runs cocotb tests on it, demanding that exactly the expected number ran."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cocotb_tools.config
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from hw.builds import build_root
from hw.cosim import stream_ports
from hw.native_arithmetic import native_cpp, with_native
from hw.verilate import Harness, build_model
from hw.verilog import convert, convert_once

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

__all__ = ["case", "run_cocotb", "verilog_of"]

_CASE = "NEARKV_TEST_CASE"


def case() -> Any:
    """Return what the caller of :func:`run_cocotb` passed as ``case``; for use inside cocotb tests."""
    return json.loads(os.environ[_CASE])


def verilog_of(
    unit: Component | type[Component], *parameters: object, name: str = "dut", platform: object = None
) -> str:
    """Return the Verilog of a component, or of a class with its parameters, with all that it places.

    The second is kept between runs, as generating it takes a while. Made for :data:`hw.native_arithmetic.NATIVE`, a
    unit is built in half the time; of every unit one size at least is tested with its own gates.
    """
    if isinstance(unit, type):
        (made_of,) = parameters
        return with_native(convert_once(unit, made_of, name=name, platform=platform))
    return with_native(convert(unit, name=name, platform=platform))


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
    executable = build_model(verilog, name, _harness(native_cpp(verilog)))
    inputs = ",".join(port.name for port in stream_ports(verilog, name).values() if port.is_input)
    test = os.environ.get("PYTEST_CURRENT_TEST", "test").rsplit("::", 1)[-1].split(" ")[0].replace("/", "_")
    folder = build_root() / "runs" / executable.parent.name / test
    runner = get_runner("verilator")
    try:
        results = runner.test(
            test_module=module,
            hdl_toplevel=name,
            hdl_toplevel_lang="verilog",
            build_dir=executable.parent,
            test_dir=folder,
            seed=seed,
            plusargs=[f"+inputs={inputs}"],
            extra_env={_CASE: json.dumps(case)},
            results_xml=str(folder / "results.xml"),
        )
    except SystemExit as error:  # how the runner reports a failed test under pytest
        raise AssertionError(f"cocotb tests of {module} must pass on {name}, see {folder}") from error
    total, failed = get_results(results)
    assert total == expected, f"{expected} cocotb tests of {module} must run, {total} did"
    assert failed == 0, f"no cocotb test of {module} may fail, {failed} did"


@cache
def _harness(functions: str) -> Harness:
    """Return cocotb's main program, with the C++ functions that the design calls."""
    libraries = cocotb_tools.config.libs_dir
    return Harness(
        source=functions + Path(cocotb_tools.config.share_dir, "lib", "verilator", "verilator.cpp").read_text(),
        verilator_flags=("--vpi", "--public-depth", "1", "--timescale", "1ns/1ps"),
        link_flags=(f"-Wl,-rpath,{libraries}", f"-L{libraries}", "-lcocotbvpi_verilator"),
        runtime_sources=("verilated_vpi.cpp",),
    )
