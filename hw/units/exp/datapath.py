"""The steps of an exponential as combinational functions: what a family gives, and a layout puts in time."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeAlias

from amaranth.hdl import Module, Signal, Value

if TYPE_CHECKING:
    from amaranth.lib import stream

    from golden.exp import ExpSpec

__all__ = ["Step", "assign", "datapath", "serial_layout"]

Step: TypeAlias = Callable[[Module, dict[str, Value]], dict[str, Value]]
"""A step: from the values that the one before it left to those that the one after it needs.

The first is given ``x``, the operand; the last leaves ``y``, the result. A register may follow any of them, of
every value it leaves. Statements it adds to the module are combinational.
"""


def assign(target: Signal, value: Value) -> Any:
    """Return ``target.eq(value)``, which would cut silently, after checking that nothing is cut."""
    have, want = value.shape(), target.shape()
    need = have.width + (want.signed and not have.signed)
    if need > want.width or (have.signed and not want.signed):
        raise ValueError(f"{target.name} must hold {have!r}, not {want!r}")
    return target.eq(value)


@singledispatch
def datapath(spec: ExpSpec) -> list[Step]:
    """Return the steps of ``spec``; every family registers its own.

    Raises
    ------
    TypeError
        If the family of ``spec`` has registered none.
    """
    raise TypeError(f"spec must be of a family with a datapath, not {spec!r}")


@singledispatch
def serial_layout(spec: ExpSpec, m: Module, i: stream.Interface, o: stream.Interface) -> None:
    """Lay out ``spec`` on hardware that one operand uses for several cycles; families that can register theirs.

    The layout keeps the contract that :func:`hw.timing.exp.predict` describes: an operand stays in the core for
    ``interval_cycles``, then passes ``latency_cycles - interval_cycles`` registers, each of which moves on as soon as
    the next is free.

    Raises
    ------
    TypeError
        If the family of ``spec`` has registered none.
    """
    raise TypeError(f"spec must be of a family with a serial layout, not {spec!r}")
