"""A trace served by a machine: everything that decides it, and what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sim.errors import ConfigError, UnknownNameError, UnsupportedError
from sim.gpu_server import GpuServer
from sim.serving.arrivals import ClosedArrivals, OpenArrivals
from sim.serving.bin_store import BinStore
from sim.serving.engine import run
from sim.serving.fill import FILL_RULES
from sim.serving.host import calibrated_factors
from sim.serving.kv_store import KvStore
from sim.serving.machine import step_model, tier_room_bytes
from sim.serving.parallelism import choose_parallelism, kv_copies
from sim.serving.prefixes import NoPrefixes, Prefixes
from sim.serving.progress import Progress
from sim.serving.requests import RequestStates
from sim.serving.token_store import TokenStore
from sim.tier import page_tokens
from sim.tiering.groups import bank_groups
from sim.tiering.plan import TierPlan
from sim.tiering.scan import room_tokens

if TYPE_CHECKING:
    from sim.models import Model
    from sim.serving.engine import RunLog
    from sim.serving.parallelism import Parallelism
    from sim.serving.parameters import ServerParams
    from sim.serving.pipeline import StageModel
    from sim.system import System
    from sim.traces import Trace

__all__ = ["Service", "ServiceRequest", "serve"]


@dataclass(frozen=True, kw_only=True)
class ServiceRequest:
    """What is asked.

    Parameters
    ----------
    params : ServerParams
    plan : TierPlan
        What is read and moved.
    fill : str
        One of :data:`sim.serving.fill.FILL_RULES`.
    rate_scale : float
        How many times faster requests come than in the trace.
    sessions : int
        Sessions that run at a time, each waiting for its answers; 0 for the arrivals of the trace.
    warmup : float
        Part of the requests, the first to come, that latencies leave out: from 0 to below 1.
    power_cap : {"bytes", "flops"}
        How a memory's power limit is read.
    prefix_reuse : bool
        Prompts are computed from where their beginning is no longer stored.
    tensor_parallel, pipeline_parallel, micro_batches : int or None
        As :func:`sim.serving.parallelism.choose_parallelism` takes them.
    data_parallel : int
        Groups of GPUs that serve requests of their own.
    energy_without : tuple of str
        Parts of :data:`sim.energy.account.PARTS` that the energy leaves out.

    Raises
    ------
    ConfigError
        If a name is unknown, or both a rate and sessions are asked for.
    """

    params: ServerParams
    plan: TierPlan = field(default_factory=TierPlan)
    fill: str = "top-down"
    rate_scale: float = 1.0
    sessions: int = 0
    warmup: float = 0.0
    power_cap: str = "bytes"
    prefix_reuse: bool = False
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    micro_batches: int | None = None
    data_parallel: int = 1
    energy_without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.fill not in FILL_RULES:
            raise UnknownNameError("fill rule", self.fill, FILL_RULES)
        if self.sessions and self.rate_scale != 1.0:
            raise ConfigError(f"rate-scale must be 1 where sessions decide when requests come, not {self.rate_scale!r}")


@dataclass(frozen=True, kw_only=True)
class Service:
    """What came of it.

    Parameters
    ----------
    request : ServiceRequest
    machine : System or GpuServer
    model : Model
    trace : Trace
    room_bytes : list of int
        Room of each tier for keys and values.
    states : RequestStates
    store : KvStore
        Empty again.
    log : RunLog
    parallelism : Parallelism
        How the GPUs share the model.
    steps : StageModel
        The model of the steps, with what it added up.
    first_measured : int
        First request that latencies count.
    wall_s : float
        Time that the run took here.
    """

    request: ServiceRequest
    machine: System | GpuServer
    model: Model
    trace: Trace
    room_bytes: list[int]
    states: RequestStates
    store: KvStore
    log: RunLog
    parallelism: Parallelism
    steps: StageModel
    first_measured: int
    wall_s: float

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of keys and values."""
        return self.store.block_tokens * self.model.kv_bytes_per_token

    @property
    def kv_copies(self) -> float:
        """How often keys and values are kept: tiers that compute keep every token once."""
        if not isinstance(self.machine, GpuServer):
            return 1.0
        return kv_copies(self.model.attention, self.parallelism.tensor_parallel)


def serve(machine: System | GpuServer, model: Model, trace: Trace, request: ServiceRequest) -> Service:
    """Serve a trace, with progress on standard error.

    Raises
    ------
    ConfigError
        If a rate is asked of a trace without arrivals, or the GPUs can't share the model as asked.
    CapacityError
        If weights and activations leave no room.
    UnsupportedError
        If the machine can't run the model.
    """
    if request.rate_scale != 1.0 and not trace.has_arrivals:
        raise ConfigError(f"{trace.name}: rate-scale must go with a trace that says when requests arrive")
    began_s = time.perf_counter()
    params, requests = request.params, trace.requests
    longest = max((entry.input_tokens for entry in requests), default=0)
    parallelism = choose_parallelism(
        machine,
        tensor=request.tensor_parallel,
        pipeline=request.pipeline_parallel,
        micro_batches=request.micro_batches,
        data=request.data_parallel,
    )
    room = tier_room_bytes(machine, model, params, longest, parallelism)
    states = RequestStates(requests)
    store = _store(machine, model, request, room, len(requests))
    arrivals = (
        ClosedArrivals(requests, sessions=request.sessions)
        if request.sessions
        else OpenArrivals(requests, rate_scale=request.rate_scale)
    )
    steps = step_model(
        machine,
        model,
        calibrated_factors(),
        power_cap=request.power_cap,
        parallelism=parallelism,
        sparsity=request.plan.sparsity,
    )
    prefixes = (
        Prefixes(requests, trace_block_tokens=trace.block_tokens, block_tokens=params.block_tokens)
        if request.prefix_reuse
        else NoPrefixes()
    )
    progress = Progress(states)
    first = int(np.floor(request.warmup * len(requests)))
    try:
        log = run(params, states, store, arrivals, steps, prefixes=prefixes, progress=progress, first_measured=first)
    finally:
        progress.close()
    return Service(
        request=request,
        machine=machine,
        model=model,
        trace=trace,
        room_bytes=room,
        states=states,
        store=store,
        log=log,
        parallelism=parallelism,
        steps=steps,
        first_measured=first,
        wall_s=time.perf_counter() - began_s,
    )


def _store(
    machine: System | GpuServer, model: Model, request: ServiceRequest, room_bytes: list[int], requests: int
) -> KvStore:
    """Return the empty store: blocks, or single tokens where not all are read or any move."""
    plan, fill, block_tokens = request.plan, FILL_RULES[request.fill], request.params.block_tokens
    if plan.is_plain:
        block_bytes = block_tokens * model.kv_bytes_per_token
        blocks = [tier // block_bytes for tier in room_bytes]
        return KvStore(blocks, block_tokens=block_tokens, requests=requests, fill=fill)
    if isinstance(machine, GpuServer):
        raise UnsupportedError(
            f"{machine.name} must have several memories for policy {plan.policy_name} with sparsity "
            f"{plan.sparsity.name}, not one"
        )
    kind = TokenStore if plan.fidelity == "exact" else BinStore
    return kind(
        room_tokens(room_bytes, model, plan.sparsity),
        requests=requests,
        fill=fill,
        plan=plan,
        page_tokens=[page_tokens(tier, model.attention) for tier in machine.tiers],
        groups=[bank_groups(tier) for tier in machine.tiers],
    )
