"""Cycles of compressor and decompressor without stalls: they equal the RTL (``tests/rtl/test_compression.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.timing.window import window_cycles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.dma_params import CompressionParams

__all__ = ["compressor_cycles", "compressor_latency", "decompressor_cycles"]


def compressor_latency(params: CompressionParams, beats: int) -> int:
    """Return the cycles from the first beat of a payload of ``beats`` beats to its first output, in an idle unit.

    ``min(beats, block_beats) + 1``: the block's largest number is known with its last beat, and two registers follow.

    Raises
    ------
    TypeError, ValueError
        If ``beats`` is no integer of at least 1.
    """
    require_int("beats", beats, 1)
    return min(beats, params.block_beats) + 1


def compressor_cycles(params: CompressionParams, payloads: Sequence[int]) -> list[int]:
    """Return the cycle of each output beat when payloads of so many beats are offered back to back from cycle 0.

    The beats of a block that is whole in cycle e leave from cycle e + 2 on, one a cycle, behind those before them.

    Raises
    ------
    TypeError, ValueError
        If a payload has no beat.
    """
    found: list[int] = []
    taken = 0
    for beats in payloads:
        require_int("beats", beats, 1)
        for start in range(0, beats, params.block_beats):
            block = min(params.block_beats, beats - start)
            taken += block
            begin = max(taken + 1, found[-1] + 1 if found else 0)
            found.extend(range(begin, begin + block))
    return found


def decompressor_cycles(params: CompressionParams, payloads: Sequence[Sequence[int]]) -> list[int]:
    """Return the cycle of each output beat when bytes come as fast as they are taken, in whole beats but for the last.

    The recurrence of :func:`hw.timing.window.window_cycles` with a window of two beats of bytes and one byte; the last
    beat of a payload's bytes is let in with the last beat of numbers of the payload before it, or later. Outputs are a
    cycle behind what leaves the window.

    Parameters
    ----------
    params : CompressionParams
        Sizes.
    payloads : sequence of sequence of int
        Bytes of each beat of numbers of each payload, its scale included.

    Raises
    ------
    ValueError
        If a payload has no beat.
    """
    if not all(payloads):
        raise ValueError("payloads must have at least one beat each, one has none")
    word_bytes = params.word_bytes
    puts: list[int] = []
    takes: list[int] = []
    not_before: dict[int, tuple[int, int]] = {}
    for number, sizes in enumerate(payloads):
        whole, rest = divmod(sum(sizes), word_bytes)
        puts += [word_bytes] * whole + [rest] * (rest > 0)
        if number:
            not_before[len(puts) - 1] = (len(takes) - 1, 0)
        takes += sizes
    return [cycle + 1 for cycle in window_cycles(puts, takes, slack=word_bytes + 1, not_before=not_before)[1]]
