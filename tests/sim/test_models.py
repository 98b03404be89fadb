"""Model shapes: KV bytes against a published table typed in here, parameters against published counts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sim.errors import ConfigError
from sim.model_config import load_model, model_names, parse_model
from tests.helpers.data import data_file

# model: kind, layers, query heads, KV heads, KV bytes a token at 16 bit with every layer as full attention
KV_SIZES = {
    "all-minilm-l6-v2": ("MHA", 6, 12, 12, 9216),
    "deepseek-v2": ("MLA", 60, 128, 128, 69120),
    "deepseek-v3.2": ("MLA", 61, 128, 128, 70272),
    "deepseek-v3": ("MLA", 61, 128, 128, 70272),
    "gemma-3-270m": ("MQA", 18, 4, 1, 18432),
    "glm-4.5-air": ("GQA", 46, 96, 8, 188416),
    "glm-5.1": ("MLA", 78, 64, 64, 89856),
    "glm-5.2": ("MLA", 78, 64, 64, 89856),
    "glm-5": ("MLA", 78, 64, 64, 89856),
    "gpt-oss-20b": ("GQA", 24, 64, 8, 49152),
    "gpt3-175b": ("MHA", 96, 96, 96, 4718592),
    "kimi-k2": ("MLA", 61, 64, 64, 70272),
    "llama-2-13b": ("MHA", 40, 40, 40, 819200),
    "llama-2-70b": ("GQA", 80, 64, 8, 327680),
    "llama-2-7b": ("MHA", 32, 32, 32, 524288),
    "llama-3.1-405b": ("GQA", 126, 128, 8, 516096),
    "llama-3.1-70b": ("GQA", 80, 64, 8, 327680),
    "llama-3.1-8b": ("GQA", 32, 32, 8, 131072),
    "llama-65b": ("MHA", 80, 64, 64, 2621440),
    "llama-7b": ("MHA", 32, 32, 32, 524288),
    "minimax-m1": ("GQA", 80, 64, 8, 327680),
    "minimax-m2.5": ("GQA", 62, 48, 8, 253952),
    "minimax-m3": ("GQA", 60, 64, 4, 122880),
    "mistral-7b": ("GQA", 32, 32, 8, 131072),
    "mixtral-8x7b": ("GQA", 32, 32, 8, 131072),
    "opt-13b": ("MHA", 40, 40, 40, 819200),
    "opt-175b": ("MHA", 96, 96, 96, 4718592),
    "opt-30b": ("MHA", 48, 56, 56, 1376256),
    "opt-6.7b": ("MHA", 32, 32, 32, 524288),
    "opt-66b": ("MHA", 64, 72, 72, 2359296),
    "qwen2.5-14b": ("GQA", 48, 40, 8, 196608),
    "qwen2.5-32b": ("GQA", 64, 40, 8, 262144),
    "qwen2.5-72b": ("GQA", 80, 64, 8, 327680),
    "qwen2.5-7b": ("GQA", 28, 28, 4, 57344),
    "qwen3-0.6b": ("GQA", 28, 16, 8, 114688),
    "qwen3-235b-a22b": ("GQA", 94, 64, 4, 192512),
    "qwen3-30b-a3b": ("GQA", 48, 32, 4, 98304),
    "qwen3-8b": ("GQA", 36, 32, 8, 147456),
}

# Published parameter counts in billions, from the model cards.
PARAMETERS = {
    "llama-3.1-8b": 8.03,
    "llama-3.1-70b": 70.55,
    "llama-2-7b": 6.74,
    "mixtral-8x7b": 46.7,
    "qwen2.5-32b": 32.8,
    "deepseek-v3.2": 671.0,
    "opt-66b": 65.7,
    "opt-175b": 175.0,
    "gpt3-175b": 175.0,
}

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def parse(**changes: Any) -> Any:
    """Model of the small configuration with keys changed; None removes one."""
    data = {key: value for key, value in (LLAMA | changes).items() if value is not None}
    return parse_model(json.dumps(data), where="x.json", name="x")


def seen(model: Any) -> tuple[str, int, int, int, int]:
    attention = model.attention
    return (
        attention.kind,
        len(model.layers),
        attention.num_heads,
        attention.num_kv_heads,
        model.kv_bytes_per_token,
    )


def test_presets_are_the_ones_promised() -> None:
    assert set(model_names()) >= {
        "llama-3.1-70b",
        "llama-3.1-8b",
        "opt-175b",
        "qwen2.5-32b",
        "llama-2-7b",
        "opt-66b",
        "gpt3-175b",
        "mixtral-8x7b",
        "deepseek-v3.2",
        "glm-5.2",
        "minimax-m3",
    }


@pytest.mark.parametrize("name", model_names())
def test_preset_has_the_kv_bytes_of_the_table(name: str) -> None:
    model = load_model(name)
    assert seen(model) == KV_SIZES[name]
    assert model.name == name
    assert model.source != name


@pytest.mark.parametrize("name", sorted(KV_SIZES))
def test_published_config_has_the_kv_bytes_of_the_table(name: str) -> None:
    assert seen(load_model(str(data_file("models", f"{name}.json")))) == KV_SIZES[name]


def test_the_typed_table_is_the_one_beside_the_configs() -> None:
    table: dict[str, tuple[str, int, int, int, int]] = {}
    for line in data_file("models", "KV_SIZES.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 6 and cells[6].isdigit():
            table[cells[0]] = (cells[1], int(cells[2]), int(cells[3]), int(cells[4]), int(cells[6]))
    assert table == KV_SIZES


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_parameters_match_the_published_count(name: str) -> None:
    assert load_model(name).parameters / 1e9 == pytest.approx(PARAMETERS[name], rel=5e-3)


def test_preset_equals_published_config() -> None:
    for name in model_names():
        ours, theirs = load_model(name), load_model(str(data_file("models", f"{name}.json")))
        assert (ours.attention, ours.layers) == (theirs.attention, theirs.layers), name


def test_head_dim_of_the_file_wins_over_the_quotient() -> None:
    assert parse(head_dim=256).kv_bytes_per_token == 32 * 2 * 8 * 256 * 2
    assert parse().attention.head_dim == 128
    assert parse(num_key_value_heads=None).attention.kind == "MHA"
    assert parse(num_key_value_heads=1).attention.kind == "MQA"
    assert parse(num_key_value_heads=None, multi_query=True).attention.kind == "MQA"


def test_names_of_older_families() -> None:
    data = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257}
    model = parse_model(json.dumps(data | {"n_inner": None}), where="gpt2.json", name="gpt2")
    # 124.4 M parameters, 0.1 M of them norms and biases
    assert model.parameters / 1e6 == pytest.approx(124.4, rel=2e-3)
    assert model.tied
    assert model.layers[0].feed_forward.matrices == 2


def test_preset_wins_over_a_file_of_its_name(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "opt-66b").write_text("not a model")
    assert load_model("opt-66b").kv_bytes_per_token == 2359296
    (tmp_path / "mine").write_text(json.dumps(LLAMA))
    assert load_model("mine").kv_bytes_per_token == 131072


def test_decoder_one_level_down() -> None:
    text = json.dumps({"model_type": "seeing", "text_config": LLAMA, "vision_config": {"hidden_size": 7}})
    assert parse_model(text, where="x.json", name="x").kv_bytes_per_token == 131072


def test_dense_layers_of_sparse_models() -> None:
    def sparse(**changes: Any) -> list[bool]:
        model = parse(
            num_hidden_layers=4, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=512, **changes
        )
        return [layer.feed_forward.num_experts > 0 for layer in model.layers]

    assert sparse() == [True] * 4
    assert sparse(first_k_dense_replace=1) == [False, True, True, True]
    assert sparse(moe_layer_freq=[0, 1, 0, 1]) == [False, True, False, True]
    assert sparse(moe_layer_freq=2) == [True, False, True, False]
    assert sparse(mlp_layer_types=["dense", "sparse", "dense", "dense"]) == [False, True, False, False]
    assert sparse(decoder_sparse_step=2) == [False, True, False, True]
    assert sparse(decoder_sparse_step=1, mlp_only_layers=[3]) == [True, True, True, False]
    # Entries beyond the model belong to prediction layers.
    assert sparse(moe_layer_freq=[0, 1, 0, 1, 1]) == [False, True, False, True]


def test_shared_experts_and_gates() -> None:
    model = parse(num_local_experts=4, experts_per_token=2, moe_intermediate_size=100, n_shared_experts=3)
    network = model.layers[0].feed_forward
    assert (network.matrices, network.dense_width, network.expert_width) == (3, 300, 100)
    assert network.parameters == 3 * 4096 * (300 + 4 * 100) + 4096 * 4
    assert network.active_parameters == 3 * 4096 * (300 + 2 * 100) + 4096 * 4
    assert parse(ffn_matrices=2).layers[0].feed_forward.parameters == 2 * 4096 * 14336
    assert parse(model_type="opt", max_position_embeddings=2048).layers[0].feed_forward.matrices == 2


def test_distinct_experts() -> None:
    network = load_model("mixtral-8x7b").layers[0].feed_forward
    assert network.distinct_experts(1) == pytest.approx(2.0)
    assert network.distinct_experts(2) == pytest.approx(8 * (1 - 0.75**2))
    assert network.distinct_experts(10_000) == pytest.approx(8.0)
    assert parse().layers[0].feed_forward.distinct_experts(64) == 0.0


def test_experts_are_met_as_was_measured() -> None:
    model = load_model("qwen3-30b-a3b")
    network = model.layers[0].feed_forward
    # Mean distinct experts of a layer for real text: 120.6 at 128 tokens, which the skew is taken from, and 47.6 at 8.
    assert network.distinct_experts(128, model.expert_skew) == pytest.approx(120.6, abs=0.3)
    assert network.distinct_experts(8, model.expert_skew) == pytest.approx(47.6, rel=0.06)
    # 0.94 of a uniform router's where decoding saturates.
    assert network.distinct_experts(128, model.expert_skew) / network.distinct_experts(128) == pytest.approx(
        0.94, abs=0.005
    )
    draw = np.random.default_rng(1)
    weights = np.exp(-0.025 * np.arange(128))
    met = np.minimum(1.0, 8 * weights / weights.sum())
    seen = [(draw.random((64, 128)) < met).any(axis=0).sum() for _ in range(400)]
    assert np.mean(seen) == pytest.approx(network.distinct_experts(64, 0.025), rel=0.01)


@pytest.mark.parametrize("batch", [1, 2, 17, 400])
@pytest.mark.parametrize("skew", [0.0, 1e-9, 0.01, 0.3, 5.0])
def test_a_skew_never_meets_more_experts(batch: int, skew: float) -> None:
    network = load_model("qwen3-30b-a3b").layers[0].feed_forward
    found = network.distinct_experts(batch, skew)
    assert 0.0 < found <= network.distinct_experts(batch) * (1 + 1e-9)
    assert found <= network.distinct_experts(batch + 1, skew)
    if skew < 1e-6:
        assert found == pytest.approx(network.distinct_experts(batch), rel=1e-6)


@pytest.mark.parametrize("skew", ["much", -1, 11, True])
def test_a_skew_is_a_number(skew: object) -> None:
    with pytest.raises(ConfigError, match="expert_skew must be a number from 0 to 10"):
        parse(expert_skew=skew)


def test_windows() -> None:
    def windows(**changes: Any) -> list[int]:
        return [layer.window for layer in parse(num_hidden_layers=4, **changes).layers]

    assert windows() == [0] * 4
    assert windows(sliding_window=128) == [128] * 4
    assert windows(sliding_window=128, use_sliding_window=False) == [0] * 4
    assert windows(sliding_window=128, use_sliding_window=True, max_window_layers=3) == [0, 0, 0, 128]
    assert windows(sliding_window=128, sliding_window_pattern=2) == [128, 0, 128, 0]
    kinds = ["sliding_attention", "full_attention"] * 2
    assert windows(sliding_window=128, layer_types=kinds) == [128, 0, 128, 0]
    layer = parse(sliding_window=128).layers[0]
    assert [layer.attended(n) for n in (1, 128, 129)] == [1, 128, 128]
    assert parse().layers[0].attended(10**6) == 10**6


@pytest.mark.parametrize(
    ("changes", "bits", "name"),
    [
        ({}, 16.0, "bfloat16"),
        ({"torch_dtype": "float16"}, 16.0, "float16"),
        ({"dtype": "torch.float32"}, 32.0, "float32"),
        ({"quantization_config": {"quant_method": "fp8"}}, 8.0, "fp8"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, 4.25, "mxfp4"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, 4.0, "gptq4"),
    ],
)
def test_weight_formats(changes: dict[str, Any], bits: float, name: str) -> None:
    model = parse(**changes)
    assert (model.weight_bits, model.weight_format) == (bits, name)
    assert model.weight_bytes == -(-int(model.parameters * bits) // 8)
    assert model.kv_bytes_per_token == 131072


def test_tied_embeddings() -> None:
    assert parse(tie_word_embeddings=True).parameters == parse().parameters - 128256 * 4096


def test_files_with_crlf_and_byte_order_mark(tmp_path: Any) -> None:
    path = tmp_path / "my-model" / "config.json"
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA, indent=1).replace("\n", "\r\n").encode())
    model = load_model(str(path))
    assert (model.name, model.kv_bytes_per_token) == ("my-model", 131072)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": None}, "x.json: key hidden_size or n_embd or d_model must be present, it is missing"),
        ({"vocab_size": None}, "x.json: key vocab_size must be present, it is missing"),
        (
            {"num_hidden_layers": None},
            "x.json: key num_hidden_layers or n_layer or n_layers or num_layers must be present, it is missing",
        ),
        ({"num_attention_heads": 0}, "x.json: num_attention_heads must be an integer of at least 1, not 0"),
        ({"num_attention_heads": "32"}, "x.json: num_attention_heads must be an integer of at least 1, not '32'"),
        ({"num_attention_heads": True}, "x.json: num_attention_heads must be an integer of at least 1, not True"),
        ({"num_key_value_heads": 5}, "x.json: num_key_value_heads must be a divisor of the 32 query heads, not 5"),
        ({"num_hidden_layers": 10**9}, "x.json: num_hidden_layers must be at most 10000, not 1000000000"),
        (
            {"hidden_size": 100},
            "x.json: key head_dim must be present where hidden_size (100) is no multiple of num_attention_heads (32)",
        ),
        ({"ffn_matrices": 4}, "x.json: ffn_matrices must be 2 or 3, not 4"),
        ({"torch_dtype": "int3"}, "x.json: torch_dtype must be one of float16, half, bfloat16, float32, "),
        (
            {"quantization_config": {"quant_method": "exl2"}},
            "x.json: quantization_config: quant_method must be fp8, fbgemm_fp8, mxfp4, or given with bits, not 'exl2'",
        ),
        ({"num_experts": 8}, "x.json: key num_experts_per_tok or experts_per_token or "),
        ({"num_experts": 8, "num_experts_per_tok": 9}, "x.json: num_experts_per_tok must be at most the 8 experts"),
        ({"layer_types": ["full_attention"]}, "x.json: layer_types must be a list of 32 entries, one a layer, not "),
        (
            {"layer_types": ["linear_attention"] * 32},
            "x.json: layer_types must be a list of full_attention, sliding_attention, chunked_attention, attention",
        ),
        ({"layer_types": ["sliding_attention"] * 32}, "x.json: key attention_chunk_size or sliding_window must be"),
        ({"attn_type_list": [0] * 32}, "x.json: attn_type_list must be 1 (a growing KV cache) in every layer, not 0"),
        ({"kv_lora_rank": 512}, "x.json: key qk_nope_head_dim must be present, it is missing"),
        ({"tie_word_embeddings": "no"}, "x.json: tie_word_embeddings must be true or false, not 'no'"),
    ],
)
def test_unusable_keys_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**changes)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.json: model file must be JSON, it is not (line 1, column 1)"),
        ("{", "x.json: model file must be JSON, it is not (line 1, column 2)"),
        ("[" * 100_000, "x.json: model file must be JSON, it is not"),
        ('{"hidden_size": ' + "1" * 5000 + "}", "x.json: model file must be JSON, it is not"),
        ("[]", "x.json: model file must hold a JSON object, not list"),
        ("3", "x.json: model file must hold a JSON object, not int"),
    ],
)
def test_texts_that_are_no_config(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_model(text, where="x.json", name="x")
    assert str(caught.value) == message
