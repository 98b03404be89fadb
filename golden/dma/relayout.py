"""Re-layout: where the bytes of slots lie in a memory, and how they get from one order to another.

An image of a memory is its bytes in the order of some :class:`golden.kv.address_map.AddressMap`. The token-major order
keeps a slot in one row of one bank; the bank-interleaved one spreads it over banks that are read in lock step; the
page-packed one fills pages slot by slot and goes to the next die with each page. All are maps of the same coordinates,
so that a slot's bytes under one order have addresses in an image of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.kv.address_map import AddressMap

__all__ = ["column_addresses", "read_slots", "slot_addresses", "write_slots"]


def slot_addresses(image: AddressMap, order: AddressMap, slots: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where the bytes of ``slots``, laid out by ``order``, lie in an image whose bytes stand as ``image`` says.

    Parameters
    ----------
    image, order : AddressMap
        Maps of one memory.
    slots : ndarray of int64, shape (slots,)
        Slots of ``order``.

    Returns
    -------
    ndarray of int64, shape (slots, order.slot_bytes)

    Raises
    ------
    TypeError, ValueError
        If the two have different coordinates, or there is no such slot.
    """
    if image.sizes != order.sizes:
        raise ValueError(f"order must have the coordinates of {image.name} {image.sizes}, not {order.sizes}")
    index = slots[:, None] * order.slot_bytes + np.arange(order.slot_bytes)
    return image.encode(order.decode(index))


def read_slots(
    content: npt.NDArray[np.uint8], image: AddressMap, order: AddressMap, slots: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """Return the bytes of slots, shape (slots, slot_bytes), out of a memory's image.

    Raises
    ------
    TypeError, ValueError
        As :func:`slot_addresses`.
    """
    return content[slot_addresses(image, order, slots)]


def write_slots(
    content: npt.NDArray[np.uint8],
    image: AddressMap,
    order: AddressMap,
    slots: npt.NDArray[np.int64],
    rows: npt.NDArray[np.uint8],
) -> None:
    """Write the bytes of slots, shape (slots, slot_bytes), into a memory's image, changed in place.

    Raises
    ------
    TypeError, ValueError
        As :func:`slot_addresses`; if a slot is named twice, or ``rows`` have another shape.
    """
    if np.unique(slots).size != slots.size:
        raise ValueError(f"slots must be named once each, not {slots.tolist()}")
    addresses = slot_addresses(image, order, slots)
    if rows.shape != addresses.shape:
        raise ValueError(f"rows must be of shape {addresses.shape}, not {rows.shape}")
    content[addresses] = rows


def column_addresses(order: AddressMap, slot: int, column_bytes: int) -> list[dict[str, int]]:
    """Return the coordinates of a slot's columns in the order of the slot's bytes: what address generation gives.

    Parameters
    ----------
    order : AddressMap
        Layout of the memory.
    slot : int
        The slot.
    column_bytes : int
        Bytes that one command moves; they must lie together in the memory.

    Raises
    ------
    TypeError, ValueError
        If there is no such slot, or ``column_bytes`` is not the size of the map's first level.
    """
    require_int("column_bytes", column_bytes, 1)
    if column_bytes != order.levels[0].size:
        raise ValueError(f"column_bytes must be {order.levels[0].size}, not {column_bytes!r}")
    start = order.index(slot, 0)
    found = order.decode(np.arange(start, start + order.slot_bytes, column_bytes))
    names = [name for name in order.sizes if name != order.levels[0].name]
    return [{name: int(found[name][number]) for name in names} for number in range(order.slot_bytes // column_bytes)]
