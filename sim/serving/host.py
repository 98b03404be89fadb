"""What a server's kernels add to a step: free factors, fitted to a real server or left out."""

from __future__ import annotations

from dataclasses import dataclass

from sim.calibration import factors

__all__ = ["SERVER_FACTORS", "ServerFactors", "calibrated_factors", "default_factors"]

SERVER_FACTORS = ("gpu_attention_utilisation", "gpu_tile_utilisation", "gpu_kernel_s")
"""Their names in ``calibration.toml``, in the order of the fields of :class:`ServerFactors`."""


@dataclass(frozen=True)
class ServerFactors:
    """Factors of a server.

    Parameters
    ----------
    attention_utilisation : float
        Share of peak bandwidth at which GPUs read keys and values of requests that decode.
    tile_utilisation : float
        Share of peak operations at which they compute attention of such requests in a step that has prompts too
        (:mod:`sim.serving.kernels`).
    kernel_s : float
        Time of a kernel beyond its reads and operations; what a step's host adds is in it.
    """

    attention_utilisation: float
    tile_utilisation: float
    kernel_s: float


def calibrated_factors() -> ServerFactors:
    """Return the fitted factors."""
    return ServerFactors(*(factors()[name].value for name in SERVER_FACTORS))


def default_factors() -> ServerFactors:
    """Return the factors where nothing is fitted."""
    return ServerFactors(*(factors()[name].default for name in SERVER_FACTORS))
