"""A number with its unit and source, and the note that is due where a printed number can't be used."""

from __future__ import annotations

from dataclasses import asdict, dataclass

__all__ = ["Deviation", "Value"]


@dataclass(frozen=True)
class Value:
    """One number of a preset.

    Parameters
    ----------
    value : int, float or str
        The number; a string for a name, such as a format.
    unit : str
        Its unit; ``"1"`` for counts and ratios, ``"name"`` for names.
    source : str
        Where it is printed, or how it follows from what is printed.

    Raises
    ------
    ValueError
        If unit or source is empty.
    """

    value: int | float | str
    unit: str
    source: str

    def __post_init__(self) -> None:
        for name in ("unit", "source"):
            if not getattr(self, name):
                raise ValueError(f"{name} of a preset value must say something, not {getattr(self, name)!r}")

    @property
    def number(self) -> float:
        """The value as a float.

        Raises
        ------
        TypeError
            If it is a name.
        """
        if isinstance(self.value, str):
            raise TypeError(f"value must be a number, not {self.value!r}")
        return float(self.value)

    @property
    def integer(self) -> int:
        """The value as an int.

        Raises
        ------
        TypeError
            If it is not a whole number.
        """
        value = self.value
        if type(value) is int:  # nearly all, and asked for often
            return value
        if isinstance(value, str) or value != int(value):
            raise TypeError(f"value must be a whole number, not {value!r}")
        return int(value)

    def to_dict(self) -> dict[str, int | float | str]:
        """Return value, unit and source as they stand in a report."""
        return asdict(self)


@dataclass(frozen=True)
class Deviation:
    """A printed number that can't be used as printed.

    Parameters
    ----------
    field : str
        Field of the preset.
    printed, used : str
        The number as printed, and what stands in its place.
    reason : str
        Why.
    """

    field: str
    printed: str
    used: str
    reason: str

    def to_dict(self) -> dict[str, str]:
        """Return the four texts as they stand in a report."""
        return asdict(self)
