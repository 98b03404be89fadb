"""Runs a Verilated unit at full speed: streams of payloads in, streams of payloads and their cycles out.

A small C++ loop offers every input item as soon as it can, or from a given cycle on, and takes every output
item at once, so that the cycles it records are those of the unit without stalls. It knows nothing of the unit
but the stream ports ``<name>__payload``, ``<name>__valid`` and ``<name>__ready`` in the Verilog text, so it also runs a
variant of a unit that was not generated here.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.cosim_main import main_cpp
from hw.native_arithmetic import native_cpp
from hw.verilate import SMALL_CODE, Harness, build_model
from hw.waves import traced, wave_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

__all__ = ["CosimError", "Port", "StreamRecord", "StreamRun", "run_streams", "stream_ports"]

_RUNS = "NEARKV_RUNS"
"""Environment variable that is ``short`` where no run is worth an optimised build, as in tests."""

_SHORT_RUN: dict[str, Any] = {"verilator_flags": SMALL_CODE}
"""Build settings of models whose runs end within seconds: a channel is built in half the time and runs at a third."""

_LONG_RUN: dict[str, Any] = {"optimise": "-O2", "verilator_flags": ("--x-assign", "fast", "--x-initial", "fast")}
"""Build settings of models with native arithmetic, which are made for long runs unless the environment says short."""

_PORT = re.compile(r"^\s*(input|output)\s+(?:wire\s+|reg\s+)?(?:\[(\d+):0\]\s*)?(\w+)__payload;$", re.MULTILINE)


class CosimError(RuntimeError):
    """A run did not deliver the outputs it was asked for."""


@dataclass(frozen=True)
class Port:
    """One stream of a unit as its Verilog declares it."""

    name: str
    is_input: bool
    bits: int

    @property
    def storage_bytes(self) -> int:
        """Bytes of the C++ variable that Verilator makes for the payload."""
        for size in (1, 2, 4, 8):
            if self.bits <= 8 * size:
                return size
        return 4 * -(-self.bits // 32)


@dataclass(frozen=True)
class StreamRecord:
    """Items that one stream transferred.

    Parameters
    ----------
    cycles : ndarray of uint64, shape (items,)
        Cycle of each transfer, counted from the first rising edge after reset.
    payloads : list of int
        The items, as the integers their layout packs them to.
    """

    cycles: npt.NDArray[np.uint64]
    payloads: list[int]


@dataclass(frozen=True)
class StreamRun:
    """What a run did: its length in cycles, the record of each stream, and the seconds that the model ran."""

    cycles: int
    streams: dict[str, StreamRecord]
    wall_s: float


def stream_ports(verilog: str, top: str) -> dict[str, Port]:
    """Return the streams of module ``top``, by name.

    Raises
    ------
    ValueError
        If the text has no module of that name.
    """
    start = re.search(rf"^module {re.escape(top)}\(", verilog, re.MULTILINE)
    if start is None:
        raise ValueError(f"Verilog text must have a module {top!r}, it has none")
    body = verilog[start.start() : verilog.index("endmodule", start.start())]
    return {
        match[3]: Port(match[3], match[1] == "input", 1 + int(match[2] or 0))
        for match in _PORT.finditer(body)
        if re.search(rf"\b{match[3]}__valid;", body)
    }


def run_streams(
    verilog: str,
    top: str,
    inputs: Mapping[str, Sequence[int] | npt.NDArray[np.unsignedinteger]],
    outputs: Mapping[str, int],
    *,
    earliest: Mapping[str, Sequence[int] | npt.NDArray[np.integer]] | None = None,
    max_cycles: int = 100_000_000,
    long_run: bool = False,
) -> StreamRun:
    """Drive ``inputs`` through the unit until each output stream has delivered its number of items.

    Parameters
    ----------
    verilog, top : str
        The unit.
    inputs : mapping of str to sequence of int
        Payloads of each input stream. A stream that is not named is never offered anything.
    outputs : mapping of str to int
        Items to wait for on each output stream; unnamed ones are taken and recorded all the same.
    earliest : mapping of str to sequence of int, optional
        First cycle in which each item of an input stream is offered, should its predecessor be gone by then; the items
        of unnamed streams are offered as soon as they can be.
    max_cycles : int
        Gives up after this many cycles.
    long_run : bool
        The run is worth an optimised build, as every run with native arithmetic is, unless the environment says short.

    Returns
    -------
    StreamRun

    Raises
    ------
    ValueError
        If a stream does not exist or goes the other way, a payload does not fit, or ``earliest`` has no cycle, or a
        negative one, for an item.
    CosimError
        If the outputs did not come within ``max_cycles``.
    hw.toolchain.ToolError
        If the model can't be built.
    """
    ports = stream_ports(verilog, top)
    earliest = earliest or {}
    for name, is_input in [(name, True) for name in (*inputs, *earliest)] + [(name, False) for name in outputs]:
        if name not in ports or ports[name].is_input != is_input:
            known = ", ".join(sorted(port.name for port in ports.values() if port.is_input == is_input))
            raise ValueError(f"{'input' if is_input else 'output'} stream must be one of {known}, not {name!r}")
    has_clock = re.search(r"^\s*input clk;$", verilog, re.MULTILINE) is not None
    native = native_cpp(verilog)
    main = native + main_cpp(list(ports.values()), has_clock)
    optimised = (native or long_run) and os.environ.get(_RUNS) != "short"
    harness = Harness(source=main, **(_LONG_RUN if optimised else _SHORT_RUN))
    wave = wave_file(top)
    executable = build_model(verilog, top, traced(harness) if wave else harness)
    with tempfile.TemporaryDirectory() as folder:
        for port in ports.values():
            if port.is_input:
                payloads = inputs.get(port.name, ())
                Path(folder, port.name).write_bytes(_pack(port, payloads))
                if port.name in earliest:
                    cycles = _cycles(port.name, earliest[port.name], len(payloads))
                    Path(folder, port.name + ".cycles").write_bytes(cycles)
        counts = [str(outputs.get(port.name, 0)) for port in ports.values()]
        command = [str(executable), folder, str(max_cycles), *counts, *([str(wave)] if wave else [])]
        start = time.perf_counter()
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        wall_s = time.perf_counter() - start
        if result.returncode:
            raise CosimError(result.stderr.strip() or f"{top} must end well, it ended with status {result.returncode}")
        cycles = int(result.stdout)
        found = {port.name: _unpack(port, Path(folder, port.name + ".log")) for port in ports.values()}
        return StreamRun(cycles, found, wall_s)


def _pack(port: Port, payloads: Sequence[int] | npt.NDArray[np.unsignedinteger]) -> bytes:
    size = port.storage_bytes
    if isinstance(payloads, np.ndarray) and size <= 8:
        if payloads.size and int(payloads.max()) >> port.bits:
            raise ValueError(f"payload of {port.name} must fit {port.bits} bits, not {int(payloads.max())!r}")
        return payloads.astype(f"<u{size}").tobytes()
    for payload in payloads:
        if int(payload) >> port.bits:
            raise ValueError(f"payload of {port.name} must fit {port.bits} bits, not {payload!r}")
    return b"".join(int(payload).to_bytes(size, "little") for payload in payloads)


def _cycles(name: str, cycles: Sequence[int] | npt.NDArray[np.integer], count: int) -> bytes:
    if len(cycles) != count:
        raise ValueError(f"earliest must have a cycle for each of the {count} items of {name}, not {len(cycles)}")
    numbers = np.asarray(cycles, dtype=np.int64)
    if count and numbers.min() < 0:
        raise ValueError(f"earliest of {name} must be at least 0, not {int(numbers.min())}")
    return numbers.astype("<u8").tobytes()


def _unpack(port: Port, log: Path) -> StreamRecord:
    size = port.storage_bytes
    record = np.dtype([("cycle", "<u8"), ("payload", f"<u{size}" if size <= 8 else f"V{size}")])
    items = np.frombuffer(log.read_bytes(), dtype=record)
    payloads = items["payload"].tolist()
    if size > 8:
        payloads = [int.from_bytes(payload, "little") for payload in payloads]
    return StreamRecord(items["cycle"].copy(), payloads)
