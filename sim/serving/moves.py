"""What a run moved between memories: tokens of each pair, bytes of each link, time hidden and waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.gpu_server import GpuServer
from sim.serving.machine import tier_names
from sim.serving.step_model import TierStepModel
from sim.tiering.migration import Migration

if TYPE_CHECKING:
    from sim.serving.service import Service

__all__ = ["moves_record"]


def moves_record(service: Service) -> dict[str, Any]:
    """Return the keys of a run's record that tell of moves.

    A pair that changes places is two tokens moved; every link between the two memories carries both.
    """
    works, steps, machine = service.log.works, service.steps, service.machine
    names = tier_names(service.machine)
    swaps = [round(sum(work.swaps[pair] for work in works)) for pair in range(len(names) - 1)]
    links: dict[str, float] = {}
    if not isinstance(machine, GpuServer):
        links = Migration(machine, service.model).link_bytes(swaps)
    return {
        "moved_tokens": 2 * sum(swaps),
        "moves": [
            {
                "between": f"{near} / {far}",
                "tokens": 2 * pairs,
                "bytes": 2 * pairs * service.model.kv_bytes_per_token,
            }
            for near, far, pairs in zip(names, names[1:], swaps, strict=False)
        ],
        "links": [{"name": name, "moved_bytes": round(carried)} for name, carried in links.items()],
        "migration": {
            "exposed_s": steps.parts_s().get("migration", 0.0),
            # Stages of a pipeline hide each their own.
            "hidden_s": steps.hidden_s if isinstance(steps, TierStepModel) else None,
        },
        "far_tokens": round(sum(sum(work.tier_tokens[1:]) for work in works)),
    }
