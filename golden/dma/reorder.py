"""The order in which waiting reads are sent to a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Command", "Reorder", "rows_opened"]


class Command(NamedTuple):
    """A read: bank group (or whatever has one open row), row, and a tag that names it."""

    group: int
    row: int
    tag: int


class Reorder:
    """Choose among the commands that wait, the oldest of the first class that has any.

    1. the command that waited as the oldest while ``patience`` others went before it;
    2. its row is open and its group is not the last one's: no activation, the short distance between columns;
    3. its row is open;
    4. its group is not the last one's: rows are opened while another group's columns are read;
    5. any.

    A command opens its row. Nothing is known to be open at first, and there is no last group.

    Parameters
    ----------
    patience : int
        See above.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self._open: dict[int, int] = {}
        self._last: int | None = None
        self._passed = 0

    def choose(self, waiting: Sequence[Command]) -> int:
        """Return the place of the command that goes, among those that wait in the order in which they came.

        Raises
        ------
        ValueError
            If none waits.
        """
        if not waiting:
            raise ValueError("waiting must hold a command, it is empty")
        hits = [self._open.get(command.group) == command.row for command in waiting]
        others = [command.group != self._last for command in waiting]
        classes = (
            [number == 0 and self._passed >= self.patience for number in range(len(waiting))],
            [hit and other for hit, other in zip(hits, others, strict=True)],
            hits,
            others,
            [True],
        )
        place = next(members.index(True) for members in classes if True in members)
        self._passed = self._passed + 1 if place else 0
        self._last = waiting[place].group
        self._open[waiting[place].group] = waiting[place].row
        return place


def rows_opened(commands: Sequence[Command]) -> int:
    """Return how many rows are opened when commands go in this order and a group keeps its row open."""
    open_rows: dict[int, int] = {}
    opened = 0
    for command in commands:
        opened += open_rows.get(command.group) != command.row
        open_rows[command.group] = command.row
    return opened
