# amaranth: UnusedElaboratable=no
"""Promise: the sorter that selection is compared with selects the same, in the cycles that it says."""

from __future__ import annotations

import numpy as np
import pytest

from golden.formats import FP32
from golden.retrieval.topk import top_k
from hw.payloads import pack
from hw.units.sorted_list import SortedList, SortedListParams, entry_layout, given_layout
from tests.helpers.pysim import run_pysim

_PARAMS = SortedListParams(places=5, id_bits=6)


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.4, 0.5)])
def test_ids_and_cycles(idle, stall):
    rng = np.random.default_rng(12)
    drawn = [rng.choice([-2.0, -0.0, 0.0, 1.0, 1.5, 3.0], count).astype(np.float32) for count in (1, 4, 5, 6, 40, 23)]
    layout = given_layout(_PARAMS)

    async def scenario(bench):
        ends, given, wanted = [], [], []
        for scores in drawn:
            codes = FP32.to_codes(scores).tolist()
            ends.append(len(scores) - 1 + (ends[-1] + 1 if ends else 0))
            entries = [
                pack(entry_layout(_PARAMS), score=code, id=number, last=number == len(codes) - 1)
                for number, code in enumerate(codes)
            ]
            bench.send("scores", entries, idle=idle)
            taken = top_k(scores, 5)
            # The largest first, of equal ones the lower id.
            order = sorted(taken.tolist(), key=lambda number, scores=scores: (-scores[number], number))
            wanted += [pack(layout, id=number, end=0) for number in order] + [pack(layout, id=0, end=1)]
            given.append(len(wanted) - 1)
        bench.stall("selected", stall)
        await bench.until(selected=len(wanted))
        assert bench.items("selected") == wanted
        if not idle:
            scored, selected = (bench.trace(name).transfers for name in ("scores", "selected"))
            for scores, last, end in zip(drawn, ends, given, strict=True):
                assert selected[end] - scored[last] == min(len(scores), 5) + 1

    run_pysim(SortedList(_PARAMS), scenario)


def test_bad_arguments():
    with pytest.raises(ValueError, match="places must be from 2 to 4096, not 1"):
        SortedListParams(places=1)
    with pytest.raises(ValueError, match="id_bits must be from 1 to 32, not 33"):
        SortedListParams(id_bits=33)
