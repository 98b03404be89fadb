"""Time that one tier takes for the attention of one layer.

Mapping: a (request, KV head) pair is spread over the units (banks) of one channel, token by token; pairs are dealt to
channels in turn. Where pairs are few, a pair is cut into ``spread`` slices on as many channels; of the powers of two
the one with the least time is taken. All units of a channel work in lock-step, so the fullest one counts: every
division rounds up. Every unit sends a state, also one whose share of the tokens is empty.

Selected and windowed tokens are taken to be spread as evenly as all tokens are.

Grouped queries: a unit uses a column for the ``g`` query heads that share it, one after another; it is read from its
bank once, which is what a power limit in bytes counts. In multi-head latent attention that is so for a column that is
key and value, too.

Where the RTL of a tier's channel has been measured and its table speaks for what is asked
(:mod:`sim.channel_cycles`), the stream of columns, what comes before it and the way to the states of the bank groups
take the measured cycles, row activations and refresh included. The heads that share a pair are then one operation where
the limit is in bytes; where it is in FLOPS, passes that read the columns again. Else the stream lasts as long as the
slowest of the bounds:

``unit``
    cycles of the processing units (:mod:`hw.timing.processing`) at their clock;
``column``
    columns of a bank, one each tCCD_L;
``cap``
    the device's power limit, in column bytes or in FLOPS;
``rows``
    of a measured channel, its rows by :mod:`hw.timing.channel` without refresh, beside ``cap``;
``page``
    page reads of the dies and transfers on the channel's bus;
``reduction``
    throughput of the reduction units, and of the way from the groups to those above them.

Behind the last column come the drain of the processing units and the reduction of the last operation; these, and what
the ``reduction`` bound adds, are the exposed reduction. Without a table row activations and refresh are not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.channel_cycles import ChannelTime, channel_time, shared_queries, why_not_measured
from sim.unit_cycles import merge_cycles, operation_cycles, state_bytes

if TYPE_CHECKING:
    from hw.presets import PageTiming
    from sim.models import Attention
    from sim.system import Tier

__all__ = ["POWER_CAPS", "TierLoad", "TierTime", "page_tokens", "tier_rate", "tier_time"]

POWER_CAPS = ("bytes", "flops")
"""Ways to read a device's power limit."""

_MAX_STATES = 64  # devices that may share a pair: their states meet in one reduction unit


@dataclass(frozen=True)
class TierLoad:
    """What one tier attends to in one layer.

    Parameters
    ----------
    requests : int
        Requests with tokens here; 0 for an idle tier.
    tokens : int
        Tokens of each, the largest number.
    fraction : float
        Part of the tokens here that is attended to; below 1 they lie scattered among the others.
    pages : float or None
        Where it is known, and so are scattered tokens: pages of one KV head that a request touches, a mean.
    """

    requests: int
    tokens: int
    fraction: float = 1.0
    pages: float | None = None

    @property
    def is_scattered(self) -> bool:
        """Tokens that are not attended to lie between those that are."""
        return self.fraction < 1.0 or self.pages is not None


@dataclass(frozen=True, kw_only=True)
class TierTime:
    """Time of one tier in one layer.

    Parameters
    ----------
    access_s : float
        Before the first column.
    stream_s : float
        First to last column, without what the ``reduction`` bound adds.
    exposed_s : float
        Last column to last state, and what the ``reduction`` bound adds.
    reduction_busy_s : float
        Work of the busiest reduction unit.
    unit_cycles : int
        Cycles of the busiest processing unit.
    read_bytes : int
        Bytes that all devices read.
    bound : str
        What the stream waits for.
    bounds_s : dict of str to float
        Every bound.
    spread : int
        Channels that share a pair.
    states : int
        States of one operation that leave the tier: devices that share a pair.
    channel : ChannelTime or None
        The measured channel that the time is made of, if it is.
    """

    access_s: float
    stream_s: float
    exposed_s: float
    reduction_busy_s: float
    unit_cycles: int
    read_bytes: int
    bound: str
    bounds_s: dict[str, float]
    spread: int
    states: int
    channel: ChannelTime | None = None

    @property
    def total_s(self) -> float:
        """Query in to last state out."""
        return self.access_s + self.stream_s + self.exposed_s


IDLE = TierTime(
    access_s=0.0,
    stream_s=0.0,
    exposed_s=0.0,
    reduction_busy_s=0.0,
    unit_cycles=0,
    read_bytes=0,
    bound="idle",
    bounds_s={},
    spread=0,
    states=0,
)
"""Time of a tier with nothing to attend to."""


def tier_time(tier: Tier, attention: Attention, load: TierLoad, *, power_cap: str, state_s: float = 0.0) -> TierTime:
    """Return the time of one layer's attention in one tier.

    Parameters
    ----------
    tier : Tier
    attention : Attention
    load : TierLoad
    power_cap : {"bytes", "flops"}
        How the device's limit is read.
    state_s : float
        Seconds that one state of every operation takes on its way out of the tier, which speaks against cutting a
        pair over several devices; not part of the result.
    """
    if not load.requests or not load.tokens:
        return IDLE
    widest = min(tier.channels, tier.device.channels.integer * _MAX_STATES, load.tokens)
    spreads = (1 << exponent for exponent in range(widest.bit_length()))
    fraction = min(load.fraction, 0.5) if load.is_scattered else 1.0
    measured = not why_not_measured(tier.device, attention, power_cap=power_cap, fraction=fraction)
    return min(
        (_spread_time(tier, attention, load, power_cap, spread, measured) for spread in spreads),
        key=lambda time: time.total_s + time.states * state_s,
    )


def _spread_time(
    tier: Tier, attention: Attention, load: TierLoad, power_cap: str, spread: int, measured: bool
) -> TierTime:
    """Return the time with every pair on ``spread`` channels; ``measured``: a table speaks for them."""
    device = tier.device
    units, channels = device.units_per_channel.integer, device.channels.integer
    slices = load.requests * attention.stored_heads * spread
    per_channel = math.ceil(slices / tier.channels)
    per_device = math.ceil(slices / tier.count.integer)
    slice_tokens = math.ceil(load.tokens / spread)
    unit_tokens = math.ceil(slice_tokens / units)
    operations = per_channel * attention.group

    unit = operation_cycles(device.unit_preset, attention, unit_tokens)
    unit_cycles = operations * unit.interval
    token_bytes = attention.token_bytes
    device_tokens = per_device * slice_tokens
    bounds = {
        "unit": unit_cycles / device.unit_clock_hz.number,
        "cap": device_tokens * token_bytes / device.cap_bytes_per_s.number
        if power_cap == "bytes"
        else device_tokens * attention.token_flops / device.cap_flops_per_s.number,
    }
    read_bytes = slices * slice_tokens * token_bytes
    if device.unit_column_bytes is not None and device.unit_column_s is not None:
        columns = per_channel * math.ceil(unit_tokens * token_bytes / device.unit_column_bytes.integer)
        bounds["column"] = columns * device.unit_column_s.number
    if device.page is not None:
        pages = _pages(device.page, slice_tokens, token_bytes, load.fraction)
        if load.pages is not None:
            pages = load.pages / spread
        bounds["page"] = _page_stream_s(device.page, math.ceil(per_channel * pages))
        read_bytes = math.ceil(slices * pages) * device.page.page_bytes.integer
    group_busy, group_tail = _group_reduction(tier, attention, operations)
    busy, tail = _upper_reduction(tier, attention, operations, min(spread, channels))
    channel = None
    if not measured:
        access_s = device.page.page_read_s.number if device.page is not None else device.access_s.number
        columns_s = max(bounds.values())
        bounds["reduction"] = busy = max(group_busy, busy)
        tail += group_tail + unit.drain / device.unit_clock_hz.number
    else:
        queries = shared_queries(attention, power_cap=power_cap)
        channel = channel_time(device, attention, slice_tokens, operations // queries, queries)
        access_s, columns_s = channel.access_s, channel.stream_s
        bounds = {"rows": channel.rows_s, "cap": channel.cap_s, "unit": bounds["unit"], "reduction": busy}
        read_bytes *= attention.group // queries
        tail += channel.tail_s
    return TierTime(
        access_s=access_s,
        stream_s=columns_s,
        exposed_s=max(0.0, busy - columns_s) + tail,
        reduction_busy_s=max(group_busy, busy),
        unit_cycles=unit_cycles,
        read_bytes=read_bytes,
        bound=max(bounds, key=lambda name: bounds[name]),
        bounds_s=bounds,
        spread=spread,
        states=math.ceil(spread / channels),
        channel=channel,
    )


def _pages(page: PageTiming, tokens: int, token_bytes: int, fraction: float) -> int:
    """Return the pages that ``tokens`` of one slice touch, K and V of a token in one page.

    Scattered among ``1 / fraction`` times as many, they touch ``1 - (1 - fraction)^n`` of the pages of ``n`` tokens.
    """
    size = page.page_bytes.integer
    all_pages = math.ceil(math.ceil(tokens / fraction) * token_bytes / size)
    if fraction >= 1.0:
        return all_pages
    touched = 1.0 - (1.0 - fraction) ** max(1, size // token_bytes)
    return min(all_pages, math.ceil(all_pages * touched))


def page_tokens(tier: Tier, attention: Attention) -> int:
    """Return the tokens of one KV head that a page holds; 0 where a tier is not read by pages."""
    page = tier.device.page
    return 0 if page is None else max(1, page.page_bytes.integer // attention.token_bytes)


def _page_stream_s(page: PageTiming, pages: int) -> float:
    """Return the seconds from the first page in its register to the last on the bus.

    The dies of a channel read in rounds; a round's transfers run under the next round's reads.
    """
    dies = page.dies_per_channel.integer
    transfer_s = page.page_bytes.integer / page.bus_bytes_per_s.number
    rounds = math.ceil(pages / dies)
    last = pages - (rounds - 1) * dies
    return (rounds - 1) * max(page.page_read_s.number, dies * transfer_s) + last * transfer_s


def _group_reduction(tier: Tier, attention: Attention, operations: int) -> tuple[float, float]:
    """Return the work of a group's reduction unit, and the time of the last operation through it."""
    device = tier.device
    group = merge_cycles(device.unit_preset, attention, device.units_per_group.integer)
    clock = device.unit_clock_hz.number
    return operations * group.interval / clock, group.latency / clock


def _upper_reduction(tier: Tier, attention: Attention, operations: int, shared_channels: int) -> tuple[float, float]:
    """Return the work of the busiest stage above the groups, and the time of the last operation through all of them.

    Each unit takes whole operations, the groups' states first, then those of other channels.

    Parameters
    ----------
    operations : int
        Operations of a channel.
    shared_channels : int
        Channels of a device that share a pair.
    """
    device = tier.device
    groups = math.ceil(device.units_per_channel.integer / device.units_per_group.integer)
    mergers = device.merge_units_per_channel.integer
    if groups == 1 and shared_channels == 1:
        return 0.0, 0.0
    states = groups if groups > 1 else 0
    above = merge_cycles(device.merge_preset, attention, max(1, states) + shared_channels - 1)
    clock = device.merge_clock_hz.number
    busy, tail = math.ceil(operations / max(1, mergers)) * above.interval / clock, above.latency / clock
    if not mergers:
        return busy, tail
    wire_s = groups * state_bytes(attention) * device.channels.integer / device.external_bytes_per_s.number
    return max(busy, operations * wire_s), tail + wire_s


def tier_rate(tier: Tier, attention: Attention, *, power_cap: str) -> float:
    """Return the tokens a second of one layer that a busy and evenly loaded tier attends to.

    Parameters
    ----------
    tier : Tier
    attention : Attention
    power_cap : {"bytes", "flops"}
        How the device's limit is read.
    """
    device, count = tier.device, tier.count.integer
    group, token_bytes = attention.group, attention.kv_bytes
    if not why_not_measured(device, attention, power_cap=power_cap, fraction=1.0):
        many = 1 << 16
        queries = shared_queries(attention, power_cap=power_cap)
        channel_s = channel_time(device, attention, many, group // queries, queries).stream_s
        return tier.channels * many / (channel_s * attention.stored_heads)
    if power_cap == "bytes":
        capped = device.cap_bytes_per_s.number / token_bytes
    else:
        capped = device.cap_flops_per_s.number / (attention.token_flops * attention.stored_heads)
    units = device.channels.integer * device.units_per_channel.integer
    many = 1 << 12
    cycles = operation_cycles(device.unit_preset, attention, many).interval / many * attention.stored_heads * group
    limits = [capped * count, units * count * device.unit_clock_hz.number / cycles]
    if device.unit_column_bytes is not None and device.unit_column_s is not None:
        limits.append(units * count * device.unit_column_bytes.integer / device.unit_column_s.number / token_bytes)
    if device.page is not None:
        limits.append(device.page.read_bytes_per_s * tier.channels / token_bytes)
    return min(limits)
