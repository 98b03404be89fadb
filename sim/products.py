"""How long products take on a card on which they were measured: reads and operations overlap, but not wholly."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hw.presets import Value

__all__ = ["Products"]


@dataclass(frozen=True, kw_only=True)
class Products:
    """What products of weights with a batch of activations reach.

    Parameters
    ----------
    read_share : Value
        Share of the memory's peak rate at which weights are read where nothing else counts.
    overlap : Value
        Exponent ``p`` of ``(compute^p + memory^p)^(1/p)``: 1 where one waits for the other, without bound where the
        longer hides the shorter.
    """

    read_share: Value
    overlap: Value

    def seconds(self, compute_s: float, memory_s: float) -> float:
        """Return the seconds of a product whose operations and reads alone take so long."""
        power = self.overlap.number
        return (compute_s**power + memory_s**power) ** (1.0 / power)

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name."""
        for item in fields(self):
            yield item.name, getattr(self, item.name)
