"""The exponential by one polynomial over a whole interval, in gates."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value

from golden.exp.direct import DirectSpec
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.frame import Kind

__all__: list[str] = []


def _align(spec: DirectSpec) -> Step:
    """Return the step that takes the operand apart and moves its significand to where u needs it."""
    fmt = spec.fmt
    largest = fmt.bias + spec.interval_bits - 1

    def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        code = values["x"]
        fraction, field = code[: fmt.significand_bits], code[fmt.significand_bits : -1]
        normal = field.any()
        # The sign is not looked at: beyond the interval is always below it.
        kind = Mux(field.all() & fraction.any(), Kind.NAN, Mux(field > largest, Kind.ZERO, Kind.FINITE))
        # Within the interval the difference is never negative; elsewhere u means nothing.
        shift = (largest - Mux(normal, field, 1))[: (largest - 1).bit_length()]
        aligned = Cat(Const(0, spec.frac_bits - 1 - fmt.significand_bits), fraction, normal)
        return {"kind": kind, "u": aligned >> shift, "h": Const(spec.coefficients[-1], _shape(spec, spec.degree))}

    return step


def _shape(spec: DirectSpec, k: int) -> Shape:
    """Return the shape of the sum after adding ``c[k]``, known from its values at every operand."""
    low, high = spec.sum_ranges[k]
    return Shape(max(1, (high if high > -low else ~low).bit_length()) + (low < 0), low < 0)


def _horner(spec: DirectSpec, k: int, shape: Shape) -> Step:
    """Return the step that adds ``c[k]``."""

    def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        product = values["h"] * values["u"]
        shifted = product[spec.frac_bits :]
        total = (shifted.as_signed() if product.shape().signed else shifted) + spec.coefficients[k]
        cut = total[: shape.width]
        h = cut.as_signed() if shape.signed else cut
        return {"kind": values["kind"], **({"u": values["u"]} if k else {}), "h": h}

    return step


def _normalise(spec: DirectSpec) -> Step:
    """Return the step that moves the leading one of the result to the front, by halving distances."""

    def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        # Beyond the interval the sum means nothing and may be wider than a number up to 1.
        h = values["h"][: spec.core_bits + 1]
        up: list[Value] = []
        # No result is smaller than the smallest normal number.
        for stage in reversed(range((spec.fmt.bias - 1).bit_length())):
            distance = 1 << stage
            empty = ~h[-distance:].any() if distance < len(h) else Const(0)
            moved = Signal(len(h), name=f"moved_{stage}")
            m.d.comb += moved.eq(Mux(empty, Cat(Const(0, distance), h)[: len(h)], h))
            up.insert(0, empty)
            h = moved
        return {"kind": values["kind"], "up": Cat(*up), "h": h}

    return step


def _round(spec: DirectSpec) -> Step:
    """Return the step that rounds to nearest even and puts the code together."""
    fmt = spec.fmt
    drop = spec.core_bits - fmt.significand_bits

    def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        h = values["h"]
        kept, half, sticky = h[drop:], h[drop - 1], h[: drop - 1].any()
        # The hidden bit in ``kept`` carries into the exponent field; results lie between 0 and 1.
        base = (fmt.bias - 1 - values["up"])[: fmt.exponent_bits]
        total = Cat(Const(0, fmt.significand_bits), base) + kept + (half & (sticky | kept[0]))
        finite = Cat(total[: fmt.bits - 1], Const(0, 1))
        kind = values["kind"]
        return {"y": Mux(kind == Kind.FINITE, finite, Mux(kind == Kind.ZERO, 0, fmt.nan_code))}

    return step


@datapath.register(DirectSpec)
def _(spec: DirectSpec) -> list[Step]:
    sums = [_horner(spec, k, _shape(spec, k)) for k in reversed(range(spec.degree))]
    return [_align(spec), *sums, _normalise(spec), _round(spec)]
