"""Promise: tables that ship were measured on the Verilog that the sources of today make."""

from __future__ import annotations

import pytest

from hw.measure import channel_sha256
from hw.measure_dma import dma_sha256
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import load_table
from hw.tables.dma import load_dma_table


@pytest.mark.parametrize("name", DEVICE_PRESETS)
def test_a_table_is_of_the_verilog_beside_it(name: str) -> None:
    assert load_table(name).verilog_sha256 == channel_sha256(DEVICE_PRESETS[name].channel)


def test_rates_of_the_dma_are_of_the_verilog_beside_them() -> None:
    assert load_dma_table().verilog_sha256 == dma_sha256()
