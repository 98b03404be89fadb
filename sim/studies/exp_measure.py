"""One exponential unit measured: its Verilog through Verilator over all operand codes, and through synthesis."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.exp.statistics import measure
from sim.provenance import Part, combine
from sim.studies.exp_area import area_columns
from sim.studies.exp_downstream import downstream
from sim.studies.kept import kept

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from golden.exp import ExpSpec

__all__ = ["UNIT_TOP", "measure_unit", "rtl_results"]

UNIT_TOP = "nearkv_exp"
"""Name of the top module of every unit of the study."""


def measure_unit(spec: ExpSpec, liberty: Path | None) -> dict[str, Any]:
    """Return the row of one unit, without its place among others.

    Parameters
    ----------
    spec : ExpSpec
        The unit.
    liberty : Path or None
        Cell library; None is the technology-neutral one of the package.

    Raises
    ------
    hw.toolchain.ToolError, hw.cosim.CosimError, hw.synth.SynthesisError, hw.liberty.LibertyError
        If a tool is missing or fails, or the library can't be used.
    """
    # Amaranth is loaded here only, in the process that measures.
    from hw import verilog as texts
    from hw.units.exp import ExpUnit

    verilog = texts.convert_once(ExpUnit, spec, name=UNIT_TOP)
    sha256 = hashlib.sha256(verilog.encode()).hexdigest()
    results = rtl_results(verilog)
    area = area_columns(spec, verilog, UNIT_TOP, liberty)
    return {
        "name": spec.name,
        "family": spec.family,
        "parameters": {**spec.parameters, "evaluation": spec.evaluation, "registers": spec.registers},
        "format": spec.fmt.name,
        "result_format": spec.result_fmt.name,
        "domain": spec.domain,
        "subnormals": spec.subnormals,
        **asdict(measure(results, spec.fmt, spec.domain, spec.result_fmt)),
        "equal_to_golden": bool(np.array_equal(results, spec.evaluate_codes(np.arange(results.size)))),
        "latency_cycles": spec.latency_cycles,
        "interval_cycles": spec.interval_cycles,
        **area,
        **downstream(results, spec.fmt, spec.result_fmt),
        "verilog_sha256": sha256,
        "provenance": _provenance(sha256, area),
    }


def _provenance(sha256: str, area: dict[str, Any]) -> dict[str, Any]:
    """Return what each group of numbers is."""
    rtl = Part("results of all operand codes", "measured-rtl", f"Verilator, Verilog sha256 {sha256}")
    cells = Part("cells of the library", "modelled", f"{area['library']}, sha256 {area['library_sha256']}")
    netlist = Part("netlist", "modelled", f"{area['yosys']}, abc script {area['abc_script']}, Verilog sha256 {sha256}")
    cycles = Part("latency and interval", "formula-rtl", "hw.timing.exp, held equal to the RTL by the test suite")
    around = Part(
        "attention around it", "modelled", "golden.attention on golden.samples, bit for bit that of the units"
    )
    return {
        "accuracy": combine([rtl]).to_dict(),
        "downstream": combine([rtl, around]).to_dict(),
        "cycles": combine([cycles]).to_dict(),
        "area": combine([netlist, cells]).to_dict(),
    }


def rtl_results(verilog: str) -> npt.NDArray[np.uint16]:
    """Return the result code of every operand code, from the Verilated unit or from what an earlier run kept of it.

    Parameters
    ----------
    verilog : str
        Text with a top module :data:`UNIT_TOP` that has streams ``i`` and ``o`` of 16 bits.

    Returns
    -------
    ndarray of uint16, shape (65536,)
    """
    from hw.cosim import run_streams
    from hw.toolchain import find_toolchain

    def run() -> bytes:
        codes = np.arange(1 << 16, dtype=np.uint16)
        taken = run_streams(verilog, UNIT_TOP, {"i": codes}, {"o": codes.size})
        return np.array(taken.streams["o"].payloads, dtype="<u2").tobytes()

    causes = (verilog, UNIT_TOP, find_toolchain().description)
    return np.frombuffer(kept("exp-results", causes, run), dtype="<u2").astype(np.uint16)
