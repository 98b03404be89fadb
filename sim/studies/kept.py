"""Results that take time to make, kept in the build folder by the hash of everything they follow from."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hw.builds import build_root, digest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kept"]


def kept(kind: str, causes: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
    """Return what an earlier run kept, or make it and keep it.

    Parameters
    ----------
    kind : str
        What it is: leads the name of its file.
    causes : tuple of str
        Everything that decides the result: texts, hashes of files, versions of tools.
    make : callable
        Makes the result; is called only if nothing is kept.

    Notes
    -----
    A file appears whole or not at all, so an interrupted run leaves no half of one, and two processes may make the
    same result.
    """
    path = build_root() / "study" / f"{kind}-{digest(*causes)[:20]}"
    if not path.exists():
        content = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    return path.read_bytes()
