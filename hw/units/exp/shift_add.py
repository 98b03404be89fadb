"""The exponential by shifts and adds in gates: a comparison, a subtraction and an addition a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Mux, Signal, signed

from golden.exp.shift_add import ShiftAddSpec
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.frame import framed

if TYPE_CHECKING:
    from amaranth.hdl import Module, Value

__all__: list[str] = []


@datapath.register(ShiftAddSpec)
def _(spec: ShiftAddSpec) -> list[Step]:
    # Remainders shrink by half a factor: none needs more bits than the largest of all f.
    bits = [limit.bit_length() for limit in spec.remainders()]
    width = spec.core_bits + 1

    def factor(k: int) -> Step:
        def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
            if k == 1:
                r = Cat(Const(0, spec.guard_bits), values["f"])
                h: Value = Const((1 << spec.core_bits) + spec.start, width)
            else:
                r, h = values["r"], values["h"]
            rest = Signal(signed(len(r) + 1), name=f"rest_{k}")
            product = Signal(width, name=f"product_{k}")
            take = ~rest[-1]
            m.d.comb += [
                rest.eq(r - spec.logarithms[k - 1]),
                # The golden model has tried every f: no product leaves its bits.
                product.eq(Mux(take, h + (h >> k), h)),
            ]
            left: dict[str, Value] = {}
            if k < spec.iterations:
                left["r"] = remainder = Signal(bits[k], name=f"remainder_{k}")
                m.d.comb += remainder.eq(Mux(take, rest, r))
            return {"kind": values["kind"], "n": values["n"], "h": product, **left}

        return step

    return framed(spec, [factor(k) for k in range(1, spec.iterations + 1)])
