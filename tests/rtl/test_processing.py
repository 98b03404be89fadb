"""Promise: the processing unit under Verilator gives the golden model's states in the predicted cycles.

The largest design is built with its own gates for sums and products; the others compute those natively, which
``tests/rtl/test_native_arithmetic.py`` holds equal.
"""

from __future__ import annotations

import numpy as np
import pytest

from hw.cosim import run_streams
from hw.native_arithmetic import NATIVE
from hw.timing.operation import OperationSizes
from hw.timing.processing import cycles
from hw.timing.processing_prediction import predict
from hw.units.processing import ProcessingUnit
from tests.helpers.bench_verilog import verilog_of
from tests.helpers.processing import check_states, make_operation, params_of, stimulus, unpack
from tests.helpers.processing_group import ProcessingGroup
from tests.helpers.rtl import run_cocotb

_DESIGNS = {
    "d128": {"head_dim": 128, "lanes": 16, "tile_tokens": 16},
    "d40": {"head_dim": 40, "lanes": 8, "tile_tokens": 5},
    "d16": {"head_dim": 16, "lanes": 4, "tile_tokens": 8, "op_id_bits": 3},
    "bf16": {"head_dim": 12, "lanes": 4, "tile_tokens": 4, "kv_format": "bf16"},
    "eight queries": {"head_dim": 48, "lanes": 8, "tile_tokens": 4, "queries": 8, "query_beats": 29},
    "bf16, four slices of two queries": {
        "head_dim": 12,
        "lanes": 4,
        "tile_tokens": 4,
        "slices": 4,
        "queries": 2,
        "kv_format": "bf16",
    },
    "four slices": {"head_dim": 12, "lanes": 4, "tile_tokens": 4, "slices": 4},
}
_TOP = "nearkv_processing"
"""As :func:`hw.verilog.generate` names it, so that d128 is the text of a preset, which other tests make as well."""


@pytest.mark.parametrize("name", _DESIGNS)
def test_states_and_cycles(name):
    _run(name, "tests.rtl.tb_processing")


@pytest.mark.parametrize("name", ["d128", "d16", "eight queries", "four slices"])
def test_permissions(name):
    _run(name, "tests.rtl.tb_processing_permissions")


def _run(name, module):
    case = _DESIGNS[name]
    params = params_of(case)
    unit = ProcessingUnit if params.slices == 1 else ProcessingGroup
    platform = None if name == "d128" else NATIVE
    run_cocotb(unit, params, module=module, expected=25, case=case, name=_TOP, platform=platform)


def test_one_unit_runs_operations_of_every_head_dim_and_tile():
    """Head dimensions 16 to 128 and tiles of 1, 3 and 16 one after the other through the native harness."""
    params = params_of(_DESIGNS["d128"])
    rng = np.random.default_rng(12)
    sizes = [
        OperationSizes.of(params, n, walk_tokens=n + dropped, beats=head_dim // 16, tile_tokens=tile_tokens)
        for head_dim in (48, 16, 128, 80)
        for tile_tokens in (3, 16, 1)
        for n, dropped in ((1, 0), (37, 0), (0, 5), (18, 40))
    ]
    operations = [make_operation(params, rng, each, "normal", op_id=number) for number, each in enumerate(sizes)]
    outputs = {"head": len(sizes), "body": sum(each.beats for each in sizes if each.num_tokens)}
    streams = run_streams(
        verilog_of(ProcessingUnit, params, name=_TOP), _TOP, stimulus(params, operations), outputs
    ).streams
    check_states(params, operations, unpack(params, streams["head"].payloads, streams["body"].payloads))
    predicted = predict(params, sizes)
    for name in ("head", "body"):
        np.testing.assert_array_equal(streams[name].cycles.astype(int), getattr(predicted, name), err_msg=name)


def test_thousands_of_tokens_at_head_dim_128():
    """Full speed through the native harness: one long operation between two short ones, none stalled."""
    params = params_of(_DESIGNS["d128"])
    rng = np.random.default_rng(11)
    counts = [5, 4003, 48]
    operations = [make_operation(params, rng, n, "normal", op_id=n & 255) for n in counts]
    outputs = {"head": len(counts), "body": len(counts) * params.beats}
    done = run_streams(verilog_of(ProcessingUnit, params, name=_TOP), _TOP, stimulus(params, operations), outputs)
    streams = done.streams
    check_states(params, operations, unpack(params, streams["head"].payloads, streams["body"].payloads))
    kv, body = streams["kv"].cycles.astype(int), streams["body"].cycles.astype(int)
    start = kv[0]
    first = 0
    for number, n in enumerate(counts):
        closed = cycles(params, OperationSizes.of(params, n))
        assert kv[first] == start, n
        assert body[(number + 1) * params.beats - 1] == start + closed.total, n
        start += closed.interval
        first += 2 * n * params.beats
