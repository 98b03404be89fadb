"""Machines without computing memories: GPUs that keep weights and KV in their own memory and compute attention too."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from hw.presets import Value
from sim.collectives import COLLECTIVES, Collectives
from sim.products import Products

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GPU_SERVERS", "GpuNode", "GpuServer"]


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """GPUs of a server.

    Parameters
    ----------
    count : Value
        GPUs, working as one tensor-parallel group unless told otherwise.
    peak_flops : Value
        Dense 16-bit peak of one, sums in fp32.
    memory_bytes, memory_bytes_per_s : Value
        Memory of one, and its rate.
    allreduce_bytes_per_s : Value
        Rate of one GPU's links to the others, one direction; unused by a single one.
    host_bytes_per_s : Value
        Rate of one GPU's link to the host, one direction.
    usable : Value
        Share of the memory that a server uses.
    collectives : Collectives
        How they exchange over their links.
    products : Products or None
        What products were measured to reach; None where the calibration decides.
    idle_w, board_w : Value or None
        Power of one at rest and at most, its memory included; None where nothing published was found.
    """

    count: Value
    peak_flops: Value
    memory_bytes: Value
    memory_bytes_per_s: Value
    allreduce_bytes_per_s: Value
    host_bytes_per_s: Value
    usable: Value
    collectives: Collectives = COLLECTIVES["nvlink"]
    products: Products | None = None
    idle_w: Value | None = None
    board_w: Value | None = None


@dataclass(frozen=True)
class GpuServer:
    """A machine of GPUs alone: name, what it is, its GPUs."""

    name: str
    description: str
    gpu: GpuNode

    @property
    def gpu_bytes_per_s(self) -> float:
        """Rate at which one GPU reads its own memory."""
        return self.gpu.memory_bytes_per_s.number

    @property
    def usable_bytes(self) -> int:
        """Memory of all GPUs that weights, activations and KV may take."""
        return int(self.gpu.count.integer * self.gpu.memory_bytes.integer * self.gpu.usable.number)

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name."""
        for item in fields(self.gpu):
            value = getattr(self.gpu, item.name)
            if isinstance(value, Value):
                yield f"gpu.{item.name}", value
        if self.gpu.products:
            for name, value in self.gpu.products.values():
                yield f"gpu.products.{name}", value


_ADA = "NVIDIA Ada GPU architecture whitepaper, GeForce RTX 4090"
_BLACKWELL = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition data sheet"
_BLACKWELL_SERVER = "NVIDIA RTX PRO 6000 Blackwell Server Edition page and data sheet"
_TWO_CARDS = "casys-kaist/LLMServingSim 1b2cc02, profiler/perf/RTXPRO6000/hardware.yaml"
_MEASURED = "casys-kaist/LLMServingSim, profiler/perf/*/meta-llama/Llama-3.1-8B/bf16/tp1/dense.csv"
_H100 = "NVIDIA H100 SXM data sheet"
_H100_IDLE_W = Value(
    80.3, "W", "serialalice.pt GPU energy benchmark: an H200 without load, measured; taken for the H100, the same die"
)
_H100_BOARD_W = Value(700.0, "W", f"{_H100}: up to 700 W")
_VLLM_SHARE = Value(0.9, "1", "vLLM documentation: gpu_memory_utilization, default")
_ONE = Value(1, "1", "one card")

_RTX_PRODUCTS = Products(
    read_share=Value(
        0.935,
        "1",
        f"{_MEASURED}: 234,881,024 bytes of weights meet two tokens in 157.2 us on an RTX PRO 6000 Server Edition and "
        "in 249.1 us on an RTX 4090, the same share of 1,597 and 1,008 GB/s",
    ),
    overlap=Value(
        2.0, "1", f"chosen: {_MEASURED}; 64, 128 and 512 tokens take 171, 181 and 350 us there, 165, 181 and 361 by it"
    ),
)
_RTX_PRO_6000 = GpuNode(
    count=_ONE,
    peak_flops=Value(
        503.8e12,
        "FLOP/s",
        f"{_BLACKWELL}: 4,000 TOPS of sparse fp4; dense fp16 is an eighth, at 2,617 MHz",
    ),
    memory_bytes=Value(96 * 2**30, "bytes", f"{_BLACKWELL}: 96 GB"),
    memory_bytes_per_s=Value(1.792e12, "bytes/s", f"{_BLACKWELL}: 1,792 GB/s"),
    allreduce_bytes_per_s=Value(64e9, "bytes/s", f"{_BLACKWELL}: PCI Express 5.0 at 16 lanes, no NVLink"),
    host_bytes_per_s=Value(64e9, "bytes/s", f"{_BLACKWELL}: PCI Express 5.0 at 16 lanes"),
    usable=_VLLM_SHARE,
    collectives=COLLECTIVES["pcie"],
    board_w=Value(600.0, "W", f"{_BLACKWELL}: total board power 600 W"),
    products=_RTX_PRODUCTS,
)

_SERVERS = (
    GpuServer(
        "gpu-only",
        "8 H100-80GB, the GPUs of pam without its computing memories",
        GpuNode(
            count=Value(8, "1", "arXiv:2602.11521, section 7.1: 8 H100-80GB"),
            peak_flops=Value(989.4e12, "FLOP/s", f"{_H100}: dense bf16/fp16 tensor throughput"),
            memory_bytes=Value(80 * 2**30, "bytes", f"{_H100}: 80 GB"),
            memory_bytes_per_s=Value(3.35e12, "bytes/s", f"{_H100}: 3.35 TB/s"),
            allreduce_bytes_per_s=Value(450e9, "bytes/s", f"{_H100}: NVLink4 900 GB/s, both directions together"),
            host_bytes_per_s=Value(64e9, "bytes/s", f"{_H100}: PCI Express 5.0 at 16 lanes, 128 GB/s both directions"),
            usable=_VLLM_SHARE,
            idle_w=_H100_IDLE_W,
            board_w=_H100_BOARD_W,
        ),
    ),
    GpuServer(
        "rtx-4090",
        "one GeForce RTX 4090",
        GpuNode(
            count=_ONE,
            peak_flops=Value(165.2e12, "FLOP/s", f"{_ADA}: fp16 tensor throughput with fp32 sums, dense"),
            memory_bytes=Value(24 * 2**30, "bytes", f"{_ADA}: 24 GB"),
            memory_bytes_per_s=Value(1.008e12, "bytes/s", f"{_ADA}: 1,008 GB/s"),
            allreduce_bytes_per_s=Value(32e9, "bytes/s", f"{_ADA}: PCI Express 4.0 at 16 lanes, no NVLink"),
            host_bytes_per_s=Value(32e9, "bytes/s", f"{_ADA}: PCI Express 4.0 at 16 lanes"),
            usable=_VLLM_SHARE,
            collectives=COLLECTIVES["pcie"],
            board_w=Value(450.0, "W", f"{_ADA}: total graphics power 450 W"),
            products=_RTX_PRODUCTS,
        ),
    ),
    GpuServer("rtx-pro-6000", "one RTX PRO 6000 Blackwell, Workstation Edition", _RTX_PRO_6000),
    GpuServer(
        "rtx-pro-6000-server",
        "one RTX PRO 6000 Blackwell, Server Edition: slower memory and clock",
        replace(
            _RTX_PRO_6000,
            peak_flops=Value(
                480e12,
                "FLOP/s",
                f"{_BLACKWELL_SERVER}: 120 TFLOPS of fp32; dense fp16 is four times that, as of the Workstation",
            ),
            memory_bytes_per_s=Value(1.597e12, "bytes/s", f"{_BLACKWELL_SERVER}: 1,597 GB/s"),
            allreduce_bytes_per_s=Value(
                28.5e9,
                "bytes/s",
                f"{_TWO_CARDS}: NCCL between two cards, 20,971,520 bytes gathered in 683 us and scattered in 787; "
                "PCI Express 5.0 at 16 lanes has 64 GB/s",
            ),
            board_w=Value(600.0, "W", f"{_BLACKWELL_SERVER}: up to 600 W, as configured"),
        ),
    ),
)
GPU_SERVERS = {server.name: server for server in _SERVERS}
"""Machines by name."""
