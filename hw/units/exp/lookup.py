"""Tables of constants in gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Const, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amaranth.hdl import Module, Value

__all__ = ["lookup"]


def lookup(m: Module, index: Value, entries: Sequence[int], *, name: str) -> Signal:
    """Return the entry that ``index`` chooses, in the width of the largest.

    Parameters
    ----------
    m : Module
        Gets the combinational statements.
    index : Value
        Unsigned, of just the bits that choose among the entries.
    entries : sequence of int
        Not negative; a power of two of them.
    name : str
        Of the signal.

    Raises
    ------
    ValueError
        If ``index`` does not have one value an entry.
    """
    if 1 << len(index) != len(entries):
        raise ValueError(f"index must choose among {len(entries)} entries, not {1 << len(index)}")
    bits = max(1, max(entries).bit_length())
    entry = Signal(bits, name=name)
    with m.Switch(index):
        for value, number in enumerate(entries):
            with m.Case(value):
                m.d.comb += entry.eq(Const(number, bits))
    return entry
