"""Where the new tokens of decode steps go among the bank groups, so that each has as many activated ones.

An operation over selected tokens takes as long as the group with most of them: ``T_intra = max over groups`` of the
tokens that a step activates there (arXiv:2602.11521, two-level mapping).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["WINDOW_STEPS", "GreedyBalance", "group_id_bytes", "intra_tokens", "tracking_bytes"]

WINDOW_STEPS = 10
"""Decode steps over which activations are counted (arXiv:2602.11521)."""


class GreedyBalance:
    """Choose for each new token the group with the fewest activations in the last steps.

    Parameters
    ----------
    groups : int
        Bank groups.
    window_steps : int
        Steps that count, the one under way among them.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer of at least 1.

    Notes
    -----
    With ``A_j(g)`` the activated tokens of group g in step j, a token of step i goes to the group with the least
    ``sum A_j(g) over j = i - window_steps + 1 .. i``, the lowest number among equals. A new token is itself attended to
    in its step, so that placing it is an activation: of several in one step, not all go to one group.
    """

    def __init__(self, groups: int, window_steps: int = WINDOW_STEPS) -> None:
        require_int("groups", groups, 1)
        require_int("window_steps", window_steps, 1)
        self._steps: deque[npt.NDArray[np.int64]] = deque(maxlen=window_steps)
        self._groups = groups
        self.begin_step()

    def begin_step(self) -> None:
        """Begin a step: the oldest one is forgotten once there are more than the window's."""
        self._steps.append(np.zeros(self._groups, np.int64))

    def activate(self, groups: npt.NDArray[np.int64]) -> None:
        """Count the tokens that this step activates, given the group of each."""
        self._steps[-1] += np.bincount(groups, minlength=self._groups)

    def place(self) -> int:
        """Return the group of one new token."""
        group = int(np.argmin(self.frequencies))
        self._steps[-1][group] += 1
        return group

    def place_each(self, tokens: int) -> npt.NDArray[np.int64]:
        """Return the groups of so many new tokens, as :meth:`place` called for one after the other does."""
        require_int("tokens", tokens, 0)
        # One token after the other raises the lowest count, up to a level that the lowest groups come to.
        ordered = np.sort(self.frequencies)
        below = np.arange(1, self._groups) * ordered[1:] - np.cumsum(ordered)[:-1]
        met = 1 + int(np.count_nonzero(below < tokens))
        most = -(-(tokens + int(ordered[:met].sum())) // met)
        rises = np.arange(most - int(ordered[0]) + 1)
        levels = np.add.outer(self.frequencies, rises)
        group: npt.NDArray[np.int64] = np.argsort(levels.ravel(), kind="stable")[:tokens] // len(rises)
        self.activate(group)
        return group

    @property
    def frequencies(self) -> npt.NDArray[np.int64]:
        """Activations of each group within the window."""
        return np.array(self._steps).sum(axis=0)


def intra_tokens(groups: npt.NDArray[np.int64], num_groups: int) -> int:
    """Return T_intra in tokens: those of the fullest group, given the group of each activated token."""
    return int(np.bincount(groups, minlength=num_groups).max(initial=0))


def group_id_bytes(groups: int) -> int:
    """Return the bytes of a table with an id for each group, as many rows as its ids can tell apart.

    2,816 B for the 1,280 groups of five HBM3 stacks, which is the 2.8 KB that the paper prints.
    """
    require_int("groups", groups, 1)
    bits = max((groups - 1).bit_length(), 1)
    return -(-(bits << bits) // 8)


def tracking_bytes(groups: int, count_bits: int = 24, window_steps: int = WINDOW_STEPS) -> int:
    """Return the bytes of a counter for each group and step of the window, and of a sum over the window.

    42,880 B for 1,280 groups and counts of up to 16 million tokens; the paper says less than 50 KB.
    """
    require_int("groups", groups, 1)
    require_int("count_bits", count_bits, 1)
    require_int("window_steps", window_steps, 1)
    sum_bits = count_bits + (window_steps - 1).bit_length()
    return -(-groups * (window_steps * count_bits + sum_bits) // 8)
