"""Reading of Hugging Face style ``config.json`` files as published: unknown keys are ignored, needed ones named."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sim.config_keys import ConfigKeys
from sim.errors import ConfigError, UnknownNameError
from sim.model_layers import read_layers
from sim.model_selection import read_selection
from sim.models import Attention, Model

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["load_model", "model_names", "parse_model"]

_DTYPE_BITS = {"float16": 16, "half": 16, "bfloat16": 16, "float32": 32, "float": 32, "float8_e4m3fn": 8, "fp8": 8}
_LEARNED_POSITIONS = {"opt", "gpt2", "gpt3", "gpt_bigcode", "bert"}
_TIED_BY_DEFAULT = {"opt", "gpt2", "gpt3", "gpt_bigcode", "bert", "gemma", "gemma2", "gemma3", "gemma3_text", "bloom"}


def _preset_dir() -> Traversable:
    """Return the folder of the model presets."""
    return resources.files("sim") / "presets" / "models"


def model_names() -> list[str]:
    """Return the names of all model presets, sorted."""
    return sorted(entry.name.removesuffix(".json") for entry in _preset_dir().iterdir() if entry.name.endswith(".json"))


def load_model(name: str) -> Model:
    """Return a model preset, or the model that a ``config.json`` describes.

    Parameters
    ----------
    name : str
        Name of a preset, or path of a file; a preset's name wins over a file of that name.

    Raises
    ------
    ConfigError
        If there is no such preset, the file can't be read or is not JSON, or a needed key is missing or unusable.
    """
    if name not in model_names() and (name.endswith(".json") or "/" in name or "\\" in name or Path(name).is_file()):
        path = Path(name)
        # Published files are all called config.json: the folder then says which model it is.
        own_name = path.absolute().parent.name if path.stem == "config" else path.stem
        return parse_model(_read_file(name), where=name, name=own_name or "config")
    if name not in model_names():
        raise UnknownNameError("model", name, model_names(), " or the path of a config.json")
    return parse_model((_preset_dir() / f"{name}.json").read_text(encoding="utf-8"), where=f"model {name}", name=name)


def _read_file(name: str) -> str:
    """Return the text of a file, or say why it can't be read."""
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: model file must be UTF-8 text, it is not") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{name}: model file must be readable: {reason}") from None


def parse_model(text: str, *, where: str, name: str) -> Model:
    """Return the model that the text of a ``config.json`` describes.

    Parameters
    ----------
    text : str
        The file's text.
    where : str
        File or preset, for messages.
    name : str
        Name of the model where the file gives none.

    Raises
    ------
    ConfigError
        If the text is not JSON, or a needed key is missing or unusable.
    """
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError(f"{where}: model file must be JSON, it is not{place}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: model file must hold a JSON object, not {type(data).__name__}")
    outer = cast("dict[str, Any]", data)
    inner = outer.get("text_config")
    # Configurations of models that also see or hear keep the decoder's keys one level down.
    merged = outer | cast("dict[str, Any]", inner) if isinstance(inner, dict) else outer
    keys = ConfigKeys(where, merged)
    attention = _read_attention(keys)
    model_type = keys.text("model_type")
    weight_bits, weight_format = _read_weights(keys)
    return Model(
        name=keys.text("name", "_name_or_path") or name,
        source=keys.text("source", "_source", default=where),
        attention=attention,
        layers=read_layers(keys, attention.hidden),
        vocab=keys.integer("vocab_size"),
        positions=keys.integer("max_position_embeddings", "n_positions") if model_type in _LEARNED_POSITIONS else 0,
        tied=keys.flag("tie_word_embeddings", default=model_type in _TIED_BY_DEFAULT),
        weight_bits=weight_bits,
        weight_format=weight_format,
        selection=read_selection(keys),
        expert_skew=_read_skew(keys),
    )


def _read_skew(keys: ConfigKeys) -> float:
    """Return how unevenly routers choose; no published configuration says it."""
    skew: Any = keys.get("expert_skew")
    if skew is None:
        return 0.0
    if isinstance(skew, bool) or not isinstance(skew, int | float) or not 0.0 <= skew <= 10.0:
        raise keys.fail("expert_skew", "a number from 0 to 10", skew)
    return float(skew)


def _read_attention(keys: ConfigKeys) -> Attention:
    """Return the attention part."""
    hidden = keys.integer("hidden_size", "n_embd", "d_model")
    num_heads = keys.integer("num_attention_heads", "n_head", "n_heads")
    if keys.get("kv_lora_rank") is not None:
        nope = keys.integer("qk_nope_head_dim")
        rope = keys.integer("qk_rope_head_dim")
        return Attention(
            hidden=hidden,
            num_heads=num_heads,
            num_kv_heads=num_heads,
            head_dim=nope + rope,
            v_head_dim=keys.integer("v_head_dim"),
            kv_lora_rank=keys.integer("kv_lora_rank"),
            qk_rope_head_dim=rope,
            q_lora_rank=keys.optional_integer("q_lora_rank") or 0,
        )
    multi_query = keys.flag("multi_query", default=False) and not keys.flag("new_decoder_architecture", default=False)
    kv_names = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
    num_kv_heads = 1 if multi_query else keys.integer(*kv_names, default=num_heads)
    if num_heads % num_kv_heads:
        raise keys.fail(keys.name_of(*kv_names), f"a divisor of the {num_heads} query heads", num_kv_heads)
    head_dim = keys.optional_integer("head_dim", "kv_channels")
    if head_dim is None:
        if hidden % num_heads:
            raise ConfigError(
                f"{keys.where}: key head_dim must be present where hidden_size ({hidden}) is no multiple of "
                f"num_attention_heads ({num_heads}), it is missing"
            )
        head_dim = hidden // num_heads
    return Attention(
        hidden=hidden,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        v_head_dim=keys.integer("v_head_dim", default=head_dim),
    )


def _read_weights(keys: ConfigKeys) -> tuple[float, str]:
    """Return bits and name of the weight format; a quantisation overrides the dtype, and bf16 is the default."""
    quantization = keys.get("quantization_config")
    if isinstance(quantization, dict):
        inner = ConfigKeys(f"{keys.where}: quantization_config", cast("dict[str, Any]", quantization))
        method = inner.text("quant_method")
        if method == "mxfp4":
            return 4.25, "mxfp4"  # 32 elements of 4 bits share a scale of 8
        if method in {"fp8", "fbgemm_fp8"}:
            return 8.0, "fp8"
        bits = inner.optional_integer("bits", "weight_bits")
        if bits is not None:
            return float(bits), f"{method or 'int'}{bits}"
        if method:
            raise inner.fail("quant_method", "fp8, fbgemm_fp8, mxfp4, or given with bits", method)
    dtype = keys.text("dtype", "torch_dtype", default="bfloat16").removeprefix("torch.")
    if dtype not in _DTYPE_BITS:
        raise keys.fail(keys.name_of("dtype", "torch_dtype"), f"one of {', '.join(_DTYPE_BITS)}", dtype)
    return float(_DTYPE_BITS[dtype]), dtype
