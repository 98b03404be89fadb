"""Proofs: a block of certain sizes, its bench, and how far the search goes; what was found is kept by content."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hw.builds import build_root, digest, replace_text
from tests.formal import solver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.formal.bench import Bench

__all__ = ["Finding", "Proof", "mutant", "prove"]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One block.

    Parameters
    ----------
    block : str
        Its name.
    parameters : str
        Its sizes, as the table shows them.
    bench : callable
        Makes the bench anew; classes of the blocks in it are its optional arguments.
    cycles : int
        Runs of up to so many cycles are gone through.
    bounded : frozenset of str
        Claims for which a search came to no end in trials, so that none is made: their state is too wide for it.
    """

    block: str
    parameters: str
    bench: Callable[..., Bench]
    cycles: int
    bounded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Finding:
    """One claim of one block, and what was found out about it."""

    block: str
    parameters: str
    claim: str
    outcome: solver.Outcome

    @property
    def method(self) -> str:
        """How it was found."""
        return {
            "proven": f"induction, k = 1, {self.outcome.clauses} clauses",
            "bounded": f"bounded, n = {self.outcome.cycles}",
            "fails": f"run of {self.outcome.cycles} cycles",
        }[self.outcome.result]

    def to_dict(self) -> dict[str, object]:
        """Return the row of a table."""
        outcome = self.outcome
        return {
            "claim": self.claim,
            "block": self.block,
            "parameters": self.parameters,
            "method": self.method,
            "cycles": outcome.cycles,
            "seconds": round(outcome.seconds, 1),
            "result": outcome.result,
        }


def prove(
    proof: Proof,
    *,
    cycles: int | None = None,
    seconds: int = 0,
    bench: Bench | None = None,
    claims: Iterable[str] | None = None,
) -> Iterator[Finding]:
    """Give what is found out about each claim of a proof, or was by an earlier run about the same circuit.

    Parameters
    ----------
    proof : Proof
        The proof.
    cycles : int
        Bound of the runs in place of that of the proof.
    seconds : int
        Limit of each search for a proof of runs of any length; 0 leaves it out.
    bench : Bench
        Circuit in place of that of the proof.
    claims : iterable of str
        Claims that are looked at in place of all.
    """
    bench = bench or proof.bench()
    cycles = cycles or proof.cycles
    aiger = solver.graph(*bench.finish())
    folder = build_root() / "formal"
    folder.mkdir(parents=True, exist_ok=True)
    for number, claim in enumerate(bench.claims):
        if claims is not None and claim not in claims:
            continue
        limit = 0 if claim in proof.bounded else seconds
        kept = folder / f"{digest(aiger.hex(), str(number), _program())[:32]}.json"
        outcome = _kept(kept)
        if outcome is None or not _answers(outcome, cycles, limit):
            outcome = solver.check(aiger, number, cycles=cycles, seconds=limit)
            replace_text(kept, json.dumps(asdict(outcome)))
        yield Finding(proof.block, proof.parameters, claim, outcome)


def _kept(path: Path) -> solver.Outcome | None:
    """Return what an earlier run found, if one did."""
    if not path.exists():
        return None
    values = json.loads(path.read_text())
    return solver.Outcome(**{**values, "inputs": tuple(values["inputs"])})


def _answers(outcome: solver.Outcome, cycles: int, limit: int) -> bool:
    """Return whether a search that goes through ``cycles`` and lasts ``limit`` seconds would find no more."""
    if outcome.result == "bounded":
        return outcome.cycles >= cycles and outcome.limit_seconds >= limit
    return outcome.result == "proven" or outcome.cycles <= cycles


@functools.cache
def _program() -> str:
    """Return what a result follows from beside the circuit."""
    return digest(Path(solver.__file__).read_text(), importlib.metadata.version("pyosys"))


def mutant(unit: type, before: str, after: str) -> type:
    """Return a class as its module would define it with one piece of its text replaced.

    Raises
    ------
    ValueError
        If ``before`` isn't in the text exactly once.
    """
    path = Path(inspect.getfile(unit))
    text = path.read_text()
    if text.count(before) != 1:
        raise ValueError(f"before must be once in {path.name}, not {text.count(before)} times: {before!r}")
    names: dict[str, object] = {"__name__": unit.__module__}
    exec(compile(text.replace(before, after), str(path), "exec"), names)
    return names[unit.__name__]  # type: ignore[return-value]
