"""What a result was made from: a hash of every input, and the versions that made it.

The manifest is the same on every machine; what differs between machines stands in the ``host`` block alone.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Any

from sim.calibration import factors
from sim.channel_cycles import table_sha256

if TYPE_CHECKING:
    from sim.models import Model
    from sim.step import StepRequest
    from sim.system import System

__all__ = ["host", "manifest", "step_inputs", "version"]


def version() -> str:
    """Return the version of the installed distribution, or ``unknown`` where it is not installed."""
    try:
        return metadata.version("nearkv")
    except metadata.PackageNotFoundError:
        return "unknown"


def step_inputs(system: System, model: Model, request: StepRequest) -> dict[str, Any]:
    """Return everything that decides a decode step."""
    return {
        "system": {name: value.to_dict() for name, value in system.values()},
        "collectives": {name: value.to_dict() for name, value in system.gpu.collectives.values()},
        "paths": {tier.name: [link.name for link in tier.path] for tier in system.tiers},
        "tables": {tier.name: table_sha256(tier.device) for tier in system.tiers},
        "model": asdict(model),
        "request": asdict(request),
        "calibration": {name: factor.value for name, factor in factors().items()},
    }


def manifest(inputs: object, seed: int | None = None) -> dict[str, Any]:
    """Return the manifest of a result.

    Parameters
    ----------
    inputs : object
        Everything that decided the result, in types that JSON has; its sha256 stands in the manifest.
    seed : int or None
        Seed of the random numbers; None where nothing is drawn.
    """
    text = json.dumps(inputs, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"nearkv": version(), "config_sha256": digest, "seed": seed}


def host() -> dict[str, str]:
    """Return what may differ between machines."""
    return {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
