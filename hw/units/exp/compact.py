"""Datapath of the compact units: two column heaps, a shifter before each use of their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from golden.exp.compact import CompactSpec
from hw.float_steps import named
from hw.heap import Heap
from hw.units.exp.datapath import Step, datapath

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__: list[str] = []


@datapath.register(CompactSpec)
def _(spec: CompactSpec) -> list[Step]:
    def compute(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        return {"y": _Datapath(spec, m, values["x"]).result()}

    return [compute]


class _Datapath:
    """The gates of one unit around operand ``x``."""

    def __init__(self, spec: CompactSpec, m: Module, x: Value) -> None:
        self.spec = spec
        self.shape = spec.shape
        self.m = m
        significand_bits = spec.fmt.significand_bits
        self.fraction = x[:significand_bits]
        self.field = x[significand_bits:-1]
        self.negative: Value = Const(1, 1) if spec.domain == "nonpositive" else x[-1]

    def named(self, name: str, value: Value) -> Signal:
        """Give ``value`` a name, so that it is computed once."""
        return named(self.m, name, value)

    def product(self) -> Value:
        """Return the significand times log2(e), in units of ``2^-product_bits``."""
        spec, shape = self.spec, self.shape
        heap = Heap(-shape.product_bits)
        for shift, sign, kept in shape.product_rows:
            bits = spec.fmt.significand_bits + shift
            dropped = max(0, bits - kept)
            row = self.fraction if sign > 0 else ~self.fraction
            heap.add(row[dropped:], dropped - bits)
        heap.add_constant(spec.product_constant, -shape.product_bits)
        return self.named("product", heap.sum(self.m, shape.product_bits + 2, name="product"))

    def magnitude(self, product: Value) -> Value:
        """Return ``|t|`` in units of ``2^-frac_bits``, zero for operands below those that count."""
        shape = self.shape
        left = shape.largest_field - self.spec.fmt.bias + shape.frac_bits - shape.product_bits
        t = self.named("t_16", Cat(Const(0, left), product) if left >= 0 else product[-left:])
        right = self.named("right", (shape.largest_field - self.field)[:4])
        tiny = self.named("tiny", self.field < shape.smallest_field)
        # Two select lines, neither of them for a tiny operand, make the first level and the zero one gate a bit.
        far, near = self.named("far", right[3] & ~tiny), self.named("near", ~right[3] & ~tiny)
        t = self.named("t_8", _gated(t[8:], far) | _gated(t, near))
        for level in (2, 1, 0):
            t = self.named(f"t_{1 << level}", Mux(right[level], t[1 << level :], t))
        return t

    def interpolate(self, t: Value, magnitude: Value) -> Value:
        """Return the sum, of ``core_bits`` fraction bits and five before them, from t in ones' complement."""
        spec, shape = self.spec, self.shape
        heap = Heap(-shape.core_bits)
        heap.add(t[: shape.frac_bits + 5], -shape.frac_bits)
        for column in range(len(t) - shape.frac_bits, 5):
            heap.add_bit(self.negative, column)
        f = t[: shape.frac_bits]
        segment = f[shape.position_bits :]
        # f is inverted in the lower half of [0, 1), and |t| is inverted to f if the operand is negative: once is
        # enough, where |t| is in the lower half of its octave.
        g = self.named(
            "g", magnitude[: shape.position_bits] ^ (~magnitude[shape.frac_bits - 1]).replicate(shape.position_bits)
        )
        self._add_offsets(heap, segment)
        for row, (shifts, kept) in enumerate(shape.slope_rows):
            choices = [choice[row] for choice in spec.slopes]
            chosen: list[tuple[Value, int]] = []
            for number, shift in enumerate(shifts, 1):
                select = self._table(f"select_{row}_{number}", segment, [choice == number for choice in choices], 1)
                dropped = max(0, shape.frac_bits + shift - kept)
                chosen.append((_gated(g[dropped:], select), dropped - shape.frac_bits - shift))
            start = min(weight for _, weight in chosen)
            total: Value = Const(0, 1)
            for value, weight in chosen:
                total = total | Cat(Const(0, weight - start), value)
            heap.add(self.named(f"slope_{row}", total), start)
        if shape.parabola:
            position, leading = shape.parabola_index
            cell = Cat(f[shape.position_bits - position : shape.position_bits], f[shape.frac_bits - leading :])
            bits = max(1, max(shape.parabola).bit_length())
            heap.add(self._table("parabola", cell, shape.parabola, bits), -shape.parabola_bits)
        return self.named("sum", heap.sum(self.m, shape.core_bits + 5, name="sum"))

    def _add_offsets(self, heap: Heap, segment: Value) -> None:
        """Add the offsets and the exponent's bias to the heap."""
        offsets = self.spec.offsets
        # A constant makes them positive; it is a power of two, of few ones.
        base = max(0, -min(offsets))
        base = 1 << (base - 1).bit_length() if base else 0
        bits = max(1, max(offset + base for offset in offsets).bit_length())
        table = self._table("offset", segment, [offset + base for offset in offsets], bits)
        heap.add(table, -self.shape.offset_bits)
        heap.add_constant(self.spec.fmt.bias)
        heap.add_constant(-base, -self.shape.offset_bits)

    def _table(self, name: str, index: Value, values: Sequence[int], bits: int) -> Value:
        """Return the entry of ``values`` that ``index`` chooses."""
        entry = Signal(bits, name=name)
        with self.m.Switch(index):
            for number, value in enumerate(values):
                with self.m.Case(number):
                    self.m.d.comb += entry.eq(value)
        return entry

    def result(self) -> Value:
        """Return the code of the result."""
        spec, shape, fmt = self.spec, self.shape, self.spec.fmt
        magnitude = self.magnitude(self.product())
        t = self.named("t", magnitude ^ self.negative.replicate(len(magnitude)))
        total = self.interpolate(t, magnitude)
        whole = magnitude[shape.frac_bits :]
        # A field of five bits has its sign wrong only for results above the range or far below it.
        field = total[shape.core_bits :]
        below = self.named("below", self.negative & (field[-1] | ~field.any()))
        beyond = self.field > shape.largest_field
        overflow = self.named("overflow", ~self.negative & (beyond | whole[4:].any()))
        far_below = whole[5] | whole[2:5].all() if len(whole) > 5 else Const(0, 1)
        vanish = self.named("vanish", overflow | self.negative & (beyond | far_below))
        significand = total[shape.core_bits - fmt.significand_bits : shape.core_bits]
        if spec.subnormals == "flushed":
            keep = ~self.named("flush", vanish | below)
            finite = Cat(_gated(significand, keep), _gated(field, keep), Const(0, 1))
        else:
            finite = self._rounded(significand, field, below, vanish)
        nan = self.named("nan", self.field.all() & self.fraction.any())
        special = overflow | nan
        quiet = fmt.significand_bits - 1
        return Cat(
            finite[:quiet],
            finite[quiet] | nan,
            finite[quiet + 1 : -1] | special.replicate(fmt.exponent_bits),
            Const(0, 1),
        )

    def _rounded(self, significand: Value, field: Value, below: Value, vanish: Value) -> Value:
        """Move the significand of a subnormal result to its place and round it; clear it for zero and infinity."""
        bits = len(significand)
        # 1 - field, of four bits; 15 places clear everything.
        places = Cat(~field[0], field[1], field[2] ^ field[1], field[3] ^ (field[1] | field[2]))
        places = self.named("places", _gated(places, below) | vanish.replicate(4))
        moved: Value = self.named("moved_16", Cat(Const(0, 1), significand, below))
        for level in (3, 2, 1, 0):
            moved = self.named(f"moved_{1 << level}", Mux(places[level], moved[1 << level :], moved))
        rounded = self.named("rounded", moved[1 : bits + 1] + moved[0])
        keep = self.named("keep", ~(below | vanish))
        low, high = rounded[:bits], _gated(field, keep) | rounded[bits]
        if self.shape.largest_field < 19:
            low = low | self._last_binade()
        return Cat(low, high, Const(0, 1))

    def _last_binade(self) -> Value:
        """Return the results for operands from -17.25 to -16, two and one of the smallest number."""
        here = self.named("last", self.negative & (self.field == 19))
        sixteenths = self.fraction[4:]
        two = sixteenths == 0
        return _gated(Cat(~two & (sixteenths < 5), two), here)


def _gated(value: Value, enable: Value) -> Value:
    """Return ``value`` where ``enable``, else 0."""
    return value & enable.replicate(len(value))
