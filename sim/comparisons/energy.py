"""Energy by two published simulators beside ours: a decode step of AttAcc's, a run of LLMServingSim's.

AttAcc counts what is moved and computed, and no power at rest: ours is compared so, with its cost of an operation in
place of what a card's board power makes of one. Its GPUs move weights through registers, too; its computing memories do
a part of the feed-forward products, and write scores and weights of attention to buffers, which ours do not.

LLMServingSim (ISPASS 2026, figure 10) gives a card that works its board power, and all else power at rest. Ours runs
300 recorded requests of the same kind on the same card; its requests were not published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.presets import Value
from sim.comparisons.attacc_step import attacc_gpus
from sim.comparisons.row import comparison_row
from sim.energy.account import account
from sim.energy.activity import steps_activity
from sim.errors import ConfigError
from sim.gpu_server import GpuNode, GpuServer
from sim.model_config import load_model
from sim.serving.arrivals import OpenArrivals
from sim.serving.batch import StepWork
from sim.serving.engine import run
from sim.serving.host import default_factors
from sim.serving.kv_store import KvStore
from sim.serving.machine import step_model, tier_room_bytes
from sim.serving.parallelism import choose_parallelism
from sim.serving.parameters import ServerParams
from sim.serving.requests import RequestStates
from sim.system_config import load_system

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sim.serving.parallelism import Parallelism
    from sim.system import System
    from sim.traces import TraceRequest

__all__ = ["ATTACC_STEPS", "NOTES", "AttaccEnergy", "attacc_energy_rows", "ispass_rows", "read_ispass"]

_ATTACC = "scale-snu/attacc_simulator c600051"
_ISPASS = "casys-kaist/LLMServingSim e0f49118, evaluation/figure_10"
_NAMES = {"gpt3-175b": "GPT-175B", "llama-65b": "LLAMA-65B"}
_LIMIT = 0.15
_FLOP_PJ = 0.16


@dataclass(frozen=True, kw_only=True)
class AttaccEnergy:
    """A step of AttAcc's: attention in memory or on GPUs, preset of the model, requests, and joules."""

    in_memory: bool
    model: str
    batch: int
    joules: float


ATTACC_STEPS = (
    AttaccEnergy(in_memory=False, model="gpt3-175b", batch=1, joules=11.78),
    AttaccEnergy(in_memory=False, model="gpt3-175b", batch=16, joules=18.75),
    AttaccEnergy(in_memory=False, model="llama-65b", batch=1, joules=4.41),
    AttaccEnergy(in_memory=False, model="llama-65b", batch=16, joules=8.01),
    AttaccEnergy(in_memory=True, model="gpt3-175b", batch=1, joules=11.51),
    AttaccEnergy(in_memory=True, model="gpt3-175b", batch=16, joules=14.33),
    AttaccEnergy(in_memory=True, model="gpt3-175b", batch=64, joules=24.24),
    AttaccEnergy(in_memory=True, model="llama-65b", batch=1, joules=4.27),
    AttaccEnergy(in_memory=True, model="llama-65b", batch=16, joules=5.60),
)
"""Steps at 2,048 tokens, units at the banks."""

NOTES = (
    "AttAcc: no power at rest, 0.16 pJ an operation; embedding and head left out; limit 15 %",
    "LLMServingSim: a card at work takes its board power; requests were not published, ours are 300 of ShareGPT",
)
"""What is not like for like."""


def attacc_energy_rows(steps: Sequence[AttaccEnergy] = ATTACC_STEPS) -> list[dict[str, Any]]:
    """Return one row a step: what is moved and computed, in joules."""
    rows: list[dict[str, Any]] = []
    for step in steps:
        model = load_model(step.model)
        server = _without_rest(attacc_gpus())
        machine = _computing(server) if step.in_memory else server
        tiers = 3 if step.in_memory else 1
        far = (0,) * (tiers - 1)
        work = StepWork(
            decoding=step.batch,
            tier_tokens=(step.batch * 2049, *far),
            tier_requests=(step.batch, *far),
            prompt_requests=0,
            prompt_tokens=0,
            prompt_pairs=0,
            prompt_context=(0, *far),
            decode_appended=(step.batch, *far),
            prompt_appended=(0, *far),
            ending=0,
            swapped_tokens=0,
        )
        activity = steps_activity(machine, model, [work], _whole(machine), seconds=0.0, busy_s=0.0)
        ours = account(machine, activity).total_j
        assert ours is not None, "GPUs of the comparison have their power"
        rows.append(
            comparison_row(
                f"{_NAMES[step.model]}, attention {'in memory' if step.in_memory else 'on GPUs'}, batch {step.batch}",
                step.joules,
                ours,
                unit="J",
                source=f"{_ATTACC}, main.py, energy of one generated step",
                within=abs(ours / step.joules - 1) <= _LIMIT,
                note="moved and computed, nothing at rest",
            )
        )
    return rows


def _without_rest(server: GpuServer) -> GpuServer:
    """Return the GPUs with AttAcc's cost of an operation, and none at rest."""
    board = server.gpu.peak_flops.number * _FLOP_PJ * 1e-12
    return replace(
        server,
        gpu=replace(
            server.gpu,
            idle_w=Value(0.0, "W", f"{_ATTACC}: none"),
            board_w=Value(board, "W", f"{_ATTACC}: 0.32 pJ a multiplication and addition, at peak"),
        ),
    )


def _computing(server: GpuServer) -> System:
    """Return PAM's memories with these GPUs: of it only the nearest tier is used."""
    pam, gpu = load_system("pam"), server.gpu
    return replace(
        pam, gpu=replace(pam.gpu, count=gpu.count, peak_flops=gpu.peak_flops, idle_w=gpu.idle_w, board_w=gpu.board_w)
    )


def _whole(machine: System | GpuServer) -> Parallelism:
    """Return one stage of all GPUs."""
    return choose_parallelism(machine, tensor=None, pipeline=None, micro_batches=None)


def read_ispass(folder: Path) -> dict[str, float]:
    """Return joules of each component of the run on a GPU alone, and of a token under ``token``.

    Raises
    ------
    ConfigError
        If a file can't be read or has no such column.
    """
    found: dict[str, float] = {}
    for name, key in (("component_energy", ""), ("energy_per_token", "token")):
        path = folder / f"ispass26_fig10_{name}.tsv"
        try:
            head, *rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
            column = head.index("gpu-only")
            found |= {key or row[0]: float(row[column]) for row in rows}
        except (OSError, ValueError, IndexError) as error:
            raise ConfigError(f"{path}: file must have a column gpu-only of numbers: {error}") from None
    return found


def _a6000() -> GpuServer:
    """Return the card of the run."""
    sheet, config = "NVIDIA RTX A6000 data sheet", f"{_ISPASS}/config/gpu_only_config.json"
    return GpuServer(
        "rtx-a6000",
        "one RTX A6000",
        GpuNode(
            count=Value(1, "1", config),
            peak_flops=Value(154.8e12, "FLOP/s", f"{sheet}: 309.7 TFLOPS of sparse fp16, dense is half"),
            memory_bytes=Value(40 * 2**30, "bytes", f"{config}: mem_size"),
            memory_bytes_per_s=Value(768e9, "bytes/s", f"{config}: mem_bw"),
            allreduce_bytes_per_s=Value(56e9, "bytes/s", f"{sheet}: NVLink 112 GB/s, both directions together"),
            host_bytes_per_s=Value(32e9, "bytes/s", f"{sheet}: PCI Express 4.0 at 16 lanes"),
            usable=Value(1.0, "1", f"{config}: mem_size is all"),
            idle_w=Value(33.0, "W", f"{config}: idle_power"),
            board_w=Value(300.0, "W", f"{config}: active_power"),
        ),
    )


def ispass_rows(components: dict[str, float], requests: Sequence[TraceRequest]) -> list[dict[str, Any]]:
    """Return rows of joules a token: the GPU by our account and at board power, and the host.

    Parameters
    ----------
    components : dict of str to float
        Of :func:`read_ispass`.
    requests : sequence of TraceRequest
        What our card serves, all there from the start.
    """
    server, model = _a6000(), load_model("llama-3.1-8b")
    params = ServerParams(max_running=256, token_budget=2048)
    at_once = [replace(request, arrival_s=0.0) for request in requests]
    states = RequestStates(at_once)
    (room,) = tier_room_bytes(server, model, params, 0)
    blocks = room // (params.block_tokens * model.kv_bytes_per_token)
    store = KvStore([blocks], block_tokens=params.block_tokens, requests=len(states))
    log = run(params, states, store, OpenArrivals(at_once), step_model(server, model, default_factors(), power_cap=""))
    tokens = int(np.sum(states.given))
    activity = steps_activity(server, model, log.works, _whole(server), seconds=log.end_s, busy_s=log.busy_s)
    energy = account(server, activity)
    assert energy.board_j is not None, "the card's power is known"
    theirs = sum(components[name] for name in components if name != "token") / components["token"]
    gpu = components["GPU"] / theirs
    host = sum(components[name] for name in ("Others", "CPU")) / theirs
    values = (
        ("GPU and its memory, by bytes and operations", gpu, energy.parts_j["gpu"] + energy.parts_j["hbm"]),
        ("GPU and its memory, at board power", gpu, energy.board_j),
        ("node and processors", host, energy.parts_j["host"]),
    )
    return [
        comparison_row(
            f"Llama-3.1-8B on an RTX A6000, {name}",
            reference,
            joules / tokens,
            unit="J/token",
            source=f"{_ISPASS}, GPU-only",
            within=abs(joules / tokens / reference - 1) <= _LIMIT,
            note=f"300 requests of ShareGPT, {tokens:,} tokens, not theirs; limit 15 %",
        )
        for name, reference, joules in values
    ]
