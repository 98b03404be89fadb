"""Reads numbers of a trace's fields: whole ones for tokens, and points of time in any of the units that are used."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["FieldError", "date_time_s", "seconds", "tokens"]

_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII)

_LARGEST_EXPONENT = 9


class FieldError(Exception):
    """A field can't be read; the text is the reason for which its row is skipped."""


def _number(fields: dict[str, Any], name: str) -> Decimal:
    """Return a number exactly as it is written."""
    value = fields.get(name)
    if value is None or value == "":
        raise FieldError(f"no {name}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(f"{name} is not a number")
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise FieldError(f"{name} is not a number") from None
    if not number.is_finite():
        raise FieldError(f"{name} is not a number")
    return number


def tokens(fields: dict[str, Any], name: str) -> int:
    """Return a count of tokens, from 0 up to ten digits.

    Raises
    ------
    FieldError
        If there is none, or it is no whole number, negative, or too large to be one.
    """
    value = _number(fields, name)
    if value.adjusted() > _LARGEST_EXPONENT:
        raise FieldError(f"{name} has more than ten digits")
    if value != value.to_integral_value():
        raise FieldError(f"{name} is not a whole number")
    if value < 0:
        raise FieldError(f"{name} is negative")
    return int(value)


def seconds(fields: dict[str, Any], name: str, *, unit_s: Decimal) -> Decimal:
    """Return a point or a length of time in seconds.

    Parameters
    ----------
    fields : dict
        The row.
    name : str
        Its field.
    unit_s : Decimal
        Seconds of the unit in which it is written.

    Raises
    ------
    FieldError
        If there is none, or it is no number.
    """
    return _number(fields, name) * unit_s


def date_time_s(fields: dict[str, Any], name: str) -> Decimal:
    """Return a date and time in seconds since 1970, every digit of its fraction kept; UTC where no zone is named.

    Raises
    ------
    FieldError
        If there is none, or it is no date and time.
    """
    text = str(fields.get(name) or "")
    match = _DATE.fullmatch(text)
    if match is None:
        raise FieldError(f"{name} is not a date and time" if text else f"no {name}")
    day, time, part, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time}{zone or '+00:00'}".replace("Z", "+00:00"))
    except ValueError:
        raise FieldError(f"{name} is not a date and time") from None
    return int(moment.astimezone(UTC).timestamp()) + Decimal(f"0{part or '.0'}")
