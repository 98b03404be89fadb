"""Puts the files of tests that take longest first, so that workers which take a file at a time end together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# Neighbours build different models: two workers would build the same one twice.
_FIRST = (
    "rtl/test_processing.py",
    "rtl/test_channel.py",
    "hw/test_processing.py",
    "rtl/test_logic_die.py",
    "contract/test_attention.py",
    "rtl/test_tables.py",
    "rtl/test_reduction.py",
    "rtl/test_exp_compact_polynomial.py",
    "rtl/test_native_arithmetic.py",
    "rtl/test_memory_model.py",
)
_FOLDERS = ("rtl", "contract", "hw", "sim", "golden")
_ORDER = {name: place for place, name in enumerate((*_FIRST, *_FOLDERS))}
_ROOT = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.path.relative_to(_ROOT)))


def _place(path: Path) -> int:
    return _ORDER.get(path.as_posix(), _ORDER.get(path.parts[0], len(_ORDER)))
