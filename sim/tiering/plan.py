"""Everything that decides which tokens a step reads and which it moves."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from golden.retrieval.access import LOCALITIES, AccessLocality, AccessStream
from sim.errors import ConfigError, UnknownNameError
from sim.tiering.policies import POLICIES
from sim.tiering.ratio import SCORES, Ratio
from sim.tiering.sparsity import Sparsity

if TYPE_CHECKING:
    import numpy.typing as npt

    from sim.tiering.policy import Policy

__all__ = ["FIDELITIES", "TierPlan"]

FIDELITIES = {
    "aggregate": "tokens of a request are counted by importance, at a cost that does not depend on its length",
    "exact": "every token has reads, an importance and a memory of its own",
}
"""How tokens are followed, by name."""


@dataclass(frozen=True, kw_only=True)
class TierPlan:
    """Policy, sparsity, reads and budget.

    Parameters
    ----------
    policy_name : str
        One of :data:`sim.tiering.policies.POLICIES`.
    sparsity : Sparsity
    fidelity : str
        One of :data:`FIDELITIES`.
    locality_name : str
        One of :data:`golden.retrieval.access.LOCALITIES`: how steady reads are.
    locality_changes : tuple of (str, float)
        Parameters of :class:`golden.retrieval.access.AccessLocality` that are other than there.
    swap_budget : float
        Pairs of tokens that may change places in a step between two memories, as part of the tokens of the requests
        that decode; policies that are background or a bound do not keep to it.
    ratio : tuple of float, or None
        x and y of policy ``pam``, above 0; None for those of ``sim/calibration.toml``.
    score : str
        One of :data:`sim.tiering.ratio.SCORES`: what policy ``pam`` keeps at that ratio.
    seed : int
        Equal seeds give equal reads.

    Raises
    ------
    ConfigError
        If a name is unknown or a number out of range.
    """

    policy_name: str = "static"
    sparsity: Sparsity = field(default_factory=Sparsity)
    fidelity: str = "aggregate"
    locality_name: str = "fitted"
    locality_changes: tuple[tuple[str, float], ...] = ()
    swap_budget: float = 0.01
    ratio: tuple[float, float] | None = None
    score: str = "mean"
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("policy", self.policy_name, POLICIES),
            ("fidelity", self.fidelity, FIDELITIES),
            ("locality", self.locality_name, LOCALITIES),
            ("score", self.score, SCORES),
        ):
            if name not in known:
                raise UnknownNameError(kind, name, known)
        self._check_locality()
        if not 0.0 <= self.swap_budget <= 1.0:
            raise ConfigError(f"swap_budget must be from 0 to 1, not {self.swap_budget!r}")
        if self.ratio is not None and not min(self.ratio) > 0.0:
            raise ConfigError(f"ratio must be two numbers above 0, not {self.ratio!r}")

    def _check_locality(self) -> None:
        """Raise if a parameter of the locality is unknown or out of range."""
        known = [item.name for item in fields(AccessLocality)]
        for name, _ in self.locality_changes:
            if name not in known:
                raise UnknownNameError("parameter of the locality", name, known)
        try:
            replace(LOCALITIES[self.locality_name], **dict(self.locality_changes))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"locality: {error}") from None

    @property
    def is_plain(self) -> bool:
        """Everything is read, so that no token is worth more than another and nothing moves, whatever the policy."""
        return self.sparsity.name == "dense"

    @cached_property
    def policy(self) -> Policy:
        """The policy."""
        found = POLICIES[self.policy_name]
        return replace(found, ratio=self.ratio, score=self.score) if isinstance(found, Ratio) else found

    @cached_property
    def locality(self) -> AccessLocality:
        """How steady reads are, with the first and last tokens that the sparsity always reads."""
        found, rule = replace(LOCALITIES[self.locality_name], **dict(self.locality_changes)), self.sparsity.rule
        sinks = found.sinks if rule.sinks is None else rule.sinks
        recent = found.recent if rule.recent is None else rule.recent
        return replace(found, sinks=sinks, recent=recent)

    def kept(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many of each number of ``tokens`` a step reads."""
        return self.sparsity.rule.kept(tokens)

    def kept_of(self, tokens: int) -> int:
        """Return how many of ``tokens`` a step reads."""
        return int(self.kept(np.array([tokens]))[0])

    def always(self, tokens: int) -> tuple[int, int]:
        """Return how many first and last ones of ``tokens`` every step reads."""
        return self.locality.always(tokens, self.kept_of(tokens))

    def stream(self, request: int, tokens: int) -> AccessStream:
        """Return the reads of a request."""
        return AccessStream(self.locality, tokens, np.random.default_rng([self.seed, request]))

    def budget(self, tokens: int) -> int:
        """Return the pairs that may change places in a step, where ``tokens`` are held."""
        return int(self.swap_budget * tokens) if self.policy.in_budget else tokens
