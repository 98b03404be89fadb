"""The compact bf16 exponential in gates; :class:`golden.exp.compact_bf16.CompactBf16Spec` says what it computes."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from golden.exp.compact_bf16 import CompactBf16Spec
from golden.formats import BF16
from hw.heap import Heap
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.lookup import lookup

__all__: list[str] = []

_BITS = BF16.significand_bits
_INTEGER_BITS = BF16.exponent_bits
"""Bits of the whole part of t: an operand below 128 gives less than 256."""


def _named(m: Module, name: str, value: Value) -> Signal:
    """Give a value that is used more than once a signal of its own."""
    signal = Signal(len(value), name=name)
    m.d.comb += signal.eq(value)
    return signal


def _shift(m: Module, spec: CompactBf16Spec, p: Value, field: Value) -> Value:
    """Return ``p * 2^e`` in units of ``2^-frac_bits``, rounded down; 0 of operands that count as zero.

    The exponent field is a group of eight exponents and a place in it. Each group puts p where its lowest exponent
    needs it, no two at once, and the place moves it up by 0 to 7.
    """
    upper, place = field[3:], field[:3]
    # Lowest exponents 1, -7 and -15. The topmost group starts at the field's half: its other bits are those of
    # operands too large to be shifted at all.
    groups = [(1, upper[-1]), (-7, upper == 0b01111)]
    if spec.lowest_exponent < -7:
        groups.append((-15, upper == 0b01110))
    bits = _INTEGER_BITS + spec.frac_bits
    # Seven bits below the last kept, that the place can move up; the topmost group has p below 8 before it does.
    width = 7 + spec.frac_bits + 3
    placed: list[Value] = []
    for lowest, chosen in groups:
        down = spec.product_bits - spec.frac_bits - 7 - lowest
        moved = p[down:] if down >= 0 else Cat(Const(0, -down), p)
        assert len(moved) <= width
        placed.append(Mux(chosen, moved, 0))
    together = placed[0] | placed[1]
    for moved in placed[2:]:
        together = together | moved
    moved = _named(m, "placed", together) << place
    return moved[7 : 7 + bits]


@datapath.register(CompactBf16Spec)
def _(spec: CompactBf16Spec) -> list[Step]:
    a = spec.frac_bits

    def multiply(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        code = values["x"]
        fraction = code[:_BITS]
        heap = Heap()
        heap.add(lookup(m, fraction[spec.low_bits :], spec.high, name="high"))
        heap.add(lookup(m, fraction[: spec.low_bits], spec.low, name="low"))
        sign = Const(1, 1) if spec.domain == "nonpositive" else code[-1]
        p = heap.sum(m, spec.product_bits + 2, name="product")
        return {"sign": sign, "field": code[_BITS:-1], "fractional": fraction.any(), "p": p}

    def shift(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        field, sign = values["field"], values["sign"]
        t = _named(m, "t", _shift(m, spec, values["p"], field))
        # Exponents of 7 and above, field 134 and above, are too large.
        beyond = field[7] & (field[3:7].any() | (field[1] & field[2]))
        whole = t[a:]
        limit = beyond | whole[-1] | (sign & whole[1:-1].all())
        nan = field.all() & values["fractional"]
        return {"sign": sign, "limit": limit, "nan": nan, "t": t ^ sign.replicate(len(t))}

    def correct(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        t = _named(m, "signed_t", values["t"])
        f = t[:a]
        ones = _named(m, "ones", f[a - _BITS - 1 :].all())
        difference = Heap()
        difference.add(f)
        difference.subtract(lookup(m, f[a - spec.correction_bits :], spec.correction, name="correction"))
        difference.add_constant(spec.rounding)
        y = difference.sum(m, a, name="difference")
        exponent = Heap()
        exponent.add(t[a:])
        exponent.add_bit(ones, 0)
        exponent.add_constant(BF16.bias)
        return {
            "sign": values["sign"],
            "limit": values["limit"],
            "nan": values["nan"],
            "power": ones,
            "exponent": exponent.sum(m, _INTEGER_BITS, name="exponent"),
            "y": y[a - _BITS :],
        }

    def select(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        limit, nan = values["limit"], values["nan"]
        # Every special result has an exponent of zeros or of ones; a NaN lies beyond the limit.
        large = nan | (limit & ~values["sign"])
        keep = ~limit
        whole = ~(limit | values["power"])
        fraction = values["y"] & whole.replicate(_BITS)
        exponent = (values["exponent"] & keep.replicate(_INTEGER_BITS)) | large.replicate(_INTEGER_BITS)
        return {"y": Cat(fraction[:-1], fraction[-1] | nan, exponent, Const(0, 1))}

    return [multiply, shift, correct, select]
