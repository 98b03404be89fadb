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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hw.timing.trace import StreamTrace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Drive", "Sample", "StreamBench", "StreamRuleError", "StreamWords"]


class StreamRuleError(AssertionError):
    """The unit broke a stream rule, or did not deliver in time."""


class Drive(NamedTuple):
    """What the bench puts on the ports of one cycle: per input stream (valid, payload), per output stream ready."""

    offers: dict[str, tuple[bool, int]]
    ready: dict[str, bool]
    reset: bool


class Sample(NamedTuple):
    """What a rising edge saw of one stream; the payload is None unless valid."""

    valid: bool
    ready: bool
    payload: int | None


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

    def driven(self, drive: Drive) -> int:
        """Return the word to write; a payload is cut to its bits."""
        word, place = int(drive.reset), 1
        for name, bits in self.inputs.items():
            valid, payload = drive.offers[name]
            word |= (payload & ((1 << bits) - 1)) << (place + 1) | valid << place
            place += 1 + bits
        for name in self.outputs:
            word |= drive.ready[name] << place
            place += 1
        return word

    def samples(self, drive: Drive, seen: int) -> dict[str, Sample]:
        """Return what the rising edge saw of each stream, from what was driven and the word that was read."""
        found = {}
        for name, bits in self.inputs.items():
            valid, payload = drive.offers[name]
            found[name] = Sample(valid, bool(seen & 1), payload & ((1 << bits) - 1) if valid else None)
            seen >>= 1
        for name, bits in self.outputs.items():
            valid = bool(seen & 1)
            found[name] = Sample(valid, drive.ready[name], seen >> 1 & ((1 << bits) - 1) if valid else None)
            seen >>= 1 + bits
        return found


@dataclass
class _Stream:
    """State of one stream: probability of a pause, items still to offer, items transferred, handshakes so far."""

    pause: float = 0.0
    queue: deque[int] = field(default_factory=deque)
    offered: bool = False
    items: list[int] = field(default_factory=list)
    valid: list[bool] = field(default_factory=list)
    ready: list[bool] = field(default_factory=list)
    held: int | None = None


class StreamBench(ABC):
    """The simulator-independent part; a back end supplies :meth:`_step`.

    Parameters
    ----------
    inputs, outputs : iterable of str
        Names of the unit's streams, by direction.
    seed : int
        Of every random pause.
    """

    def __init__(self, inputs: Iterable[str], outputs: Iterable[str], seed: int) -> None:
        self._inputs = {name: _Stream() for name in inputs}
        self._outputs = {name: _Stream() for name in outputs}
        self._random = Random(seed)
        self.cycle = 0

    @abstractmethod
    async def _step(self, drive: Drive) -> Mapping[str, Sample]:
        """Apply ``drive``, let one clock cycle pass and return what its rising edge sampled."""

    def send(self, name: str, payloads: Iterable[int], *, idle: float | None = None) -> None:
        """Queue ``payloads`` on an input stream; ``idle`` is the probability of offering nothing in a free cycle."""
        stream = self._inputs[name]
        stream.queue.extend(int(payload) for payload in payloads)
        if idle is not None:
            stream.pause = idle

    def stall(self, name: str, probability: float) -> None:
        """Make the bench refuse an output stream with this probability in every cycle."""
        self._outputs[name].pause = probability

    async def reset(self, cycles: int = 2) -> None:
        """Hold reset; queues, items and traces start anew."""
        for stream in (*self._inputs.values(), *self._outputs.values()):
            pause = stream.pause
            stream.__init__(pause=pause)
        for _ in range(cycles):
            await self._step(Drive(dict.fromkeys(self._inputs, (False, 0)), dict.fromkeys(self._outputs, False), True))
        self.cycle = 0

    async def advance(self, cycles: int = 1) -> None:
        """Let ``cycles`` cycles pass."""
        for _ in range(cycles):
            self._record(await self._step(self._drive()))

    async def until(self, *, timeout_cycles: int = 100_000, **items: int) -> None:
        """Advance until each named stream has transferred its number of items since reset.

        Raises
        ------
        StreamRuleError
            If that takes more than ``timeout_cycles``.
        """
        streams = {name: self._stream(name) for name in items}
        for _ in range(timeout_cycles):
            if all(len(streams[name].items) >= wanted for name, wanted in items.items()):
                return
            await self.advance()
        got = ", ".join(f"{name} {len(streams[name].items)} of {wanted}" for name, wanted in items.items())
        raise StreamRuleError(f"items must come within {timeout_cycles} cycles, got {got}")

    def count(self, name: str) -> int:
        """Return how many items a stream has transferred since reset."""
        return len(self._stream(name).items)

    def items(self, name: str) -> list[int]:
        """Return the items a stream has transferred since reset."""
        return list(self._stream(name).items)

    def trace(self, name: str) -> StreamTrace:
        """Return the recorded handshakes of a stream since reset."""
        stream = self._stream(name)
        return StreamTrace(np.array(stream.valid, dtype=np.bool_), np.array(stream.ready, dtype=np.bool_))

    def _stream(self, name: str) -> _Stream:
        return self._inputs[name] if name in self._inputs else self._outputs[name]

    def _drive(self) -> Drive:
        offers = {}
        for name, stream in self._inputs.items():
            if stream.queue and not stream.offered:
                stream.offered = stream.pause == 0 or self._random.random() >= stream.pause
            # An idle stream carries noise, so that a unit that looks at an invalid payload is found out.
            offers[name] = (True, stream.queue[0]) if stream.offered else (False, self._random.getrandbits(16))
        ready = {
            name: stream.pause == 0 or self._random.random() >= stream.pause for name, stream in self._outputs.items()
        }
        return Drive(offers, ready, False)

    def _record(self, samples: Mapping[str, Sample]) -> None:
        for name, sample in samples.items():
            is_input = name in self._inputs
            stream = self._inputs[name] if is_input else self._outputs[name]
            stream.valid.append(sample.valid)
            stream.ready.append(sample.ready)
            if not is_input:
                self._check(name, stream, sample)
            if sample.valid and sample.ready:
                assert sample.payload is not None
                stream.items.append(sample.payload)
                if is_input:
                    stream.queue.popleft()
                    stream.offered = False
        self.cycle += 1

    def _check(self, name: str, stream: _Stream, sample: Sample) -> None:
        if stream.held is not None:
            if not sample.valid:
                raise StreamRuleError(f"cycle {self.cycle}: {name}.valid must hold until the transfer, it fell")
            if sample.payload != stream.held:
                raise StreamRuleError(
                    f"cycle {self.cycle}: {name}.payload must hold until the transfer, "
                    f"{stream.held:#x} became {sample.payload:#x}"
                )
        stream.held = sample.payload if sample.valid and not sample.ready else None
