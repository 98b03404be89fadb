"""How evenly bank groups share the activated tokens of decode steps, by where new tokens are placed.

The generator gives every token a lasting weight and every step noise of its own, and takes the tokens with the largest
sums: with weights of deviation :data:`SPREAD` about 0.6 of the tokens of a step come again in the next, measured models
0.63 to 0.70. ``strewn`` weights are independent; ``periodic`` ones are heavy at every token whose number the groups
divide, as separators at a fixed distance would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from golden.balance import GreedyBalance, group_id_bytes, intra_tokens, tracking_bytes
from sim.provenance import Part, combine

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["POLICIES", "WEIGHTS", "balance_row", "balance_rows", "token_weights"]

POLICIES = ("in turn", "random", "greedy")
WEIGHTS = ("strewn", "periodic")
GROUPS = 16
PREFILL_TOKENS = 512
STEPS = 512
SHARE = 8
"""One token of so many is activated, the new one among them."""
SPREAD = 3.0
PAM_GROUPS = 1280
"""Bank groups of five HBM3 stacks, for which PAM prints the bytes of its tables."""


def token_weights(rng: np.random.Generator, weights: str, tokens: int) -> npt.NDArray[np.float64]:
    """Return the logarithms of the weights of ``tokens`` tokens, by one of :data:`WEIGHTS`."""
    drawn = SPREAD * rng.standard_normal(tokens)
    if weights == "periodic":
        drawn = drawn / 2
        drawn[::GROUPS] += 3 * SPREAD
    return drawn


def balance_rows(seed: int) -> list[dict[str, Any]]:
    """Return a row for each policy on each kind of weights."""
    return [balance_row(weights, policy, seed) for weights in WEIGHTS for policy in POLICIES]


def balance_row(weights: str, policy: str, seed: int) -> dict[str, Any]:
    """Decode :data:`STEPS` tokens behind a prefill that is dealt in turn, and return the mean T_intra.

    The generator draws the same tokens whatever the policy.
    """
    rng, placing = np.random.default_rng([seed, WEIGHTS.index(weights)]), np.random.default_rng([seed, 99])
    log_weights = token_weights(rng, weights, PREFILL_TOKENS + STEPS)
    groups = np.arange(PREFILL_TOKENS + STEPS) % GROUPS
    balance = GreedyBalance(GROUPS)
    times: list[int] = []
    shares: list[float] = []
    repeated: list[float] = []
    before: npt.NDArray[np.int64] | None = None
    for token in range(PREFILL_TOKENS, PREFILL_TOKENS + STEPS):
        match policy:
            case "greedy":
                groups[token] = balance.place()
            case "random":
                groups[token] = placing.integers(GROUPS)
            case _:
                pass
        count = (token + 1) // SHARE
        scores = log_weights[:token] + rng.gumbel(size=token)
        older = np.argpartition(-scores, count - 1)[: count - 1]
        balance.activate(groups[older])
        balance.begin_step()
        activated = np.append(older, token)
        times.append(intra_tokens(groups[activated], GROUPS))
        shares.append(count / GROUPS)
        if before is not None:
            repeated.append(float(np.isin(before, activated).mean()))
        before = activated
    source = f"{STEPS} generated steps, seed {seed}"
    return {
        "name": f"{weights} weights, placed {policy}",
        "weights": weights,
        "policy": policy,
        "groups": GROUPS,
        "steps": STEPS,
        "intra_tokens": float(np.mean(times)),
        "even_tokens": float(np.mean(shares)),
        "relative_to_even": float(np.mean(np.array(times) / np.array(shares))),
        "activated_again": float(np.mean(repeated)),
        "group_id_bytes": group_id_bytes(PAM_GROUPS) if policy == "greedy" else 0,
        "tracking_bytes": tracking_bytes(PAM_GROUPS) if policy == "greedy" else 0,
        "provenance": combine([Part("activated tokens", "modelled", source)]).to_dict(),
    }
