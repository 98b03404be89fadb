# amaranth: UnusedElaboratable=no
"""Processing and reduction unit around exponential units of other latencies and domains, down to none at all."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp import POLY6
from hw.params import ProcessingParams, ReductionParams
from hw.presets import UNIT_PRESETS
from hw.units.processing import ProcessingUnit
from hw.units.reduction import ReductionUnit
from tests.helpers.processing import KINDS, check_cycles, check_states, make_operation, offer, run, sizes, unpack
from tests.helpers.pysim import run_pysim
from tests.helpers.reduction import random_run

EXPS = {
    "combinational": POLY6.replace(evaluation="combinational", domain="nonpositive", subnormals="flushed"),
    "one register": POLY6.replace(registers=1),
    "three registers": POLY6.replace(registers=3, domain="nonpositive"),
}
_REDUCTION_EXPS = EXPS | {"bf16": UNIT_PRESETS["pam-hbm-bf16-small"].exp}


@pytest.mark.parametrize("exp", EXPS.values(), ids=EXPS)
@pytest.mark.parametrize("tile_tokens", [1, 4])
def test_processing_unit(exp, tile_tokens):
    params = ProcessingParams(head_dim=4, lanes=2, tile_tokens=tile_tokens, exp=exp)
    rng = np.random.default_rng(7)
    operations = [
        make_operation(params, rng, n, KINDS[number % len(KINDS)], op_id=number)
        for number, n in enumerate(sizes(params))
    ]

    async def scenario(bench):
        bench.stall("head", 0.3)
        bench.stall("body", 0.3)
        offer(bench, params, operations, idle=0.2)
        await run(bench, params, operations)
        check_states(params, operations, unpack(params, bench.items("head"), bench.items("body")))
        check_cycles(params, operations, bench, stalled=True)

    run_pysim(ProcessingUnit(params), scenario)


@pytest.mark.parametrize("exp", _REDUCTION_EXPS.values(), ids=_REDUCTION_EXPS)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_reduction_unit(exp, stall):
    params = ReductionParams(head_dim=4, lanes=2, num_sources=3, exp=exp)
    run_pysim(ReductionUnit(params), lambda bench: random_run(bench, params, 6, idle=stall, stall=stall, seed=7))
