"""The CRC-32 of flits and of tokens, a beat a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

__all__ = ["CheckSum"]

_POLYNOMIAL = 0xEDB88320
"""IEEE 802.3, clause 3.2.9, the bit of x^31 lowest."""

_BITS = 32
_ONES = (1 << _BITS) - 1


class CheckSum(wiring.Component):
    """Sum of the bytes since ``start``, the lowest of a beat first: :func:`zlib.crc32`.

    Overview
    --------
    Every bit of the next sum is the parity of some bits of the sum and of the beat; which, follows from dividing each
    of them alone. Written as one masked parity a bit it is a hundredth of the text that ``amaranth.lib.crc`` makes of
    the same matrix, which decides how long a design with many of them takes to generate and to build.

    Timing
    ------
    The sum of a beat is there in the cycle behind it.

    Numerics
    --------
    Equal to zlib's (``tests/hw/test_check_sum.py``).

    Parameters
    ----------
    beat_bytes : int
        Bytes of a beat; at least 1.

    Members
    -------
    start : In(1)
        The beat of this cycle is the first.
    data, valid : In(8 * beat_bytes), In(1)
        The beat, and whether it counts.
    crc : Out(32)
        The sum.

    Raises
    ------
    TypeError, ValueError
        If ``beat_bytes`` is no integer of at least 1.
    """

    def __init__(self, beat_bytes: int) -> None:
        require_int("beat_bytes", beat_bytes, 1)
        self.beat_bytes = beat_bytes
        super().__init__({"start": In(1), "data": In(8 * beat_bytes), "valid": In(1), "crc": Out(_BITS)})

    def elaborate(self, platform: object) -> Module:
        """Build the register and its parities."""
        m = Module()
        state = Signal(_BITS, init=_ONES)
        width = _BITS + 8 * self.beat_bytes
        before = Signal(width)
        after = [_divided(1 << bit, self.beat_bytes) for bit in range(width)]
        m.d.comb += [before.eq(Cat(Mux(self.start, _ONES, state), self.data)), self.crc.eq(~state)]
        with m.If(self.valid):
            for bit in range(_BITS):
                mask = sum((word >> bit & 1) << place for place, word in enumerate(after))
                m.d.sync += state[bit].eq((before & Const(mask, width)).xor())
        return m


def _divided(before: int, beat_bytes: int) -> int:
    """Return the sum behind a beat, out of the sum (the low 32 bits) and the beat in front of it."""
    state, beat = before & _ONES, before >> _BITS
    for bit in range(8 * beat_bytes):
        state = state >> 1 ^ (_POLYNOMIAL if (state ^ beat >> bit) & 1 else 0)
    return state
