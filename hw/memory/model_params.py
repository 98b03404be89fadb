"""Parameters of the memory model that the hardware is simulated with."""

from __future__ import annotations

from dataclasses import dataclass

from golden.checks import require_int
from hw.memory.organisation import Organisation
from hw.memory.timing import DramTiming

__all__ = ["MemoryModelParams"]


@dataclass(frozen=True, kw_only=True)
class MemoryModelParams:
    """Parameters of :class:`hw.devices.memory_model.MemoryModel`.

    Parameters
    ----------
    organisation : Organisation
        The memory; one channel of it is modelled.
    timing : DramTiming
        Its timing; a read latency ``n_cl`` of at least 2.
    simulated_groups : int
        Bank groups 0 to this number, less one, have cells and row state.
    simulated_rows : int
        Rows of a bank that have cells.
    postponed_refreshes : int
        Refreshes that may be due at once, or done ahead of time; JEDEC allows 8.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of range.
    """

    organisation: Organisation
    timing: DramTiming
    simulated_groups: int
    simulated_rows: int
    postponed_refreshes: int

    def __post_init__(self) -> None:
        for name, kind in (("organisation", Organisation), ("timing", DramTiming)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be of type {kind.__name__}, not {getattr(self, name)!r}")
        require_int("timing.n_cl", self.timing.n_cl, 2)
        require_int("simulated_groups", self.simulated_groups, 1, self.organisation.groups_per_channel)
        require_int("simulated_rows", self.simulated_rows, 1, self.organisation.rows)
        require_int("postponed_refreshes", self.postponed_refreshes, 0, 64)

    @property
    def simulated_banks(self) -> int:
        """Banks that have cells and row state."""
        return self.simulated_groups * self.organisation.banks
