"""The part of attention's time that the reduction of a stack leaves exposed, beside what is published.

Ours are cycles of a Verilated channel and of its share of the logic die: from the command of the last column of values
of the whole run to the last beat of the last state of the root, over all cycles from the start to that beat. One stack,
64 query heads, each with keys and values of its own, four on each of 16 channels; d 128; refresh on, the first due
after one interval. One bank group of one channel is simulated, its states stand for those of the other 15, which is
exact up to the output of the group's own units; links and tree are simulated whole.

Assumed of the links: states go by themselves, a column of 32 B at a time over the data bus of each pseudo-channel, and
find it free; each group, and the logic die for each group, has room for one state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.presets.devices import DEVICE_PRESETS
from sim.comparisons.row import comparison_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hw.timing.logic_die import ReductionPoint

__all__ = [
    "CENT_SHARES",
    "CONTEXTS",
    "LIMIT",
    "PAM_LIMIT",
    "PRESETS",
    "SYMMETRY",
    "below",
    "below_lines",
    "point_record",
    "reduction_rows",
]

PRESETS = ("pam", "pam-wide", "attacc", "attacc-unlimited")
"""Devices: split head dimension and whole tokens with the power cap on; without it, two paces of the memory."""

CONTEXTS = tuple(128 << step for step in range(8))
"""Tokens of each head: 128 to 16,384."""

LIMIT = 0.01
"""Part of attention's time that exposed reduction is to stay below."""

PAM_LIMIT = 0.02
"""Part that the paper of PAM claims it to stay below."""

CENT_SHARES = {128: 2.3 / 25.6, 2048: 8.9 / 45.8, 4096: 16.0 / 68.0}
"""Share of a block's time of CENT's unit for softmax and norm, by context."""

SYMMETRY = "one bank group simulated, its states stand for all 16 of its channel; links and tree are simulated whole"

_HEADLINE = ("pam", 4096)
_PAM = "arXiv:2602.11521: reduction latency < 2 % of PAMattention's time"
_BYTES = "arXiv:2602.11521: 59 % fewer transfers inside a device; it does not say than what"
_CENT = "Yufeng98/CENT simulation_results.csv, Llama2-7B on 8 devices"


def reduction_rows(points: Mapping[tuple[str, int], ReductionPoint]) -> list[dict[str, Any]]:
    """Return the rows of the comparison.

    Parameters
    ----------
    points : mapping of (str, int) to ReductionPoint
        By device preset and tokens, one for each of :data:`PRESETS` and :data:`CONTEXTS`.

    Returns
    -------
    list of dict
        The goal; every point beside PAM's claim; CENT's unit at its contexts; bytes that stay below the logic die.
    """
    device, tokens = _HEADLINE
    rows = [
        _share_row(f"{device}, {tokens:,} tokens: goal", LIMIT, "the goal of this device", device, points[_HEADLINE])
    ]
    rows += [
        _share_row(f"{preset}, {context:,} tokens", PAM_LIMIT, _PAM, preset, points[preset, context])
        for preset in PRESETS
        for context in CONTEXTS
    ]
    rows += [
        _share_row(
            f"CENT's softmax and norm unit, {context:,} tokens",
            share,
            f"{_CENT}: share of a block's time",
            device,
            points[device, context],
        )
        for context, share in CENT_SHARES.items()
    ]
    for preset in PRESETS[:2]:
        point = points[preset, tokens]
        mapping = DEVICE_PRESETS[preset].channel.mapping.value
        saved = 1 - point.up_bytes / point.bank_bytes
        rows.append(
            comparison_row(
                f"{preset}: bytes of states kept off the logic die",
                0.59,
                saved,
                unit="of the banks' states",
                source=_BYTES,
                within=saved >= 0.59,
                note=f"{mapping}: {point.bank_bytes:,} B from the banks, {point.up_bytes:,} B go up",
            )
        )
    return rows


def _share_row(name: str, reference: float, source: str, preset: str, point: ReductionPoint) -> dict[str, Any]:
    mapping = DEVICE_PRESETS[preset].channel.mapping.value
    note = f"{point.exposed_cycles:,} of {point.attention_cycles:,} cycles, {point.state_cycles} in the group"
    if point.late_cycles:
        note += f"; links hold groups up by {point.late_cycles:,} cycles, without effect on these here"
    return comparison_row(
        name,
        reference,
        point.exposed_share,
        unit="of attention's time",
        source=source,
        within=point.exposed_share < reference,
        note=f"{mapping}: {note}",
    )


def below(
    share: Callable[[int], float], known: Mapping[int, float], limit: float = LIMIT, step: int = 64
) -> int | None:
    """Return the fewest tokens, a multiple of ``step``, from which on the exposed share stays below ``limit``.

    Parameters
    ----------
    share : callable
        Measures the share at a number of tokens.
    known : mapping of int to float
        Shares measured already, falling with the tokens from the last one that is not below the limit on.
    limit : float
        The limit.
    step : int
        Tokens between the numbers tried; divides those known.

    Returns
    -------
    int or None
        None if the longest known is not below it; the shortest known if none is at or above it.
    """
    contexts = sorted(known)
    above = [context for context in contexts if known[context] >= limit]
    if not above:
        return contexts[0]
    if above[-1] == contexts[-1]:
        return None
    low, high = above[-1] // step, contexts[contexts.index(above[-1]) + 1] // step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle * step) < limit else (middle, high)
    return high * step


def below_lines(found: Mapping[str, int | None]) -> list[str]:
    """Return in words from how many tokens on each device's share is below the limit."""
    return [
        f"{preset}: below {LIMIT:.0%} "
        + (f"from {tokens:,} tokens on" if tokens else f"at none of up to {CONTEXTS[-1]:,} tokens")
        for preset, tokens in found.items()
    ]


def point_record(point: ReductionPoint) -> dict[str, Any]:
    """Return a point as it stands in the JSON."""
    return {
        "device": point.device,
        "mapping": DEVICE_PRESETS[point.device].channel.mapping.value,
        "context": point.context,
        "heads": point.heads,
        "head_dim": point.head_dim,
        "exposed_cycles": point.exposed_cycles,
        "state_cycles": point.state_cycles,
        "attention_cycles": point.attention_cycles,
        "exposed_share": point.exposed_share,
        "late_cycles": point.late_cycles,
        "bank_bytes": point.bank_bytes,
        "up_bytes": point.up_bytes,
    }
