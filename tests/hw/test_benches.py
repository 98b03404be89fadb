"""Promise: benchmarks are found by name, and refuse what they can't run before they build anything."""

from __future__ import annotations

import importlib

import pytest

from hw.benches.__main__ import BENCHES, main
from hw.benches.index_score import select_of_keys
from hw.benches.top_k import select_once
from hw.index_score_params import IndexScoreParams, IndexSelectParams
from hw.top_k_params import TopKParams, TopKShardParams


def test_a_stranger_is_refused(capsys):
    assert main(["top-k", "sort"]) == 2
    captured = capsys.readouterr()
    names = "top-k, top-k-64, index-score, index-select, sorter, dma"
    assert captured.err == f"benchmark must be one of {names}, not 'sort'\n"
    assert captured.out == ""


def test_every_benchmark_can_be_loaded():
    for module, function in BENCHES.values():
        assert callable(getattr(importlib.import_module(module), function))


def test_a_failure_is_told(capsys, monkeypatch):
    def differs():
        raise AssertionError("ids must be those of the golden model")

    monkeypatch.setattr("hw.benches.top_k.million_scores", differs)
    assert main(["top-k"]) == 1
    captured = capsys.readouterr()
    assert "top-k: ids must be those of the golden model" in captured.err
    assert captured.out == '{\n  "benches": []\n}\n'


def test_scores_must_be_spread_evenly():
    params = TopKParams(shard=TopKShardParams(depth=64, lanes=4), shards=2, max_k=8)
    for count in (127, 130):
        with pytest.raises(ValueError, match=f"count must be a multiple of 2 up to 128, not {count}"):
            select_once(params, count, 8)
    both = IndexSelectParams(score=IndexScoreParams(id_bits=6), top_k=params)
    with pytest.raises(ValueError, match="count must be a multiple of 2, not 127"):
        select_of_keys(both, heads=1, dim=1, count=127, k=8)
