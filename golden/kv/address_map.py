"""Physical addresses of a memory as digits of one number: what lies next to what is the order of the digits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

__all__ = ["AddressMap", "Level"]


@dataclass(frozen=True)
class Level:
    """One digit of an address.

    Parameters
    ----------
    name : str
        Coordinate that the digit belongs to, such as ``"bank"``.
    size : int
        Values that it takes, 0 to ``size - 1``.

    Raises
    ------
    TypeError, ValueError
        If the name is empty, or ``size`` no integer of at least 1.
    """

    name: str
    size: int

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError(f"name of a level must say something, not {self.name!r}")
        require_int(f"size of level {self.name}", self.size, 1)


@dataclass(frozen=True)
class AddressMap:
    """One to one between byte indices and coordinates of a memory, no address hashed.

    A byte index i is a number with one digit a level, the first level counting fastest::

        i = d_0 + size_0 * (d_1 + size_1 * (d_2 + ...))

    A coordinate may have several digits, anywhere in the order; the first is its lowest:
    ``column = d_low + size_low * d_high``. With every digit in its range there is one index for each set of coordinates
    and one set for each index, whatever the order and whatever the sizes.

    The first ``slot_levels`` levels are the bytes of one slot, the room of a token's key and value of one layer and KV
    head: slot s holds the indices from ``s * slot_bytes`` on.

    Parameters
    ----------
    name : str
        Shown in messages.
    levels : tuple of Level
        Digits, the fastest first.
    slot_levels : int
        Levels that lie within a slot; from 1 to ``len(levels)``.

    Raises
    ------
    TypeError, ValueError
        If there are no levels, or ``slot_levels`` is out of range.
    """

    name: str
    levels: tuple[Level, ...]
    slot_levels: int

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError(f"levels of {self.name} must be at least one, not {self.levels!r}")
        require_int("slot_levels", self.slot_levels, 1, len(self.levels))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Values of each coordinate, in order of its first digit."""
        sizes: dict[str, int] = {}
        for level in self.levels:
            sizes[level.name] = sizes.get(level.name, 1) * level.size
        return sizes

    @cached_property
    def capacity_bytes(self) -> int:
        """Bytes of all slots: the product of all sizes."""
        return prod(level.size for level in self.levels)

    @cached_property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""
        return prod(level.size for level in self.levels[: self.slot_levels])

    @property
    def slots(self) -> int:
        """Slots of the memory."""
        return self.capacity_bytes // self.slot_bytes

    def index(self, slot: int, offset: int) -> int:
        """Return the byte index of byte ``offset`` of slot ``slot``.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot, or the slot has no such byte.
        """
        require_int(f"slot of {self.name}", slot, 0, self.slots - 1)
        require_int(f"offset in a slot of {self.name}", offset, 0, self.slot_bytes - 1)
        return slot * self.slot_bytes + offset

    def decode(self, index: npt.ArrayLike) -> dict[str, npt.NDArray[np.int64]]:
        """Return the coordinates of byte indices.

        Parameters
        ----------
        index : array_like of int
            Any shape; each from 0 to ``capacity_bytes - 1``.

        Returns
        -------
        dict of str to ndarray of int64
            Each coordinate, in the shape of ``index``.

        Raises
        ------
        TypeError, ValueError
            If an index is no integer or out of range.
        """
        rest = _integers(f"index of {self.name}", index, self.capacity_bytes)
        found = {name: np.zeros_like(rest) for name in self.sizes}
        weight = dict.fromkeys(self.sizes, 1)
        for level in self.levels:
            rest, digit = np.divmod(rest, level.size)
            found[level.name] = found[level.name] + digit * weight[level.name]
            weight[level.name] *= level.size
        return found

    def encode(self, coordinates: Mapping[str, npt.ArrayLike]) -> npt.NDArray[np.int64]:
        """Return the byte indices of coordinates: the inverse of :meth:`decode`.

        Raises
        ------
        TypeError, ValueError
            If a coordinate is missing, unknown, no integer or out of range.
        """
        if set(coordinates) != set(self.sizes):
            raise ValueError(
                f"coordinates of {self.name} must be {', '.join(self.sizes)}, not {', '.join(coordinates) or 'none'}"
            )
        rest = {name: _integers(f"{name} of {self.name}", coordinates[name], size) for name, size in self.sizes.items()}
        index: npt.NDArray[np.int64] = np.zeros(np.broadcast_shapes(*(part.shape for part in rest.values())), np.int64)
        weight = 1
        for level in self.levels:
            rest[level.name], digit = np.divmod(rest[level.name], level.size)
            index = index + digit * weight
            weight *= level.size
        return index


def _integers(name: str, values: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return ``values`` as int64, if they are integers from 0 to ``count - 1``."""
    array: npt.NDArray[Any] = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer, not {array.dtype}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < count:
        worst = int(array.min()) if int(array.min()) < 0 else int(array.max())
        raise ValueError(f"{name} must be from 0 to {count - 1}, not {worst}")
    return array.astype(np.int64)
