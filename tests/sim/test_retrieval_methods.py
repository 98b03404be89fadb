"""Promise: closed forms of a method's bytes and operations equal what its golden model counts over a built index."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden.retrieval.blocks import BestToken, PageBounds, Representatives
from golden.retrieval.clusters import Clusters
from golden.retrieval.index_spec import MODES
from golden.retrieval.indexer import Indexer
from golden.retrieval.labels import Labels
from golden.retrieval.method import Query
from golden.retrieval.positional import Dense, Streaming
from hw.index_score_params import IndexScoreParams
from sim.models import Attention, FeedForward, Layer
from sim.retrieval.methods import METHODS, method_work
from sim.retrieval.scoring import IndexScan, scan_cycles
from sim.retrieval.work import index_scan, trained_work
from sim.selection import Selection

DIM, HEADS, BUDGET = 32, 4, 48
ATTENTION = Attention(hidden=128, num_heads=HEADS, num_kv_heads=1, head_dim=DIM, v_head_dim=DIM)
LAYER = Layer(feed_forward=FeedForward(hidden=128, matrices=3, dense_width=256))
GOLDEN = {
    "dense": lambda: Dense(DIM),
    "streaming": lambda: Streaming(DIM),
    # No iteration: every cluster keeps the token it began with, so none is empty.
    "inverted-index": lambda: Clusters(DIM, iterations=0),
    "quest": lambda: PageBounds(DIM),
    "infllm": lambda: Representatives(DIM),
    "double-sparsity": lambda: Labels(DIM, channels=[3, 9]),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("tokens", [1, 15, 16, 17, 79, 80, 81, 127, 128, 129, 500])
def test_closed_forms_equal_the_golden_count(name: str, tokens: int) -> None:
    rng = np.random.default_rng(tokens)
    golden = GOLDEN[name]()
    golden.append(rng.standard_normal((tokens, DIM)))
    selected = golden.select(Query.of(rng.standard_normal((HEADS, DIM))), tokens if name == "dense" else BUDGET)
    traffic = golden.traffic(selected, HEADS)
    work = method_work(ATTENTION, LAYER, tokens, name, BUDGET)
    assert work.score_bytes + work.list_bytes == traffic.score_bytes
    assert work.score_flops == traffic.score_flops
    assert work.candidates == (traffic.candidates if work.selections else 0)
    pinned = 128 + 4096 if name == "infllm" else 0
    assert work.attended == min(tokens, traffic.gather_tokens + pinned)


@pytest.mark.parametrize("tokens", [1, 127, 128, 129, 1000])
def test_trained_selection_equals_the_golden_count(tokens: int) -> None:
    rng = np.random.default_rng(tokens)
    layer = Layer(feed_forward=LAYER.feed_forward, index_role="owns")
    common = {"index_heads": HEADS, "index_dim": DIM}
    token = Selection(**common, key_bytes=DIM, scale_bytes=4, block_tokens=1, top_k=BUDGET, local_blocks=0)
    block = Selection(**common, key_bytes=2 * DIM, scale_bytes=0, block_tokens=128, top_k=2, local_blocks=0)
    for selection, golden, k in ((token, Indexer(DIM), BUDGET), (block, BestToken(DIM), 256)):
        golden.append(rng.standard_normal((tokens, DIM)))
        traffic = golden.traffic(golden.select(Query.of(rng.standard_normal((HEADS, DIM))), k), HEADS)
        work = trained_work(ATTENTION, selection, layer, tokens)
        assert (work.score_bytes, work.score_flops) == (traffic.score_bytes, traffic.score_flops)
        assert (work.candidates, work.attended) == (traffic.candidates, traffic.gather_tokens)


def test_every_stored_head_has_an_index() -> None:
    grouped = Attention(hidden=128, num_heads=8, num_kv_heads=4, head_dim=DIM, v_head_dim=DIM)
    one = Attention(hidden=128, num_heads=2, num_kv_heads=1, head_dim=DIM, v_head_dim=DIM)
    four, single = (method_work(attention, LAYER, 1000, "quest", BUDGET) for attention in (grouped, one))
    assert four.score_bytes == 4 * single.score_bytes
    assert four.score_flops == 4 * single.score_flops
    assert (four.selections, single.selections) == (4, 1)
    assert four.gather_bytes == 4 * single.gather_bytes


def test_index_bytes_of_a_token() -> None:
    # Two bounds of 32 elements a page of 16; a mean of 80 tokens and an id; 2 of 32 channels.
    expected = {"quest": 2 * 64 * 125 / 2000, "inverted-index": 64 * 25 / 2000 + 4, "double-sparsity": 4.0}
    for name, stored in expected.items():
        assert method_work(ATTENTION, LAYER, 2000, name, BUDGET).index_token_bytes == pytest.approx(stored)


def test_scans_are_those_of_the_modes() -> None:
    common = {"index_heads": HEADS, "index_dim": DIM, "top_k": 2, "local_blocks": 0}
    token = index_scan(Selection(**common, key_bytes=DIM, scale_bytes=4, block_tokens=1), 77)
    assert token == IndexScan(mode=MODES["indexer"], heads=HEADS, dim=DIM, keys=77)
    block = index_scan(Selection(**common, key_bytes=2 * DIM, scale_bytes=0, block_tokens=128), 77)
    assert block == IndexScan(mode=MODES["best-token"], heads=HEADS, dim=DIM, keys=77)
    # A block of more keys than a unit compares.
    assert index_scan(Selection(**common, key_bytes=2 * DIM, scale_bytes=0, block_tokens=257), 77) is None
    pages = method_work(ATTENTION, LAYER, 33, "quest", BUDGET).scan
    assert pages == IndexScan(mode=MODES["page-bounds"], heads=HEADS, dim=DIM, keys=3)


def test_a_scan_of_the_busiest_channel() -> None:
    params = IndexScoreParams()
    # 5 blocks of 128 keys over 4 channels: two in one, of 8 beats each key and one group of heads.
    scan = IndexScan(mode=MODES["best-token"], heads=4, dim=128, keys=5 * 128)
    found = scan_cycles(params, scan, 4)
    assert found is not None
    assert (found.keys, found.total) == (256 * 8, 256 * 8 + 4 * 8 + 16 + 3)
    # One key too many for the numbers of a channel.
    most = IndexScan(mode=MODES["indexer"], heads=64, dim=128, keys=64 << 14)
    assert scan_cycles(params, most, 64) is not None
    assert scan_cycles(params, replace(most, keys=most.keys + 1), 64) is None
