"""Promise: the longest files of tests run first, new ones before all others, and the record outlives other runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.order import sorted_files

_ROOT = Path(__file__).parents[2]


def test_a_first_run_goes_by_the_list_and_the_folders() -> None:
    files = ["tests/golden/test_exp.py", "tests/hw/test_exp.py", "tests/rtl/test_channel.py", "tests/rtl/test_exp.py"]
    assert sorted_files(files, {}) == [files[2], files[3], files[1], files[0]]


def test_seconds_of_the_tests_of_a_file_add_up_and_a_new_file_comes_first() -> None:
    seconds = {"tests/hw/a.py::one": 2.0, "tests/hw/a.py::two[x::y]": 2.5, "tests/hw/b.py::one": 4.0, "gone.py::x": 9.0}
    files = ["tests/hw/b.py", "tests/hw/a.py", "tests/sim/new.py"]
    assert sorted_files(files, seconds) == ["tests/sim/new.py", "tests/hw/a.py", "tests/hw/b.py"]


def test_runs_keep_their_seconds_and_go_by_them(tmp_path: Path) -> None:
    """Two files in a process and in two workers; the slow one comes first from the second run on."""
    for name, text in (
        ("test_a_quick", "def test():\n    pass\n"),
        ("test_b_slow", "import time\n\n\ndef test():\n    time.sleep(0.3)\n"),
    ):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "test-seconds.json").write_text('{"test_other.py::test": 7.0}')
    environment = {**os.environ, "NEARKV_BUILD": str(tmp_path / "build"), "PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "tests.helpers.order", "-v", "--rootdir", str(tmp_path)]
    orders = []
    for options in (
        ["-p", "no:xdist"],
        ["-p", "no:xdist"],
        ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"],
    ):
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        orders.append(done.stdout.index("test_a_quick") > done.stdout.index("test_b_slow"))
        assert "2 passed" in done.stdout
    assert orders[:2] == [False, True]
    kept = json.loads((tmp_path / "build" / "test-seconds.json").read_text())
    assert kept.keys() == {"test_other.py::test", "test_a_quick.py::test", "test_b_slow.py::test"}
    assert kept["test_other.py::test"] == 7.0
    assert kept["test_b_slow.py::test"] >= 0.3 > kept["test_a_quick.py::test"]
