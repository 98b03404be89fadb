"""What the requests that decode do with the memories in one step."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TierUse"]


@dataclass(slots=True, kw_only=True)
class TierUse:
    """Counts of one step, over all requests that decode, by memory; means where only means are known. Never changed.

    Parameters
    ----------
    tokens : tuple of float
        Tokens that are attended to, the step's own included.
    requests : tuple of float
        Requests with any of these.
    held : tuple of float
        Tokens that are stored, the step's own included.
    appended : tuple of int
        The step's own tokens.
    pages : tuple of float
        Pages of one KV head that are touched, where a memory is read by pages; 0 elsewhere.
    swaps : tuple of float
        Pairs of tokens that change places between each memory and the next one, after they were read.
    fullest : tuple of float
        Of each request, tokens of its fullest bank group times the groups; empty where groups share tokens evenly.
    """

    tokens: tuple[float, ...]
    requests: tuple[float, ...]
    held: tuple[float, ...]
    appended: tuple[int, ...]
    pages: tuple[float, ...]
    swaps: tuple[float, ...]
    fullest: tuple[float, ...] = ()
