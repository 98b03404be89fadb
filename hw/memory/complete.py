"""Makes a dataclass of a mapping that names every field and nothing else."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Complete"]


class Complete:
    """Base of dataclasses without defaults that are read from presets and files."""

    @classmethod
    def from_mapping(cls, numbers: Mapping[str, Any]) -> Self:
        """Return the object with exactly these fields.

        Raises
        ------
        ValueError
            If a field is missing or a key is no field; the message names them all.
        """
        wanted = [item.name for item in fields(cls)]  # pyright: ignore[reportArgumentType]
        missing = [name for name in wanted if name not in numbers]
        if missing:
            raise ValueError(
                f"{cls.__name__} must have {', '.join(missing)}, not only {', '.join(numbers) or 'nothing'}"
            )
        unknown = [name for name in numbers if name not in wanted]
        if unknown:
            raise ValueError(f"{cls.__name__} must have no {', '.join(unknown)}; it has {', '.join(wanted)}")
        return cls(**numbers)
