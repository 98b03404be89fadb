"""What choosing tokens and moving them adds to a run: labels that are read, pages read whole, pairs that change places.

Labels cost a multiplication and addition for each query head and element. Where tokens that are read lie scattered, a
memory read by pages gives whole pages. A pair of tokens that changes places is read and written in both memories, and
what was written is read back, from flash out of its write buffer, which costs nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.tiering.migration import Migration
from sim.tiering.scan import LabelScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.energy.activity import Activity
    from sim.models import Model
    from sim.serving.batch import StepWork
    from sim.system import System
    from sim.tiering.sparsity import Sparsity

__all__ = ["count_tiering"]


def count_tiering(
    activity: Activity, system: System, model: Model, works: Sequence[StepWork], sparsity: Sparsity
) -> None:
    """Add what choosing and moving tokens does in all steps.

    Parameters
    ----------
    activity : Activity
        Counts so far: every attended token's keys and values read once.
    system : System
    model : Model
    works : sequence of StepWork
    sparsity : Sparsity
        How tokens are chosen.
    """
    _swaps(activity, system, model, works)
    _pages(activity, system, model, works)
    if sparsity.rule.has_labels:
        _labels(activity, system, model, works, sparsity)


def _swaps(activity: Activity, system: System, model: Model, works: Sequence[StepWork]) -> None:
    """Count pairs that change places."""
    pairs = [sum(column) for column in zip(*(work.swaps for work in works if work.swaps), strict=True)]
    if not any(pairs):
        return
    for (near, far), count in zip(zip(system.tiers, system.tiers[1:], strict=False), pairs, strict=True):
        for tier in (near, far):
            reads = 2 if tier.device.page is None else 1
            activity.read_bytes[tier.name] += reads * count * model.kv_bytes_per_token
            activity.written_bytes[tier.name] += count * model.kv_bytes_per_token
    for name, moved in Migration(system, model).link_bytes(pairs).items():
        activity.link_bytes[name] += moved


def _pages(activity: Activity, system: System, model: Model, works: Sequence[StepWork]) -> None:
    """Put whole pages in place of scattered tokens."""
    attention = model.attention
    for index, tier in enumerate(system.tiers):
        if tier.device.page is None:
            continue
        page_bytes = tier.device.page.page_bytes.integer
        for work in works:
            if not work.tier_pages or work.tier_tokens[index] >= work.tier_held[index]:
                continue
            # Layers with a window see a part of the pages, as of the tokens.
            mean = sum(work.tier_tokens) / work.decoding
            for layer, layers in model.layer_groups():
                seen = min(1.0, layer.window / mean) if layer.window else 1.0
                whole = work.tier_pages[index] * attention.stored_heads * page_bytes
                activity.near_bytes[tier.name] += layers * seen * (whole - work.tier_tokens[index] * attention.kv_bytes)


def _labels(activity: Activity, system: System, model: Model, works: Sequence[StepWork], sparsity: Sparsity) -> None:
    """Count labels that are read and scored."""
    held = [sum(column) for column in zip(*(work.tier_held for work in works if work.decoding), strict=True)]
    if not held:
        return
    attention = model.attention
    read = LabelScan(system, model, sparsity, power_cap="bytes").bytes(held)
    macs_a_byte = attention.group * sparsity.label_elements(attention) / sparsity.label_bytes(attention)
    for tier, amount in zip(system.tiers, read, strict=True):
        if sparsity.scorer == "memory":
            activity.near_bytes[tier.name] += amount
            activity.macs[tier.name] += amount * macs_a_byte
            continue
        activity.read_bytes[tier.name] += amount
        activity.gpu_bytes += amount
        activity.gpu_flops += 2.0 * amount * macs_a_byte
        if not tier.shared_with_gpu:
            for link in tier.path:
                activity.link_bytes[link.name] += amount
