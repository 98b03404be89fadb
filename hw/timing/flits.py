"""Cycles of packer and unpacker without stalls: they equal the RTL (``tests/hw/test_flits.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.dma.frames import HEADER, WORD_BYTES, frame_bytes
from hw.timing.window import window_cycles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.dma_params import FlitParams

__all__ = ["packer_cycles", "unpacker_cycles"]


def packer_cycles(params: FlitParams, runs: Sequence[Sequence[int]]) -> list[int]:
    """Return the cycle of each output beat when the beats of runs of frames come as soon as they are taken.

    The recurrence of :func:`hw.timing.window.window_cycles` with a window of two beats; the first beat of a run is let
    in a cycle behind the last beat that the run before it fills. Outputs are a cycle behind what leaves the window.

    Parameters
    ----------
    params : FlitParams
        Sizes.
    runs : sequence of sequence of int
        Words of each input beat of each run.
    """
    sizes = [params.beat_words] * (params.beats - 1) + [params.last_words]
    puts: list[int] = []
    takes: list[int] = []
    not_before: dict[int, tuple[int, int]] = {}
    for run in runs:
        if takes:
            not_before[len(puts)] = (len(takes) - 1, 1)
        puts += run
        left = sum(run)
        while left > 0:
            for size in sizes:
                takes.append(max(0, min(size, left)))
                left -= size
    return [cycle + 1 for cycle in window_cycles(puts, takes, slack=params.beat_words, not_before=not_before)[1]]


def unpacker_cycles(params: FlitParams, payloads_bytes: Sequence[int]) -> list[int]:
    """Return the cycle of each output beat when the flits of one run of frames come as soon as they are taken.

    The recurrence of :func:`hw.timing.window.window_cycles` with a window of two beats, from which a frame leaves as a
    header and beats of payload. Outputs are a cycle behind.

    Parameters
    ----------
    params : FlitParams
        Sizes.
    payloads_bytes : sequence of int
        Bytes of payload of each frame.
    """
    takes: list[int] = []
    for size in payloads_bytes:
        words = (frame_bytes(size) - HEADER.size) // WORD_BYTES
        whole, rest = divmod(words, params.beat_words)
        takes += [params.header_words] + [params.beat_words] * whole + [rest] * (rest > 0)
    puts: list[int] = []
    while sum(puts) < sum(takes):
        puts.append(params.last_words if len(puts) % params.beats == params.beats - 1 else params.beat_words)
    return [cycle + 1 for cycle in window_cycles(puts, takes, slack=params.beat_words, not_before={})[1]]
