"""A polynomial's products and sums in gates, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Value

from golden.exp.polynomial import PolynomialCore, PolynomialSpec
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.frame import framed

if TYPE_CHECKING:
    from golden.exp.plan import Mac, Plan

__all__ = ["core_steps", "cut_to"]


@datapath.register(PolynomialSpec)
def _(spec: PolynomialSpec) -> list[Step]:
    return framed(spec, core_steps(spec, ("kind", "n")))


def core_steps(spec: PolynomialCore, beside: tuple[str, ...]) -> list[Step]:
    """Return one step a level of ``spec.plan``; the first is given ``f``, the last leaves ``h``.

    Parameters
    ----------
    spec : PolynomialCore
        The polynomial.
    beside : tuple of str
        Values that every step hands on as they are.
    """
    plan = spec.plan
    return [_level(plan, number, beside) for number in range(len(plan.levels))]


def _level(plan: Plan, number: int, beside: tuple[str, ...]) -> Step:
    """Return the step of one level."""
    level = plan.levels[number]
    wanted = {name for later in plan.levels[number + 1 :] for mac in later for name in (mac.left, mac.right, mac.add)}

    def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        known = dict(values)
        if number == 0 and plan.centred:
            # f - 1/2 in two's complement is f with its leading bit inverted.
            known["f"] = (values["f"] ^ (1 << plan.frac_bits - 1)).as_signed()
        for mac in level:
            known[mac.name] = _mac(plan, mac, known)
        results = {name: values[name] for name in beside}
        results |= {name: value for name, value in known.items() if name in wanted}
        return results | ({"h": known[plan.result]} if number == len(plan.levels) - 1 else {})

    return step


def _mac(plan: Plan, mac: Mac, values: dict[str, Value]) -> Value:
    """Return one product and sum in the bits that its range over every f needs."""

    def value(operand: int | str) -> Value:
        return values[operand] if isinstance(operand, str) else Const(operand)

    product = value(mac.left) * _shifted(values[mac.right], mac.cut)
    if plan.rounded and mac.drop:
        product = product + (1 << mac.drop - 1)
    return cut_to(_shifted(product, mac.drop) + value(mac.add), plan.ranges()[mac.name])


def _shifted(value: Value, bits: int) -> Value:
    """Return ``value >> bits``, the sign kept."""
    if bits >= len(value):
        return value[-1:].as_signed() if value.shape().signed else Const(0, 1)
    return value[bits:].as_signed() if value.shape().signed else value[bits:]


def cut_to(value: Value, limits: tuple[int, int]) -> Value:
    """Return ``value``, which is known to lie within ``limits``, in no more bits than these need."""
    low, high = limits
    if low < 0:
        # -2^(b-1) and 2^(b-1) - 1 both fit b bits in two's complement.
        return value[: 1 + max((~low).bit_length(), high.bit_length() if high > 0 else 0)].as_signed()
    return value[: max(1, high.bit_length())]
