"""Compressor and decompressor under Verilator: golden bits, cycles of the formulas, every code of a format.

Scenarios (:mod:`tests.helpers.compression`): payloads of any length and kind, idle inputs and refused outputs; reset.
"""

from __future__ import annotations

import numpy as np
import pytest

from golden.dma.compression import BlockCompression
from golden.formats import BF16, FP16
from hw.cosim import run_streams
from hw.dma_params import CompressionParams
from hw.interface.compressor import Compressor
from hw.interface.decompressor import Decompressor
from hw.interface.layouts import bytes_layout, numbers_layout
from hw.payloads import pack, unpack
from tests.helpers.bench_verilog import verilog_of
from tests.helpers.rtl import run_cocotb

UNITS = {"compressor": Compressor, "decompressor": Decompressor}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)
def test_compression(name, fmt):
    params = CompressionParams(compression=BlockCompression(fmt=fmt, block=32), lanes=16)
    case = {"unit": name, "fmt": fmt.name, "block": 32, "lanes": 16}
    run_cocotb(UNITS[name], params, module="tests.rtl.tb_compression", expected=5, case=case)


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)
def test_every_code_beside_its_neighbours_and_beside_any(fmt):
    """All codes in order, where blocks are of like size, and shuffled."""
    params = CompressionParams(compression=BlockCompression(fmt=fmt, block=32), lanes=16)
    codes = np.arange(1 << 16, dtype=np.uint16)
    shuffled = codes[(codes & 0x7FFF) < fmt.inf_code]
    np.random.default_rng(1).shuffle(shuffled)
    everything = np.concatenate([codes, shuffled])
    layout = numbers_layout(params)
    beats = [pack(layout, codes=row.tolist(), last=0) for row in everything.reshape(-1, 16)]
    beats[-1] |= pack(layout, codes=[0] * 16, last=1)
    verilog = verilog_of(Compressor, params)
    found = run_streams(verilog, "dut", {"i": beats}, {"o": len(beats)}).streams["o"].payloads
    sent = b""
    for item in found:
        fields = unpack(bytes_layout(params), item)
        sent += bytes(int(unit) for unit in fields["units"])[: fields["count"]]
    wanted = b"".join(
        bytes([record.scale]) + np.array(record.codes, "<u2" if record.scale == 255 else "u1").tobytes()
        for record in params.compression.encode(everything)
    )
    assert sent == wanted
