"""Which source files a piece of hardware follows from, and their hash: what is made of it is kept by that.

A module follows from itself, from every module it imports and from the packages around them, and so on. The import
statements are read from the text, those inside functions and for type checkers too, so that a file counts when any
path through the code may need it; modules found by name alone (:func:`importlib.import_module`) are not seen, and what
makes hardware uses none.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.builds import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["classes_of", "source_digest", "source_files"]

_ROOTS = frozenset({"golden", "hw"})


def source_digest(modules: Iterable[str]) -> str:
    """Return the hash of all source files that ``modules`` follow from, as this process found them first."""
    return _digest(frozenset(modules))


def source_files(modules: Iterable[str]) -> dict[str, Path]:
    """Return the files that ``modules`` follow from, by name of module.

    Parameters
    ----------
    modules : iterable of str
        Dotted names. Imports are followed into ``golden``, ``hw`` and the top packages of these; all others belong to
        installed packages, which have versions.
    """
    waiting = sorted(set(modules))
    roots = _ROOTS | {name.partition(".")[0] for name in waiting}
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in roots:
            continue
        path = _path(name)
        if path is not None:
            found[name] = path
            waiting += _imports(name, path)
    return dict(sorted(found.items()))


def classes_of(value: Any) -> Iterator[type]:
    """Yield the classes of ``value`` and of everything in it, as deep as dataclasses, mappings and sequences go."""
    yield type(value)
    if is_dataclass(value) and not isinstance(value, type):
        parts: Iterable[Any] = (getattr(value, field.name) for field in fields(value))
    elif isinstance(value, dict):
        parts = (*value, *value.values())
    elif isinstance(value, tuple | list | set | frozenset):
        parts = value
    else:
        parts = ()
    for part in parts:
        yield from classes_of(part)


@functools.cache
def _digest(modules: frozenset[str]) -> str:
    return digest(*(f"{name} {_text(path)}" for name, path in source_files(modules).items()))


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _path(name: str) -> Path | None:
    """Return the file of a module, or None if it is none: what stands behind ``from`` may be a function as well."""
    top, *inner = name.split(".")
    spec = importlib.util.find_spec(top)
    for place in (spec and spec.submodule_search_locations) or ():
        path = Path(place, *inner)
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return file
    return None


@functools.cache
def _imports(name: str, path: Path) -> frozenset[str]:
    """Return what a module imports and the packages it lies in; names that are no modules among them."""
    parts = name.split(".")
    package = name if path.name == "__init__.py" else ".".join(parts[:-1])
    found = {".".join(parts[:depth]) for depth in range(1, len(parts))}
    for node in ast.walk(ast.parse(_text(path))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return frozenset(found)
