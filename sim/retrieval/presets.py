"""Machines that decode with retrieval, by name: KARAT, and GPUs alone of the same power."""

from __future__ import annotations

from dataclasses import replace

from hw.presets import Value
from hw.presets.pnm import PNM_PRESETS
from sim.errors import UnknownNameError
from sim.gpu_server import GPU_SERVERS, GpuNode, GpuServer
from sim.retrieval.machine import Cluster, HostPool, PnmPool, RetrievalSystem

__all__ = ["RETRIEVAL_SYSTEMS", "load_retrieval_system", "retrieval_names"]

_PAPER = "arXiv:2608.03555"
_NODES = f"{_PAPER}, configuration of nodes"
_H200 = "NVIDIA H200 SXM data sheet"

_GPU = GpuNode(
    count=Value(32, "1", f"{_PAPER}, search of configurations: 32 GPUs and 128 devices at 44.8 kW"),
    peak_flops=Value(989e12, "FLOP/s", f"{_NODES}: 7,912 TFLOPS of 8 GPUs, dense bf16"),
    memory_bytes=Value(141 * 10**9, "bytes", f"{_NODES}: 141 GB"),
    memory_bytes_per_s=Value(4.8e12, "bytes/s", f"{_NODES}: 4.8 TB/s"),
    allreduce_bytes_per_s=Value(450e9, "bytes/s", f"{_H200}: NVLink 900 GB/s, both directions together"),
    host_bytes_per_s=Value(64e9, "bytes/s", f"{_NODES}: PCIe5 at 16 lanes, 64 GB/s"),
    usable=GPU_SERVERS["gpu-only"].gpu.usable,
    board_w=Value(700.0, "W", f"{_H200}: up to 700 W"),
)
_CLUSTER = Cluster(
    tensor_parallel=Value(8, "1", "chosen: a node; the paper searches over it and does not print it"),
    node_gpus=Value(8, "1", f"{_NODES}: 8 H200"),
    node_bytes_per_s=Value(400e9, "bytes/s", f"{_NODES}: 400 GB/s a node, all together"),
)
_ALL_GPUS = replace(_GPU, count=Value(64, "1", f"{_PAPER}, search of configurations: 64 GPUs and no device at 44.8 kW"))

RETRIEVAL_SYSTEMS = {
    system.name: system
    for system in (
        RetrievalSystem(
            server=GpuServer("karat", "32 H200 with the weights, 128 KARAT devices with KV and index keys", _GPU),
            cluster=_CLUSTER,
            pnm=PnmPool(
                device=PNM_PRESETS["karat-pnm"],
                count=Value(128, "1", f"{_PAPER}, search of configurations: 32 GPUs and 128 devices at 44.8 kW"),
                node_devices=Value(32, "1", f"{_NODES}: 32 devices"),
                node_bytes_per_s=Value(400e9, "bytes/s", f"{_NODES}: 400 GB/s a node, all together"),
                unit_preset="karat",
            ),
        ),
        RetrievalSystem(
            server=GpuServer("gpu-only-h200", "64 H200 that keep weights, KV and index keys: KARAT's power", _ALL_GPUS),
            cluster=_CLUSTER,
        ),
        RetrievalSystem(
            server=GpuServer("gpu-offload", "64 H200 with weights and index keys, KV in hosts' memory", _ALL_GPUS),
            cluster=_CLUSTER,
            host=HostPool(
                node_bytes=Value(2 * 10**12, "bytes", "NVIDIA DGX H200 data sheet: 2 TB of system memory"),
            ),
        ),
    )
}
"""Machines by name."""


def retrieval_names() -> list[str]:
    """Return the names of all machines that decode with retrieval: these, and servers of GPUs alone."""
    return sorted([*RETRIEVAL_SYSTEMS, *GPU_SERVERS])


def load_retrieval_system(name: str) -> RetrievalSystem:
    """Return a machine by name; a server of GPUs alone is one group of all its GPUs, in one node.

    Raises
    ------
    UnknownNameError
        If there is no such machine.
    """
    if name in RETRIEVAL_SYSTEMS:
        return RETRIEVAL_SYSTEMS[name]
    if name not in GPU_SERVERS:
        raise UnknownNameError("system", name, retrieval_names())
    server = GPU_SERVERS[name]
    gpu = server.gpu
    return RetrievalSystem(
        server=server,
        cluster=Cluster(
            tensor_parallel=replace(gpu.count, source=f"one group of all GPUs; {gpu.count.source}"),
            node_gpus=replace(gpu.count, source=f"one node of all GPUs; {gpu.count.source}"),
            node_bytes_per_s=Value(400e9, "bytes/s", "chosen: 8 links of 400 Gb/s a node, if there are several"),
        ),
    )
