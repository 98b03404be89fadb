"""Keys and queries of a decoding request, drawn so that attention is as concentrated and as steady as in a real model.

A key has three kinds of elements, and so has the query of the token at position p::

                 sink            place, of each frequency f      content
    key t        1 if t = 0      cos f t, sin f t                c_t
    query p      a               r cos f p, r sin f p            s u_p

with r divided by the number of frequencies, so that the scaled score is a sink, a sum that falls with the logarithm of
the distance as that of rotary embeddings does, and likeness of content. Contents are normal numbers, of which the first
elements are the largest: neighbours share a part of theirs (runs of geometric length), queries drift from step to step
(autoregression of order 1), and the heads that share the keys share a part of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.retrieval.quality import attention_mass

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["DecodeTensors", "Locality", "generate"]

_FASTEST, _SLOWEST = 1.0, 1e-4
"""Frequencies of places, in radians a token: geometric between these, as in rotary embeddings of base 10,000."""


@dataclass(frozen=True, kw_only=True)
class Locality:
    """Parameters of the generator; the defaults are fitted to three layers of a real model.

    The model is Gemma-3-270M, whose layers 5, 11 and 17 attend to all of 7,855 tokens of text; the last 256 positions
    were taken as decode steps. The statistics of :mod:`golden.retrieval.locality` lie within the range of the three
    layers, widened by a quarter, as means over four requests that the fit did not see, seeds 0 to 3; one request alone
    may leave it, and means of other four can: of seeds 10 to 13 the mass of the last 256 tokens is 0.73 of the lowest
    layer's (``tests/golden/test_generator.py``). ``spectrum`` was chosen and not fitted, nor were the dimensions: they
    decide what clusters, bounds and labels find, not how attention is spread.

    Parameters
    ----------
    content_dim, frequencies : int
        Elements of contents, and pairs of elements of places.
    sink : float
        Scaled score of the first token.
    place : float
        Scaled score of a token with itself that is due to its place.
    content : float
        Standard deviation of scaled scores that is due to content.
    run_tokens : float
        Mean length of runs of tokens that share content.
    run_share : float
        Part of a content's variance that its run shares.
    steady : float
        Correlation of a query's content with that of the step before.
    alike : float
        Part of a content's variance that heads share.
    spectrum : float
        Standard deviations of a content's elements fall with this power of their number: 0 for equal ones.
    """

    content_dim: int = 95
    frequencies: int = 16
    sink: float = 11.2
    place: float = 8.8
    content: float = 2.45
    run_tokens: float = 8.0
    run_share: float = 0.12
    steady: float = 0.88
    alike: float = 0.5
    spectrum: float = 0.3

    def __post_init__(self) -> None:
        require_int("content_dim", self.content_dim, 1)
        require_int("frequencies", self.frequencies, 1)
        for name in ("run_share", "steady", "alike"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)!r}")
        if not self.run_tokens >= 1:
            raise ValueError(f"run_tokens must be at least 1, not {self.run_tokens!r}")

    @property
    def head_dim(self) -> int:
        """Elements of a key."""
        return 1 + 2 * self.frequencies + self.content_dim


@dataclass(frozen=True)
class DecodeTensors:
    """Keys of a request, and the queries of its last tokens.

    Parameters
    ----------
    keys : ndarray of float32, shape (tokens, head_dim)
    queries : ndarray of float32, shape (steps, heads, head_dim)
        Of the last tokens, the last one last. The query of a token sees it and those before.
    scale : float
        Factor of the scores.
    """

    keys: npt.NDArray[np.float32]
    queries: npt.NDArray[np.float32]
    scale: float

    def seen(self, step: int) -> int:
        """Return the tokens that the queries of a step see."""
        return len(self.keys) - len(self.queries) + step + 1

    def mass(self, step: int) -> list[npt.NDArray[np.float64]]:
        """Return the softmax weights of every head in a step."""
        keys = self.keys[: self.seen(step)]
        return [attention_mass(query, keys, self.scale) for query in self.queries[step]]


def generate(locality: Locality, *, tokens: int, steps: int, heads: int, seed: int) -> DecodeTensors:
    """Return the tensors of one request.

    Parameters
    ----------
    locality : Locality
    tokens, steps : int
        Tokens of the request, and how many of its last ones have queries.
    heads : int
        Query heads that share the keys.
    seed : int
        Equal seeds give equal tensors.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range.
    """
    require_int("tokens", tokens, 1)
    require_int("steps", steps, 1, tokens)
    require_int("heads", heads, 1)
    require_int("seed", seed, 0)
    rng = np.random.default_rng(seed)
    head_dim, dim = locality.head_dim, locality.content_dim
    # A draw of chance begins each run, so that lengths are geometric.
    runs = np.cumsum(rng.random(tokens) < 1 / locality.run_tokens)
    shared, own = rng.standard_normal((int(runs[-1]) + 1, dim)), rng.standard_normal((tokens, dim))
    contents = np.sqrt(locality.run_share) * shared[runs] + np.sqrt(1 - locality.run_share) * own
    drift = rng.standard_normal((steps, heads + 1, dim))
    for step in range(1, steps):
        drift[step] = locality.steady * drift[step - 1] + np.sqrt(1 - locality.steady**2) * drift[step]
    asked = np.sqrt(locality.alike) * drift[:, :1] + np.sqrt(1 - locality.alike) * drift[:, 1:]
    # The products of a query's and a key's elements have a variance of 1 in sum.
    deviations = np.arange(1.0, dim + 1) ** -locality.spectrum
    deviations /= (deviations**4).sum() ** 0.25
    contents, asked = deviations * contents, deviations * asked
    frequencies = np.geomspace(_FASTEST, _SLOWEST, locality.frequencies)
    angles = np.arange(tokens)[:, None] * frequencies
    places = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    # Scores are scaled by 1 / sqrt(head_dim), which the queries undo.
    scale = 1 / np.sqrt(head_dim)
    keys = np.concatenate([(np.arange(tokens) == 0)[:, None], places, contents], axis=1)
    queries = np.concatenate(
        [
            np.full((steps, heads, 1), locality.sink),
            np.broadcast_to(
                locality.place / locality.frequencies * places[tokens - steps :, None],
                (steps, heads, 2 * locality.frequencies),
            ),
            locality.content * asked,
        ],
        axis=2,
    )
    return DecodeTensors(keys.astype(np.float32), (queries / scale).astype(np.float32), float(scale))
