"""The exponential by a table in gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat

from golden.exp.table import TableSpec
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.frame import framed
from hw.units.exp.lookup import lookup

if TYPE_CHECKING:
    from amaranth.hdl import Module, Value

__all__: list[str] = []


@datapath.register(TableSpec)
def _(spec: TableSpec) -> list[Step]:
    def choose(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        # The lowest bit of an entry's number lies just above that in which the rounding adds one.
        n, f = values["n"], values["f"]
        index = Cat(f[spec.step_bits :], n).as_signed() + f[spec.step_bits - 1]
        return {
            "kind": values["kind"],
            "n": index[spec.index_bits :].as_signed(),
            "index": index[: spec.index_bits],
        }

    def look_up(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        return {
            "kind": values["kind"],
            "n": values["n"],
            "h": lookup(m, values["index"], spec.table, name="table"),
        }

    return framed(spec, [choose, look_up])
