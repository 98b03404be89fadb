"""What the harness must know of a memory that computes attention: counts, rates and timing, each a :class:`Value`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from hw.presets.value import Deviation, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["MemoryDevice", "PageTiming"]


@dataclass(frozen=True, kw_only=True)
class PageTiming:
    """Whole pages, of memories that have them; rates are per channel.

    Parameters
    ----------
    page_bytes : Value
        Smallest unit that can be read.
    page_read_s : Value
        From command to page register, tR.
    page_program_s, block_erase_s : Value
        How long a die is busy with a page that it programs, and with a block that it erases: tPROG, tBERS.
    pages_per_block : Value
        Pages that are erased at once.
    dies_per_channel : Value
        Dies that read at once.
    bus_bytes_per_s : Value
        Rate of the channel's bus.
    """

    page_bytes: Value
    page_read_s: Value
    page_program_s: Value
    block_erase_s: Value
    pages_per_block: Value
    dies_per_channel: Value
    bus_bytes_per_s: Value

    @property
    def read_bytes_per_s(self) -> float:
        """Bytes a second of whole pages that a channel's dies read in turn and its bus carries meanwhile."""
        dies, size = self.dies_per_channel.integer, self.page_bytes.integer
        return dies * size / max(self.page_read_s.number, dies * size / self.bus_bytes_per_s.number)

    @property
    def program_bytes_per_s(self) -> float:
        """Bytes a second of whole pages that one die programs."""
        return self.page_bytes.number / self.page_program_s.number

    @property
    def held_s(self) -> float:
        """Longest time for which a die does not take the next page: it programs one and collects a block.

        As much may be valid as all pages but one hold, strewn over all
        (:attr:`golden.dma.nand_geometry.NandGeometry.max_slots`)::

            tPROG + pages tR + (pages - 1) tPROG + tBERS
        """
        read_s, program_s = self.page_read_s.number, self.page_program_s.number
        return self.pages_per_block.integer * (read_s + program_s) + self.block_erase_s.number


@dataclass(frozen=True, kw_only=True)
class MemoryDevice:
    """One device (a stack, a DIMM, a drive) with processing units near its banks.

    A *channel* is the group of banks that one (request, KV head) pair is spread over.

    Parameters
    ----------
    name, description : str
        Name and what it is.
    kind : {"hbm", "ddr", "ssd"}
        Family.
    unit_preset, merge_preset : str
        Unit presets of the units at the banks and of the device's own reduction units.
    channel_preset : str or None
        Device preset whose RTL is a channel of it, if there is one.
    capacity_bytes : Value
        Bytes a device holds.
    channels, units_per_channel, units_per_group : Value
        Channels a device, processing units a channel, processing units whose states the first reduction unit merges.
    merge_units_per_channel : Value
        Reduction units above the groups' own; 0 where the group's unit is the only one.
    unit_clock_hz, merge_clock_hz : Value
        Clock of the units at the banks, and of the device's reduction units.
    external_bytes_per_s : Value
        Rate of the device's pins, per device; also what carries states from the groups to the device's reduction units.
    unit_column_bytes, unit_column_s : Value or None
        Bytes and period of a column read of one bank; None where pages set the rate.
    access_s : Value
        From the first command to the first data, for memories without pages: activation and column latency.
    cap_bytes_per_s, cap_flops_per_s : Value
        The power limit read either way, per device.
    page : PageTiming or None
        Set for memories read by pages.
    timing : mapping of str to Value
        Printed timing parameters.
    deviations : tuple of Deviation
        Printed numbers that were not used.
    """

    name: str
    description: str
    kind: str
    unit_preset: str
    merge_preset: str
    channel_preset: str | None = None
    capacity_bytes: Value
    channels: Value
    units_per_channel: Value
    units_per_group: Value
    merge_units_per_channel: Value
    unit_clock_hz: Value
    merge_clock_hz: Value
    external_bytes_per_s: Value
    unit_column_bytes: Value | None = None
    unit_column_s: Value | None = None
    access_s: Value
    cap_bytes_per_s: Value
    cap_flops_per_s: Value
    page: PageTiming | None = None
    timing: Mapping[str, Value] = field(default_factory=dict[str, Value])
    deviations: tuple[Deviation, ...] = ()

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name; ``page.`` and ``timing.`` stand before the names of those groups."""
        for item in fields(self):
            value: Any = getattr(self, item.name)
            if isinstance(value, Value):
                yield item.name, value
        if self.page is not None:
            for item in fields(self.page):
                yield f"page.{item.name}", getattr(self.page, item.name)
        for key, value in self.timing.items():
            yield f"timing.{key}", value

    def with_values(self, changes: Mapping[str, Value]) -> MemoryDevice:
        """Return the device with the numbers named in ``changes`` replaced, without deviations of these.

        Raises
        ------
        KeyError
            If the device has no number of that name.
        """
        known = dict(self.values())
        for key in changes:
            if key not in known:
                raise KeyError(key)
        page = self.page
        flat: dict[str, Any] = {}
        timing = dict(self.timing)
        for key, value in changes.items():
            group, _, name = key.rpartition(".")
            if group == "page" and page is not None:
                page = replace(page, **{name: value})
            elif group == "timing":
                timing[name] = value
            else:
                flat[key] = value
        kept = tuple(deviation for deviation in self.deviations if deviation.field not in changes)
        return replace(self, page=page, timing=timing, deviations=kept, **flat)
