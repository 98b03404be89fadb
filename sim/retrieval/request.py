"""What is asked of a decode step with retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.errors import ConfigError, UnknownNameError, UnsupportedError
from sim.retrieval.methods import METHODS

if TYPE_CHECKING:
    from sim.models import Model

__all__ = ["RetrievalRequest"]


@dataclass(frozen=True, kw_only=True)
class RetrievalRequest:
    """What is asked: a batch of requests of one length.

    Parameters
    ----------
    context, batch : int
        Tokens of a request before the step, and requests.
    method : str or None
        ``trained`` for the model's own selection, or one of :data:`sim.retrieval.methods.METHODS`; None for the
        model's own where it has one, else ``dense``.
    budget : int
        Tokens that a method selects in each stored head; the model's own selection has its own.
    dense_layers : int
        First layers that attend to everything whatever the method.

    Raises
    ------
    ConfigError
        If a number is out of range or a name unknown.
    """

    context: int
    batch: int
    method: str | None = None
    budget: int = 2048
    dense_layers: int = 0

    def __post_init__(self) -> None:
        for name, least in (("context", 1), ("batch", 1), ("budget", 1), ("dense_layers", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name} must be an integer of at least {least}, not {value!r}")
        if self.method is not None and self.method not in ("trained", *METHODS):
            raise UnknownNameError("method", self.method, ["trained", *METHODS])

    @property
    def tokens(self) -> int:
        """Tokens of a request, the step's own included."""
        return self.context + 1

    def method_of(self, model: Model) -> str:
        """Return the method that a model runs with.

        Raises
        ------
        UnsupportedError
            If its own selection is asked for and it has none.
        """
        if self.method is None:
            return "dense" if model.selection is None else "trained"
        if self.method == "trained" and model.selection is None:
            raise UnsupportedError(
                f"model {model.name} must have a selection of its own for method 'trained', it has none; "
                f"others: {', '.join(METHODS)}"
            )
        return self.method
