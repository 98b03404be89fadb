"""Searches the shape of a compact exponential unit anew: ``python -m hw.exp_search compact16-95``.

Prints every shape that :func:`golden.exp.fit.compact_search.search` goes on from, with its counted area, and at the end
the shape and what synthesis makes of it. Fits are kept in the build folder, one line each, so that a search that was
stopped goes on where it was; a change of the fit's source starts afresh.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import golden.exp
from golden.exp.fit.compact import CompactFit, fit
from golden.exp.fit.compact_search import STARTS, search
from hw.builds import build_root, digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from golden.exp.compact_shape import CompactShape
    from golden.exp.fit.compact_search import Target

__all__ = ["FitCache", "main"]

_SOURCES = ("compact.py", "compact_shape.py", "fit/compact.py", "oracle.py")


class FitCache:
    """Fits of shapes to one target, kept in a file.

    Parameters
    ----------
    target : Target
        What shapes are fitted to.
    folder : Path
        Where the file is; its name is the hash of the target's bounds and of the fit's source.
    """

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        sources = [(Path(golden.exp.__file__).parent / name).read_text() for name in _SOURCES]
        self.path = folder / f"{digest(repr((target.max_rel, target.share)), *sources)[:16]}.jsonl"
        self.fitted = 0
        folder.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        # A run that was stopped may have left half a line.
        self._kept = dict(_entry(line) for line in lines if line.endswith("}]"))

    def __call__(self, shape: CompactShape) -> CompactFit:
        """Return the fit of ``shape``, from the file if it is there."""
        key = repr(shape)
        if key not in self._kept:
            found = fit(shape, self.target.max_rel, share=self.target.share)
            self.fitted += 1
            constants = {name: value for name, value in asdict(found).items() if name != "shape"}
            with self.path.open("a") as file:
                file.write("\n" + json.dumps([key, constants]))
            self._kept[key] = json.loads(json.dumps(constants))
        kept = self._kept[key]
        slopes = tuple(tuple(choices) for choices in kept["slopes"])
        return CompactFit(shape=shape, **{**kept, "slopes": slopes, "offsets": tuple(kept["offsets"])})


def _entry(line: str) -> tuple[str, dict]:
    key, constants = json.loads(line)
    return key, constants


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the search that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m hw.exp_search", description="Searches the shape of a compact unit anew."
    )
    parser.add_argument("name", choices=STARTS, help="target of the search")
    parser.add_argument("--fits", type=int, default=1000, help="shapes to fit at most (default 1000, a second each)")
    parser.add_argument("--share", type=float, help="least share of correctly rounded results, instead of the target's")
    parser.add_argument("--max-rel", type=float, help="bound of the relative error, instead of the target's")
    parser.add_argument(
        "--liberty", type=Path, help="library to synthesise the result with, instead of the generic one"
    )
    options = parser.parse_args(arguments)
    target = STARTS[options.name]
    changes = {"share": options.share, "max_rel": options.max_rel}
    target = replace(target, **{name: value for name, value in changes.items() if value is not None})

    def report(found: CompactFit, area: float) -> None:
        print(f"{area:8.1f} counted  {100 * found.correctly_rounded:6.2f} % correctly rounded", flush=True)

    found = search(target, fits=options.fits, fit_shape=FitCache(target, build_root() / "exp-search"), report=report)
    print(found.shape)

    from hw.synth import synthesise
    from hw.units.exp import ExpUnit
    from hw.verilog import convert

    unit = convert(ExpUnit(found.spec(options.name)), name="nearkv_exp")
    synthesis = synthesise(unit, "nearkv_exp", options.liberty)
    print(f"{synthesis.area_ge:.1f} GE of {synthesis.library}, {synthesis.delay_nand2:.1f} NAND2 delays")


if __name__ == "__main__":
    main()
