"""What devices must hold in a decode step with retrieval, and the refusal of what does not fit.

GPUs hold the weights (experts once, everything else in every group) and the step's activations; KV and indices lie
with them, with PNM devices, each request whole on its home, or KV alone in the hosts' memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.errors import CapacityError
from sim.gpu import activation_bytes
from sim.retrieval.gpu_layers import group_batch, weight_bytes
from sim.retrieval.pnm import home_requests

if TYPE_CHECKING:
    from sim.models import Model
    from sim.retrieval.machine import RetrievalSystem
    from sim.retrieval.request import RetrievalRequest

__all__ = ["Memory", "memories"]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What one kind of device must hold.

    Parameters
    ----------
    name : str
        Kind of device.
    count : int
        How many there are.
    requests : int
        Requests whose KV the fullest keeps; of GPUs, of the fullest group.
    held_bytes, room_bytes : int
        What the fullest must hold, and can; of GPUs and hosts, all together.
    kv_bytes, index_bytes, weight_bytes : int
        Parts of it.
    """

    name: str
    count: int
    requests: int
    held_bytes: int
    room_bytes: int
    kv_bytes: int
    index_bytes: int
    weight_bytes: int


def memories(
    system: RetrievalSystem, model: Model, request: RetrievalRequest, index_token_bytes: float
) -> tuple[Memory, ...]:
    """Return what each kind of device holds.

    Parameters
    ----------
    system : RetrievalSystem
    model : Model
    request : RetrievalRequest
    index_token_bytes : float
        Index bytes of a token in all layers.

    Raises
    ------
    CapacityError
        If one can't hold what it must.
    """
    kv = request.tokens * model.kv_bytes_per_token
    index = math.ceil(request.tokens * index_token_bytes)
    gpu, gpus = system.server.gpu, system.server.gpu.count.integer
    mine = group_batch(system, request.batch)
    weights = weight_bytes(system, model)
    activations = system.groups * activation_bytes(system.group, model, tokens=mine, sampled=mine)
    # The fullest group sets the room, so all are counted as full as it.
    all_requests = system.groups * mine
    gpu_kv = all_requests * kv if system.pnm is None and system.host is None else 0
    gpu_index = all_requests * index if system.pnm is None else 0
    used = weights + activations + gpu_kv + gpu_index
    found = [
        Memory(
            name="gpu",
            count=gpus,
            requests=mine if system.pnm is None else 0,
            held_bytes=used,
            room_bytes=int(gpus * gpu.memory_bytes.integer * gpu.usable.number),
            kv_bytes=gpu_kv,
            index_bytes=gpu_index,
            weight_bytes=weights,
        )
    ]
    if system.pnm is not None:
        homes = home_requests(system.pnm, request.batch)
        found.append(
            Memory(
                name="pnm",
                count=system.pnm.count.integer,
                requests=homes,
                held_bytes=homes * (kv + index),
                room_bytes=system.pnm.device.capacity_bytes.integer,
                kv_bytes=homes * kv,
                index_bytes=homes * index,
                weight_bytes=0,
            )
        )
    if system.host is not None:
        found.append(
            Memory(
                name="host",
                count=system.nodes,
                requests=mine,
                held_bytes=all_requests * kv,
                room_bytes=system.nodes * system.host.node_bytes.integer,
                kv_bytes=all_requests * kv,
                index_bytes=0,
                weight_bytes=0,
            )
        )
    for memory in found:
        _require_room(memory, request, activations)
    return tuple(found)


_HOLDS = {"gpu": "memory of {count} GPUs", "pnm": "one of {count} PNM devices", "host": "memory of {count} hosts"}


def _require_room(memory: Memory, request: RetrievalRequest, activations: int) -> None:
    """Raise unless a memory holds what it must."""
    if memory.held_bytes <= memory.room_bytes:
        return
    where = _HOLDS[memory.name].format(count=memory.count)
    parts = {"weights": memory.weight_bytes, "KV": memory.kv_bytes, "index": memory.index_bytes}
    if memory.name == "gpu":
        parts["activations"] = activations
    listed = ", ".join(f"{name} {size}" for name, size in parts.items() if size)
    home = {
        "pnm": f"; {memory.requests} of {request.batch} requests have the fullest device as their home",
        "gpu": f"; {memory.requests} requests in the fullest group" if memory.requests else "",
        "host": f"; {memory.requests} requests in the fullest group",
    }[memory.name]
    raise CapacityError(
        f"a batch of {request.batch} requests of {request.context} tokens and the step's own on {where}",
        wanted_bytes=memory.held_bytes,
        available_bytes=memory.room_bytes,
        detail=f"{listed}{home}",
    )
