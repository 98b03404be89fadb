"""Multi-head latent attention (MLA) on units near memory: what it asks of them, and why it is refused.

All query heads of a layer attend to one latent a token. The projections that would expand it are applied to queries
and outputs on the GPUs, so that every head multiplies the latent and the positional key as a key, and the latent once
more as a value::

    FLOP a byte = 2 g (rank + rope + rank) / (2 (rank + rope))

with 16 bit an element; for 128 heads on 512 + 64 elements 241.8, where heads that share nothing have 1. Units near
banks are made for the latter: the time of the units over that of the memory, both at their peak, is the slowdown::

    FLOP a byte * (bytes/s of the power limit) / (FLOP/s of the units)

Where the power limit counts operations, its FLOP/s stand in the place of those of the units if they are fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.presets import UNIT_PRESETS
from sim.errors import UnsupportedError

if TYPE_CHECKING:
    from sim.models import Attention, Model
    from sim.system import System, Tier

__all__ = ["LatentCost", "latent_costs", "refuse_latent"]


@dataclass(frozen=True, kw_only=True)
class LatentCost:
    """Latent attention on one tier.

    Parameters
    ----------
    tier : str
        Name of the tier.
    flop_per_byte : float
        What attention asks for.
    unit_flop_per_byte : float
        What the units of the tier do while its memory delivers a byte at its power limit.
    """

    tier: str
    flop_per_byte: float
    unit_flop_per_byte: float

    @property
    def slowdown(self) -> float:
        """How many times longer the units take than the memory."""
        return self.flop_per_byte / self.unit_flop_per_byte


def latent_costs(system: System, attention: Attention, power_cap: str) -> tuple[LatentCost, ...]:
    """Return what latent attention costs on each tier; nothing for the other kinds of attention.

    Parameters
    ----------
    system : System
    attention : Attention
    power_cap : {"bytes", "flops"}
        How the power limit is read.
    """
    if not attention.kv_lora_rank:
        return ()
    asked = attention.token_flops / attention.token_bytes
    return tuple(
        LatentCost(
            tier=tier.name,
            flop_per_byte=asked,
            unit_flop_per_byte=_unit_flops(tier, power_cap) / tier.device.cap_bytes_per_s.number,
        )
        for tier in system.tiers
    )


def _unit_flops(tier: Tier, power_cap: str) -> float:
    """Return the FLOP/s of one device: a multiplication and an addition in every lane and cycle."""
    device = tier.device
    lanes = UNIT_PRESETS[device.unit_preset].processing.lanes
    peak = 2 * lanes * device.channels.integer * device.units_per_channel.integer * device.unit_clock_hz.number
    return min(peak, device.cap_flops_per_s.number) if power_cap == "flops" else peak


def refuse_latent(system: System, model: Model, power_cap: str) -> None:
    """Raise for multi-head latent attention, which units near memory cannot keep up with.

    Raises
    ------
    UnsupportedError
        With the slowdown of every tier.
    """
    costs = latent_costs(system, model.attention, power_cap)
    if not costs:
        return
    slowdowns = ", ".join(f"{cost.slowdown:.3g} times on {cost.tier}" for cost in costs)
    raise UnsupportedError(
        f"model {model.name} must have keys and values of its own in each KV head to run on {system.name}, or be asked "
        f"for with --allow-mla: multi-head latent attention has {model.attention.group} query heads on one latent, "
        f"{costs[0].flop_per_byte:.0f} FLOP a byte, so that units take longer than their memory to deliver columns "
        f"under its power limit ({power_cap}): {slowdowns}"
    )
