"""Settings and hooks of all tests: models built for short runs, the order of files, waveforms of those that fail."""

from __future__ import annotations

import gc
import os

from tests.helpers.order import (
    pytest_collection_modifyitems,
    pytest_configure_node,
    pytest_runtest_logreport,
    pytest_sessionfinish,
)
from tests.helpers.waves import pytest_runtest_makereport, pytest_runtest_setup

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_configure_node",
    "pytest_runtest_logreport",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_sessionfinish",
]

os.environ.setdefault("NEARKV_RUNS", "short")

# Simulators and designs are millions of objects that live as long as their test: the default of 700 has the collector
# go through them for a tenth of the time.
gc.set_threshold(200_000)
