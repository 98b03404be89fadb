"""What exponential units are held against: figures of public designs, and areas asked for at stated accuracies.

Areas are gate equivalents of IHP's sg13g2 at 1.2 V, typical; with another library they compare within a quarter.
Public designs were synthesised from their published RTL, or from plain RTL of their method, with the default script of
abc. The script of :mod:`hw.abc_scripts` makes a unit smaller by a fifth or so: a public figure is not one of this flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.studies.exp import TOOL_NOISE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["TARGETS", "Target", "target_rows", "target_units"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """An area to stay within at a stated accuracy.

    Parameters
    ----------
    name : str
        What is asked, for people.
    format : str
        Format of operand and result.
    area_ge : float
        The area, gate equivalents.
    public : str
        Best public design in the same flow.
    max_rel, mean_rel_uniform : float
        Largest errors allowed, as :class:`golden.exp.statistics.ExpStatistics` defines them.
    correctly_rounded : float
        Smallest share allowed.
    subnormals : str
        What results below the smallest normal number must become; ``flushed`` also admits units that round them.
    degree : int or None
        Degree that the polynomial must have.
    serial : bool
        Whether the unit is a serial one, registers included, or a combinational one.
    """

    name: str
    format: str
    area_ge: float
    public: str
    max_rel: float = 1.0
    mean_rel_uniform: float = 1.0
    correctly_rounded: float = 0.0
    subnormals: str = "rounded"
    degree: int | None = None
    serial: bool = False

    def admits(self, row: Mapping[str, Any]) -> bool:
        """Return whether a unit has the accuracy and everything else that is asked, whatever its area."""
        parameters = row["parameters"]
        return (
            row["equal_to_golden"]
            and row["monotone"]
            and row["specials"]
            and row["format"] == self.format
            and row["domain"] == "full"
            and row["subnormals"] in (self.subnormals, "rounded")
            and parameters["evaluation"] == ("serial" if self.serial else "combinational")
            and (self.degree is None or parameters.get("degree") == self.degree)
            and row["max_rel"] <= self.max_rel
            and row["mean_rel_uniform"] <= self.mean_rel_uniform
            and row["correctly_rounded"] >= self.correctly_rounded
        )

    def smallest(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return the smallest unit that has the accuracy, None where none has."""
        return min((row for row in rows if self.admits(row)), key=lambda row: row["area_ge"], default=None)


TARGETS = (
    Target(name="fp16, max < 0.1 %", format="fp16", max_rel=1e-3, area_ge=900, public="16 lines, 1,862 GE"),
    Target(
        name="fp16, max <= 0.054 %, >= 95 % correctly rounded",
        format="fp16",
        max_rel=5.4e-4,
        correctly_rounded=0.95,
        area_ge=1200,
        public="64 lines, 2,272 GE",
    ),
    Target(
        name="fp16, >= 99 % correctly rounded",
        format="fp16",
        correctly_rounded=0.99,
        area_ge=1500,
        public="8 parabolas, 3,947 GE",
    ),
    Target(
        name="bf16, max <= 0.875 %, mean <= 0.196 %, >= 96.6 % correctly rounded",
        format="bf16",
        max_rel=8.75e-3,
        mean_rel_uniform=1.963e-3,
        correctly_rounded=0.966,
        subnormals="flushed",
        area_ge=560,
        public="SoftEx, 1,170-1,250 GE",
    ),
    Target(
        name="fp16, degree 6, >= 95 % correctly rounded",
        format="fp16",
        correctly_rounded=0.95,
        degree=6,
        area_ge=2500,
        public="degree 6, 5,931 GE",
    ),
    Target(
        name="fp16, degree 6, serial with registers, >= 95 % correctly rounded",
        format="fp16",
        correctly_rounded=0.95,
        degree=6,
        serial=True,
        area_ge=2000,
        public="none known",
    ),
)
"""Full domain, every code with a normal result counted, exp(0) exactly 1, monotone, NaN and infinities right."""


def target_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for every target the smallest unit of ``rows`` that has its accuracy.

    Returns
    -------
    list of dict
        ``target``, ``public``, ``asked_ge``; ``unit`` and ``reached_ge``, None where no unit has the accuracy;
        ``reached``: ``yes``, ``within noise`` where it is larger by no more than :data:`sim.studies.exp.TOOL_NOISE`, or
        ``no``; ``pipelined``: for each clock the smallest pipelined unit of the accuracy, which may be another one.
    """
    result: list[dict[str, Any]] = []
    for target in TARGETS:
        admitted = [row for row in rows if target.admits(row)]
        fit = target.smallest(rows)
        reached = "no"
        if fit is not None and fit["area_ge"] <= target.area_ge * (1 + TOOL_NOISE):
            reached = "yes" if fit["area_ge"] <= target.area_ge else "within noise"
        result.append(
            {
                "target": target.name,
                "public": target.public,
                "asked_ge": target.area_ge,
                "unit": fit and fit["name"],
                "reached_ge": fit and fit["area_ge"],
                "reached": reached,
                "pipelined": [_smallest(admitted, place) for place in range(len(rows[0]["pipelined"]))],
            }
        )
    return result


def target_units(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of the smallest unit of each target."""
    return {row["name"] for target in TARGETS if (row := target.smallest(rows)) is not None}


def _smallest(rows: Sequence[Mapping[str, Any]], place: int) -> dict[str, Any] | None:
    """Return the smallest of the pipelines at one clock, with the name of its unit; None where there is none."""
    found = [{"unit": row["name"], **row["pipelined"][place]} for row in rows]
    return min((pipe for pipe in found if pipe["area_ge"]), key=lambda pipe: pipe["area_ge"], default=None)
