"""Promise: with twice the rate of any part a trace is served as soon, within 1 %; whatever takes longer is listed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sim.model_config import load_model
from sim.serving.parameters import ServerParams
from sim.serving.service import ServiceRequest, serve
from sim.studies.policies import Load, drawn_trace
from sim.system_config import load_system
from sim.tiering.plan import TierPlan
from sim.tiering.rooms import with_room
from sim.tiering.sparsity import Sparsity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hw.presets import Value
    from sim.system import System

LLAMA = load_model("llama-3.1-8b")
PARAMS = ServerParams(token_budget=2048)
LOAD = Load(model="llama-3.1-8b", requests=16, prompt_tokens=700, output_tokens=24)
PAM = with_room(load_system("pam"), LLAMA, PARAMS, [3000, 4000])


def _doubled(value: Value) -> Value:
    return type(value)(value.number * 2, value.unit, value.source)


def _faster() -> Iterator[tuple[str, System]]:
    """Yield the system with one rate doubled, for every rate."""
    for tier in PAM.tiers:
        for name in ("cap_bytes_per_s", "external_bytes_per_s"):
            rate = dict(tier.device.values())[name]
            yield f"{tier.name} {name}", PAM.with_tier(tier.with_values(**{name: _doubled(rate)}))
    for name, link in PAM.links.items():
        links = PAM.links | {name: replace(link, bytes_per_s=2 * link.bytes_per_s)}
        tiers = tuple(replace(tier, path=tuple(links[way.name] for way in tier.path)) for tier in PAM.tiers)
        yield f"link {name}", replace(PAM, links=links, tiers=tiers)
    for name in ("peak_flops", "allreduce_bytes_per_s"):
        yield f"GPUs' {name}", replace(PAM, gpu=replace(PAM.gpu, **{name: _doubled(getattr(PAM.gpu, name))}))


@pytest.mark.parametrize(("policy", "sparsity"), [("static", "dense"), ("pam", "double"), ("lru", "window")])
def test_more_bandwidth_serves_a_trace_as_soon(policy: str, sparsity: str) -> None:
    trace = replace(drawn_trace(LOAD, 5), has_arrivals=False)
    plan = TierPlan(policy_name=policy, sparsity=Sparsity(name=sparsity, label_place="own"))

    def makespan_s(system: System) -> float:
        service = serve(system, LLAMA, trace, ServiceRequest(params=PARAMS, plan=plan))
        assert service.states.is_done(range(len(trace.requests))).all()
        return service.log.end_s

    base = makespan_s(PAM)
    ratios = {name: makespan_s(system) / base for name, system in _faster()}
    violations = {name: ratio for name, ratio in ratios.items() if ratio > 1.0 + 1e-12}
    assert all(ratio <= 1.01 for ratio in violations.values()), violations
    # Some rate is waited for, or nothing would be tested.
    assert min(ratios.values()) < 0.99
