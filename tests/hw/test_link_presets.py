"""Promise: links move what their pins can, have sources, and are those that the systems count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hw.presets.links import LINK_PRESETS
from hw.presets.value import Value
from sim.system_config import load_system


def test_systems_count_whole_links() -> None:
    """PAM's rates are those of 40 stacks, 40 DIMMs, 8 slots and 8 drives."""
    links = load_system("pam").links
    for name, preset, count in (
        ("in-package", "in-package", 40),
        ("memory-bus", "memory-bus", 40),
        ("pcie", "pcie5-x16", 8),
        ("nvme", "nvme", 8),
    ):
        assert links[name].bytes_per_s == pytest.approx(count * LINK_PRESETS[preset].bytes_per_s.number, rel=1e-12)


def test_rates_are_what_pins_move_or_less() -> None:
    full = {
        name: link.bytes_per_s.number * 8 / link.width_bits.integer / link.bits_per_s.number
        for name, link in LINK_PRESETS.items()
    }
    assert {name: round(share, 3) for name, share in full.items()} == {
        "in-package": 1.0,
        "memory-bus": 1.0,
        "pcie5-x16": 1.0,
        "nvme": 0.625,
        "cxl-x4": 1.0,
        "nvlink4": 1.0,
    }
    cxl = LINK_PRESETS["cxl-x4"]
    assert dict(cxl.values())["flit_payload_bytes"].integer / dict(cxl.values())["flit_bytes"].integer == 64 / 68


def test_impossible_links_are_refused() -> None:
    cxl = LINK_PRESETS["cxl-x4"]
    for changes, message in (
        (
            {"bytes_per_s": Value(17e9, "bytes/s", "test")},
            r"^bytes_per_s of cxl-x4 must be at most 1.6e\+10, not 1.7e\+10$",
        ),
        ({"flit_bytes": None}, r"^flit_payload_bytes of cxl-x4 must be given with flit_bytes, and only then$"),
        (
            {"flit_payload_bytes": Value(69, "bytes", "test")},
            r"^flit_payload_bytes of cxl-x4 must be at most 68, not 69$",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            replace(cxl, **changes)
