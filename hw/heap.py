"""Column heap: bits collected by weight, added by full and half adders.

A sum of many short, shifted, inverted or truncated rows costs least as one heap: every full adder takes three bits
of a weight and leaves two, so the number of adders is close to the number of bits put in less that of bits left.

>>> heap = Heap(lowest=-4)
>>> heap.add(x, -3)                 # x * 2^-3, its bits below 2^-4 dropped
>>> heap.subtract(y, 0)             # - y
>>> heap.add_constant(5, -2)        # 5 * 2^-2
>>> total = heap.sum(m, 8)          # the sum in units of 2^-4, modulo 2^8

All arithmetic is modulo ``2^width`` of the sum, so a row that may be negative needs no sign extension: its top bit is
inverted and the difference, a constant, joins the other constants, which are added up before any gate is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from amaranth.hdl import Cat, Const, Module, Signal, Value

if TYPE_CHECKING:
    from amaranth.hdl import ValueLike

__all__ = ["Heap", "HeapCost", "Order"]

Order = Literal["ripple", "dadda"]
"""How a heap is reduced; see :meth:`Heap.sum`."""


@dataclass(frozen=True, kw_only=True)
class HeapCost:
    """Adders that a sum took.

    Parameters
    ----------
    full_adders, half_adders : int
        Three bits to two, and two bits to two.
    full_ones, half_ones : int
        The same with one input the constant 1: an XNOR and an OR, and an inverter.
    depth : int
        Longest chain of these adders from an input.

    Notes
    -----
    The addition of two rows that ends a ``dadda`` sum is not counted: its adders are the synthesiser's.
    """

    full_adders: int = 0
    half_adders: int = 0
    full_ones: int = 0
    half_ones: int = 0
    depth: int = 0

    @property
    def gate_equivalents(self) -> float:
        """Rough area, in NAND2: two XOR and three NAND a full adder, one XOR and one AND a half adder."""
        return 7.0 * self.full_adders + 3.25 * (self.half_adders + self.full_ones) + 0.75 * self.half_ones


@dataclass(frozen=True)
class _Bit:
    """One bit: a value, or the constant 1 if ``value`` is None; ``depth`` adders behind the inputs."""

    value: Value | None
    depth: int = 0


class Heap:
    """Bits by weight, to be added.

    Parameters
    ----------
    lowest : int
        Exponent of the lowest weight that is kept: a bit of weight ``2^w`` with ``w < lowest`` is dropped when added.
    """

    def __init__(self, lowest: int = 0) -> None:
        self.lowest = lowest
        self.cost = HeapCost()
        self._columns: dict[int, list[_Bit]] = {}
        self._constant = 0

    @property
    def heights(self) -> dict[int, int]:
        """Number of bits of each weight, constants aside."""
        return {weight: len(bits) for weight, bits in sorted(self._columns.items())}

    def add_bit(self, bit: ValueLike, weight: int) -> None:
        """Add one bit of weight ``2^weight``.

        Raises
        ------
        ValueError
            If ``bit`` is wider than 1.
        """
        bit = Value.cast(bit)
        if len(bit) != 1:
            raise ValueError(f"bit must be 1 bit wide, not {len(bit)}")
        if weight >= self.lowest:
            self._columns.setdefault(weight, []).append(_Bit(bit))

    def add_constant(self, constant: int, weight: int = 0) -> None:
        """Add ``constant * 2^weight``, of either sign; what lies below the lowest weight is rounded down."""
        shift = weight - self.lowest
        self._constant += constant << shift if shift >= 0 else constant >> -shift

    def add(self, value: ValueLike, weight: int = 0) -> None:
        """Add ``value * 2^weight``, in two's complement if its shape is signed.

        Bits below the lowest weight are dropped, which rounds the row down.
        """
        value = Value.cast(value)
        if not value.shape().signed:
            for position, bit in enumerate(value):
                self.add_bit(bit, weight + position)
            return
        # The top bit b counts -b = (1 - b) - 1, at the lowest weight if the whole row lies below that.
        top = max(weight + len(value) - 1, self.lowest)
        self.add(value[:-1], weight)
        self.add_bit(~value[-1], top)
        self.add_constant(-1, top)

    def subtract(self, value: ValueLike, weight: int = 0, *, ones: bool = False) -> None:
        """Add ``-value * 2^weight``, by inverting every bit.

        Bits below the lowest weight are dropped after the inversion, which rounds the row down.

        Parameters
        ----------
        value : ValueLike
            Of either signedness.
        weight : int
            Exponent of its lowest bit.
        ones : bool
            Ones' complement: add ``(-value - 1) * 2^weight``, which saves the 1 at the lowest bit.
        """
        value = Value.cast(value)
        # ~v = -v - 1 in two's complement, and 2^n more than that as an unsigned number.
        if value.shape().signed:
            self.add((~value).as_signed(), weight)
        else:
            self.add(~value, weight)
            self.add_constant(-1, weight + len(value))
        if not ones:
            self.add_constant(1, weight)

    def sum(self, m: Module, width: int, *, order: Order = "ripple", name: str = "heap") -> Value:
        """Return the sum in units of ``2^lowest``, modulo ``2^width``.

        Parameters
        ----------
        m : Module
            Takes the gates.
        width : int
            Bits of the result.
        order : {"ripple", "dadda"}
            ``ripple``: column by column from the lowest, each down to one bit before the next: the fewest adders, and
            a chain as long as the result. ``dadda``: all columns at once down to two rows, in as few levels as
            possible, then one addition, for the synthesiser to make as fast as it can.
        name : str
            Prefix of the signals.

        Returns
        -------
        Value
            Unsigned, ``width`` bits. :attr:`cost` then says what it took.

        Raises
        ------
        ValueError
            If ``order`` is unknown.
        """
        if order not in get_args(Order):
            raise ValueError(f"order must be one of {', '.join(get_args(Order))}, not {order!r}")
        columns = [list(self._columns.get(self.lowest + c, [])) for c in range(width)]
        for c in range(width):
            if self._constant >> c & 1:
                columns[c].append(_Bit(None))
        adders = _Adders(m, columns, name)
        if order == "dadda":
            adders.dadda()
        else:
            adders.ripple()
        self.cost = adders.cost()
        rows = [Cat(*(_value(column, row) for column in columns)) for row in (0, 1)]
        return rows[0] if order == "ripple" else (rows[0] + rows[1])[:width]


def _value(column: list[_Bit], row: int) -> Value:
    if row >= len(column):
        return Const(0, 1)
    value = column[row].value
    return Const(1, 1) if value is None else value


class _Adders:
    """Adders between the columns of one sum, which they change in place."""

    def __init__(self, m: Module, columns: list[list[_Bit]], name: str) -> None:
        self.m = m
        self.columns = columns
        self.name = name
        self.counts = {"full_adders": 0, "half_adders": 0, "full_ones": 0, "half_ones": 0}

    def cost(self) -> HeapCost:
        """Return what has been used so far."""
        depth = max((bit.depth for column in self.columns for bit in column), default=0)
        return HeapCost(**self.counts, depth=depth)

    def add(self, column: int, bits: list[_Bit]) -> tuple[_Bit, _Bit]:
        """Return sum and carry of two or three bits of ``column``."""
        values = [bit.value for bit in bits if bit.value is not None]
        depth = 1 + max(bit.depth for bit in bits)
        ones = len(bits) - len(values)
        if ones > 1:
            # Constants are summed beforehand, so that a column has at most one.
            raise AssertionError(column)
        self.counts[("full" if len(bits) == 3 else "half") + ("_ones" if ones else "_adders")] += 1
        if len(values) == 1:
            return _Bit(self.named(column, "s", ~values[0]), depth), _Bit(values[0], depth - 1)
        a, b = values[:2]
        if len(values) == 2:
            if ones:
                return (
                    _Bit(self.named(column, "s", ~(a ^ b)), depth),
                    _Bit(self.named(column, "c", a | b), depth),
                )
            return _Bit(self.named(column, "s", a ^ b), depth), _Bit(self.named(column, "c", a & b), depth)
        half = self.named(column, "h", a ^ b)
        total = self.named(column, "s", half ^ values[2])
        return _Bit(total, depth), _Bit(self.named(column, "c", (a & b) | (half & values[2])), depth)

    def named(self, column: int, kind: str, value: Value) -> Signal:
        """Give a value a signal of its own: an expression used twice would be built twice."""
        signal = Signal(1, name=f"{self.name}_{kind}{column}")
        self.m.d.comb += signal.eq(value)
        return signal

    def compress(self, column: int, count: int) -> tuple[_Bit, _Bit]:
        """Take the ``count`` earliest bits out of ``column`` and return their sum and carry."""
        # A constant goes first: it makes the adder that takes it small.
        bits = sorted(self.columns[column], key=lambda bit: (bit.value is not None, bit.depth))
        self.columns[column] = bits[count:]
        return self.add(column, bits[:count])

    def carry(self, column: int, bit: _Bit) -> None:
        """Put a carry out of ``column`` where it belongs, unless it lies beyond the result."""
        if column + 1 < len(self.columns):
            self.columns[column + 1].append(bit)

    def ripple(self) -> None:
        """Reduce every column to one bit, from the lowest."""
        for c in range(len(self.columns)):
            while len(self.columns[c]) > 1:
                total, carry = self.compress(c, min(3, len(self.columns[c])))
                self.columns[c].append(total)
                self.carry(c, carry)

    def dadda(self) -> None:
        """Reduce to two rows, at each level no further than the next height of the sequence 2, 3, 4, 6, 9, ..."""
        heights = [2]
        while heights[-1] < max(map(len, self.columns), default=0):
            heights.append(heights[-1] * 3 // 2)
        for height in reversed(heights[:-1]):
            sums: list[list[_Bit]] = [[] for _ in self.columns]
            for c in range(len(self.columns)):
                # Carries of this level, which are already in the column, count towards its height; sums must wait.
                while (excess := len(self.columns[c]) + len(sums[c]) - height) > 0 and len(self.columns[c]) > 1:
                    total, carry = self.compress(c, min(1 + excess, 3, len(self.columns[c])))
                    sums[c].append(total)
                    self.carry(c, carry)
                self.columns[c] += sums[c]
