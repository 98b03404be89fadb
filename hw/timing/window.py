"""When units enter and leave a window (:class:`hw.interface.window.Window`) without stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["window_cycles"]


def window_cycles(
    puts: Sequence[int], takes: Sequence[int], *, slack: int, not_before: Mapping[int, tuple[int, int]]
) -> tuple[list[int], list[int]]:
    """Return the cycle of every put and of every take when both happen as soon as they can.

    With A_j the units before put j and B_k those before take k::

        put[j]  = max(put[j-1] + 1, take[k] for the last take that must be gone, A_j - B_(k+1) <= slack)
        take[k] = max(take[k-1] + 1, put[j] + 1 for the put that brings unit B_(k+1) - 1)

    Parameters
    ----------
    puts, takes : sequence of int
        Units of each, at least 1; both have the same sum.
    slack : int
        Capacity of the window less the largest put: what may be in it for a put to be let in. In the cycle of a take
        what it takes is gone.
    not_before : mapping of int to (int, int)
        For some puts, a take and a number of cycles behind it before which they are not let in.
    """
    put_cycles: list[int] = []
    take_cycles: list[int] = []
    in_front = gone = taken = freed = 0
    for size in takes:
        taken += size
        while in_front < taken:
            index = len(put_cycles)
            cycle = put_cycles[-1] + 1 if put_cycles else 0
            while in_front - freed > slack:
                freed += takes[gone]
                gone += 1
            if gone:
                cycle = max(cycle, take_cycles[gone - 1])
            if index in not_before:
                take, delay = not_before[index]
                cycle = max(cycle, take_cycles[take] + delay)
            put_cycles.append(cycle)
            in_front += puts[index]
        take_cycles.append(max(take_cycles[-1] + 1 if take_cycles else 0, put_cycles[-1] + 1))
    return put_cycles, take_cycles
