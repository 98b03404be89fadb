"""Typed look-up in a ``config.json`` whose keys differ from model to model, with errors that name file and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sim.errors import ConfigError

__all__ = ["ConfigKeys"]


@dataclass(frozen=True)
class ConfigKeys:
    """The keys of one configuration file.

    Every look-up takes several names and uses the first that is there and not null.

    Parameters
    ----------
    where : str
        File or preset, for messages.
    data : dict
        The parsed object.
    """

    where: str
    data: dict[str, Any]

    def get(self, *names: str) -> Any:
        """Return the first value present among ``names``, or None."""
        for name in names:
            if self.data.get(name) is not None:
                return self.data[name]
        return None

    def name_of(self, *names: str) -> str:
        """Return which of ``names`` is present, or the first."""
        return next((name for name in names if self.data.get(name) is not None), names[0])

    def fail(self, key: str, wanted: str, given: object) -> ConfigError:
        """Return the error that says what ``key`` must be."""
        return ConfigError(f"{self.where}: {key} must be {wanted}, not {given!r}")

    def integer(self, *names: str, low: int = 1, default: int | None = None) -> int:
        """Return a whole number of at least ``low``.

        Raises
        ------
        ConfigError
            If none of the names is present and there is no default, or the value is something else.
        """
        value = self.get(*names)
        if value is None:
            if default is None:
                raise ConfigError(f"{self.where}: key {' or '.join(names)} must be present, it is missing")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise self.fail(self.name_of(*names), f"an integer of at least {low}", value)
        return value

    def optional_integer(self, *names: str, low: int = 1) -> int | None:
        """Return a whole number of at least ``low``, or None where no name is present."""
        return None if self.get(*names) is None else self.integer(*names, low=low)

    def flag(self, *names: str, default: bool) -> bool:
        """Return a truth value.

        Raises
        ------
        ConfigError
            If the value is neither true nor false.
        """
        value = self.get(*names)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fail(self.name_of(*names), "true or false", value)
        return value

    def text(self, *names: str, default: str = "") -> str:
        """Return a string.

        Raises
        ------
        ConfigError
            If the value is something else.
        """
        value = self.get(*names)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.fail(self.name_of(*names), "a string", value)
        return value

    def per_layer(self, name: str, num_layers: int) -> list[Any] | None:
        """Return a list with one entry a layer, or None where the key is absent or holds a single value.

        Entries beyond ``num_layers`` belong to prediction layers outside the model and are dropped.

        Raises
        ------
        ConfigError
            If the list is shorter than the model is deep.
        """
        value = self.data.get(name)
        if not isinstance(value, list):
            return None
        entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        if len(entries) < num_layers:
            raise self.fail(name, f"a list of {num_layers} entries, one a layer", f"{len(entries)} entries")
        return entries[:num_layers]
