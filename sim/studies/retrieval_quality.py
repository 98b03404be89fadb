"""Which tokens methods of retrieval select, and what they read for it: recall, kept mass, bytes, operations.

Every query head selects for itself, as published evaluations do. Tokens come from the generator of
:mod:`golden.retrieval.generator`, or are the keys and queries of a real encoder. A row with k above a quarter of the
tokens says nothing about a method and is left out.

The index of a trained model is trained with it; here its keys and queries are those of attention, so that the rows of
``indexer`` and ``best token`` show what fp8, bf16 and blocks cost alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from golden.retrieval.blocks import BestToken, PageBounds, Representatives
from golden.retrieval.clusters import Clusters
from golden.retrieval.generator import Locality, generate
from golden.retrieval.indexer import Indexer
from golden.retrieval.labels import Labels, heavy_channels
from golden.retrieval.method import Query
from golden.retrieval.pinned import Pinned
from golden.retrieval.positional import Streaming
from golden.retrieval.quality import attention_mass, kept_mass, recall
from golden.retrieval.topk import top_k
from golden.samples import load_layers
from sim.errors import ConfigError
from sim.provenance import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from golden.retrieval.method import RetrievalMethod, Tokens

__all__ = ["KS", "PINNED", "Sample", "drawn_samples", "quality_rows", "read_samples"]

KS = (16, 32, 64, 128, 256)
"""Tokens that are selected."""

SINKS, WINDOW = 4, 8
PINNED = ("page bounds", "representatives", "clusters")
"""Methods that are shown with :data:`SINKS` first and :data:`WINDOW` last tokens pinned, beside as they are."""

_KV_BYTES = 4
"""Bytes of an element of a key and of the value beside it."""

_REAL_QUERIES = 8
_LABEL_SHARE = 16
"""Channels of a label are this part of all."""


@dataclass(frozen=True)
class Sample:
    """Keys of one head, and queries in turn, each of one query head.

    Parameters
    ----------
    source : str
        Where they come from.
    keys : ndarray of float32, shape (tokens, head_dim)
    queries : ndarray of float32, shape (queries, head_dim)
    seen : tuple of int
        Tokens that each query sees, not falling.
    scale : float
        Factor of the scores.
    """

    source: str
    keys: npt.NDArray[np.float32]
    queries: npt.NDArray[np.float32]
    seen: tuple[int, ...]
    scale: float


def drawn_samples(*, requests: int, tokens: int, steps: int, heads: int, seed: int) -> list[Sample]:
    """Return a sample for each request of the generator; its heads take turns in every step.

    Parameters
    ----------
    requests : int
        Requests, drawn apart.
    tokens, steps, heads, seed : int
        See :func:`golden.retrieval.generator.generate`; other seeds give other requests.
    """
    samples: list[Sample] = []
    for number in range(requests):
        drawn = generate(Locality(), tokens=tokens, steps=steps, heads=heads, seed=seed * requests + number)
        seen = tuple(drawn.seen(step) for step in range(steps) for _ in range(heads))
        queries = drawn.queries.reshape(steps * heads, -1)
        samples.append(Sample("generator", drawn.keys, queries, seen, drawn.scale))
    return samples


def read_samples(folder: Path) -> list[Sample]:
    """Return a sample for each layer and head of the tensors in a folder, or in ``tensors`` below it.

    Archives hold arrays as :func:`golden.samples.load_layers` reads them. The queries of the last tokens are taken;
    each sees all tokens, as in an encoder.

    Raises
    ------
    ConfigError
        If there is no archive, or one can't be read.
    """
    paths = sorted([*folder.glob("*.npz"), *(folder / "tensors").glob("*.npz")])
    if not paths:
        raise ConfigError(f"{folder}: folder must hold an .npz of tensors, there or in tensors/, it holds none")
    samples: list[Sample] = []
    for path in paths:
        try:
            layers = load_layers(path)
        except (OSError, KeyError, ValueError, BadZipFile) as error:
            raise ConfigError(f"{path}: file must be an archive of arrays q0, k0, v0 and so on: {error}") from None
        for layer in layers:
            tokens = layer.k.shape[0]
            for head in range(layer.k.shape[1]):
                queries = layer.q[-_REAL_QUERIES:, head].astype(np.float32)
                keys = layer.k[:, head].astype(np.float32)
                samples.append(Sample(path.stem, keys, queries, (tokens,) * len(queries), layer.scale))
    return samples


def _methods(sample: Sample) -> dict[str, RetrievalMethod]:
    """Return an empty index of every method; labels take the channels that early tokens find heavy."""
    dim = sample.keys.shape[1]
    early = sample.keys[: max(1, sample.seen[0] // 2)]
    channels = heavy_channels(sample.queries[:1], early, max(1, dim // _LABEL_SHARE))
    return {
        "indexer": Indexer(dim),
        "best token": BestToken(dim),
        "page bounds": PageBounds(dim),
        "representatives": Representatives(dim),
        "clusters": Clusters(dim),
        "labels": Labels(dim, channels=channels),
        "streaming": Streaming(dim, sinks=SINKS),
    }


def quality_rows(samples: Sequence[Sample], ks: Sequence[int] = KS) -> list[dict[str, Any]]:
    """Return one row a source, method and k: means over heads and queries.

    Parameters
    ----------
    samples : sequence of Sample
    ks : sequence of int
        Tokens to select; those above a quarter of a source's tokens are left out.
    """
    found: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    for sample in samples:
        for key, result in _results(sample, ks):
            found.setdefault(key, []).append(result)
    return [_row(source, method, k, results) for (source, method, k), results in found.items()]


def _results(sample: Sample, ks: Sequence[int]) -> Iterator[tuple[tuple[str, str, int], dict[str, float]]]:
    """Yield source, method and k, and what one query got."""
    fitting = [k for k in ks if k <= min(sample.seen) // 4]
    methods = _methods(sample)
    indexed = 0
    for query, seen in zip(sample.queries, sample.seen, strict=True):
        mass = attention_mass(query, sample.keys[:seen], sample.scale)
        asked = Query.of(query)
        for method in methods.values():
            method.append(sample.keys[indexed:seen])
        indexed = seen
        dense = seen * sample.keys.shape[1] * _KV_BYTES
        for k in fitting:
            yield (sample.source, "oracle", k), {**_quality(top_k(mass, k), mass), "tokens": seen}
        for name, method in methods.items():
            ranked = method.ranked(asked, max(fitting, default=0))
            for k in fitting:
                # The best k are the first k of the best of more.
                chosen = np.sort(ranked[:k])
                yield (
                    (sample.source, name, k),
                    {**_quality(chosen, mass), **_cost(method, chosen, dense), "tokens": seen},
                )
            for k in fitting if name in PINNED else ():
                chosen = Pinned(method, sinks=SINKS, window=WINDOW).select(asked, k)
                result = {**_quality(chosen, mass), **_cost(method, chosen, dense), "tokens": seen}
                yield (sample.source, f"{name}, pinned", k), result


def _quality(chosen: Tokens, mass: npt.NDArray[np.float64]) -> dict[str, float]:
    return {"recall": recall(chosen, mass), "kept_mass": kept_mass(chosen, mass), "selected": float(len(chosen))}


def _cost(method: RetrievalMethod, chosen: Tokens, dense_bytes: int) -> dict[str, float]:
    """Return what a selection cost: index and KV bytes, operations, and bytes beside attention to all."""
    traffic = method.traffic(chosen, 1)
    gathered = traffic.gather_tokens * method.head_dim * _KV_BYTES
    attended = 4 * traffic.gather_tokens * method.head_dim
    return {
        "index_bytes": traffic.score_bytes,
        "kv_bytes": gathered,
        "score_flops": traffic.score_flops,
        "attend_flops": attended,
        "candidates": traffic.candidates,
        "bytes_share": (traffic.score_bytes + gathered) / dense_bytes,
    }


def _row(source: str, method: str, k: int, results: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the means of one method; what the oracle would read is nothing that is built, so it has no cost."""
    costs = ("index_bytes", "kv_bytes", "score_flops", "attend_flops", "candidates", "bytes_share")
    means = {
        key: float(np.mean([result[key] for result in results])) if key in results[0] else None
        for key in ("recall", "kept_mass", "selected", "tokens", *costs)
    }
    return {
        "name": f"{source}: {method}, k = {k}",
        "source": source,
        "method": method,
        "k": k,
        "queries": len(results),
        **means,
        "provenance": {
            "class": "modelled",
            "parts": [Part("selection", "modelled", "golden/retrieval, over the source's keys and queries").to_dict()],
        },
    }
