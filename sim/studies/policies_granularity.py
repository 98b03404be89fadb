"""What one decode step reads where if a token is placed as a whole, and if each layer and KV head of it is by itself.

Serving gives all layers and heads of a token one memory and one set of reads (``token``); RTL and DMA see every layer
and KV head of a token as a slot of its own (``token-layer-head``). Here heads have reads of their own: each follows a
stream that all share for some of the tokens and one of its own for the others. By what they are worth after some steps,
``0.6 S + 0.4 I``, the most important go to the nearest memory, as far as it has room, and so on: whole tokens by the
mean over heads, or each head's slots by its own. The next step is counted.

Where heads read the same tokens both are one, and so is what serving counts. Of a real encoder (MiniLM, three layers of
twelve heads, 512 tokens) two heads share 0.37 of the eighth that they score highest if they are of one layer and 0.21
if not; by chance it would be 0.125.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from golden.retrieval.access import AccessStream
from sim.model_config import load_model
from sim.provenance import Part, combine
from sim.serving.batch import StepWork
from sim.serving.bin_store import touched_pages
from sim.serving.host import calibrated_factors
from sim.serving.machine import tier_room_bytes
from sim.serving.parameters import ServerParams
from sim.serving.step_model import TierStepModel
from sim.studies.policies import SPARSITY
from sim.system_config import load_system
from sim.tier import page_tokens
from sim.tiering.groups import bank_groups, fullest_tokens
from sim.tiering.plan import TierPlan
from sim.tiering.scan import room_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from sim.studies.policies import Load

    Reads = npt.NDArray[np.bool_]

__all__ = ["ALIKE", "drawn_reads", "granularity_rows", "mixed_reads"]

ALIKE = (0.37, 0.21, 0.125)
"""Part of its reads that a head has in common with another: as heads of a layer, of two layers, and by chance."""

_WEIGHT = 0.6  # of the latest step, as policy pam has it


def drawn_reads(plan: TierPlan, tokens: int, *, heads: int, steps: int, seed: int) -> Reads:
    """Return the reads of one stream that all heads share and one of each head, shape (steps, 1 + heads, tokens)."""
    streams = [AccessStream(plan.locality, tokens, np.random.default_rng([seed, head])) for head in range(1 + heads)]
    return np.array([[stream.step(plan.kept_of(tokens)) for stream in streams] for _ in range(steps)])


def mixed_reads(drawn: Reads, alike: float, seed: int) -> Reads:
    """Return the reads of each head, shape (steps, heads, tokens): of the shared stream for some tokens.

    Parameters
    ----------
    drawn : ndarray
        Reads of :func:`drawn_reads`.
    alike : float
        Part of its reads that a head has in common with another; not below what chance makes it.
    seed : int
    """
    _, count, tokens = drawn.shape
    chance = float(drawn.mean())
    part = max(0.0, (alike - chance) / (1.0 - chance)) ** 0.5
    shared = np.random.default_rng([seed, count]).random((count - 1, tokens)) < part
    return np.where(shared, drawn[:, :1], drawn[:, 1:])


def granularity_rows(
    loads: Mapping[str, Load], *, seed: int, heads: int = 256, tokens: int = 2000, steps: int = 16
) -> list[dict[str, Any]]:
    """Return for each load a row for slots placed by themselves, and one for whole tokens at each likeness of heads.

    Parameters
    ----------
    loads : mapping of str to Load
        Requests, each of the mean length.
    seed : int
    heads, tokens, steps : int
        Heads and tokens that are drawn and stand for all, and steps before the one that counts.
    """
    plan = TierPlan(sparsity=SPARSITY, seed=seed)
    drawn = drawn_reads(plan, tokens, heads=heads, steps=steps + 1, seed=seed)
    rows: list[dict[str, Any]] = []
    origin = combine([Part("reads and step", "modelled", "sim/studies/policies_granularity.py")]).to_dict()
    for granularity, alike in (("token-layer-head", None), *(("token", share) for share in ALIKE)):
        # What a head reads by itself doesn't depend on what others do.
        reads = drawn[:, 1:] if alike is None else mixed_reads(drawn, alike, seed)
        counted = _counted(reads, whole=granularity == "token")
        for name, load in loads.items():
            model = load_model(load.model)
            slots = model.attention.stored_heads * len(model.layers) if granularity == "token-layer-head" else 1
            held = _held(load, plan)
            ends = np.concatenate([[0.0], np.cumsum(held)]) / load.prompt_tokens * tokens
            read = plan.kept_of(load.prompt_tokens) * np.diff(np.interp(ends, np.arange(tokens + 1), counted))
            step_s, attention_s = _step_s(load, plan, read, held)
            rows.append(
                {
                    "name": f"{name}, {granularity}" + (f", {alike:g} in common" if alike else ""),
                    "load": name,
                    "granularity": granularity,
                    "alike": alike,
                    "far_share": float(read[1:].sum() / read.sum()),
                    "step_ms": 1e3 * step_s,
                    "attention_ms": 1e3 * attention_s,
                    "table_entries": load.requests * load.prompt_tokens * slots,
                    "provenance": origin,
                }
            )
    return sorted(rows, key=lambda row: list(loads).index(row["load"]))


def _counted(reads: Reads, *, whole: bool) -> npt.NDArray[np.float64]:
    """Return which part of the last step's reads the most important tokens have, 0 of them, 1 and so on."""
    worth = np.zeros(reads.shape[1:])
    for read in reads[:-1]:
        worth = _WEIGHT * read + (1.0 - _WEIGHT) * worth
    if whole:
        worth = np.broadcast_to(worth.mean(axis=0), worth.shape)
    order = np.argsort(-worth, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(reads[-1], order, axis=1).sum(axis=0))
    return np.concatenate([[0.0], sums / sums[-1]])


def _held(load: Load, plan: TierPlan) -> npt.NDArray[np.float64]:
    """Return how many of a request's tokens each memory has room for."""
    model, system = load_model(load.model), load_system("pam")
    params = ServerParams(scheduler="prefill-first", max_running=load.requests)
    room = room_tokens(tier_room_bytes(system, model, params, load.prompt_tokens), model, plan.sparsity)
    return np.diff(np.minimum(np.cumsum(room) / load.requests, load.prompt_tokens), prepend=0.0)


def _step_s(
    load: Load, plan: TierPlan, read: npt.NDArray[np.float64], held: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """Return the time of one step without moves and of its attention, given what a request reads and has where."""
    model, system = load_model(load.model), load_system("pam")
    always = np.array([float(sum(plan.always(load.prompt_tokens))), *(0.0 for _ in read[1:])])
    sizes = [page_tokens(tier, model.attention) for tier in system.tiers]
    pages = np.zeros(len(sizes))
    for tier, size in enumerate(sizes):
        if size:
            here = slice(tier, tier + 1)
            pages[tier] = touched_pages(held[here], always[here], read[here], size)[0]
    fullest = fullest_tokens(read, always, held, np.array([bank_groups(tier) for tier in system.tiers]))
    none = (0,) * len(sizes)

    def of_all(each: npt.NDArray[np.float64]) -> tuple[float, ...]:
        return tuple((load.requests * each).tolist())

    work = StepWork(
        decoding=load.requests,
        tier_tokens=of_all(read),
        tier_requests=of_all(np.minimum(1.0, read)),
        prompt_requests=0,
        prompt_tokens=0,
        prompt_pairs=0,
        prompt_context=none,
        decode_appended=(load.requests, *none[1:]),
        prompt_appended=none,
        ending=load.requests,
        swapped_tokens=0,
        tier_held=of_all(held),
        tier_pages=of_all(pages),
        tier_fullest=of_all(fullest),
    )
    steps = TierStepModel(system, model, calibrated_factors(), power_cap="bytes", sparsity=plan.sparsity)
    return steps.step_s(work), steps.attention_s
