"""Promise: attention of bf16 tensors out of the Verilated units is the golden model's, and as good as bf16 allows."""

from __future__ import annotations

import numpy as np

from golden.attention import attention_bf16_reference, attention_reference, pam_attention
from golden.formats import BF16, round_to_dtype
from golden.numerics import unit_numerics
from golden.samples import SLICE, load_layers
from hw.attend import attend
from hw.native_arithmetic import NATIVE
from hw.presets import UNIT_PRESETS
from hw.units.finish import FinishUnit
from hw.units.processing import ProcessingUnit
from hw.units.reduction import ReductionUnit
from tests.helpers.bench_verilog import verilog_of

_PRESET = UNIT_PRESETS["pam-hbm-bf16-small"]
_LIMIT = 2.0  # times the error of plain bf16 attention, largest and rms alike


def test_real_tensors():
    """bf16 weights, the coarser of the two choices, in units of the samples' own 32 elements."""
    sizes = (_PRESET.processing, _PRESET.reduction, _PRESET.finish)
    processing, reduction, finish = params = tuple(unit.replace(head_dim=32, lanes=4) for unit in sizes)
    verilog = {
        name: (verilog_of(cls, unit, name=f"nearkv_{name}", platform=NATIVE), f"nearkv_{name}")
        for name, cls, unit in (
            ("processing", ProcessingUnit, processing),
            ("reduction", ReductionUnit, reduction),
            ("finish", FinishUnit, finish),
        )
    }
    numerics = unit_numerics(_PRESET.exp, processing.lanes, processing.tile_tokens, kv_format=BF16)
    ours, plain = [], []
    for tensors in load_layers(SLICE):
        q, k, v = (round_to_dtype(x, BF16.dtype) for x in (tensors.q[::50], tensors.k, tensors.v))
        splits = [np.arange(source, len(k), 4) for source in range(4)]
        for query in q:
            rtl = attend(query, k, v, tensors.scale, splits=splits, params=params, verilog=verilog)
            assert not (rtl.empty | rtl.fault).any()
            golden = pam_attention(query, k, v, tensors.scale, splits, numerics, len(splits)).output
            np.testing.assert_array_equal(BF16.to_codes(rtl.output), BF16.to_codes(golden))
            exact = attention_reference(query, k, v, tensors.scale)
            ours.append(rtl.output.astype(np.float64) - exact)
            plain.append(attention_bf16_reference(query, k, v, tensors.scale).astype(np.float64) - exact)
    largest, rms = ([measure(np.abs(errors)) for errors in (ours, plain)] for measure in (np.max, _rms))
    assert largest[0] <= _LIMIT * largest[1]
    assert rms[0] <= _LIMIT * rms[1]


def _rms(values):
    return np.sqrt(np.mean(np.square(values)))
