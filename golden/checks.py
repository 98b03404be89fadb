"""Checks of arguments whose message says what was wanted and what was given."""

from __future__ import annotations

__all__ = ["require_int", "require_type"]


def require_int(name: str, value: object, low: int, high: int | None = None) -> None:
    """Raise unless ``value`` is an int with ``low <= value <= high``.

    Raises
    ------
    TypeError
        If it is no int (a bool is none).
    ValueError
        If it is out of range.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < low or (high is not None and value > high):
        span = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {span}, not {value!r}")


def require_type(name: str, value: object, kind: type) -> None:
    """Raise TypeError unless ``value`` is a ``kind``."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {value!r}")
