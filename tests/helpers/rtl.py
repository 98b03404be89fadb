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
from hw.cosim import stream_ports
from hw.native_arithmetic import native_cpp, with_native
from hw.verilate import SMALL_CODE, Harness, build_model
from hw.verilog import convert, convert_once
from hw.waves import traced, wave_file
from tests.helpers.streams import StreamWords

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

__all__ = ["case", "run_cocotb", "stream_words", "verilog_of"]

_REWRITTEN = {"COCOTB_REWRITE_ASSERTION_FILES": "tests/*.py"}
"""Where assertions tell their values: in tests alone, as every run would compile all of NumPy and Amaranth for it."""

_CASE, _STREAMS = "NEARKV_TEST_CASE", "NEARKV_TEST_STREAMS"

_PORT = re.compile(r"^\s*(input|output)\s+((?:\[\d+:0\]\s*)?)(\w+);$", re.MULTILINE)


def case() -> Any:
    """Return what the caller of :func:`run_cocotb` passed as ``case``; for use inside cocotb tests."""
    return json.loads(os.environ[_CASE])


def stream_words() -> StreamWords:
    """Return the layout of the words around the unit under test; for use inside cocotb tests."""
    return StreamWords(**json.loads(os.environ[_STREAMS]))


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
    words = _stream_words(verilog, name)
    if words.inputs or words.outputs:
        verilog, name = _with_bench(verilog, name, words), f"{name}_bench"
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


def _stream_words(verilog: str, name: str) -> StreamWords:
    ports = stream_ports(verilog, name).values()
    return StreamWords(*({port.name: port.bits for port in ports if port.is_input == way} for way in (True, False)))


def _with_bench(verilog: str, name: str, words: StreamWords) -> str:
    """Return ``verilog`` and a module around its top that has all streams in two words, and the other ports as it has.

    The top module is ``<name>_bench``, its words are ``bench_driven`` and ``bench_seen`` (:class:`StreamWords`).
    """
    driven, seen = (_Slices(word) for word in ("bench_driven", "bench_seen"))
    joined = {"rst": driven.next(1)}
    for stream, bits in words.inputs.items():
        joined |= {f"{stream}__valid": driven.next(1), f"{stream}__payload": driven.next(bits)}
        joined[f"{stream}__ready"] = seen.next(1)
    for stream, bits in words.outputs.items():
        joined |= {f"{stream}__valid": seen.next(1), f"{stream}__payload": seen.next(bits)}
        joined[f"{stream}__ready"] = driven.next(1)
    start = verilog.index(f"module {name}(")
    body = verilog[start : verilog.index("endmodule", start)]
    ports = {match[3]: f"{match[1]} {match[2]}{match[3]}" for match in _PORT.finditer(body)}
    header = [f"input [{words.driven_bits - 1}:0] bench_driven", f"output [{words.seen_bits - 1}:0] bench_seen"]
    header += [text for port, text in ports.items() if port not in joined]
    places = ", ".join(f".{port}({joined.get(port, port)})" for port in ports)
    return f"{verilog}\nmodule {name}_bench ({', '.join(header)});\n  {name} unit ({places});\nendmodule\n"


class _Slices:
    """Gives the bits of a word away, lowest first."""

    def __init__(self, word: str) -> None:
        self._word, self._used = word, 0

    def next(self, bits: int) -> str:
        self._used += bits
        return f"{self._word}[{self._used - 1}:{self._used - bits}]"


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
