"""Decode steps by GenZ, a roofline of GPUs, beside ours: once with our factors, once with what GenZ assumes.

GenZ takes memory and operations at their peaks, a gigabyte as 2^30 bytes, an all-reduce as 5 us, 1 us a hop and its
bytes at 150 GB/s, and no host. Its steps end with the output head. With these as inputs what is left apart is the form
of the two models; with our factors the rows show how far such assumptions carry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hw.presets import Value
from sim.calibration import factors
from sim.collectives import Collectives, Protocol
from sim.comparisons.gpu_step import StepParts, at_full_rate, decode_parts, step_rows
from sim.gpu_server import GpuNode, GpuServer
from sim.model_config import load_model

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NOTES", "STEPS", "GenzStep", "genz_rows"]

_SOURCE = "genz-llm 0.0.16, decode_moddeling(A100_80GB_GPU, bf16, Bb=1), 2,048 tokens"
_DATA_SHEET = "NVIDIA A100 80GB SXM data sheet"
_GENZ = "genz-llm 0.0.16"
_TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class GenzStep:
    """One step of GenZ: preset of the model, GPUs, requests, and ms of the step, of its attention and its exchange."""

    model: str
    gpus: int
    batch: int
    step_ms: float
    attention_ms: float
    exchange_ms: float

    @property
    def parts(self) -> StepParts:
        """The times in seconds."""
        return StepParts(self.step_ms / 1e3, self.attention_ms / 1e3, self.exchange_ms / 1e3)


def _steps(model: str, gpus: int, *runs: tuple[int, float, float, float]) -> list[GenzStep]:
    """Return steps by batch, step, attention (``LA_layers``) and exchange (``AR_time``)."""
    return [
        GenzStep(model=model, gpus=gpus, batch=batch, step_ms=step, attention_ms=attention, exchange_ms=exchange)
        for batch, step, attention, exchange in runs
    ]


STEPS = (
    *_steps("opt-175b", 8, (1, 24.198, 0.55226, 3.71182), (16, 33.2694, 8.83616, 4.48905)),
    *_steps(
        "llama-2-70b",
        8,
        (1, 10.9661, 0.0386036, 3.08083),
        (16, 11.9835, 0.617657, 3.51329),
        (64, 15.2391, 2.47063, 4.89717),
    ),
    *_steps(
        "llama-2-7b",
        8,
        (1, 2.04994, 0.0613622, 1.23404),
        (16, 3.06227, 0.981795, 1.32471),
        (64, 6.30172, 3.92718, 1.61484),
    ),
    *_steps("llama-3.1-8b", 1, (1, 6.979, 0.12307, 0.0), (16, 8.83032, 1.96912, 0.0), (64, 14.7546, 7.8765, 0.0)),
)
"""Steps as GenZ gives them."""

NOTES = (
    "with GenZ's inputs: memory and operations at their peaks, a GB of 2^30 bytes, 5 us and 1 us a hop at 150 GB/s",
    "with our factors: those of sim/calibration.toml, NCCL's protocols at NVLink's 300 GB/s; nothing is fitted to GenZ",
    "  the memory is most of the difference: its 2,189 GB/s are 26 % more than 0.85 of the data sheet's 2,039",
    "GenZ has neither host nor launches; both rows leave ours out as well",
)
"""What is not like for like."""


def _server(gpus: int) -> GpuServer:
    """Return so many A100 by their data sheet."""
    return GpuServer(
        "a100-80gb",
        "A100 80GB",
        GpuNode(
            count=Value(gpus, "1", "GenZ: tensor_parallel"),
            peak_flops=Value(312e12, "FLOP/s", f"{_DATA_SHEET}: dense bf16"),
            memory_bytes=Value(80 * 2**30, "bytes", f"{_DATA_SHEET}: 80 GB"),
            memory_bytes_per_s=Value(2.039e12, "bytes/s", f"{_DATA_SHEET}: 2,039 GB/s"),
            allreduce_bytes_per_s=Value(300e9, "bytes/s", f"{_DATA_SHEET}: NVLink3 600 GB/s, both directions together"),
            host_bytes_per_s=Value(32e9, "bytes/s", f"{_DATA_SHEET}: PCI Express 4.0 at 16 lanes"),
            usable=Value(1.0, "1", "GenZ: all of it"),
        ),
    )


def _assumed(server: GpuServer) -> GpuServer:
    """Return the server with what GenZ assumes of it."""
    ring = Protocol(
        base_s=Value(5e-6, "s", f"{_GENZ}: get_AR_time"),
        hop_s=Value(1e-6, "s", f"{_GENZ}: ICN_LL, default"),
        share=Value(1.0, "1", f"{_GENZ}: get_AR_time"),
    )
    gpu = replace(
        server.gpu,
        memory_bytes_per_s=Value(2039 * 2**30, "bytes/s", f"{_GENZ}: Memory_BW of A100_80GB_GPU, GB of 2^30 bytes"),
        allreduce_bytes_per_s=Value(150 * 2**30, "bytes/s", f"{_GENZ}: ICN of A100_80GB_GPU, GB of 2^30 bytes"),
        collectives=Collectives(name="genz", description="GenZ's ring", protocols={"ring": ring}),
    )
    return at_full_rate(replace(server, gpu=gpu))


def genz_rows(steps: Sequence[GenzStep] = STEPS) -> list[dict[str, Any]]:
    """Return the rows of the comparison: for each step those with our factors, then those with GenZ's inputs."""
    fitted = factors()["gpu_attention_utilisation"]
    memory = factors()["gpu_memory_utilisation"].value
    rows: list[dict[str, Any]] = []
    for step in steps:
        model, server = load_model(step.model), _server(step.gpus)
        name = f"{step.model}, {step.gpus} GPU{'s' if step.gpus > 1 else ''}, batch {step.batch}"
        ours, default = (
            decode_parts(server, model, tokens=_TOKENS, batch=step.batch, attention_utilisation=utilisation, head=True)
            for utilisation in (fitted.value, fitted.default)
        )
        alike = decode_parts(
            _assumed(server), model, tokens=_TOKENS, batch=step.batch, attention_utilisation=memory, head=True
        )
        rows += step_rows(name, step.parts, ours, default, source=_SOURCE, note="our factors; limit 15 %")
        rows += step_rows(
            f"{name}, GenZ's inputs", step.parts, alike, alike, source=_SOURCE, note="GenZ's inputs; limit 15 %"
        )
    return rows
