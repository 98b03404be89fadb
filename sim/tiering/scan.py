"""Time to read the labels of all stored tokens, by which a step chooses those that it attends to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.calibration import factors
from sim.errors import CapacityError
from sim.links import transfer_s
from sim.tier import tier_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.models import Model
    from sim.system import System
    from sim.tiering.sparsity import Sparsity

__all__ = ["LabelScan", "room_tokens"]


class LabelScan:
    """``t = layers max over memories(tokens b / rate)`` with labels of b bytes a token and layer.

    A memory's units read labels at the rate at which they attend to keys and values; GPUs read those of their own
    memory at its rate, and others over the links. Labels are taken to lie packed; the RTL's scan reads a column a
    token, 32 B for a label of 8 channels with 16 in fp16 or 4 in int4. Layers with a window choose nothing. That the
    best scores are picked and told to the memories is taken to hide behind the scan.

    Parameters
    ----------
    system : System
    model : Model
    sparsity : Sparsity
    power_cap : {"bytes", "flops"}
        How a device's limit is read.
    """

    def __init__(self, system: System, model: Model, sparsity: Sparsity, *, power_cap: str) -> None:
        self._system, self._sparsity = system, sparsity
        self._bytes = sparsity.label_bytes(model.attention)
        self._layers = sum(count for layer, count in model.layer_groups() if not layer.window)
        per_token = model.attention.kv_bytes
        self._rates = [tier_rate(tier, model.attention, power_cap=power_cap) * per_token for tier in system.tiers]
        self._paths = {tier.name: tier.path for tier in system.tiers}

    def bytes(self, held: Sequence[float]) -> list[float]:
        """Return the bytes that a step reads of each memory, where the requests that decode hold so many tokens."""
        total = self._bytes * self._layers
        if self._sparsity.label_place == "own":
            return [tokens * total for tokens in held]
        return [sum(held) * total, *(0.0 for _ in held[1:])]

    def seconds(self, held: Sequence[float]) -> float:
        """Return how long a step takes for it."""
        if not self._bytes:
            return 0.0
        read = self.bytes(held)
        if self._sparsity.scorer == "memory":
            return max(amount / rate for amount, rate in zip(read, self._rates, strict=True))
        system = self._system
        own_rate = system.gpu_bytes_per_s * system.gpu.count.integer * factors()["gpu_memory_utilisation"].value
        own = far = 0.0
        loads: dict[str, int] = {}
        for tier, amount in zip(system.tiers, read, strict=True):
            if tier.shared_with_gpu:
                own = amount / own_rate
            loads[tier.name] = 0 if tier.shared_with_gpu else round(amount / self._layers)
        far = self._layers * max(transfer_s(self._paths, loads).values())
        return max(own, far)


def room_tokens(room_bytes: Sequence[int], model: Model, sparsity: Sparsity) -> list[int]:
    """Return how many tokens each memory has room for, beside labels.

    Labels that lie in the nearest memory take room for every token of all memories, filled or not.

    Raises
    ------
    CapacityError
        If those of the farther memories alone don't fit the nearest.
    """
    per_token = model.kv_bytes_per_token
    layers = sum(count for layer, count in model.layer_groups() if not layer.window)
    label = sparsity.label_bytes(model.attention) * layers
    if sparsity.label_place == "own":
        return [room // (per_token + label) for room in room_bytes]
    far = [room // per_token for room in room_bytes[1:]]
    left = room_bytes[0] - sum(far) * label
    if left < 0:
        raise CapacityError(
            f"labels of the {sum(far)} tokens that farther memories have room for",
            wanted_bytes=sum(far) * label,
            available_bytes=room_bytes[0],
            detail=f"{label} bytes a token in the nearest memory",
        )
    return [left // (per_token + label), *far]
