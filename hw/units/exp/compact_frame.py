"""Gates of :class:`golden.exp.compact_frame.CompactFrameSpec`: shifter, ones' complement and packer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

if TYPE_CHECKING:
    from golden.exp.compact_frame import CompactFrameSpec

__all__ = ["Operand", "Reduced", "decode", "named", "pack", "reduce"]


class Operand(NamedTuple):
    """What is needed of an operand beside its significand."""

    sign: Value
    field: Value
    nan: Value


class Reduced(NamedTuple):
    """``|t|`` as whole part and fraction, the fraction inverted where x is negative.

    ``whole`` is at least 48 for operands that are not looked at.
    """

    sign: Value
    nan: Value
    whole: Value
    f: Value


def named(m: Module, value: Value, name: str) -> Signal:
    """Give a value a signal of its own: an expression used twice would be built twice."""
    signal = Signal(len(value), name=name)
    m.d.comb += signal.eq(value)
    return signal


def decode(spec: CompactFrameSpec, code: Value) -> Operand:
    """Take an operand apart; its significand is ``code[:10]`` below a hidden bit that is always 1."""
    field = code[10:15]
    sign = Const(1, 1) if spec.domain == "nonpositive" else code[15]
    return Operand(sign, field, field.all() & code[:10].any())


def reduce(m: Module, spec: CompactFrameSpec, product: Value, field: Value, sign: Value) -> tuple[Value, Value]:
    """Return whole part, 6 bits, and folded fraction of ``product * 2^(field - 15)``.

    Fields up to 19 count: above 15 the next two bits are 0, and the distance from 19 is what is shifted. Three more
    levels follow from the fields' upper bits at once.
    """
    width = spec.frac_bits + 6
    left = 4 + spec.frac_bits - spec.product_bits
    full = (Cat(Const(0, left), product) if left >= 0 else product[-left:])[:width]
    fine = named(m, Mux(field[0], full, full[1:]), "fine")
    coarse = named(m, Mux(field[1], fine, fine[2:]), "coarse")
    high, middle = field[4], field[2:4]
    total: Value = Mux(high, coarse, 0)
    for place, value in enumerate((3, 2, 1, 0), 1):
        chosen = named(m, ~high & (middle == value), f"by_{4 * place}")
        total |= Mux(chosen, coarse[4 * place :], 0)
    total = named(m, total[:width], "total")
    beyond = named(m, high & middle.any(), "beyond")
    whole = Cat(total[spec.frac_bits : spec.frac_bits + 4], total[spec.frac_bits + 4 :] | beyond.replicate(2))
    return whole, named(m, total[: spec.frac_bits] ^ sign.replicate(spec.frac_bits), "f")


def pack(m: Module, spec: CompactFrameSpec, reduced: Reduced, h: Value) -> Value:
    """Return the result's code from ``h``, 13 bits in units of ``2^-11``."""
    sign, nan, whole, _ = reduced
    n = whole[:5] ^ sign.replicate(5)
    # Of a negative operand: the exponent field would be 14 - whole.
    below = named(m, sign & (whole[5] | whole[4] | whole[1:4].all()), "below")
    infinite = ~sign & (whole[4] | whole[5])
    base = (n + 14)[:5]
    if spec.subnormals == "flushed":
        zero = below
        moved = h
    else:
        # -25 is the last n to give a number: depth 11.
        zero = sign & (whole[5] | (whole[4] & whole[3] & whole[:3].any()))
        depth = (whole[:4] + 3)[:4] & below.replicate(4)
        moved = named(m, h >> depth, "moved")
        base = base & (~below).replicate(5)
    infinite, zero = named(m, infinite, "infinite"), named(m, zero & ~nan, "zero")
    significand = named(m, moved[1:11] + moved[0], "significand")
    # The integer part, 1 or 2 of a normal result, and the carry of its rounding enter the exponent field.
    exponent = (base + moved[11:13] + significand[10])[:5]
    fraction = significand[:10] & (~(infinite | zero | nan)).replicate(10)
    forced = (infinite | nan).replicate(5)
    return Cat(fraction[:9], fraction[9] | nan, (exponent | forced) & (~zero).replicate(5), Const(0, 1))
