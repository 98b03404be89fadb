"""What an exponential unit does to a softmax and to attention, on real tensors."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from golden.attention import attention_fp16_reference, attention_online, attention_reference
from golden.exp import POLY6
from golden.numerics import unit_numerics
from golden.samples import load_layers

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.formats import FixedFormat, FloatFormat
    from golden.samples import LayerTensors

__all__ = ["DOWNSTREAM_KEYS", "downstream"]

DOWNSTREAM_KEYS = (
    "softmax_max_error",
    "softmax_rms_error",
    "argmax_kept",
    "argmax_changed",
    "attention_max_error",
    "attention_rms_error",
    "attention_max_over_fp16",
    "attention_rms_over_fp16",
)
"""Keys of the result of :func:`downstream`."""


class _Layer(NamedTuple):
    """One layer of the sample with everything that no exponential unit changes."""

    tensors: LayerTensors
    differences: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float64]
    output: npt.NDArray[np.float64]
    yardstick: npt.NDArray[np.float64]


@cache
def _layers() -> tuple[_Layer, ...]:
    layers: list[_Layer] = []
    for tensors in load_layers():
        q, k = (x.astype(np.float64) for x in (tensors.q, tensors.k))
        scores = tensors.scale * np.einsum("qhd,thd->qht", q, k, optimize=True)
        differences = scores - scores.max(axis=-1, keepdims=True)
        weights = np.exp(differences)
        weights /= weights.sum(axis=-1, keepdims=True)
        operands = (tensors.q, tensors.k, tensors.v, tensors.scale)
        output = attention_reference(*operands)
        yardstick = attention_fp16_reference(*operands).astype(np.float64) - output
        layers.append(_Layer(tensors, differences.astype(np.float32), weights, output, yardstick))
    return tuple(layers)


def downstream(
    results: npt.NDArray[np.uint16], fmt: FloatFormat | FixedFormat, result_fmt: FloatFormat | FixedFormat
) -> dict[str, Any]:
    """Return the errors that a unit's results cause in a softmax and in attention.

    Parameters
    ----------
    results : ndarray of uint16, shape (65536,)
        Result code of every operand code.
    fmt, result_fmt : FloatFormat or FixedFormat
        Formats of operand and result.

    Returns
    -------
    dict
        Under :data:`DOWNSTREAM_KEYS`: absolute errors against float64 over every query, head and token of
        :mod:`golden.samples`. The softmax takes exact scores, rounds s - max to the unit's operand and divides its
        results in float64, so that it shows the unit alone; ``argmax_changed`` counts the queries in which another
        token than the exact one has the largest weight (of equal ones the first), ``argmax_kept`` says that there
        are none. Attention is that of the hardware units, bit for bit, with these results in place of the unit's; its
        errors are also given over those of plain fp16 attention.
    """
    table = result_fmt.from_codes(results).astype(np.float32)

    def exponential(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return table[fmt.to_codes(x)]

    numerics = replace(unit_numerics(POLY6), exponential=exponential)
    softmax: list[npt.NDArray[np.float64]] = []
    attention: list[npt.NDArray[np.float64]] = []
    changed = 0
    for layer in _layers():
        weights = exponential(layer.differences).astype(np.float64)
        weights /= weights.sum(axis=-1, keepdims=True)
        softmax.append((weights - layer.weights).ravel())
        changed += int((weights.argmax(axis=-1) != layer.weights.argmax(axis=-1)).sum())
        tensors = layer.tensors
        ours = attention_online(
            tensors.q, tensors.k, tensors.v, tensors.scale, tile_tokens=numerics.tile_tokens, numerics=numerics
        )
        attention.append((ours.output.astype(np.float64) - layer.output).ravel())
    yardstick = np.concatenate([layer.yardstick.ravel() for layer in _layers()])
    errors, outputs = np.abs(np.concatenate(softmax)), np.abs(np.concatenate(attention))
    return {
        "softmax_max_error": float(errors.max()),
        "softmax_rms_error": _rms(errors),
        "argmax_kept": changed == 0,
        "argmax_changed": changed,
        "attention_max_error": float(outputs.max()),
        "attention_rms_error": _rms(outputs),
        "attention_max_over_fp16": float(outputs.max() / np.abs(yardstick).max()),
        "attention_rms_over_fp16": _rms(outputs) / _rms(yardstick),
    }


def _rms(values: npt.NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))
