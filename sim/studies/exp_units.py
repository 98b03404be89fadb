"""The units that a study measures: the default set, or those that a TOML file describes."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from golden.exp.catalogue import FAMILIES, UNITS
from golden.formats import FORMATS, Q5_10, UQ0_16, UQ1_15, FixedFormat, FloatFormat
from sim.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from golden.exp import ExpSpec

__all__ = ["load_units", "parse_units"]

_FORMATS: dict[str, FloatFormat | FixedFormat] = {**FORMATS, **{fmt.name: fmt for fmt in (Q5_10, UQ0_16, UQ1_15)}}


def load_units(path: str) -> list[ExpSpec]:
    """Return the units that a TOML file describes, in its order; see :func:`parse_units`.

    Raises
    ------
    ConfigError
        If the file can't be read, or what it says can't be used.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: units file must be UTF-8 text, it is not") from None
    except OSError as error:
        raise ConfigError(f"{path}: units file must be readable: {error.strerror}") from None
    return parse_units(text, where=path)


def parse_units(text: str, *, where: str) -> list[ExpSpec]:
    """Return the units that a TOML text describes.

    Parameters
    ----------
    text : str
        Tables ``[[unit]]``. Each has a ``name`` and either ``family``, with the parameters of that family's class as
        further keys, or ``base``, the name of a unit of the default set, with those parameters that differ.
    where : str
        Name of the file, for messages.

    Raises
    ------
    ConfigError
        If the text is not TOML; a key is missing, unknown or unusable; a name stands twice; or a unit can't work, with
        the reason.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: units file must be TOML: {error}") from None
    for key in tables:
        if key != "unit":
            raise UnknownNameError(f"{where}: key", key, ["unit"])
    entries: Any = tables.get("unit")
    found = cast("list[Any]", entries) if isinstance(entries, list) else []
    if not found or not all(isinstance(entry, dict) for entry in found):
        raise ConfigError(f"{where}: unit must be a list of tables [[unit]], not {entries!r}")
    units: dict[str, ExpSpec] = {}
    for number, entry in enumerate(cast("list[dict[str, Any]]", found), 1):
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{where}: name of unit {number} must be a text, not {name!r}")
        if name in units:
            raise ConfigError(
                f"{where}: name of unit {number} must be new, {name!r} is unit {list(units).index(name) + 1}"
            )
        units[name] = _unit(f"{where}: unit {name}", entry)
    return list(units.values())


def _unit(where: str, entry: dict[str, Any]) -> ExpSpec:
    """Return one unit."""
    if ("family" in entry) == ("base" in entry):
        raise ConfigError(f"{where}: exactly one of family and base must be given, not {sorted(entry)}")
    key = "family" if "family" in entry else "base"
    named: Any = entry[key]
    known = FAMILIES if key == "family" else UNITS
    if not isinstance(named, str) or named not in known:
        raise UnknownNameError(f"{where}: {key}", str(named), known)
    cls = FAMILIES[named] if key == "family" else type(UNITS[named])
    names = {field.name: field for field in fields(cls) if field.init}
    changes: dict[str, Any] = {}
    for name, value in entry.items():
        if name == key:
            continue
        if name not in names:
            raise UnknownNameError(f"{where}: key", name, [*names, "family", "base"])
        old = getattr(UNITS[named], name) if key == "base" else names[name].default
        changes[name] = _value(f"{where}: {name}", value, old)
    if key == "family":
        for name, field in names.items():
            if name not in changes and field.default is MISSING and field.default_factory is MISSING:
                raise ConfigError(f"{where}: key {name} must be present, it is missing")
    try:
        return cls(**changes) if key == "family" else UNITS[named].replace(**changes)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None


def _value(where: str, value: Any, old: Any) -> Any:
    """Return a value of a TOML table as the specs hold it, in the place of ``old``.

    A format is named, a list becomes a tuple, and a table changes some of the parts that ``old`` has.
    """
    if isinstance(old, FloatFormat | FixedFormat):
        if not isinstance(value, str) or value not in _FORMATS:
            raise UnknownNameError(where, str(value), _FORMATS)
        return _FORMATS[value]
    if isinstance(value, list):
        return tuple(_value(where, entry, None) for entry in cast("list[Any]", value))
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if not is_dataclass(old) or isinstance(old, type):
            raise ConfigError(f"{where} must not be a table, but where base has such parts")
        for key in table:
            if key not in {field.name for field in fields(old)}:
                raise UnknownNameError(f"{where}: key", key, [field.name for field in fields(old)])
        parts = {key: _value(f"{where}: {key}", entry, getattr(old, key)) for key, entry in table.items()}
        try:
            return replace(old, **parts)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: {error}") from None
    return value
