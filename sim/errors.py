"""Errors that a user can cause, under one root: the command line turns each into one line and exit code 2."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CapacityError", "ConfigError", "SimError", "UnknownNameError", "UnsupportedError"]


class SimError(Exception):
    """Root of everything the harness refuses: what was wanted, what was given, and which key or file."""


class ConfigError(SimError):
    """A file, key or option has a value that can't be used."""


class UnsupportedError(SimError):
    """The input is sound, but the chosen system can't run it."""


class CapacityError(SimError):
    """Something does not fit the memory it must live in.

    Parameters
    ----------
    what : str
        What was to be stored.
    wanted_bytes, available_bytes : int
        What it needs and what there is.
    detail : str
        How the sizes come about.
    """

    def __init__(self, what: str, *, wanted_bytes: int, available_bytes: int, detail: str = "") -> None:
        self.wanted_bytes = wanted_bytes
        self.available_bytes = available_bytes
        tail = f" ({detail})" if detail else ""
        super().__init__(f"{what} must fit in {available_bytes} bytes, not {wanted_bytes} bytes{tail}")


class UnknownNameError(ConfigError):
    """A name that nothing carries; the message holds the nearest ones.

    Parameters
    ----------
    kind : str
        What was named: ``model``, ``system``, ``unit``, ``preset``.
    name : str
        The name given.
    known : iterable of str
        All names there are.
    hint : str
        What else would have been accepted.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(known)
        self.nearest = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.4)
        listed = f"nearest: {', '.join(self.nearest)}" if self.nearest else f"one of: {', '.join(names)}"
        super().__init__(f"{kind} must be a known name{hint}, not {name!r}; {listed}")
