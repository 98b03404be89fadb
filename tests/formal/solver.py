"""A circuit to the solvers of ``pyosys``: Yosys makes an and-inverter graph of it, ABC searches that.

Two searches, one claim at a time. Bounded model checking goes through all runs of up to n cycles from reset and finds
the shortest in which the claim fails. IC3 (``pdr``; Bradley, VMCAI 2011; Een, Mishchenko and Brayton, FMCAD 2011) looks
for an invariant that follows from itself by induction over one cycle and implies the claim, and checks the one it
found: the claim then holds in all runs of any length.

What has no defined value (a memory's read register before its first read, a read behind a memory's end, a don't-care)
is a free input of the graph: a claim that holds does not depend on it.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amaranth.back import rtlil

from hw.toolchain import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amaranth.hdl import Module, Signal

__all__ = ["Outcome", "SolverError", "check", "graph"]

_FLOW = """\
read_rtlil circuit.il
hierarchy -top top
flatten
proc
memory -nomap
memory_map
opt -fast
async2sync
techmap
opt -fast -nodffe -nosdff
dffunmap
simplemap
setundef -anyseq
opt_expr
opt_clean
aigmap
opt_clean
write_aiger -zinit -symbols circuit.aig
"""
_RUN = "from pyosys import libyosys\nlibyosys.run_pass('script flow.ys', libyosys.Design())\n"
_INPUT = re.compile(r"^(?P<name>.*?)(\[(?P<bit>\d+)\])?@(?P<cycle>\d+)=(?P<value>[01])$")


class SolverError(RuntimeError):
    """A tool ended without an answer; the message is one line with its complaint."""


@dataclass(frozen=True)
class Outcome:
    """What was found out about one claim.

    Parameters
    ----------
    result : str
        ``proven`` for runs of any length, ``bounded`` for all runs of up to ``cycles``, or ``fails``.
    cycles : int
        Cycles of the longest runs that were gone through, or of the shortest in which the claim fails.
    clauses : int
        Clauses of the invariant that proves it.
    seconds : float
        Time that the search took.
    limit_seconds : int
        Limit of the search for an invariant; 0 where none was searched.
    inputs : tuple of dict
        Inputs by name, a dict a cycle, of a run in which it fails.
    """

    result: str
    cycles: int
    clauses: int = 0
    seconds: float = 0.0
    limit_seconds: int = 0
    inputs: tuple[dict[str, int], ...] = ()


def graph(circuit: Module, inputs: Sequence[Signal], outputs: Sequence[Signal]) -> bytes:
    """Return the and-inverter graph of a circuit, in AIGER's binary format with the names of its inputs.

    Raises
    ------
    SolverError
        If Yosys refuses the circuit.
    ToolError
        If ``pyosys`` is not installed.
    """
    text = rtlil.convert(circuit, ports=[*inputs, *outputs], emit_src=False)
    _package()
    with tempfile.TemporaryDirectory(prefix="nearkv-formal-") as name:
        work = Path(name)
        (work / "circuit.il").write_text(text)
        (work / "flow.ys").write_text(_FLOW)
        done = subprocess.run([sys.executable, "-c", _RUN], cwd=work, capture_output=True, text=True, check=False)
        made = work / "circuit.aig"
        if done.returncode or not made.exists():
            raise SolverError(f"Yosys makes no graph: {_complaint(done.stdout + done.stderr)}")
        return made.read_bytes()


def check(aiger: bytes, output: int, *, cycles: int, seconds: int) -> Outcome:
    """Search for a run in which an output is high, and for a proof that there is none.

    Parameters
    ----------
    aiger : bytes
        What :func:`graph` returns.
    output : int
        Number of the output, high where the claim fails.
    cycles : int
        Runs of up to so many cycles are gone through first.
    seconds : int
        Limit of the search for a proof; 0 leaves it out.

    Raises
    ------
    SolverError
        If ABC ends without an answer.
    ToolError
        If ``pyosys`` is not installed.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nearkv-formal-") as name:
        work = Path(name)
        (work / "circuit.aig").write_bytes(aiger)
        read = f"read_aiger circuit.aig; cone -a -O {output}; scleanup"
        if seconds:
            told = _abc(work, f"{read}; pdr -q -T {seconds}; print_status; write_cex -n run")
            if _status(told) == 0:
                return _failure(work / "run", began)
            if _status(told) == 1:
                checked = re.search(r"Verification of invariant with (\d+) clauses was successful", told)
                if checked is None:
                    raise SolverError(f"ABC does not confirm its invariant: {_complaint(told)}")
                return Outcome("proven", 0, int(checked[1]), time.monotonic() - began, seconds)
        told = _abc(work, f"{read}; bmc3 -F {cycles}; print_status; write_cex -n run")
        if _status(told) == 0:
            return _failure(work / "run", began)
        if f"No output asserted in {cycles} frames" not in told:
            raise SolverError(f"ABC goes through no runs: {_complaint(told)}")
    return Outcome("bounded", cycles, 0, time.monotonic() - began, seconds)


def _package() -> Path:
    """Return the folder of ``pyosys``."""
    spec = importlib.util.find_spec("pyosys")
    if spec is None or spec.origin is None:
        raise ToolError("proofs need the Python package pyosys: pip install pyosys==0.70")
    return Path(spec.origin).parent


def _abc(work: Path, commands: str) -> str:
    done = subprocess.run(
        [str(_package() / "yosys-abc"), "-c", commands], cwd=work, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def _status(told: str) -> int:
    """Return 0 where a claim fails, 1 where it is proven, -1 otherwise."""
    found = re.search(r"Status = (-?\d+)", told)
    if found is None:
        raise SolverError(f"ABC gives no status: {_complaint(told)}")
    return int(found[1])


def _failure(run: Path, began: float) -> Outcome:
    """Return the outcome that the file of a run shows."""
    cycles: list[dict[str, int]] = []
    for word in run.read_text().split():
        found = _INPUT.match(word)
        if found is None:
            continue
        cycle = int(found["cycle"])
        cycles.extend({} for _ in range(cycle + 1 - len(cycles)))
        bit = int(found["value"]) << int(found["bit"] or 0)
        cycles[cycle][found["name"]] = cycles[cycle].get(found["name"], 0) | bit
    return Outcome("fails", len(cycles), seconds=time.monotonic() - began, inputs=tuple(cycles))


def _complaint(log: str) -> str:
    """Return the line of the log that says what went wrong, or the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "rror:" in line]
    return (errors or lines or ["no output"])[-1]
