"""What ``nearkv study exp`` shows to people, and its rows flattened for CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from sim.studies.exp import RANKED_DIFFERENCE, TOOL_NOISE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["csv_rows", "study_tables"]


def csv_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of single values under one set of keys: parameters as ``key=value``, one column set a clock."""
    flat: list[dict[str, Any]] = []
    for row in rows:
        entry = {key: value for key, value in row.items() if key not in ("parameters", "pipelined", "provenance")}
        entry["parameters"] = "; ".join(f"{key}={value}" for key, value in row["parameters"].items())
        for pipeline in row["pipelined"]:
            clock = _clock(pipeline).replace("_", "")
            entry |= {f"pipelined_{clock}_{key}": pipeline[key] for key in pipeline if not key.startswith("clock")}
        entry["provenance"] = "; ".join(f"{key}: {value['class']}" for key, value in row["provenance"].items())
        flat.append(entry)
    return flat


def study_tables(rows: Sequence[Mapping[str, Any]], targets: Sequence[Mapping[str, Any]]) -> list[Table | str]:
    """Return the tables of the study: accuracy and area, pipelines and effects, and the areas asked for."""
    first = rows[0]
    main = _table(
        f"exponential units: all 65,536 codes through the RTL; area with {first['library']}, {first['yosys']}",
        "unit <format max% mean% CR% ulp GE FF NAND2 ns interval rate <front",
    )
    for row in rows:
        main.add_row(
            row["name"] + ("" if row["equal_to_golden"] else " RTL DIFFERS"),
            row["format"],
            _percent(row["max_rel"]),
            _percent(row["mean_rel"]),
            f"{100 * row['correctly_rounded']:.1f}",
            f"{row['max_ulp']:.3g}",
            f"{row['area_ge']:,.0f}",
            str(row["flip_flops"]),
            f"{row['delay_nand2']:.0f}",
            "-" if row["delay_ns"] is None else f"{row['delay_ns']:.1f}",
            str(row["interval_cycles"]),
            f"{1e6 * row['results_per_nand2_per_ge']:.2f}",
            ("*" if row["pareto"] else "") + ("" if row["domain"] == "full" else " x<=0"),
        )
    clocks = [_clock(pipe) for pipe in first["pipelined"]]
    effects = _table(
        "pipelined to a clock (GE with registers / stages), and errors of a softmax and of attention on real tensors",
        " ".join(("unit", *clocks, "softmax rms attention vs_fp16 argmax")),
    )
    for row in rows:
        effects.add_row(
            row["name"],
            *(_pipeline(pipe) for pipe in row["pipelined"]),
            f"{row['softmax_max_error']:.1e}",
            f"{row['softmax_rms_error']:.1e}",
            f"{row['attention_max_error']:.1e}",
            f"{row['attention_max_over_fp16']:.2f}",
            "kept" if row["argmax_kept"] else f"{row['argmax_changed']} changed",
        )
    asked = _table(
        "areas asked for (combinational, but for the serial one), and the smallest unit that has the accuracy",
        "target <public asked <unit GE <reached",
    )
    clocked = _table(
        "the same accuracy at one result a cycle: smallest pipelined unit, GE with registers / stages",
        " ".join(("target", *(f"<{clock}" for clock in clocks))),
    )
    for target in targets:
        asked.add_row(
            target["target"],
            target["public"],
            f"{target['asked_ge']:,.0f}",
            target["unit"] or "none",
            "-" if target["reached_ge"] is None else f"{target['reached_ge']:,.0f}",
            target["reached"],
        )
        if any(target["pipelined"]):
            clocked.add_row(
                target["target"],
                *("-" if pipe is None else f"{pipe['unit']}: {_pipeline(pipe)}" for pipe in target["pipelined"]),
            )
    return [
        main,
        effects,
        asked,
        clocked,
        "max, mean: relative error over every code with a normal result, against exact exp; CR: part correctly rounded",
        "ulp: largest error in units in the last place; NAND2, ns: delay of the mapped gates, wires left out",
        "rate: results in a million NAND2 delays for each gate equivalent, at the unit's own delay",
        "public: with abc's default script, which leaves a unit a fifth or so larger than the pinned one here",
        "pipelined: the smallest unit of each target, or all units of a --spec file, registers moved into mapped logic",
        f"front: nothing of the same format and layout errs less and is no larger; areas carry +-{TOOL_NOISE:.1%}",
        f"of tool noise, and differences below {RANKED_DIFFERENCE:.0%} are not ranked",
    ]


def _table(title: str, columns: str) -> Table:
    """Return an empty table; the first column and those marked ``<`` are aligned left."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns.split()):
        left = number == 0 or column[0] == "<"
        name = column.lstrip("<").replace("_", " ")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    return table


def _clock(pipe: Mapping[str, Any]) -> str:
    return f"{pipe['clock_nand2']:.0f}_NAND2" if pipe["clock_ns"] is None else f"{pipe['clock_ns']:g}_ns"


def _percent(value: float) -> str:
    return f"{100 * value:.3g}" if value >= 0.01 else f"{100 * value:.4f}"


def _pipeline(pipe: Mapping[str, Any]) -> str:
    if pipe.get("area_ge") is None:
        return "-"
    return f"{pipe['area_ge']:,.0f}/{pipe['registers']}"
