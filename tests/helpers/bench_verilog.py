"""Verilog of a unit for tests: made once for each size, and with its streams in two words, which benches work on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hw.cosim import stream_ports
from hw.native_arithmetic import with_native
from hw.verilog import convert, convert_once
from tests.helpers.streams import StreamWords

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

__all__ = ["verilog_of", "with_bench"]

_PORT = re.compile(r"^\s*(input|output)\s+((?:\[\d+:0\]\s*)?)(\w+);$", re.MULTILINE)


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


def _words(verilog: str, name: str) -> StreamWords:
    ports = stream_ports(verilog, name).values()
    return StreamWords(*({port.name: port.bits for port in ports if port.is_input == way} for way in (True, False)))


def with_bench(verilog: str, name: str) -> tuple[str, str, StreamWords]:
    """Return ``verilog`` and a module around its top that has all streams in two words, and the other ports as it has.

    The module is ``<name>_bench``, its words are ``bench_driven`` and ``bench_seen``. A top without streams stays.

    Returns
    -------
    tuple of str, str and StreamWords
        The text, its top module and the layout of the words.
    """
    words = _words(verilog, name)
    if not words.inputs and not words.outputs:
        return verilog, name, words
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
    around = f"module {name}_bench ({', '.join(header)});\n  {name} unit ({places});\nendmodule\n"
    return f"{verilog}\n{around}", f"{name}_bench", words


class _Slices:
    """Gives the bits of a word away, lowest first."""

    def __init__(self, word: str) -> None:
        self._word, self._used = word, 0

    def next(self, bits: int) -> str:
        self._used += bits
        return f"{self._word}[{self._used - 1}:{self._used - bits}]"
