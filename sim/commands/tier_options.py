"""Options that say which tokens a step reads and which change their memory."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from golden.retrieval.access import LOCALITIES, AccessLocality
from sim.errors import ConfigError
from sim.tiering.plan import FIDELITIES, TierPlan
from sim.tiering.policies import POLICIES
from sim.tiering.ratio import SCORES
from sim.tiering.sparsity import LABEL_BITS, LABEL_PLACES, SCORERS, SPARSITIES, Sparsity

if TYPE_CHECKING:
    import argparse

__all__ = ["add_tier_options", "tier_plan"]


def add_tier_options(parser: argparse.ArgumentParser) -> None:
    """Add the options; each default is that of :class:`sim.tiering.plan.TierPlan`."""
    plan = TierPlan()
    sparsity = plan.sparsity
    for option, default, known, text in (
        ("--policy", plan.policy_name, POLICIES, "what moves tokens between memories"),
        ("--sparsity", sparsity.name, SPARSITIES, "which tokens are attended to"),
        ("--fidelity", plan.fidelity, FIDELITIES, "how tokens are followed"),
        ("--labels", sparsity.label_format, LABEL_BITS, "format of a label's channel"),
        ("--label-place", sparsity.label_place, LABEL_PLACES, "where labels lie"),
        ("--scorer", sparsity.scorer, SCORERS, "what reads labels"),
        ("--score", plan.score, SCORES, "what policy pam keeps at x : y : 1"),
    ):
        parser.add_argument(option, default=default, help=f"{text}: {', '.join(known)} (default: %(default)s)")
    parser.add_argument(
        "--locality",
        type=_locality,
        default=(plan.locality_name, plan.locality_changes),
        metavar="NAME[,KEY=X...]",
        help=f"how steady reads are, by token: {', '.join(LOCALITIES)} (default: {plan.locality_name}), with "
        "parameters of your own if given, as in fitted,steady_rate=0.4,recent=40; all: "
        f"{', '.join(item.name for item in fields(AccessLocality))}",
    )
    parser.add_argument(
        "--swap-budget",
        type=_part,
        default=plan.swap_budget,
        metavar="F",
        help="pairs of tokens that may change places in a step between two memories, as part of the tokens held "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--ratio", type=_ratio, metavar="X:Y", help="x and y of policy pam (default: those of sim/calibration.toml)"
    )


def _locality(text: str) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Read a name and parameters; those without a point are whole numbers."""
    name, *settings = text.split(",")
    changes: list[tuple[str, float]] = []
    for setting in settings:
        key, _, value = setting.partition("=")
        try:
            changes.append((key, int(value) if value.isdigit() else float(value)))
        except ValueError:
            raise ConfigError(f"--locality must be NAME,KEY=X, such as fitted,recent=40, not {text!r}") from None
    return name, tuple(changes)


def _ratio(text: str) -> tuple[float, float]:
    """Read two numbers above 0."""
    try:
        x, y = (float(part) for part in text.split(":"))
    except ValueError:
        x = y = 0.0
    if not (0.0 < x < math.inf and 0.0 < y < math.inf):
        raise ConfigError(f"--ratio must be two numbers above 0 as in 4:1, not {text!r}")
    return x, y


def _part(text: str) -> float:
    """Read a part from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"--swap-budget must be a number from 0 to 1, not {text!r}")
    return value


def tier_plan(arguments: argparse.Namespace) -> TierPlan:
    """Return what the options say.

    Raises
    ------
    UnknownNameError
        If a name is unknown.
    """
    return TierPlan(
        policy_name=arguments.policy,
        sparsity=Sparsity(
            name=arguments.sparsity,
            label_format=arguments.labels,
            label_place=arguments.label_place,
            scorer=arguments.scorer,
        ),
        fidelity=arguments.fidelity,
        locality_name=arguments.locality[0],
        locality_changes=arguments.locality[1],
        swap_budget=arguments.swap_budget,
        ratio=arguments.ratio,
        score=arguments.score,
        seed=arguments.seed,
    )
