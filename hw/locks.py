"""One process at a time makes a thing that is kept: the others wait for it instead of making it as well."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hw.builds import build_root, digest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["only_one"]


@contextmanager
def only_one(target: Path) -> Iterator[None]:
    """Let one process at a time into the block that makes ``target``; look again inside whether it is there by now.

    The lock is on an empty file in the folder ``locks`` of all builds and belongs to the open file, so the operating
    system gives it back when its holder ends, whatever ended it; the file itself stays and means nothing.
    """
    folder = build_root() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{target.name}-{digest(str(target))[:16]}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
