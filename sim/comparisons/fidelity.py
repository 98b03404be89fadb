"""Both fidelities of serving beside each other: tokens followed one by one, and counted by importance.

The first requests of a trace come a thousand times faster than recorded, so that nearly all of them run at once, on a
system whose nearest memories have room for a fifth and a quarter of their tokens: more than half lie on drives where
all of them do run at once. Rows say which part of the tokens lay outside the nearest memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.comparisons.row import comparison_row
from sim.serving.metrics import percentiles
from sim.serving.moves import moves_record
from sim.serving.parameters import ServerParams
from sim.serving.service import ServiceRequest, serve
from sim.tiering.plan import FIDELITIES, TierPlan
from sim.tiering.rooms import with_room
from sim.tiering.sparsity import Sparsity

if TYPE_CHECKING:
    from sim.models import Model
    from sim.system import System
    from sim.traces import Trace

__all__ = ["MOVED_LIMIT", "NOTES", "SHARES", "TBT_LIMIT", "crowded", "fidelity_rows"]

TBT_LIMIT, MOVED_LIMIT = 0.03, 0.10
"""How far the means may be from single tokens: p50 and p99 tbt, and tokens moved."""

SHARES = (0.2, 0.25)
"""Part of all requests' tokens that the nearest memories have room for."""

RATE_SCALE = 1000.0

NOTES = (
    "reference: every token has reads, an importance and a memory of its own; ours: tokens counted by importance",
    f"the nearest memories have room for {SHARES[0]:.0%} and {SHARES[1]:.0%} of the tokens, an eighth is read a step",
)


def crowded(system: System, model: Model, trace: Trace, params: ServerParams) -> System:
    """Return a system whose nearest memories have room for :data:`SHARES` of what a trace's requests store."""
    tokens = sum(request.input_tokens + request.output_tokens for request in trace.requests)
    return with_room(system, model, params, [int(share * tokens) for share in SHARES])


def fidelity_rows(
    system: System, model: Model, trace: Trace, *, requests: int, policy: str, seed: int
) -> list[dict[str, Any]]:
    """Return rows of the first ``requests`` of a trace: p50 and p99 tbt, tokens moved, tokens read far away.

    Parameters
    ----------
    system : System
        With three memories.
    model : Model
    trace : Trace
    requests : int
    policy : str
        One of :data:`sim.tiering.policies.POLICIES`.
    seed : int
        Of single tokens' reads.
    """
    part = replace(trace, requests=trace.requests[:requests])
    params = ServerParams()
    machine = crowded(system, model, part, params)
    found = {name: _figures(machine, model, part, params, policy, name, seed) for name in FIDELITIES}
    exact, means = found["exact"], found["aggregate"]
    rows: list[dict[str, Any]] = []
    for key, unit, limit in (
        ("p50 tbt", "ms", TBT_LIMIT),
        ("p99 tbt", "ms", TBT_LIMIT),
        ("moved", "tokens", MOVED_LIMIT),
        ("read far away", "tokens", MOVED_LIMIT),
    ):
        reference, ours = exact[key], means[key]
        if reference or ours:
            rows.append(
                comparison_row(
                    f"{trace.name}, {policy}: {key}",
                    reference,
                    ours,
                    unit=unit,
                    source="single tokens, fidelity exact",
                    within=abs(ours - reference) <= limit * reference,
                    note=f"{len(part.requests)} requests, seed {seed}; limit {limit:.0%}",
                )
                | {"outside_share": exact["outside"]}
            )
    return rows


def _figures(
    machine: System, model: Model, trace: Trace, params: ServerParams, policy: str, fidelity: str, seed: int
) -> dict[str, float]:
    """Return what a run shows."""
    sparsity = Sparsity(name="double", label_place="own")
    plan = TierPlan(policy_name=policy, sparsity=sparsity, fidelity=fidelity, seed=seed)
    scale = RATE_SCALE if trace.has_arrivals else 1.0
    service = serve(machine, model, trace, ServiceRequest(params=params, plan=plan, rate_scale=scale))
    log = service.log
    gaps = percentiles(np.array(log.gap_s), np.array(log.gap_counts, np.int64)) or {"p50": 0.0, "p99": 0.0}
    moves = moves_record(service)
    held = np.array([work.tier_held for work in log.works if work.decoding])
    return {
        "p50 tbt": gaps["p50"],
        "p99 tbt": gaps["p99"],
        "moved": float(moves["moved_tokens"]),
        "read far away": float(moves["far_tokens"]),
        "outside": float(1.0 - held[:, 0].sum() / held.sum()) if len(held) else 0.0,
    }
