"""What a run read of the tokens that it had stored: how many, how many bytes, and labels to choose them by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.gpu_server import GpuServer
from sim.serving.machine import tier_names
from sim.tiering.scan import LabelScan

if TYPE_CHECKING:
    from sim.serving.service import Service

__all__ = ["reads_record"]


def reads_record(service: Service) -> dict[str, Any]:
    """Return the keys of a run's record that tell of reads, those of requests that decode.

    ``token_ratio`` is tokens that they have over tokens that they attend to, summed over the steps; ``byte_ratio`` is
    bytes of all keys and values over bytes of those attended to and of labels, in a layer without a window. Neither
    counts what pages hold besides. Both are None where nothing decodes.
    """
    plan, model = service.request.plan, service.model
    works = [work for work in service.log.works if work.decoding]
    attended = float(sum(sum(work.tier_tokens) for work in works))
    stored = float(sum(sum(work.tier_held) for work in works))
    return {
        "labels": _labels(service, [sum(column) for column in zip(*(work.tier_held for work in works), strict=True)]),
        "token_ratio": stored / attended if attended else None,
        "byte_ratio": plan.sparsity.byte_ratio(model.attention, stored=stored, attended=attended) if attended else None,
    }


def _labels(service: Service, stored: list[float]) -> dict[str, Any] | None:
    """Return what labels are, where they lie and what was read of them; None where tokens aren't chosen by any."""
    sparsity, machine, model = service.request.plan.sparsity, service.machine, service.model
    if not sparsity.rule.has_labels or isinstance(machine, GpuServer):
        return None
    scan = LabelScan(machine, model, sparsity, power_cap=service.request.power_cap)
    names = tier_names(machine)
    read = scan.bytes(stored or [0.0] * len(names))
    return {
        "format": sparsity.label_format,
        "place": sparsity.label_place,
        "scorer": sparsity.scorer,
        "bytes_per_token_and_layer": sparsity.label_bytes(model.attention),
        "scanned_bytes": {name: round(amount) for name, amount in zip(names, read, strict=True)},
    }
