"""Which stored tokens a decoding request reads from step to step: a process with locality as parameters.

Every token is of one of two kinds, *steady* or *fleeting*, drawn once. Apart from the first tokens and the last ones,
which are always read, a token of kind c is read at the rate ``q_c`` in the long run, and

    P(read at step j + n | read at step j) = q_c + (1 - q_c) f_c^n

with a memory ``f_c``: a Markov chain of two states. What is drawn for each token is the step at which it is read next,
so that a policy which knows the future can be told of it. A step reads exactly as many tokens as are asked for: those
due soonest; among those that are due alike, those that were read in the step before, then drawn by chance. Who is due
and not chosen is due again in the next step.

Tokens are drawn one by one: neighbours share nothing, so that more pages are touched than in a real model, whose pages
of 16 tokens are 0.66 to 0.70 and not 0.87 touched where 0.12 of the tokens are read. One draw stands for all layers and
heads of a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LOCALITIES", "AccessLocality", "AccessStream"]

_FAR = 30_000
"""Steps beyond which a next read is taken to be: it fits 16 bits with its sign."""


@dataclass(frozen=True, kw_only=True)
class AccessLocality:
    """Parameters of the process; the defaults are fitted to :func:`golden.retrieval.generator.generate`.

    There, as Double Sparsity does, the eighth of 7,855 tokens with the largest score of any of four heads is read, over
    128 steps. Of tokens that are neither first nor among the last 16, means over seeds 0 to 3, of 0.12 that are read:
    read again after 1, 2, 4, 8, 16, 32 and 64 steps 0.71, 0.59, 0.46, 0.36, 0.26, 0.23 and 0.20; these numbers stay
    within 0.03. Of the last 20 tokens 0.86 are read; here all are. A step's rates are these times one factor, so that
    they come to what it reads.

    Parameters
    ----------
    steady_share : float
        Part of the tokens that are steady.
    steady_rate, fleeting_rate : float
        Part of the steps in which a token of the kind is read.
    steady_memory, fleeting_memory : float
        Correlation of a token's reads in consecutive steps.
    sinks, recent : int
        First and last tokens of a request, always read.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range.
    """

    steady_share: float = 0.22
    steady_rate: float = 0.325
    fleeting_rate: float = 0.0617
    steady_memory: float = 0.88
    fleeting_memory: float = 0.35
    sinks: int = 1
    recent: int = 20

    def __post_init__(self) -> None:
        if not 0 <= self.steady_share <= 1:
            raise ValueError(f"steady_share must be from 0 to 1, not {self.steady_share!r}")
        for name in ("steady_rate", "fleeting_rate"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be above 0 and below 1, not {getattr(self, name)!r}")
        for name in ("steady_memory", "fleeting_memory"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be from 0 to below 1, not {getattr(self, name)!r}")
        require_int("sinks", self.sinks, 0)
        require_int("recent", self.recent, 1)

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """Part of the tokens of each kind, fleeting and steady."""
        return np.array([1 - self.steady_share, self.steady_share])

    @property
    def rates(self) -> npt.NDArray[np.float64]:
        """Rate of each kind, ``q_c``."""
        return np.array([self.fleeting_rate, self.steady_rate])

    @property
    def memories(self) -> npt.NDArray[np.float64]:
        """Memory of each kind, ``f_c``."""
        return np.array([self.fleeting_memory, self.steady_memory])

    @property
    def anew(self) -> npt.NDArray[np.float64]:
        """Probability that a token of each kind is read after a step in which it was not: ``q_c (1 - f_c)``.

        After a step in which it was, it is ``f_c`` more.
        """
        return self.rates * (1 - self.memories)

    @property
    def rate(self) -> float:
        """Rate over both kinds."""
        return float((self.shares * self.rates).sum())

    def reuse(self, steps: int) -> float:
        """Return the part of what is read at a step that is read so many steps later, over both kinds."""
        read = self.shares * self.rates
        return float((read * (self.rates + (1 - self.rates) * self.memories**steps)).sum() / read.sum())

    def always(self, tokens: int, kept: int) -> tuple[int, int]:
        """Return how many first and last ones of ``tokens`` are read in any case, where ``kept`` are read."""
        kept = min(kept, tokens)
        first = min(self.sinks, kept)
        return first, min(self.recent, kept - first)


LOCALITIES = {
    "fitted": AccessLocality(),
    # One kind: 0.85 of what is read is read again, wherever it lies. Tensors of a real model support neither that (0.63
    # to 0.70 token by token) nor that what is read lies near: the last 20 tokens are 0.02 to 0.04 of it.
    "seed": AccessLocality(steady_rate=0.125, fleeting_rate=0.125, steady_memory=0.8286, fleeting_memory=0.8286),
    # A few tokens that stay, and many that come once: for judging what was learnt on others.
    "restless": AccessLocality(
        steady_share=0.08, steady_rate=0.6, fleeting_rate=0.0837, steady_memory=0.95, fleeting_memory=0.1, recent=40
    ),
}
"""Parameters by name."""


class AccessStream:
    """Reads of one decoding request, step by step.

    Parameters
    ----------
    locality : AccessLocality
    tokens : int
        Tokens that are stored before the first step; what they were read like before is drawn too.
    rng : Generator
        It is spawned from: what it gives itself does not change.

    Attributes
    ----------
    history : ndarray of uint8
        Of each token, its reads in the last eight steps: the highest bit is the latest.
    due : ndarray of int16
        Steps until each token is read next, 1 for the step to come; first and last tokens are read whatever it says.
    """

    def __init__(self, locality: AccessLocality, tokens: int, rng: np.random.Generator) -> None:
        self._locality = locality
        self._kinds, self._rng = rng.spawn(2)
        rng = self._rng
        self._looked: npt.NDArray[np.bool_] | None = None
        self.kind = (self._kinds.random(tokens, np.float32) < locality.steady_share).astype(np.int8)
        self.history = np.zeros(tokens, np.uint8)
        # A chain of two states runs backwards as it runs forwards.
        read = rng.random(tokens, np.float32) < locality.rates.astype(np.float32)[self.kind]
        latest = read
        for step in range(8):
            self.history |= read.astype(np.uint8) << np.uint8(7 - step)
            chance = locality.anew + np.multiply.outer(read, locality.memories)
            read = rng.random(tokens, np.float32) < chance[np.arange(tokens), self.kind]
        self._anew = locality.anew
        self.due = self._next(self.kind, latest)

    def __len__(self) -> int:
        return len(self.kind)

    def append(self, tokens: int = 1) -> None:
        """Store ``tokens`` more, which count as read ever since."""
        kind = (self._kinds.random(tokens, np.float32) < self._locality.steady_share).astype(np.int8)
        self.kind = np.concatenate([self.kind, kind])
        self.history = np.concatenate([self.history, np.full(tokens, 255, np.uint8)])
        self.due = np.concatenate([self.due, np.ones(tokens, np.int16)])

    def look(self, kept: int) -> npt.NDArray[np.bool_]:
        """Return which of the tokens the next step reads, if it appends one and keeps ``kept``."""
        self._looked = self._chosen(len(self) + 1, kept)
        return self._looked[:-1]

    def step(self, kept: int) -> npt.NDArray[np.bool_]:
        """Return which tokens the next step reads: ``kept`` of them, or all if there are fewer."""
        if self._looked is not None and len(self._looked) == len(self):
            read = self._looked
        else:
            read = self._chosen(len(self), kept)
        self._looked = None
        self.history = self.history >> np.uint8(1) | read.astype(np.uint8) << np.uint8(7)
        np.maximum(self.due - np.int16(1), np.int16(1), out=self.due)
        chosen = np.flatnonzero(read)
        self.due[chosen] = self._next(self.kind[chosen], np.ones(len(chosen), np.bool_))
        return read

    def _chosen(self, count: int, kept: int) -> npt.NDArray[np.bool_]:
        """Return which of ``count`` tokens are read: those that are here, and one more at most that comes."""
        read = np.ones(count, np.bool_)
        if kept < count:
            first, last = self._locality.always(count, kept)
            wanted = kept - first - last
            wanted_rate = max(wanted, 1e-9) / (count - first - last)
            most = 0.99 / float(self._locality.rates.max())
            self._anew = self._locality.anew * min(most, wanted_rate / self._locality.rate)
            inner = slice(first, count - last)
            read[inner] = False
            # Where any are to be chosen, the token that comes is among the last ones and not among these.
            if wanted:
                draw = self._rng.random(count - first - last, np.float32)
                draw[self.history[inner] >= 128] *= 1e-3
                soonest = np.argpartition(self.due[inner] + draw, wanted - 1)[:wanted]
                read[first + soonest] = True
        return read

    def _next(self, kind: npt.NDArray[np.int8], read: npt.NDArray[np.bool_]) -> npt.NDArray[np.int16]:
        """Return when tokens are read next, given whether they have just been."""
        draw = self._rng.random(len(kind))
        anew = self._anew[kind]
        at_once = np.where(read, anew + self._locality.memories[kind], 0.0)
        # Of those that skip the next step, how many further ones: 1 + geometric. Of those not read, geometric alone.
        rest = np.clip((draw - at_once) / (1 - at_once), 0.0, 1.0 - 1e-12)
        later = np.ceil(np.log1p(-rest) / np.log1p(-anew)).clip(1, _FAR)
        return np.where(draw < at_once, 1, later + read).astype(np.int16)
