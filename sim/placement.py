"""Where the KV cache lies: how many whole tokens each tier holds.

A token's keys and values of all layers lie in one tier, and every request has the same share of its tokens in every
tier. The tokens that the step itself appends go to the nearest tier with room, before anything else.

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.errors import CapacityError, UnknownNameError
from sim.gpu import activation_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.models import Model
    from sim.system import System

__all__ = ["PLACEMENTS", "TierTokens", "apportion", "kv_room", "place"]

PLACEMENTS = {
    "top-down": "fill the nearest tier, then the next",
    "by-capacity": "every tier the same fraction full",
    "balanced": "shares that let all tiers finish together, as far as their room allows",
}
"""What each policy does, by its name."""


@dataclass(frozen=True)
class TierTokens:
    """What one tier holds.

    Parameters
    ----------
    name : str
        The tier.
    room_bytes : int
        Room for KV.
    room_tokens : int
        Whole tokens that fit.
    tokens : int
        Tokens of the context, all requests together.
    new_tokens : int
        Tokens that the step appends.
    """

    name: str
    room_bytes: int
    room_tokens: int
    tokens: int
    new_tokens: int


def kv_room(system: System, model: Model, *, tokens: int, sampled: int) -> list[int]:
    """Return the bytes each tier has for KV beside the activations of ``tokens``, of which some are ``sampled``.

    The tier that is the GPUs' memory has what weights, activations and the management reserve leave.

    Raises
    ------
    CapacityError
        If those do not fit.
    """
    rooms: list[int] = []
    for tier in system.tiers:
        room = tier.raw_bytes
        if tier.shared_with_gpu:
            reserve = system.gpu.reserved_bytes.integer
            weights, activations = model.weight_bytes, activation_bytes(system, model, tokens=tokens, sampled=sampled)
            used = weights + activations + reserve
            if used > room:
                raise CapacityError(
                    f"weights of {model.name}, activations and reserve",
                    wanted_bytes=used,
                    available_bytes=room,
                    detail=f"weights {weights}, activations {activations}, reserve {reserve} in {tier.name}",
                )
            room -= used
        rooms.append(room)
    return rooms


def place(
    system: System,
    model: Model,
    *,
    context: int,
    batch: int,
    policy: str,
    rates: Sequence[float],
    fixed_s: Sequence[float],
) -> list[TierTokens]:
    """Place ``batch * context`` tokens and the ``batch`` tokens that the step appends.

    Parameters
    ----------
    system : System
    model : Model
    context, batch : int
        Tokens of a request before the step, and requests.
    policy : str
        One of :data:`PLACEMENTS`.
    rates : sequence of float
        Tokens a second that each tier reads in one layer, for ``balanced``.
    fixed_s : sequence of float
        Seconds that each tier takes whatever it reads, for ``balanced``.

    Returns
    -------
    list of TierTokens
        One a tier; their tokens add up to ``batch * context``, their new tokens to ``batch``.

    Raises
    ------
    UnknownNameError
        If there is no such policy.
    CapacityError
        If the tokens do not fit all tiers together.
    """
    if policy not in PLACEMENTS:
        raise UnknownNameError("placement", policy, PLACEMENTS)
    per_token = model.kv_bytes_per_token
    rooms = kv_room(system, model, tokens=batch, sampled=batch)
    limits = [room // per_token for room in rooms]
    total = batch * context
    if total + batch > sum(limits):
        raise CapacityError(
            f"KV cache of {batch} requests of {context} tokens and the step's own",
            wanted_bytes=(total + batch) * per_token,
            available_bytes=sum(limits) * per_token,
            detail=", ".join(
                f"{tier.name} {limit * per_token}" for tier, limit in zip(system.tiers, limits, strict=True)
            ),
        )
    new = _fill(limits, batch)
    left = [limit - taken for limit, taken in zip(limits, new, strict=True)]
    if policy == "top-down":
        tokens = _fill(left, total)
    elif policy == "by-capacity":
        tokens = apportion(total, left)
    else:
        tokens = _balance(total, left, rates, fixed_s)
    return [
        TierTokens(tier.name, room, limit, here, fresh)
        for tier, room, limit, here, fresh in zip(system.tiers, rooms, limits, tokens, new, strict=True)
    ]


def _fill(limits: Sequence[int], total: int) -> list[int]:
    """Return how ``total`` fills ``limits`` in order."""
    taken: list[int] = []
    for limit in limits:
        taken.append(min(limit, total))
        total -= taken[-1]
    return taken


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Split ``total`` in proportion to ``weights``, exactly, by largest remainder; ties go to the nearer tier.

    Parameters
    ----------
    total : int
        What is split; at most ``sum(weights)`` for every share to stay within its weight.
    weights : sequence of int
        Not all zero unless ``total`` is.

    Returns
    -------
    list of int
        Shares that add up to ``total``.
    """
    whole = sum(weights)
    if not whole:
        return [0] * len(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return shares


def _balance(total: int, limits: Sequence[int], rates: Sequence[float], fixed_s: Sequence[float]) -> list[int]:
    """Return shares with one finishing time ``fixed + share / rate``, each within its limit."""

    def shares(finish_s: float) -> list[int]:
        return [
            min(limit, max(0, int((finish_s - fixed) * rate)))
            for limit, rate, fixed in zip(limits, rates, fixed_s, strict=True)
        ]

    low, high = 0.0, max(fixed_s) + max(total / rate for rate in rates) + 1.0
    while sum(shares(high)) < total:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if sum(shares(middle)) >= total else (middle, high)
    # The bisection leaves one finishing time with too many tokens; what is too much goes back, the farthest first.
    tokens = shares(high)
    surplus = sum(tokens) - total
    for index in reversed(range(len(tokens))):
        back = min(surplus, tokens[index])
        tokens[index] -= back
        surplus -= back
    return tokens
