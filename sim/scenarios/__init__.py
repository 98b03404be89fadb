"""Named scenarios: a system, a model and a workload together, such as an example that a document works out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from sim.errors import ConfigError, UnknownNameError
from sim.scenarios.karat_seed import worked_example

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SCENARIOS", "decode_scenario", "scenario_tables"]

SCENARIOS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "worked-example": ("karat-seed", worked_example),
}
"""System and record of each scenario of a decode step, by its name."""


def decode_scenario(name: str, *, system: str | None) -> dict[str, Any]:
    """Return the record of a scenario.

    Parameters
    ----------
    name : str
        One of :data:`SCENARIOS`.
    system : str or None
        System that was asked for; None where none was.

    Raises
    ------
    UnknownNameError
        If there is no such scenario.
    ConfigError
        If the scenario is one of another system.
    """
    if name not in SCENARIOS:
        raise UnknownNameError("scenario", name, SCENARIOS)
    own, record = SCENARIOS[name]
    if system not in (None, own):
        raise ConfigError(f"--system must be {own} for scenario {name}, not {system!r}")
    return record()


def scenario_tables(record: Mapping[str, Any]) -> list[Table | str]:
    """Return what of a scenario's record is shown to people."""
    title = f"{record['scenario']} of {record['system']}: {record['model']}, {record['context']:,} tokens"
    stages = Table(title=f"{title} [{record['provenance']}]", title_justify="left")
    stages.add_column("stage")
    stages.add_column("us", justify="right")
    rows = [(stage["name"], stage["us"]) for stage in record["stages"]]
    rows += [("step", record["step_us"]), ("GPU alone, q.K", record["gpu_only_us"])]
    for name, us in [*rows, ("GPU alone, q.K and P.V", record["gpu_only_with_pv_us"])]:
        stages.add_row(name, f"{us:,.5f}")
    rates = Table(title="its rates beside published ones", title_justify="left")
    for column in ("rate", "seed", "ours", "holds", "why"):
        rates.add_column(column, justify="right" if column in ("seed", "ours") else "left")
    for rate in record["rates"]:
        numbers = (f"{rate[key]:,.6g}" for key in ("seed", "ours"))
        rates.add_row(rate["name"], *numbers, "yes" if rate["holds"] else "no", rate["why"])
    ours = record["on_our_numbers"]
    parts = ", ".join(f"{key[:-3].replace('_', ' ')} {us:.2f} us" for key, us in ours.items() if key.endswith("_us"))
    return [
        stages,
        *(f"{ratio['name']}: {ratio['value']:.3g} times" for ratio in record["ratios"]),
        rates,
        f"one layer of {ours['model']} on our numbers [{ours['provenance']['class']}]: {parts}",
    ]
