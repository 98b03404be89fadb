"""Promise: sparse attention is read from a model's published configuration, and its bytes are those of the paper."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sim.cli import main
from sim.comparisons.karat_paper import karat_paper_rows, sparse_bytes
from sim.errors import ConfigError
from sim.model_config import load_model, parse_model
from tests.helpers.data import data_file

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
DSA = {"index_topk": 8, "index_n_heads": 2, "index_head_dim": 16}


def _roles(**changes: Any) -> list[str]:
    model = parse_model(json.dumps(SMALL | changes), where="file", name="small")
    return [layer.index_role for layer in model.layers]


@pytest.mark.parametrize(
    ("name", "owns", "shares", "dense"), [("deepseek-v3.2", 61, 0, 0), ("glm-5.2", 21, 57, 0), ("minimax-m3", 57, 0, 3)]
)
@pytest.mark.parametrize("published", [False, True])
def test_layers_that_own_and_share_an_index(name: str, owns: int, shares: int, dense: int, published: bool) -> None:
    model = load_model(str(data_file("models", f"{name}.json")) if published else name)
    assert [model.layers_with(role) for role in ("owns", "shares", "dense")] == [owns, shares, dense]


def test_presets_name_the_layers_that_published_configurations_name() -> None:
    for name in ("deepseek-v3.2", "glm-5.2", "minimax-m3"):
        published = load_model(str(data_file("models", f"{name}.json")))
        preset = load_model(name)
        assert [layer.index_role for layer in preset.layers] == [layer.index_role for layer in published.layers]
        assert preset.selection == published.selection


def test_models_without_an_index_are_dense_throughout() -> None:
    assert load_model("llama-3.1-70b").selection is None
    assert _roles() == ["dense"] * 5


def test_roles_follow_the_keys_that_are_there() -> None:
    assert _roles(**DSA) == ["owns"] * 5
    types = ["full", "shared", "shared", "full", "shared"]
    assert _roles(**DSA, indexer_types=types) == ["owns", "shares", "shares", "owns", "shares"]
    assert _roles(**DSA, index_topk_freq=2, index_skip_topk_offset=1) == ["owns", "shares", "owns", "shares", "owns"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (DSA | {"indexer_types": ["shared"] * 5}, "first layer that selects owns an index"),
        (DSA | {"indexer_types": ["full"] * 4}, "a list of 5 entries"),
        (DSA | {"indexer_types": ["full"] * 4 + ["half"]}, "indexer_types must be a list of full"),
        (DSA | {"indexer_types": ["full"] * 4 + [[]]}, "indexer_types must be a list of full"),
        ({"index_topk": 8}, "index_head_dim must be present"),
        (DSA | {"index_topk": 0}, "index_topk must be an integer of at least 1"),
        ({"sparse_attention_config": 7}, "sparse_attention_config must be an object"),
        ({"sparse_attention_config": {}}, "sparse_index_dim must be present"),
        ({"sparse_attention_config": {"sparse_attention_freq": [0, 1, 2, 1, 1]}}, "must be a list of 0 and 1"),
    ],
)
def test_unusable_keys_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _roles(**changes)


def test_sparse_attention_may_be_switched_off() -> None:
    assert _roles(sparse_attention_config={"use_sparse_attention": False}) == ["dense"] * 5


@pytest.mark.parametrize(
    ("context", "selected", "attended"), [(0, 0, 0), (1, 1, 1), (2048, 2048, 2048), (2049, 2048, 2049)]
)
def test_a_selection_is_never_larger_than_the_context(context: int, selected: int, attended: int) -> None:
    selection = load_model("minimax-m3").selection
    assert selection is not None
    assert selection.selected_tokens(context) == selected
    assert selection.attended_tokens(context) == attended


def test_every_printed_number_of_the_paper_is_met_to_its_digits() -> None:
    rows = karat_paper_rows()
    assert len(rows) == 24
    assert [row["name"] for row in rows if not row["within"]] == []


def test_scales_and_local_blocks_are_counted_apart() -> None:
    deepseek, minimax = load_model("deepseek-v3.2"), load_model("minimax-m3")
    assert deepseek.selection is not None
    assert minimax.selection is not None
    # 61 layers of 128 B and 4 B of scale; 57 layers of 128 tokens of 2,048 B.
    assert sparse_bytes(deepseek, deepseek.selection, 1000).stored_index_token == 61 * 132
    assert sparse_bytes(minimax, minimax.selection, 10**6).local_step == 57 * 128 * 2048


def test_the_command_prints_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "karat-paper", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["rows"]) == 24
    assert record["provenance"]["class"] == "literature"
    assert main(["compare", "karat-paper"]) == 0
    assert "deepseek-v3.2: KV a token" in capsys.readouterr().out
