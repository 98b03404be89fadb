"""What a server's host and its attention kernels add to a step: free factors, fitted to a real server or left out."""

from __future__ import annotations

from dataclasses import dataclass

from sim.calibration import factors

__all__ = ["SERVER_FACTORS", "ServerFactors", "calibrated_factors", "default_factors"]

SERVER_FACTORS = ("gpu_attention_utilisation", "host_step_s", "host_request_s")
"""Their names in ``calibration.toml``, in the order of the fields of :class:`ServerFactors`."""


@dataclass(frozen=True)
class ServerFactors:
    """Factors of a server.

    Parameters
    ----------
    attention_utilisation : float
        Share of peak bandwidth at which GPUs read keys and values of requests that decode.
    step_s, request_s : float
        Host's time a step, and a request of it, while the GPUs wait.
    """

    attention_utilisation: float
    step_s: float
    request_s: float

    def host_s(self, requests: int) -> float:
        """Return the host's time of a step with so many requests."""
        return self.step_s + self.request_s * requests


def calibrated_factors() -> ServerFactors:
    """Return the fitted factors."""
    return ServerFactors(*(factors()[name].value for name in SERVER_FACTORS))


def default_factors() -> ServerFactors:
    """Return the factors where nothing is fitted."""
    return ServerFactors(*(factors()[name].default for name in SERVER_FACTORS))
