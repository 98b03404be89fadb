"""Devices that differ in one thing from a preset: banks of a group, groups of a channel, no power cap."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.device_params import Mapping
from hw.presets.devices import DEVICE_PRESETS

if TYPE_CHECKING:
    from hw.presets.devices import DevicePreset

__all__ = ["reduction_variant"]


def reduction_variant(
    preset: str, *, banks: int | None = None, bankgroups: int | None = None, capped: bool = True
) -> DevicePreset:
    """Return a device preset with another number of banks, of the same capacity and power cap.

    Rows make good for banks. A power cap in bytes a second stays that of the stack, so that a column of all banks,
    which has more bytes where there are more, takes its share of cycles more. Units of a split head dimension keep at
    least two beats: with 8 banks they are made for 256 elements.

    Parameters
    ----------
    preset : str
        Key of :data:`hw.presets.devices.DEVICE_PRESETS`.
    banks, bankgroups : int or None
        Banks of a group, and groups of a rank; None is as many as the preset has.
    capped : bool
        False takes the power cap off.

    Raises
    ------
    TypeError, ValueError
        If the units do not fit the memory.
    """
    base = DEVICE_PRESETS[preset]
    channel, old = base.channel, base.channel.organisation
    banks = old.banks if banks is None else banks
    bankgroups = old.bankgroups if bankgroups is None else bankgroups
    require_int("banks", banks, 1)
    require_int("bankgroups", bankgroups, 1)
    share = Fraction(banks * bankgroups, old.banks * old.bankgroups)
    organisation = replace(old, banks=banks, bankgroups=bankgroups, rows=int(old.rows / share))
    slices = banks if channel.mapping is Mapping.SPLIT else 1
    units = 1 if channel.mapping is Mapping.GROUP else banks
    head_dim = max(channel.head_dim, 2 * channel.processing.lanes * slices)
    period = None if channel.column_period is None else channel.column_period * share
    changes = [f"{banks} banks a group"] * (banks != old.banks)
    changes += [f"{organisation.groups_per_channel} groups a channel"] * (bankgroups != old.bankgroups)
    changes += ["no cap"] * (not capped)
    return replace(
        base,
        name=", ".join([preset, *changes]),
        channel=channel.replace(
            organisation=organisation,
            processing=channel.processing.replace(head_dim=head_dim // slices, slices=slices),
            reduction=channel.reduction.replace(head_dim=head_dim, num_sources=units),
            column_period=period if capped else None,
        ),
        cap_bytes_per_s=base.cap_bytes_per_s if capped else None,
    )
