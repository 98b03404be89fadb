"""One step of a server: who decodes, and which parts of which prompts run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["Batch", "Chunk", "StepWork"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a prompt: ``tokens`` of them behind ``before`` that are stored already; blocks taken in each tier."""

    request: int
    tokens: int
    before: int
    taken: tuple[int, ...]


@dataclass(slots=True)
class Batch:
    """What one step does.

    Parameters
    ----------
    decoding : ndarray of int64
        Requests that give one token each.
    chunks : list of Chunk
        Parts of prompts.
    swapped_tokens : int
        Tokens whose keys and values are moved to the host or back before the step.
    preempted : int
        Requests that had to make room for it.
    reused_tokens : int
        Tokens that requests which begin find stored.
    """

    decoding: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    chunks: list[Chunk] = field(default_factory=list["Chunk"])
    swapped_tokens: int = 0
    preempted: int = 0
    reused_tokens: int = 0

    @property
    def is_empty(self) -> bool:
        """Nothing runs and nothing moves."""
        return not len(self.decoding) and not self.chunks and not self.swapped_tokens


@dataclass(slots=True, kw_only=True)
class StepWork:
    """What a step costs, for a model of its time; made once a step and never changed.

    Parameters
    ----------
    decoding : int
        Requests that give one token each.
    tier_tokens : tuple of float
        Tokens that they attend to in each tier, all requests together, the step's own included.
    tier_requests : tuple of float
        Of these, requests with tokens in each tier.
    prompt_requests, prompt_tokens : int
        Requests of which prompts run, and tokens of these.
    prompt_pairs : int
        Pairs of a token of a prompt and a token it attends to: ``sum(c k + c (c + 1) / 2)`` over parts of c tokens
        behind k.
    prompt_context : tuple of int
        Stored tokens that the parts read, in each tier: ``sum(k)`` in all.
    decode_appended, prompt_appended : tuple of int
        Tokens whose keys and values are written to each tier, of requests that decode and of prompts.
    ending : int
        Requests for which a token is sampled.
    swapped_tokens : int
        Tokens moved to the host's memory or back.
    tier_held : tuple of float
        Tokens that the requests which decode have in each tier, read or not; empty: as many as they attend to.
    tier_pages : tuple of float
        Pages of one KV head that are touched in each tier; empty: those of tokens that lie side by side.
    swaps : tuple of float
        Pairs of tokens that change places between each tier and the next; empty: none.
    tier_fullest : tuple of float
        Tokens of each request's fullest bank group times the groups, in each tier, which time follows; empty: groups
        share tokens evenly.
    prompt_parts : tuple of int
        Tokens of each part of a prompt, in the order in which their requests began; empty: all in one.
    """

    decoding: int
    tier_tokens: tuple[float, ...]
    tier_requests: tuple[float, ...]
    prompt_requests: int
    prompt_tokens: int
    prompt_pairs: int
    prompt_context: tuple[int, ...]
    decode_appended: tuple[int, ...]
    prompt_appended: tuple[int, ...]
    ending: int
    swapped_tokens: int
    tier_held: tuple[float, ...] = ()
    tier_pages: tuple[float, ...] = ()
    swaps: tuple[float, ...] = ()
    tier_fullest: tuple[float, ...] = ()
    prompt_parts: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens that go through the layers."""
        return self.decoding + self.prompt_tokens

    def busiest_tokens(self, groups: int) -> tuple[int, float]:
        """Return the tokens of the group with the most, and its share of those of prompts.

        Requests that decode are dealt evenly to ``groups``, parts of prompts in turn: a part is never cut.
        """
        parts = self.prompt_parts or (self.prompt_tokens,)
        most = max(sum(parts[group::groups]) for group in range(groups))
        return -(-self.decoding // groups) + most, most / self.prompt_tokens if most else 1.0
