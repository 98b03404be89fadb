"""Promise: tables that ship were measured on the Verilog that the sources of today make."""

from __future__ import annotations

import pytest

from hw.measure import channel_sha256
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import load_table


@pytest.mark.parametrize("name", DEVICE_PRESETS)
def test_a_table_is_of_the_verilog_beside_it(name: str) -> None:
    assert load_table(name).verilog_sha256 == channel_sha256(DEVICE_PRESETS[name].channel)
