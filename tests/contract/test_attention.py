"""Promise: attention out of the Verilated units is the golden model's, bit for bit, and as good as fp16 allows.

``pytest tests/contract/test_attention.py -s`` prints the error table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from golden.attention import attention_fp16_reference, attention_reference, pam_attention
from golden.formats import FP16
from golden.numerics import unit_numerics
from golden.samples import SLICE, load_layers
from hw.attend import attend
from hw.presets import UNIT_PRESETS
from hw.verilog import generate
from tests.helpers.data import full_tensors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from hw.attend import RtlAttention

_PRESET = UNIT_PRESETS["pam-hbm"]
_UNITS = ("processing", "reduction", "finish")
_LIMIT = 2.0  # times the error of fp16 attention with fp32 sums, largest and rms alike


@pytest.fixture(scope="module")
def verilog() -> dict[str, tuple[str, str]]:
    units = {name: generate(name, _PRESET.name) for name in _UNITS}
    return {name: (unit.text, unit.top) for name, unit in units.items()}


def _run(
    verilog: Mapping[str, tuple[str, str]],
    q: npt.NDArray[np.float16],
    k: npt.NDArray[np.float16],
    v: npt.NDArray[np.float16],
    scale: float,
    splits: Sequence[Sequence[int] | npt.NDArray[np.intp]],
) -> tuple[RtlAttention, npt.NDArray[np.float16]]:
    """Return what the RTL and the golden model make of it."""
    params = (_PRESET.processing, _PRESET.reduction, _PRESET.finish)
    rtl = attend(q, k, v, scale, splits=splits, params=params, verilog=verilog)
    numerics = unit_numerics(_PRESET.exp, _PRESET.processing.lanes, _PRESET.processing.tile_tokens)
    return rtl, pam_attention(q, k, v, scale, splits, numerics, len(splits)).output


@pytest.mark.parametrize("source", ["slice", "full"])
def test_real_tensors(source: str, verilog: dict[str, tuple[str, str]]) -> None:
    print("\nlayer   ours: largest  rms      fp16 reference: largest  rms      ratio: largest  rms")
    for tensors in load_layers(SLICE if source == "slice" else full_tensors()):
        k, v, scale = tensors.k, tensors.v, tensors.scale
        num_tokens = len(k)
        # The query with the largest score of all, and others far apart.
        scores = np.abs(np.einsum("qhd,khd->qhk", tensors.q.astype(np.float32), k.astype(np.float32)))
        queries = {int(np.unravel_index(scores.argmax(), scores.shape)[0]), 0, num_tokens // 3, num_tokens - 1}
        splits = [np.arange(source, num_tokens, 4) for source in range(4)]
        ours, plain = [], []
        for query in sorted(queries):
            q = tensors.q[query]
            rtl, golden = _run(verilog, q, k, v, scale, splits)
            np.testing.assert_array_equal(FP16.to_codes(rtl.output), FP16.to_codes(golden))
            assert not rtl.empty.any()
            assert not rtl.fault.any()
            exact = attention_reference(q, k, v, scale)
            ours.append(rtl.output - exact)
            plain.append(attention_fp16_reference(q, k, v, scale) - exact)
        largest = [float(np.abs(errors).max()) for errors in (ours, plain)]
        rms = [float(np.sqrt(np.mean(np.square(errors)))) for errors in (ours, plain)]
        ratios = largest[0] / largest[1], rms[0] / rms[1]
        print(
            f"{tensors.layer:5}   {largest[0]:13.2e} {rms[0]:8.2e} {largest[1]:24.2e} {rms[1]:8.2e} "
            f"{ratios[0]:14.2f} {ratios[1]:5.2f}"
        )
        assert max(ratios) <= _LIMIT


def _random(num_tokens: int, *, num_heads: int = 4, num_kv_heads: int = 2, head_dim: int = 128, seed: int = 3):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(num_heads, head_dim)).astype(np.float16)
    k, v = (rng.normal(size=(num_tokens, num_kv_heads, head_dim)).astype(np.float16) for _ in range(2))
    return q, k, v, head_dim**-0.5


@pytest.mark.parametrize(
    "splits",
    [
        [range(40), [], [], []],
        [[], [], range(1), range(1, 40)],
        [range(0, 17), [], range(17, 40), []],
        [[39], [0], [7], [n for n in range(40) if n not in (0, 7, 39)]],
    ],
    ids=["one source", "first ones empty", "every second empty", "single tokens"],
)
def test_any_split_of_the_tokens(splits: list[list[int]], verilog: dict[str, tuple[str, str]]) -> None:
    q, k, v, scale = _random(40)
    rtl, golden = _run(verilog, q, k, v, scale, splits)
    np.testing.assert_array_equal(FP16.to_codes(rtl.output), FP16.to_codes(golden))
    exact = attention_reference(q, k, v, scale)
    reference = np.abs(attention_fp16_reference(q, k, v, scale) - exact).max()
    assert np.abs(rtl.output - exact).max() <= _LIMIT * reference


def test_no_token_at_all_is_a_flagged_zero(verilog: dict[str, tuple[str, str]]) -> None:
    q, k, v, scale = _random(0)
    rtl, _ = _run(verilog, q, k, v, scale, [[], [], [], []])
    assert rtl.empty.all()
    np.testing.assert_array_equal(FP16.to_codes(rtl.output), np.zeros((4, 128), np.uint16))


@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
def test_smaller_heads_are_filled_with_zeros(head_dim: int, verilog: dict[str, tuple[str, str]]) -> None:
    q, k, v, scale = _random(21, head_dim=head_dim, num_heads=8, num_kv_heads=1)
    rtl, golden = _run(verilog, q, k, v, scale, [np.arange(s, 21, 4) for s in range(4)])
    np.testing.assert_array_equal(FP16.to_codes(rtl.output), FP16.to_codes(golden))


def test_the_number_of_splits_is_the_number_of_sources(verilog: dict[str, tuple[str, str]]) -> None:
    q, k, v, scale = _random(4)
    with pytest.raises(ValueError, match=r"^splits must number 4, as the sources do, not 3$"):
        _run(verilog, q, k, v, scale, [[0], [1], [2, 3]])
