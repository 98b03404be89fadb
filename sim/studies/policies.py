"""The study of policies: requests whose tokens lie mostly outside HBM, served by each policy in turn.

All requests of a load come at once; their prompts run first, then all of them decode. What a policy does shows in the
steps that run no prompts. ``outside`` is the part of the tokens outside the nearest memory in these. Tokens are counted
by importance; ``reads`` follows single tokens of a few requests, with other seeds and other localities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.retrieval.access import LOCALITIES
from sim.model_config import load_model
from sim.provenance import Part, combine
from sim.serving.fill import FILL_RULES
from sim.serving.metrics import percentiles
from sim.serving.moves import moves_record
from sim.serving.parameters import ServerParams
from sim.serving.service import ServiceRequest, serve
from sim.serving.token_store import TokenStore
from sim.system_config import load_system
from sim.tiering.plan import TierPlan
from sim.tiering.policies import POLICIES
from sim.tiering.sparsity import Sparsity
from sim.traces import Trace, TraceRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sim.serving.service import Service

__all__ = ["LOADS", "Load", "drawn_trace", "policy_rows", "read_rows", "serve_load"]

SPARSITY = Sparsity(name="double", label_format="int4")
"""An eighth of the tokens, chosen by labels of 4 bits in HBM, which leaves it most of its room."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """Requests that come at once.

    Parameters
    ----------
    model : str
    requests : int
    prompt_tokens, output_tokens : int
        Means; each request's are drawn from half of it to half more.
    """

    model: str
    requests: int
    prompt_tokens: int
    output_tokens: int = 120


LOADS = {
    "drives": Load(model="llama-3.1-70b", requests=512, prompt_tokens=16_000),
    "dram": Load(model="llama-3.1-70b", requests=256, prompt_tokens=16_000),
    "small model": Load(model="llama-3.1-8b", requests=768, prompt_tokens=24_000),
}
"""Loads by name: one that reaches the drives, one that DDR still takes, and one of a model with fewer layers."""


def drawn_trace(load: Load, seed: int) -> Trace:
    """Return the requests of a load."""
    rng = np.random.default_rng(seed)

    def draw(mean: int) -> list[int]:
        return rng.integers(max(1, mean // 2), mean * 3 // 2 + 1, load.requests).tolist()

    lengths = zip(draw(load.prompt_tokens), draw(load.output_tokens), strict=True)
    return Trace(
        name="drawn",
        format="drawn",
        sha256="",
        requests=tuple(
            TraceRequest(line=number, arrival_s=0.0, input_tokens=prompt, output_tokens=output)
            for number, (prompt, output) in enumerate(lengths, 1)
        ),
        skipped=(),
        oddities={},
        has_arrivals=False,
    )


def serve_load(load: Load, plan: TierPlan) -> Service:
    """Return what came of a load on PAM."""
    params = ServerParams(scheduler="prefill-first", max_running=load.requests, token_budget=65_536)
    request = ServiceRequest(params=params, plan=plan)
    return serve(load_system("pam"), load_model(load.model), drawn_trace(load, plan.seed), request)


def decode_step_ms(service: Service) -> float:
    """Return the mean time of the steps that run no prompts."""
    ends = np.array([0.0, *service.log.queue_s])
    alone = [not work.prompt_tokens for work in service.log.works]
    return 1e3 * float(np.diff(ends)[alone].mean()) if any(alone) else 0.0


def policy_rows(
    loads: dict[str, Load],
    *,
    seed: int,
    policies: Sequence[str] = tuple(POLICIES),
    progress: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Return a row for each load and policy.

    Parameters
    ----------
    loads : dict of str to Load
    seed : int
        Of lengths.
    policies : sequence of str
    progress : callable
        Told of each row that is done.
    """
    rows: list[dict[str, Any]] = []
    for name, load in loads.items():
        of_load: list[dict[str, Any]] = []
        for policy in policies:
            plan = TierPlan(policy_name=policy, sparsity=SPARSITY, seed=seed)
            of_load.append({"name": f"{name}, {policy}", "load": name, **_row(load, plan)})
            progress(f"{name}, {policy}: {of_load[-1]['decode_step_ms']:,.1f} ms a step")
        bound = next((row["far_tokens"] for row in of_load if row["policy"] == "oracle"), None)
        rows += [row | {"oracle_far_tokens": bound} for row in of_load]
    return rows


def _row(load: Load, plan: TierPlan) -> dict[str, Any]:
    """Return what a run shows."""
    service = serve_load(load, plan)
    log = service.log
    alone = [work for work in log.works if work.decoding and not work.prompt_tokens]
    held = np.array([work.tier_held for work in alone])
    read = sum(sum(work.tier_tokens) for work in log.works)
    moves = moves_record(service)
    steps_held = held.sum()
    last = moves["moves"][-1]["tokens"]
    return {
        "policy": plan.policy_name,
        "model": load.model,
        "requests": load.requests,
        "prompt_tokens": load.prompt_tokens,
        "outside_share": float(held[:, 1:].sum() / steps_held),
        "last_share": float(held[:, -1].sum() / steps_held),
        "decode_step_ms": decode_step_ms(service),
        "tbt_ms": percentiles(np.array(log.gap_s), np.array(log.gap_counts, np.int64)),
        "far_tokens": moves["far_tokens"],
        "far_share": moves["far_tokens"] / read,
        "moved_tokens": moves["moved_tokens"],
        "moved_share": moves["moved_tokens"] / steps_held,
        "moved_share_last": last / steps_held,
        "migration": moves["migration"],
        "parts_s": service.steps.parts_s(),
        "provenance": combine([Part("steps", "modelled", "sim/serving, aggregate fidelity")]).to_dict(),
    }


def read_rows(
    *, seeds: Sequence[int], requests: int = 4, tokens: int = 1500, steps: int = 260, counted: int = 50
) -> list[dict[str, Any]]:
    """Return which part of the reads each policy leaves far away, over localities and seeds, token by token.

    A fifth of the tokens has room in the nearest memory and three tenths in the next. The last steps alone are counted,
    when policies have learnt what they do: counts of 50 steps reach a level of 5.0 after four times as many.

    Parameters
    ----------
    seeds : sequence of int
    requests, tokens, steps, counted : int
        Requests, tokens of each at the beginning, steps, and how many of these count.
    """
    rows: list[dict[str, Any]] = []
    room = [requests * tokens // 5, requests * tokens * 3 // 10, requests * (tokens + steps)]
    base = TierPlan(sparsity=SPARSITY, fidelity="exact")
    for locality in LOCALITIES:
        for policy in POLICIES:
            for seed in seeds:
                plan = replace(base, policy_name=policy, locality_name=locality, seed=seed)
                store = TokenStore(
                    room,
                    requests=requests,
                    fill=FILL_RULES["top-down"],
                    plan=plan,
                    page_tokens=(0, 0, 32),
                    groups=(16, 32, 1),
                )
                ids, stored = np.arange(requests), np.full(requests, tokens)
                for request in range(requests):
                    store.grow(request, tokens)
                far = near = moved = 0.0
                for step in range(steps):
                    store.grow_each(ids)
                    use = store.use(ids, stored)
                    stored += 1
                    if step >= steps - counted:
                        near, far = near + use.tokens[0], far + sum(use.tokens[1:])
                        moved += 2 * sum(use.swaps)
                rows.append(
                    {
                        "name": f"{locality}, {policy}, seed {seed}",
                        "locality": locality,
                        "policy": policy,
                        "seed": seed,
                        "far_share": far / (near + far),
                        "moved_share": moved / (counted * requests * tokens),
                        "provenance": combine([Part("reads", "modelled", "golden/retrieval/access.py")]).to_dict(),
                    }
                )
    return rows
