"""Promise: a variant differs in one thing from its preset, and keeps the capacity and the power cap of the stack."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hw.presets.devices import DEVICE_PRESETS
from hw.presets.reduction import reduction_variant

CAP_NS = Fraction(32 * 10**9, 1_600_000_000_000)
"""What the cap grants a column of 32 B of one bank alone."""


@pytest.mark.parametrize("preset", DEVICE_PRESETS)
def test_nothing_changed_is_the_preset(preset: str) -> None:
    assert reduction_variant(preset) == DEVICE_PRESETS[preset]


@pytest.mark.parametrize("preset", ["pam", "pam-wide"])
@pytest.mark.parametrize(("banks", "bankgroups"), [(2, 4), (8, 4), (4, 2), (4, 8), (1, 4)])
def test_banks(preset: str, banks: int, bankgroups: int) -> None:
    device = reduction_variant(preset, banks=banks, bankgroups=bankgroups)
    channel = device.channel
    assert channel.organisation.capacity_bytes == 16 << 30
    assert channel.groups == 4 * bankgroups
    assert channel.organisation.banks_per_channel == 4 * bankgroups * banks
    # 16 channels of so many banks, all at once
    period = channel.column_period * Fraction("0.769")
    assert period == 16 * channel.organisation.banks_per_channel * CAP_NS
    assert channel.head_dim >= 128
    slices = banks if preset == "pam" else 1
    assert (channel.processing.slices, channel.reduction.num_sources) == (slices, banks)


def test_names_say_what_differs() -> None:
    assert reduction_variant("pam", banks=8).name == "pam, 8 banks a group"
    assert reduction_variant("pam", bankgroups=8).name == "pam, 32 groups a channel"
    free = reduction_variant("pam-wide", capped=False)
    assert (free.name, free.cap_bytes_per_s, free.channel.column_period) == ("pam-wide, no cap", None, None)


def test_counts_that_make_no_memory_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^banks must be at least 1, not 0$"):
        reduction_variant("pam", banks=0)
    with pytest.raises(ValueError, match=r"^bankgroups must be at least 1, not -1$"):
        reduction_variant("pam", bankgroups=-1)
    with pytest.raises(ValueError, match=r"capacity_bytes must be"):
        reduction_variant("pam-wide", banks=3)
