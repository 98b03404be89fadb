"""Waveforms of tests: a test that fails after it ran RTL is run again with them, and ``make waves`` asks for them.

The hooks are taken up by ``tests/conftest.py``. The test runs again in a process of its own, because models are built
anew for tracing and a test can't be run twice in one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hw.builds import build_root
from hw.waves import TRACED_CYCLES, WAVES_FOLDER, runs_so_far

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["pytest_runtest_makereport", "pytest_runtest_setup", "run_traced"]

_RUNS_BEFORE = pytest.StashKey[int]()
_NO_SUCH_TEST = {pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED}
_TIMEOUT_S = 3600


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_RUNS_BEFORE] = runs_so_far()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Run a failed test again if it ran RTL, and say where the waveforms lie."""
    report = yield
    simulated = runs_so_far() > item.stash.get(_RUNS_BEFORE, runs_so_far())
    if report.when == "call" and report.failed and simulated and WAVES_FOLDER not in os.environ:
        item.config.pluginmanager.hook.pytest_timeout_cancel_timer(item=item)
        _, waves = run_traced([item.nodeid], item.nodeid, item.config.rootpath)
        told = [f"waveform: {wave}" for wave in waves] or ["no waveform: the run again ended before its simulation"]
        report.sections.append(("waveforms", "\n".join(told)))
    return report


def run_traced(
    selection: list[str], name: str, folder: Path, *options: str
) -> tuple[subprocess.CompletedProcess[str], list[Path]]:
    """Run tests with waveforms on.

    Parameters
    ----------
    selection : list of str
        What pytest is told to run.
    name : str
        Names the folder of the waveforms.
    folder : Path
        Where pytest starts.
    options : str
        Further ones of pytest.

    Returns
    -------
    tuple of CompletedProcess and list of Path
        How pytest ended and what it said, and the waveforms in the order of the runs.
    """
    waves = build_root() / "waves" / re.sub(r"[^\w.=-]+", "-", name).strip("-")[-120:]
    shutil.rmtree(waves, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *options, *selection]
    environment = {**os.environ, WAVES_FOLDER: str(waves)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done, sorted(waves.glob("*.vcd"))


def main(arguments: list[str]) -> int:
    """Run the tests that the argument names and print where their waveforms lie; return the exit status."""
    wanted = "TEST must name a test by node id, or be an expression of its name"
    (test,) = arguments
    if not test:
        print(f"{wanted}, it is empty: make waves TEST=tests/hw/test_cosim.py", file=sys.stderr)
        return 2
    by_id = Path(test.partition("::")[0]).exists()
    done, waves = run_traced([test] if by_id else ["-k", test], test, Path.cwd(), f"--timeout={_TIMEOUT_S}")
    if done.returncode in _NO_SUCH_TEST:
        print(f"{wanted}, not {test!r}: no test has it", file=sys.stderr)
        return 2
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    for wave in waves:
        print(wave)
    if not waves:
        print(f"{wanted} that simulates RTL, {test!r} simulates none", file=sys.stderr)
        return 2
    print(f"a native run shows its first {TRACED_CYCLES} cycles", file=sys.stderr)
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
