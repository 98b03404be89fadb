"""The DMA's data path under Verilator: a thousand payloads over a link with faults, and its rates.

Scenarios (:mod:`tests.helpers.path`): payloads raw, compressed and as states arrive once, whole, in order and with
their tags, with idle inputs, refused outputs, bits flipped and beats lost either way; rates as hand counts of bytes
have them.
"""

from __future__ import annotations

from tests.helpers.path import PathEnds
from tests.helpers.rtl import run_cocotb
from tests.rtl.tb_path import PARAMS


def test_path():
    run_cocotb(PathEnds, PARAMS, module="tests.rtl.tb_path", expected=5, case={"payloads": 1000})
