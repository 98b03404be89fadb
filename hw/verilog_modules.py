"""The modules of a Verilog text as Amaranth's Yosys writes it: which there are, what they hold, which are alike."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.builds import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["VerilogModules"]

_MODULE = re.compile(r"^module (\\\S+ |\w+)\(.*?^endmodule\n?", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  (\\\S+|\w+) +(\\\S+|\w+) +\($", re.MULTILINE)
_PORT = re.compile(r"^  (?:input|output) .*;$", re.MULTILINE)
_NUMBER = re.compile(r"\$\d+")
_PROCESS = re.compile(r"^  reg \\\$auto\$verilog_backend\S* +=.*$|^    if \(\\\$auto\$verilog_backend\S* +\) .*$", re.M)


@dataclass(frozen=True)
class VerilogModules:
    """A design of modules.

    Parameters
    ----------
    texts : mapping of str to str
        Text of each module by its name, a leading backslash included.

    Notes
    -----
    The writer numbers nets that have no name, in an order that depends on the modules around. Two modules are taken for
    alike if they have the same lines but for these numbers, and alike modules in them: copies that a loop places, which
    differ in nothing else.
    """

    texts: Mapping[str, str]

    @classmethod
    def parse(cls, verilog: str) -> VerilogModules:
        """Return the modules of a text.

        Raises
        ------
        ValueError
            If a name stands for two modules.
        """
        texts: dict[str, str] = {}
        for match in _MODULE.finditer(verilog):
            name = match[1].strip()
            if name in texts:
                raise ValueError(f"modules must have names of their own, not two {name}")
            texts[name] = match[0]
        return cls(texts)

    def instances(self, name: str) -> list[tuple[str, str]]:
        """Return the instances in a module: name of the instance, name of its module, which may stand elsewhere."""
        return self._instances[name]

    @functools.cached_property
    def _instances(self) -> dict[str, list[tuple[str, str]]]:
        return {
            name: [(match[2].lstrip("\\"), match[1]) for match in _INSTANCE.finditer(text)]
            for name, text in self.texts.items()
        }

    def with_names(self, name: str, names: Mapping[str, str]) -> str:
        """Return the text of a module in which it and the modules of its instances are called as ``names`` says."""
        header = self.texts[name].replace(f"module {name}", f"module {names[name]} ", 1)
        return _INSTANCE.sub(lambda match: f"  {names[match[1]]} {match[2]} (", header)

    def stub(self, name: str, called: str) -> str:
        """Return a module of the same ports without anything inside."""
        text = self.texts[name]
        header = text[text.index("(") : text.index(";") + 1]
        ports = "\n".join(_PORT.findall(text))
        return f"(* blackbox *)\nmodule {called} {header}\n{ports}\nendmodule\n"

    @functools.cached_property
    def _kinds(self) -> dict[str, str]:
        return {}

    def kind(self, name: str) -> str:
        """Return a hash that alike modules share."""
        if name not in self._kinds:
            names = {child: self.kind(child) for _, child in self.instances(name)} | {name: "self"}
            plain = _NUMBER.sub("$", _PROCESS.sub("", self.with_names(name, names)))
            self._kinds[name] = digest("\n".join(sorted(plain.splitlines())))[:20]
        return self._kinds[name]
