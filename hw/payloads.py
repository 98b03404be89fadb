"""Packs numbers into stream payloads and takes them out again, by the layouts of :mod:`hw.layouts`.

A payload is a Python int. Arrays of codes go in and come out as NumPy arrays, element 0 at the lowest bits.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from amaranth.lib import data

from golden.checks import require_int
from golden.partial import PartialState, empty_state
from hw.layouts import body_layout, head_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from golden.numerics import Numerics
    from hw.params import StateParams

__all__ = ["pack", "pack_state", "pack_vectors", "unpack", "unpack_state"]

_Layout = TypeVar("_Layout", bound=data.Layout)
_Found = TypeVar("_Found")


def pack(layout: data.StructLayout, **fields: Any) -> int:
    """Return the payload whose fields have the given values; each array field takes an array of codes.

    Raises
    ------
    ValueError
        If a field is missing or unknown, or a value does not fit.
    """
    places = _places(layout)
    if fields.keys() != places.keys():
        raise ValueError(f"fields must be {', '.join(sorted(places))}, not {', '.join(sorted(fields))}")
    word = 0
    for name, value in fields.items():
        offset, width, array = places[name]
        number = int(value) if array is None else _join(array, value)
        if number < 0 or number >> width:
            raise ValueError(f"{name} must fit {width} bits, not {value!r}")
        word |= number << offset
    return word


def unpack(layout: data.StructLayout, word: int) -> dict[str, Any]:
    """Return the fields of a payload: ints, and arrays of codes for array fields."""
    fields = {}
    for name, (offset, width, array) in _places(layout).items():
        number = word >> offset & ((1 << width) - 1)
        fields[name] = number if array is None else _split(array, number)
    return fields


def pack_vectors(codes: npt.NDArray[np.unsignedinteger], lanes: int) -> list[int]:
    """Return the beats of vectors of codes, ``lanes`` codes a beat.

    Parameters
    ----------
    codes : ndarray of unsigned int, shape (..., head_dim)
        ``head_dim`` a multiple of ``lanes``.
    lanes : int
        Codes a beat.
    """
    rows = np.ascontiguousarray(codes, dtype=codes.dtype.newbyteorder("<")).reshape(-1, lanes)
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def pack_state(params: StateParams, state: PartialState, *, op_id: int, fault: bool = False) -> tuple[int, list[int]]:
    """Return head and body beats of one state; an empty state has no body.

    Parameters
    ----------
    params : StateParams
        Shape of the state on the wire.
    state : PartialState
        A single state; its head dimension is a multiple of ``params.lanes``, at most ``params.head_dim``.
    op_id : int
        Operation it belongs to.
    fault : bool
        Its fault flag.

    Raises
    ------
    ValueError
        If the state is not a single one, or has another head dimension.
    """
    if state.shape:
        raise ValueError(f"state must be a single one, not of shape {state.shape}")
    _require_head_dim(params, state.head_dim)
    to_codes = params.state_format.to_codes
    empty = bool(state.empty)
    head = pack(
        head_layout(params), op_id=op_id, empty=empty, fault=fault, m=to_codes(state.m)[()], l=to_codes(state.l)[()]
    )
    if empty:
        return head, []
    layout = body_layout(params)
    rows = to_codes(state.o).reshape(-1, params.lanes)
    return head, [pack(layout, o=row, last=index == len(rows) - 1) for index, row in enumerate(rows)]


def unpack_state(
    params: StateParams, head: int, bodies: Iterable[int], numerics: Numerics, *, head_dim: int | None = None
) -> PartialState:
    """Return the state that a head and its body beats stand for.

    Parameters
    ----------
    params : StateParams
        Shape of the state on the wire.
    head : int
        Its head.
    bodies : iterable of int
        Its body beats; none of an empty state.
    numerics : Numerics
        Gives dtype and base.
    head_dim : int, optional
        Elements of o. None takes what the beats have, and ``params.head_dim`` of an empty state.

    Raises
    ------
    TypeError, ValueError
        If the beats are not those of one state of that head dimension, or ``last`` is not on the final one alone.
    """
    fields = unpack(head_layout(params), head)
    beats = [unpack(body_layout(params), beat) for beat in bodies]
    if head_dim is None:
        head_dim = params.head_dim if fields["empty"] else max(len(beats), 1) * params.lanes
    _require_head_dim(params, head_dim)
    expected = 0 if fields["empty"] else head_dim // params.lanes
    if [beat["last"] for beat in beats] != [0] * (expected - 1) + [1] * bool(expected):
        raise ValueError(f"a state must have {expected} body beats, the final one marked, not {len(beats)} beats")
    if fields["empty"]:
        return empty_state(head_dim, numerics)
    from_codes = params.state_format.from_codes
    return PartialState(
        m=from_codes(fields["m"]),
        l=from_codes(fields["l"]),
        o=from_codes(np.concatenate([beat["o"] for beat in beats])),
        base=numerics.base,
    )


def _require_head_dim(params: StateParams, head_dim: int) -> None:
    """Raise unless states of ``head_dim`` elements fit the streams."""
    require_int("head_dim", head_dim, params.lanes, params.head_dim)
    if head_dim % params.lanes:
        raise ValueError(f"head_dim must be a multiple of lanes ({params.lanes}), not {head_dim!r}")


def _kept(function: Callable[[_Layout], _Found]) -> Callable[[_Layout], _Found]:
    """Keep what a function finds of each layout: Amaranth works offsets and sizes out anew at each look.

    A layout can be hashed, but its type does not say so.
    """
    return cast("Any", functools.cache(function))


@_kept
def _places(layout: data.StructLayout) -> dict[str, tuple[int, int, data.ArrayLayout | None]]:
    """Return offset, bits and layout, if it is an array's, of every field."""
    return {
        name: (field.offset, field.width, field.shape if isinstance(field.shape, data.ArrayLayout) else None)
        for name, field in layout
    }


def _join(layout: data.ArrayLayout, codes: npt.ArrayLike) -> int:
    array = np.asarray(codes)
    if array.shape != (layout.length,):
        raise ValueError(f"array must have {layout.length} codes, not shape {array.shape}")
    return int.from_bytes(array.astype(_code_dtype(layout)).tobytes(), "little")


def _split(layout: data.ArrayLayout, number: int) -> npt.NDArray[Any]:
    size = layout.length * _code_dtype(layout).itemsize
    return np.frombuffer(number.to_bytes(size, "little"), dtype=_code_dtype(layout))


@_kept
def _code_dtype(layout: data.ArrayLayout) -> np.dtype[Any]:
    return np.dtype(f"<u{int(layout.size) // layout.length // 8}")
