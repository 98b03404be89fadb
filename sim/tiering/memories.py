"""What a policy remembers of every token of one request, and the importance that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from golden.retrieval.access import AccessStream

__all__ = [
    "AverageMemory",
    "CountMemory",
    "FutureMemory",
    "NoMemory",
    "RecencyMemory",
    "TableMemory",
    "TokenMemory",
    "average_of_history",
]


class TokenMemory(Protocol):
    """Importance of the tokens of a request, kept up to date.

    Attributes
    ----------
    importance : ndarray of float32, shape (tokens,)
    """

    importance: npt.NDArray[np.float32]

    def append(self, tokens: int) -> None:
        """Take up ``tokens`` more, which were read ever since they came."""
        ...

    def step(self, read: npt.NDArray[np.bool_], *, decides: bool) -> None:
        """Take up a step's reads; ``decides``: tokens are moved by what is known now."""
        ...


class NoMemory:
    """All tokens alike.

    Parameters
    ----------
    stream : AccessStream
    """

    def __init__(self, stream: AccessStream) -> None:
        self.importance = np.zeros(len(stream), np.float32)

    def append(self, tokens: int) -> None:
        """Take up more."""
        self.importance = np.concatenate([self.importance, np.zeros(tokens, np.float32)])

    def step(self, read: npt.NDArray[np.bool_], *, decides: bool) -> None:
        """Nothing is learnt."""


def average_of_history(history: npt.NDArray[np.uint8], weight: float) -> npt.NDArray[np.float32]:
    """Return ``sum weight (1 - weight)^k read_k`` over the last eight steps, the latest k = 0 and the highest bit."""
    factors = weight * (1.0 - weight) ** np.arange(8)
    table = (np.arange(256)[:, np.newaxis] >> np.arange(7, -1, -1) & 1) @ factors
    return table.astype(np.float32)[history]


class AverageMemory:
    """``I_j = weight S_j + (1 - weight) I_(j-1)``, with S = 1 for what is read and 0 else.

    Parameters
    ----------
    stream : AccessStream
        Its eight steps before the first stand for what the prompt's own attention tells.
    weight : float
    """

    def __init__(self, stream: AccessStream, weight: float) -> None:
        self._weight = np.float32(weight)
        self.importance = average_of_history(stream.history, weight)

    def append(self, tokens: int) -> None:
        """Take up more, of importance 1."""
        self.importance = np.concatenate([self.importance, np.ones(tokens, np.float32)])

    def step(self, read: npt.NDArray[np.bool_], *, decides: bool) -> None:
        """Average."""
        del decides
        self.importance *= 1 - self._weight
        self.importance[read] += self._weight


class CountMemory:
    """``I = decay I + (1 - decay) count`` once an interval, with the reads counted since the one before; 0 at first.

    Parameters
    ----------
    stream : AccessStream
    decay : float
    """

    def __init__(self, stream: AccessStream, decay: float) -> None:
        self._decay = np.float32(decay)
        self.importance = np.zeros(len(stream), np.float32)
        self._count = np.zeros(len(stream), np.float32)

    def append(self, tokens: int) -> None:
        """Take up more, of importance 0."""
        self.importance = np.concatenate([self.importance, np.zeros(tokens, np.float32)])
        self._count = np.concatenate([self._count, np.zeros(tokens, np.float32)])

    def step(self, read: npt.NDArray[np.bool_], *, decides: bool) -> None:
        """Count, and average at the end of an interval."""
        self._count += read
        if decides:
            self.importance *= self._decay
            self.importance += (1 - self._decay) * self._count
            self._count[:] = 0.0


class RecencyMemory:
    """Minus the steps since a token was read.

    Parameters
    ----------
    stream : AccessStream
    """

    def __init__(self, stream: AccessStream) -> None:
        # Where the highest bit stands; what was not read within eight steps counts as read nine steps ago.
        heights = np.array([code.bit_length() for code in range(256)], np.float32)
        self.importance = heights[stream.history] - np.float32(8)

    def append(self, tokens: int) -> None:
        """Take up more, just read."""
        self.importance = np.concatenate([self.importance, np.zeros(tokens, np.float32)])

    def step(self, read: npt.NDArray[np.bool_], *, decides: bool) -> None:
        """Grow older by a step."""
        del decides
        self.importance -= 1
        self.importance[read] = 0.0


class FutureMemory:
    """Minus the steps until a token is read next, which the stream knows.

    Parameters
    ----------
    stream : AccessStream
    kept : callable
        How many of a number of tokens a step reads.
    """

    def __init__(self, stream: AccessStream, kept: Callable[[int], int]) -> None:
        self._stream, self._kept = stream, kept
        self.importance = np.zeros(0, np.float32)
        self._look()

    def append(self, tokens: int) -> None:
        """Take up more."""
        self.importance = np.concatenate([self.importance, np.full(tokens, -1, np.float32)])

    def step(self, read: npt.NDArray[np.bool_], *, decides: bool) -> None:
        """Look again."""
        del read, decides
        self._look()

    def _look(self) -> None:
        # Who is due in the next step and has to wait is read in the one behind it at best.
        self.importance = -np.maximum(self._stream.due, 2).astype(np.float32)
        self.importance[self._stream.look(self._kept(len(self._stream) + 1))] = -1.0


class TableMemory:
    """What a table says of a token's last four steps: how likely it is read in the next one.

    Parameters
    ----------
    stream : AccessStream
    table : ndarray of float32, shape (16,)
        By the reads of four steps, the latest the highest bit.
    """

    def __init__(self, stream: AccessStream, table: npt.NDArray[np.float32]) -> None:
        self._stream, self._table = stream, table
        self.importance = table[stream.history >> np.uint8(4)]

    def append(self, tokens: int) -> None:
        """Take up more, read ever since."""
        self.importance = np.concatenate([self.importance, np.full(tokens, self._table[15], np.float32)])

    def step(self, read: npt.NDArray[np.bool_], *, decides: bool) -> None:
        """Look the last four steps up."""
        del read, decides
        self.importance = self._table[self._stream.history >> np.uint8(4)]
