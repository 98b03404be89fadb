"""Promise: two processes that want the same thing make it once, and a holder that is killed blocks nobody."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from hw.locks import only_one

if TYPE_CHECKING:
    from pathlib import Path

_MAKER = """
import sys, time
from pathlib import Path
from hw.locks import only_one

target = Path(sys.argv[1])
print("started", flush=True)
with only_one(target):
    if not target.exists():
        print("makes it", flush=True)
        time.sleep(float(sys.argv[2]))
        target.write_text("made")
"""


@pytest.fixture(autouse=True)
def _own_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path / "build"))


def _start(target: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _MAKER, str(target), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    makers = [_start(tmp_path / "target", 0.2) for _ in range(2)]
    said = [maker.communicate(timeout=60)[0] for maker in makers]
    assert [maker.returncode for maker in makers] == [0, 0]
    assert "".join(said).count("makes it") == 1
    assert (tmp_path / "target").read_text() == "made"


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    with _start(tmp_path / "target", 3600) as holder, _start(tmp_path / "other", 0):
        assert holder.stdout is not None
        assert [holder.stdout.readline() for _ in range(2)] == ["started\n", "makes it\n"]
        with _start(tmp_path / "target", 0) as waiting:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == "started\n"
            time.sleep(0.2)
            assert waiting.poll() is None, "it must wait as long as the holder lives"
            holder.kill()
            assert waiting.communicate(timeout=60)[0] == "makes it\n"
    assert (tmp_path / "target").read_text() == (tmp_path / "other").read_text() == "made"


def test_other_targets_do_not_wait_and_an_error_lets_go(tmp_path: Path) -> None:
    with only_one(tmp_path / "a"), only_one(tmp_path / "b"):
        pass
    with pytest.raises(KeyError), only_one(tmp_path / "a"):
        raise KeyError
    with only_one(tmp_path / "a"):
        assert not (tmp_path / "a").exists()
