"""Promise: the inverted index selects what faiss does over the same centroids and lists."""

from __future__ import annotations

import numpy as np
import pytest

from golden.retrieval.clusters import Clusters
from golden.retrieval.generator import Locality, generate
from golden.retrieval.method import Query
from golden.retrieval.topk import top_k

faiss = pytest.importorskip("faiss", reason="faiss is not installed; the extra dev has it")


@pytest.fixture(scope="module", params=[0, 1])
def index(request: pytest.FixtureRequest):
    """Our index, faiss's over the same centroids and lists, and queries."""
    drawn = generate(Locality(), tokens=1500, steps=8, heads=1, seed=request.param)
    ours = Clusters(drawn.keys.shape[1])
    ours.append(drawn.keys)
    quantizer = faiss.IndexFlatIP(ours.head_dim)
    quantizer.add(ours.centroids.astype(np.float32))
    theirs = faiss.IndexIVFFlat(quantizer, ours.head_dim, len(ours.lists), faiss.METRIC_INNER_PRODUCT)
    for number, members in enumerate(ours.lists):
        codes = np.ascontiguousarray(drawn.keys[members])
        ids = members.astype(np.int64)
        theirs.invlists.add_entries(number, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(codes.view(np.uint8)))
    theirs.ntotal = sum(map(len, ours.lists))
    theirs.is_trained = True
    return ours, theirs, drawn.queries[:, 0]


@pytest.mark.parametrize("probes", [1, 3, 8])
def test_the_same_lists_are_read(index, probes: int) -> None:
    ours, theirs, queries = index
    _, best = theirs.quantizer.search(queries, probes)
    for query, lists in zip(queries, best, strict=True):
        assert sorted(lists.tolist()) == top_k(ours.score(Query.of(query)), probes).tolist()


@pytest.mark.parametrize("probes", [1, 3, 8])
def test_the_same_tokens_are_selected(index, probes: int) -> None:
    ours, theirs, queries = index
    theirs.nprobe = probes
    for query in queries:
        lists = top_k(ours.score(Query.of(query)), probes)
        tokens = np.sort(np.concatenate([ours.lists[number] for number in lists]))
        _, found = theirs.search(query[None], len(tokens))
        assert np.sort(found[0]).tolist() == tokens.tolist()
        assert ours.select(Query.of(query), len(tokens)).tolist() == tokens.tolist()


def test_the_best_tokens_of_the_lists_are_the_same(index) -> None:
    ours, theirs, queries = index
    theirs.nprobe = len(ours.lists)
    for query in queries:
        _, found = theirs.search(query[None], 20)
        scores = ours.keys.astype(np.float64) @ query.astype(np.float64)
        assert np.sort(found[0]).tolist() == top_k(scores, 20).tolist()
