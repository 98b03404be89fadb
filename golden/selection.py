"""Selected tokens of a channel whose parts are read in lock step, and the forms in which they are told.

A token has a position in the part that holds it. All parts read the same positions; which of them want their token
there is a mark for each part and position. Where tokens are dealt in turn, token t lies in part ``t % parts`` at
position ``t // parts``, so that marks, position by position and part by part, are a bitmap in the order of tokens.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["Selected", "SelectionForm", "TokenRun", "bitmap_words", "dealt", "from_bitmap", "token_runs", "union"]


class SelectionForm(Enum):
    """How selected tokens are told: position by position, as a bitmap of tokens, or as two runs of tokens."""

    LIST = 0
    BITMAP = 1
    RUNS = 2


class Selected(NamedTuple):
    """``positions`` that are read, int64 of shape (n,), ascending; ``wanted``, bool of shape (parts, n)."""

    positions: npt.NDArray[np.int64]
    wanted: npt.NDArray[np.bool_]


class TokenRun(NamedTuple):
    """Consecutive tokens, dealt in turn: from ``first_part`` of ``first_position`` to before ``end_part`` of the last.

    ``positions`` is the number of positions that they lie at; 0 is no token.
    """

    first_position: int
    positions: int
    first_part: int
    end_part: int


def union(parts: Sequence[npt.NDArray[np.int64]]) -> Selected:
    """Return what lock step reads where part i selects the positions ``parts[i]``, in any order.

    Raises
    ------
    ValueError
        If there is no part, or a position is negative.
    """
    if not parts:
        raise ValueError("parts must be at least one, not none")
    positions = np.unique(np.concatenate([np.asarray(part, np.int64) for part in parts]))
    if positions.size and positions[0] < 0:
        raise ValueError(f"parts must name positions from 0 on, not {int(positions[0])}")
    return Selected(positions, np.array([np.isin(positions, part) for part in parts]))


def dealt(tokens: npt.NDArray[np.int64], parts: int) -> Selected:
    """Return the positions and marks of ``tokens``, dealt in turn to ``parts`` parts; in any order, none negative."""
    require_int("parts", parts, 1)
    tokens = np.asarray(tokens, np.int64)
    return union([tokens[tokens % parts == part] // parts for part in range(parts)])


def bitmap_words(selected: Selected, *, row_positions: int, word_positions: int) -> list[int]:
    """Return the bitmap of a selection: words of ``word_positions`` positions, a row's from a new word on.

    Parameters
    ----------
    selected : Selected
        Positions and marks.
    row_positions : int
        Tokens that a row holds of a part.
    word_positions : int
        Positions of a word; the bits of those behind the end of a row are 0.

    Returns
    -------
    list of int
        Bit ``i * parts + p`` of a word is part p's mark of its i-th position. They end with the last row that has one.
    """
    parts, _ = selected.wanted.shape
    words_per_row = -(-row_positions // word_positions)
    rows, slots = np.divmod(selected.positions, row_positions)
    words = [0] * (words_per_row * (int(rows[-1]) + 1 if len(rows) else 0))
    for row, slot, wanted in zip(rows.tolist(), slots.tolist(), selected.wanted.T, strict=True):
        word, place = divmod(slot, word_positions)
        marks = int.from_bytes(np.packbits(wanted, bitorder="little").tobytes(), "little")
        words[row * words_per_row + word] |= marks << place * parts
    return words


def from_bitmap(words: Sequence[int], *, parts: int, row_positions: int, word_positions: int) -> Selected:
    """Return the selection that a bitmap names, the inverse of :func:`bitmap_words`: positions with no mark drop out.

    Raises
    ------
    ValueError
        If a bit names a position behind the end of a row.
    """
    words_per_row = -(-row_positions // word_positions)
    positions: list[int] = []
    wanted: list[list[bool]] = []
    for number, word in enumerate(words):
        row, part_of_row = divmod(number, words_per_row)
        for place in range(word_positions):
            marks = word >> place * parts & ((1 << parts) - 1)
            slot = part_of_row * word_positions + place
            if marks and slot >= row_positions:
                raise ValueError(f"words must name positions of a row of {row_positions}, not {slot} in word {number}")
            if marks:
                positions.append(row * row_positions + slot)
                wanted.append([bool(marks >> part & 1) for part in range(parts)])
    return Selected(np.array(positions, np.int64), np.array(wanted, np.bool_).reshape(-1, parts).T)


def token_runs(selected: Selected) -> tuple[TokenRun, TokenRun]:
    """Return a selection as two runs of tokens that are dealt in turn, such as the first ones and a window.

    Raises
    ------
    ValueError
        If it is more than two, or reads a position that no part wants.
    """
    parts = len(selected.wanted)
    index, part = np.nonzero(selected.wanted.T)
    tokens = selected.positions[index] * parts + part
    if len(np.unique(index)) != len(selected.positions):
        raise ValueError("selected must read positions that a part wants, runs of tokens have no others")
    runs = np.split(tokens, np.flatnonzero(np.diff(tokens) > 1) + 1) if tokens.size else []
    if len(runs) > 2:
        raise ValueError(f"selected must be two runs of tokens at most, not {len(runs)}")
    found = [_run(int(run[0]), int(run[-1]) + 1, parts) for run in runs]
    none = TokenRun(0, 0, 0, 0)
    first, second = [*found, none, none][:2]
    return first, second


def _run(begin: int, end: int, parts: int) -> TokenRun:
    first, last = begin // parts, (end - 1) // parts
    return TokenRun(first, last - first + 1, begin % parts, (end - 1) % parts + 1)
