"""Promise: the processing unit under Verilator gives the golden model's states in the predicted cycles."""

from __future__ import annotations

import numpy as np
import pytest

from hw.cosim import run_streams
from hw.params import ProcessingParams
from hw.timing.processing import cycles
from hw.units.processing import ProcessingUnit
from tests.helpers.processing import check_states, make_operation, stimulus, unpack
from tests.helpers.rtl import run_cocotb, verilog_of

_DESIGNS = {
    "d128": {"head_dim": 128, "lanes": 16, "tile_tokens": 16},
    "d40": {"head_dim": 40, "lanes": 8, "tile_tokens": 5},
    "d16": {"head_dim": 16, "lanes": 4, "tile_tokens": 8, "op_id_bits": 3},
}


@pytest.mark.parametrize("name", _DESIGNS)
def test_states_and_cycles(name):
    case = _DESIGNS[name]
    run_cocotb(ProcessingUnit, ProcessingParams(**case), module="tests.rtl.tb_processing", expected=19, case=case)


def test_thousands_of_tokens_at_head_dim_128():
    """Full speed through the native harness: one long operation between two short ones, none stalled."""
    params = ProcessingParams(**_DESIGNS["d128"])
    rng = np.random.default_rng(11)
    counts = [5, 4003, 48]
    operations = [make_operation(params, rng, n, "normal", op_id=n & 255) for n in counts]
    outputs = {"head": len(counts), "body": len(counts) * params.beats}
    done = run_streams(verilog_of(ProcessingUnit, params), "dut", stimulus(params, operations), outputs)
    streams = done.streams
    check_states(params, operations, unpack(params, streams["head"].payloads, streams["body"].payloads))
    kv, body = streams["kv"].cycles.astype(int), streams["body"].cycles.astype(int)
    start = kv[0]
    first = 0
    for number, n in enumerate(counts):
        closed = cycles(params, n)
        assert kv[first] == start, n
        assert body[(number + 1) * params.beats - 1] == start + closed.total, n
        start += closed.interval
        first += 2 * n * params.beats
