"""A system with little room: the same memories at the same rates, of which keys and values have a part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sim.errors import ConfigError
from sim.placement import kv_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.models import Model
    from sim.serving.parameters import ServerParams
    from sim.system import System

__all__ = ["with_room"]


def with_room(system: System, model: Model, params: ServerParams, tokens: Sequence[int]) -> System:
    """Return a system whose memories have room for about so many tokens of a model, what runs beside them included.

    Parameters
    ----------
    system : System
    model : Model
    params : ServerParams
        How requests are batched: activations of its largest step come first.
    tokens : sequence of int
        Of the nearest memories; the others keep the room that they have.

    Raises
    ------
    ConfigError
        If a memory has less room than that.
    """
    step = max(params.token_budget, params.max_running)
    rooms = kv_room(system, model, tokens=step, sampled=params.max_running)
    for tier, room, wanted in zip(system.tiers, rooms, tokens, strict=False):
        unused = room - wanted * model.kv_bytes_per_token
        if unused < 0:
            raise ConfigError(f"tokens of {tier.name} must be at most {room // model.kv_bytes_per_token}, not {wanted}")
        if tier.shared_with_gpu:
            reserved = system.gpu.reserved_bytes
            reserve = replace(reserved, value=reserved.integer + unused)
            system = replace(system, gpu=replace(system.gpu, reserved_bytes=reserve))
        else:
            capacity = tier.device.capacity_bytes
            each = -(-wanted * model.kv_bytes_per_token // tier.count.integer)
            system = system.with_tier(tier.with_values(capacity_bytes=replace(capacity, value=each)))
    return system
