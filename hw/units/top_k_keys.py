"""Keys of scores in Amaranth, and their digits: :func:`golden.retrieval.radix.ordered_keys` as logic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal

from golden.retrieval.radix import KEY_BITS, NAN_KEY

if TYPE_CHECKING:
    from amaranth.hdl import Value

__all__ = ["digits_of", "leading_ones", "ordered_key"]

_INFINITY = 0x7F80_0000
"""Code of infinity without its sign; greater ones are NaN."""


def ordered_key(m: Module, code: Value) -> tuple[Value, Value]:
    """Return the key of an fp32 code, and whether it is NaN."""
    sign, rest = code[-1], code[:-1]
    nan, key = Signal(), Signal(KEY_BITS)
    m.d.comb += nan.eq(rest > _INFINITY)
    with m.If(nan):
        m.d.comb += key.eq(NAN_KEY)
    with m.Elif(sign & rest.any()):
        m.d.comb += key.eq(~code)
    with m.Else():
        m.d.comb += key.eq(Cat(rest, 1))
    return key, nan


def leading_ones(count: int) -> int:
    """Return a key with its ``count`` highest bits set."""
    return (1 << KEY_BITS) - (1 << (KEY_BITS - count))


def digits_of(word: Value, digit_bits: int) -> list[Value]:
    """Return the digits of a key, the highest first."""
    return [word[KEY_BITS - (n + 1) * digit_bits :][:digit_bits] for n in range(KEY_BITS // digit_bits)]
