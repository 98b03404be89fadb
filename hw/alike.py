"""Makes one module of those that are alike, so that a design of many lanes is one lane's text and its places.

Amaranth writes a module for each place of a component. Verilator then makes code for each: a third of a bank group's
text, and half of its C++, says the same again. Simulation alone needs this; areas are those of the text as written.
"""

from __future__ import annotations

import re

__all__ = ["merge_alike"]

_MODULE = re.compile(r"^module (\\\S+|\w+)(.*?)^endmodule$", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^( +)(\\\S+|\w+)(?= +(?:\\\S+|\w+) +\($)", re.MULTILINE)
_SERIAL = re.compile(r"(dump_module)\$(\d+)")
"""Yosys numbers helpers of its back end through the whole text."""


def merge_alike(verilog: str) -> str:
    """Return ``verilog`` with every module that differs from an earlier one in its name alone replaced by that one.

    Modules that place such modules are alike too, and so on upwards. Modules with parameters stay, as those that place
    them write them in another way.
    """
    bodies = {match[1]: _numbered(match[2]) for match in _MODULE.finditer(verilog)}
    replaced: dict[str, str] = {}
    while True:
        first: dict[str, str] = {}
        found = {
            name: first[body]
            for name, body in bodies.items()
            if not body.lstrip().startswith("#") and first.setdefault(body, name) != name
        }
        if not found:
            break
        replaced |= found
        bodies = {name: _renamed(body, found) for name, body in bodies.items() if name not in found}

    def kept(match: re.Match[str]) -> str:
        return "" if match[1] in replaced else f"module {match[1]}{bodies[match[1]]}endmodule"

    return _MODULE.sub(kept, verilog)


def _numbered(body: str) -> str:
    """Return the text of a module with its helpers numbered from 0."""
    numbers: dict[str, int] = {}
    return _SERIAL.sub(lambda match: f"{match[1]}${numbers.setdefault(match[2], len(numbers))}", body)


def _renamed(body: str, names: dict[str, str]) -> str:
    return _INSTANCE.sub(lambda match: match[1] + names.get(match[2], match[2]), body)
