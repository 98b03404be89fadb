"""Decode steps by AttAcc's simulator beside ours: attention on GPUs, and on its computing memories.

Steps on GPUs stand twice, with our factors and with what AttAcc assumes: an all-reduce as 7 sends of 6.06 us each, at
111 GB/s, attention in whole waves of a head a core over 108 cores, so that the 12 heads of a GPU at batch 1 use a
ninth of its memory's rate, and two norms and an activation a layer of 7 to 8 us each, which our roofline has in no
product. It takes matrix products at our utilisations (ours are its own), but fills cores in whole waves there too.
Embedding and head are left out, which it has not.

Attention on computing memories: the heads of all requests over 40 stacks, of these the fullest, and of its 16 channels
the fullest; ours are cycles of that channel by the tables measured on our RTL, with the first refresh due after one
refresh interval, as AttAcc's simulator has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hw.presets import Value
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import load_table
from sim.calibration import factors
from sim.collectives import Collectives, Protocol
from sim.comparisons.gpu_step import StepParts, decode_parts, step_rows
from sim.comparisons.row import comparison_row
from sim.gpu import ACTIVATION_BYTES
from sim.gpu_server import GpuNode, GpuServer
from sim.model_config import load_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.models import Model

__all__ = [
    "GPU_STEPS",
    "PIM_STEPS",
    "STEP_NOTES",
    "STEP_TABLES",
    "GpuStep",
    "PimStep",
    "attacc_gpus",
    "attacc_step_rows",
]

_ATTACC = "scale-snu/attacc_simulator c600051"
_SOURCE = f"{_ATTACC}, main.py --gpu A100a --ngpu 8 --lin 2048 --lout 2"
_GPUS, _STACKS, _CORES = 8, 40, 108
_NAMES = {"gpt3-175b": "GPT-175B", "llama-65b": "LLAMA-65B"}
_PIM_LIMIT = 0.1


@dataclass(frozen=True, kw_only=True)
class GpuStep:
    """A step with attention on the GPUs: preset of the model, requests, ms of step, attention and exchange."""

    model: str
    batch: int
    step_ms: float
    attention_ms: float
    exchange_ms: float

    @property
    def parts(self) -> StepParts:
        """The times in seconds."""
        return StepParts(self.step_ms / 1e3, self.attention_ms / 1e3, self.exchange_ms / 1e3)


@dataclass(frozen=True, kw_only=True)
class PimStep:
    """A step with attention in memories: device preset (empty: we have none), model, requests, tokens, us a layer."""

    device: str
    level: str
    model: str
    batch: int
    tokens: int
    layer_us: float


GPU_STEPS = (
    GpuStep(model="gpt3-175b", batch=1, step_ms=30.92, attention_ms=3.88, exchange_ms=8.18),
    GpuStep(model="gpt3-175b", batch=16, step_ms=36.04, attention_ms=7.76, exchange_ms=8.74),
    GpuStep(model="llama-65b", batch=1, step_ms=18.38, attention_ms=3.23, exchange_ms=6.81),
    GpuStep(model="llama-65b", batch=16, step_ms=22.06, attention_ms=6.47, exchange_ms=7.12),
)
"""Steps of ``--system dgx``."""

PIM_STEPS = (
    PimStep(device="attacc", level="bank", model="gpt3-175b", batch=1, tokens=2048, layer_us=3.76),
    PimStep(device="attacc", level="bank", model="gpt3-175b", batch=16, tokens=2048, layer_us=9.56),
    PimStep(device="attacc", level="bank", model="gpt3-175b", batch=64, tokens=2048, layer_us=32.0),
    PimStep(device="attacc", level="bank", model="gpt3-175b", batch=16, tokens=8192, layer_us=38.3),
    PimStep(device="attacc", level="bank", model="llama-65b", batch=1, tokens=2048, layer_us=3.02),
    PimStep(device="attacc", level="bank", model="llama-65b", batch=16, tokens=2048, layer_us=6.19),
    PimStep(device="attacc-bankgroup", level="bank group", model="gpt3-175b", batch=16, tokens=2048, layer_us=31.7),
    PimStep(device="", level="buffer", model="gpt3-175b", batch=16, tokens=2048, layer_us=83.9),
)
"""Steps of ``--system dgx-attacc --powerlimit --ffopt --pipeopt``."""

STEP_TABLES = ("attacc", "attacc-bankgroup")
"""Tables that attention on computing memories takes its cycles from."""

STEP_NOTES = (
    "GPU attention: AttAcc runs a head a core of 108, in whole waves; kernels that split a context use all at batch 1",
    "exchange: AttAcc's all-reduce is 7 sends of 6.06 us, 42 us before any byte; NCCL's LL ring takes 15 us",
    "steps with its inputs: what they lack are waves of cores in its products",
    "memory, batch 1: AttAcc takes 3.76 us with 3 heads on a stack's 16 channels, 3.02 with 2; ours is one a channel",
)
"""What is not like for like."""


def attacc_gpus() -> GpuServer:
    """Return AttAcc's GPUs."""
    config = f"{_ATTACC}, config.py: A100a"
    return GpuServer(
        "a100a",
        "8 A100 with HBM3",
        GpuNode(
            count=Value(_GPUS, "1", f"{_ATTACC}: --ngpu 8"),
            peak_flops=Value(312e12, "FLOP/s", config),
            memory_bytes=Value(80 * 2**30, "bytes", config),
            memory_bytes_per_s=Value(3.352e12, "bytes/s", config),
            allreduce_bytes_per_s=Value(300e9, "bytes/s", f"{config}: 600 GB/s, both directions together"),
            host_bytes_per_s=Value(32e9, "bytes/s", "PCI Express 4.0 at 16 lanes"),
            usable=Value(1.0, "1", "all of it"),
        ),
    )


def _assumed(server: GpuServer) -> GpuServer:
    """Return the server with AttAcc's all-reduce, whose 7 sends of an eighth are half as many hops as a ring has."""
    where = f"{_ATTACC}, devices.py: 7 sends of an eighth, 6,060 ns and 0.009 ns a byte each"
    ring = Protocol(base_s=Value(0.0, "s", where), hop_s=Value(6.06e-6 / 2, "s", where), share=Value(1.0, "1", where))
    gpu = replace(
        server.gpu,
        allreduce_bytes_per_s=Value(2 / 0.009e-9, "bytes/s", where),
        collectives=Collectives(name="attacc", description="AttAcc's all-reduce", protocols={"sends": ring}),
    )
    return replace(server, gpu=gpu)


def _norms_s(model: Model, batch: int) -> float:
    """Return the seconds of all layers' two norms and activation: AttAcc, devices.py, lines through measured times.

    ``6.87 us + 1.6e-6 us a byte`` a norm and ``8.29 us + 0.447e-6 us a byte`` an activation on 1,555 GB/s of memory,
    bytes that are read and written; inner activations are divided over the GPUs.
    """
    network = model.layers[0].feed_forward
    normed = 3 * batch * model.hidden * ACTIVATION_BYTES
    active = network.matrices * batch * network.dense_width // _GPUS * ACTIVATION_BYTES
    slower = 1555e9 / attacc_gpus().gpu_bytes_per_s
    layer_us = 2 * (6.87 + 1.6e-6 * slower * normed) + 8.29 + 0.447e-6 * slower * active
    return len(model.layers) * layer_us * 1e-6


def _wave_share(heads: int) -> float:
    """Return the part of the cores that work when so many heads, one a core, run in whole waves."""
    return heads / (math.ceil(heads / _CORES) * _CORES)


def attacc_step_rows(
    gpu_steps: Sequence[GpuStep] = GPU_STEPS, pim_steps: Sequence[PimStep] = PIM_STEPS
) -> list[dict[str, Any]]:
    """Return the rows: steps on GPUs with our factors and with AttAcc's inputs, then attention in the memories."""
    rows: list[dict[str, Any]] = []
    for step in gpu_steps:
        rows += _gpu_rows(step)
    rows += [_pim_row(step) for step in pim_steps]
    return rows


def _gpu_rows(step: GpuStep) -> list[dict[str, Any]]:
    """Return the rows of one step on GPUs."""
    fitted = factors()["gpu_attention_utilisation"]
    memory = factors()["gpu_memory_utilisation"].value
    model, server = load_model(step.model), attacc_gpus()

    def parts(machine: GpuServer, utilisation: float) -> StepParts:
        return decode_parts(
            machine, model, tokens=2049, batch=step.batch, attention_utilisation=utilisation, head=False
        )

    name = f"{_NAMES[step.model]} on GPUs, batch {step.batch}"
    ours, default, alike = (
        parts(server, fitted.value),
        parts(server, fitted.default),
        parts(_assumed(server), memory * _wave_share(model.attention.num_heads // _GPUS * step.batch)),
    )
    alike = replace(alike, step_s=alike.step_s + _norms_s(model, step.batch))
    return [
        *step_rows(name, step.parts, ours, default, source=_SOURCE, note="our factors; limit 15 %"),
        *step_rows(
            f"{name}, AttAcc's inputs", step.parts, alike, alike, source=_SOURCE, note="AttAcc's inputs; limit 15 %"
        ),
    ]


def _pim_row(step: PimStep) -> dict[str, Any]:
    """Return the row of one layer's attention in the memories."""
    model = load_model(step.model)
    name = f"{_NAMES[step.model]} in memory, {step.level}, batch {step.batch}, {step.tokens} tokens: attention"
    source = f"{_ATTACC}, main.py --pim --powerlimit, {step.level} level"
    if not step.device:
        return comparison_row(
            name, step.layer_us, None, unit="us", source=source, within=False, note="no device of ours has units there"
        )
    heads = math.ceil(model.attention.num_heads // _GPUS * step.batch / (_STACKS // _GPUS))
    params = DEVICE_PRESETS[step.device].channel
    operations = math.ceil(heads / params.organisation.channels)
    table = load_table(step.device)
    cycles = table.cycles.with_refresh(
        model.attention.head_dim, math.ceil((step.tokens + 1) / params.parts), operations, params.timing.n_refi
    ).last_state
    ours = cycles / table.clock_hz * 1e6
    return comparison_row(
        name,
        step.layer_us,
        ours,
        unit="us",
        source=source,
        within=abs(ours / step.layer_us - 1) <= _PIM_LIMIT,
        note=f"limit 10 %; {heads} heads on the fullest stack, {operations} on a channel, hw/tables/{step.device}.json",
    )
