"""Where builds are kept, how they are named, and how a file appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

__all__ = ["build_root", "digest", "replace_text"]


def build_root() -> Path:
    """Return the folder of all builds: ``$NEARKV_BUILD``, else ``build`` in the working directory."""
    return Path(os.environ.get("NEARKV_BUILD", "build")).absolute()


def digest(*texts: str) -> str:
    """Return the sha256 of ``texts`` in order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def replace_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
