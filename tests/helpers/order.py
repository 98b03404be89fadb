"""Puts the files of tests that take longest first, so that workers which take a file at a time end together.

The seconds of every test are kept in the build folder from the runs before. A file without a record comes first, as it
may take any time; a first run goes by the list below. Workers of one run must agree on the order while other runs keep
theirs, so they are given the record instead of reading it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from hw.builds import build_root, replace_text
from hw.locks import only_one
from hw.waves import WAVES_FOLDER

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_configure_node",
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "sorted_files",
]

# Neighbours build different models: one worker would wait for the other.
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

_measured: dict[str, float] = defaultdict(float)
"""Seconds of each test of this run."""


def sorted_files(files: list[str], seconds: dict[str, float]) -> list[str]:
    """Return ``files``, the longest first.

    Parameters
    ----------
    files : list of str
        Paths as they begin node ids, ``tests/rtl/test_exp.py``.
    seconds : dict of str to float
        Kept seconds of tests, by node id.
    """
    kept: dict[str, float] = defaultdict(float)
    for test, taken in seconds.items():
        kept[test.partition("::")[0]] += taken
    return sorted(files, key=lambda file: (-kept.get(file, float("inf")), _listed(file)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    given = getattr(config, "workerinput", None)
    files = list(dict.fromkeys(_file(item.nodeid) for item in items))
    order = sorted_files(files, given["seconds"] if given else _kept())
    places = {file: place for place, file in enumerate(order)}
    items.sort(key=lambda item: places[_file(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["seconds"] = _kept()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _measured[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the seconds of this run's tests beside those of others; workers leave that to who started them."""
    if hasattr(session.config, "workerinput") or WAVES_FOLDER in os.environ or not _measured:
        return
    record = _record()
    with only_one(record):
        replace_text(record, json.dumps(_kept() | {test: round(taken, 3) for test, taken in _measured.items()}))


def _record() -> Path:
    return build_root() / "test-seconds.json"


def _kept() -> dict[str, float]:
    return json.loads(_record().read_text()) if _record().exists() else {}


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _listed(file: str) -> int:
    """Return the place of a file in the list of a first run."""
    name = file.removeprefix("tests/")
    return _ORDER.get(name, _ORDER.get(Path(name).parts[0], len(_ORDER)))
