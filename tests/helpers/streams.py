"""Drives and watches every stream of a unit; the same bench serves cocotb and Amaranth's simulator.

A scenario is a coroutine that takes a :class:`StreamBench`: it queues items, waits for results and reads
them back. Each cycle the bench offers inputs and readiness (with seeded random idles and back-pressure
where asked), samples all handshakes at the rising edge, records them, and checks the transfer rules on
every stream the unit drives: an offer is not withdrawn and its payload does not change before it is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from hw.timing.trace import StreamTrace

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["StreamBench", "StreamRuleError", "StreamWords"]


_RESET = 1
"""The word that resets the unit, offers nothing and takes nothing."""


class StreamRuleError(AssertionError):
    """The unit broke a stream rule, or did not deliver in time."""


@dataclass(frozen=True)
class StreamWords:
    """Layout of the word that a bench writes and of the one that it reads, both once a cycle.

    A simulator takes about as long to write or read a word as a bit, and Amaranth's settles the whole design after
    every write. ``driven`` holds, from the lowest bit on, reset, then valid and payload of each input, then ready of
    each output; ``seen`` holds ready of each input, then valid and payload of each output.

    Parameters
    ----------
    inputs, outputs : dict of str to int
        Bits of the payload of each stream, by name.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]

    @property
    def driven_bits(self) -> int:
        """Bits of the word that is written."""
        return 1 + sum(1 + bits for bits in self.inputs.values()) + len(self.outputs)

    @property
    def seen_bits(self) -> int:
        """Bits of the word that is read."""
        return len(self.inputs) + sum(1 + bits for bits in self.outputs.values())


@dataclass
class _Stream:
    """State of one stream: probability of a pause, items still to offer, items transferred, handshakes so far.

    Its valid and payload begin at bit ``place`` of the word that its sender writes, its ready is bit ``ready_place`` of
    the other word.
    """

    place: int
    ready_place: int
    mask: int
    pause: float = 0.0
    queue: deque[int] = field(default_factory=deque)
    offer: int = 0
    items: list[int] = field(default_factory=list)
    valid: list[bool] = field(default_factory=list)
    ready: list[bool] = field(default_factory=list)
    held: int | None = None
    shown: int = 0

    def restart(self) -> None:
        """Forget everything but the probability of a pause."""
        self.__init__(self.place, self.ready_place, self.mask, self.pause)


class StreamBench(ABC):
    """The simulator-independent part; a back end supplies :meth:`_step`.

    Parameters
    ----------
    words : StreamWords
        The unit's streams, and where they lie in what is written and read once a cycle.
    seed : int
        Of every random pause.
    """

    def __init__(self, words: StreamWords, seed: int) -> None:
        driven, seen = 1, 0
        self._inputs: dict[str, _Stream] = {}
        for name, bits in words.inputs.items():
            self._inputs[name] = _Stream(driven, seen, (1 << bits) - 1)
            driven, seen = driven + 1 + bits, seen + 1
        self._outputs: dict[str, _Stream] = {}
        for name, bits in words.outputs.items():
            self._outputs[name] = _Stream(seen, driven, (1 << bits) - 1)
            driven, seen = driven + 1, seen + 1 + bits
        self._random = Random(seed)
        self.cycle = 0

    @abstractmethod
    async def _step(self, driven: int) -> int:
        """Write the word of :class:`StreamWords`, let one clock cycle pass and return the word at its rising edge."""

    def send(self, name: str, payloads: Iterable[int], *, idle: float | None = None) -> None:
        """Queue ``payloads`` on an input stream; ``idle`` is the probability of offering nothing in a free cycle."""
        stream = self._inputs[name]
        stream.queue.extend(int(payload) & stream.mask for payload in payloads)
        if idle is not None:
            stream.pause = idle

    def stall(self, name: str, probability: float) -> None:
        """Make the bench refuse an output stream with this probability in every cycle."""
        self._outputs[name].pause = probability

    async def reset(self, cycles: int = 2) -> None:
        """Hold reset; queues, items and traces start anew."""
        for stream in (*self._inputs.values(), *self._outputs.values()):
            stream.restart()
        for _ in range(cycles):
            await self._step(_RESET)
        self.cycle = 0

    async def advance(self, cycles: int = 1) -> None:
        """Let ``cycles`` cycles pass."""
        for _ in range(cycles):
            driven = self._driven()
            self._record(driven, await self._step(driven))

    async def until(self, *, timeout_cycles: int = 100_000, **items: int) -> None:
        """Advance until each named stream has transferred its number of items since reset.

        Raises
        ------
        StreamRuleError
            If that takes more than ``timeout_cycles``.
        """
        waiting = [(self._stream(name).items, wanted) for name, wanted in items.items()]
        for _ in range(timeout_cycles):
            while waiting and len(waiting[-1][0]) >= waiting[-1][1]:
                waiting.pop()
            if not waiting:
                return
            await self.advance()
        got = ", ".join(f"{name} {self.count(name)} of {wanted}" for name, wanted in items.items())
        raise StreamRuleError(f"items must come within {timeout_cycles} cycles, got {got}")

    def count(self, name: str) -> int:
        """Return how many items a stream has transferred since reset."""
        return len(self._stream(name).items)

    def items(self, name: str) -> list[int]:
        """Return the items a stream has transferred since reset."""
        return list(self._stream(name).items)

    def fresh(self, name: str) -> list[int]:
        """Return the items a stream has transferred since this was asked last, or since reset."""
        stream = self._stream(name)
        items = stream.items[stream.shown :]
        stream.shown = len(stream.items)
        return items

    def trace(self, name: str) -> StreamTrace:
        """Return the recorded handshakes of a stream since reset."""
        stream = self._stream(name)
        return StreamTrace(np.array(stream.valid, dtype=np.bool_), np.array(stream.ready, dtype=np.bool_))

    def _stream(self, name: str) -> _Stream:
        return self._inputs[name] if name in self._inputs else self._outputs[name]

    def _driven(self) -> int:
        """Return the word of the next cycle."""
        word, random = 0, self._random
        for stream in self._inputs.values():
            if not stream.offer:
                if stream.queue and (stream.pause == 0 or random.random() >= stream.pause):
                    stream.offer = (stream.queue[0] << 1 | 1) << stream.place
                else:
                    # An idle stream carries noise, so that a unit that looks at an invalid payload is found out.
                    word |= (random.getrandbits(16) & stream.mask) << (stream.place + 1)
            word |= stream.offer
        for stream in self._outputs.values():
            if stream.pause == 0 or random.random() >= stream.pause:
                word |= 1 << stream.ready_place
        return word

    def _record(self, driven: int, seen: int) -> None:
        for stream in self._inputs.values():
            ready = bool(seen >> stream.ready_place & 1)
            stream.valid.append(stream.offer != 0)
            stream.ready.append(ready)
            if ready and stream.offer:
                stream.items.append(stream.queue.popleft())
                stream.offer = 0
        for name, stream in self._outputs.items():
            word = seen >> stream.place
            ready = bool(driven >> stream.ready_place & 1)
            payload = word >> 1 & stream.mask if word & 1 else None
            stream.valid.append(payload is not None)
            stream.ready.append(ready)
            if stream.held is not None and payload != stream.held:
                raise StreamRuleError(f"cycle {self.cycle}: {_broken(name, stream.held, payload)}")
            if ready and payload is not None:
                stream.items.append(payload)
            stream.held = None if ready else payload
        self.cycle += 1


def _broken(name: str, held: int, payload: int | None) -> str:
    if payload is None:
        return f"{name}.valid must hold until the transfer, it fell"
    return f"{name}.payload must hold until the transfer, {held:#x} became {payload:#x}"
