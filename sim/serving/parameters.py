"""How a server admits, batches and preempts requests."""

from __future__ import annotations

from dataclasses import dataclass

from golden.checks import require_int
from sim.errors import ConfigError, UnknownNameError

__all__ = ["ADMISSIONS", "PREEMPTIONS", "SCHEDULERS", "ServerParams"]

SCHEDULERS = {
    "prefill-first": "waiting prompts run whole, before the next decode step (PAM, vLLM V0)",
    "chunked": "every step decodes all it can and fills its token budget with parts of prompts (vLLM V1)",
}
"""What each scheduler does, by name."""

ADMISSIONS = {
    "on-demand": "room for the prompt is enough; later room is taken token by token, and found by preemption",
    "reserved": "room for prompt and answer is kept from the start",
}
"""When a request may begin, by name."""

PREEMPTIONS = {
    "recompute": "keys and values are dropped, and computed again",
    "swap": "keys and values go to the host's memory and come back",
}
"""What becomes of the keys and values of a request that has to make room, by name."""


@dataclass(frozen=True, kw_only=True)
class ServerParams:
    """How requests are batched.

    Parameters
    ----------
    scheduler : str
        One of :data:`SCHEDULERS`.
    token_budget : int
        Tokens of a step at most; a whole prompt that is longer runs alone under ``prefill-first``.
    max_running : int
        Requests that have begun and not ended.
    admission, preemption : str
        One of :data:`ADMISSIONS`, of :data:`PREEMPTIONS`.
    block_tokens : int
        Tokens of a block of the KV store.
    steps_ahead : int
        Steps that are decided while another runs, 0 or 1. A server that decides the next step while its GPUs work
        (vLLM's asynchronous scheduling) doesn't keep them waiting; requests that come meanwhile wait a step longer.

    Raises
    ------
    ConfigError
        If a number is out of range or a name unknown.
    """

    scheduler: str = "chunked"
    token_budget: int = 8192
    max_running: int = 256
    admission: str = "on-demand"
    preemption: str = "recompute"
    block_tokens: int = 16
    steps_ahead: int = 0

    def __post_init__(self) -> None:
        for kind, known in (("scheduler", SCHEDULERS), ("admission", ADMISSIONS), ("preemption", PREEMPTIONS)):
            if getattr(self, kind) not in known:
                raise UnknownNameError(kind, getattr(self, kind), known)
        try:
            require_int("token_budget", self.token_budget, 1, 1 << 30)
            require_int("max_running", self.max_running, 1, 1 << 20)
            require_int("block_tokens", self.block_tokens, 1, 1 << 16)
            require_int("steps_ahead", self.steps_ahead, 0, 1)
        except (TypeError, ValueError) as error:
            raise ConfigError(str(error)) from None
