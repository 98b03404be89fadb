"""What ``nearkv decode`` shows to people of a step with retrieval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from sim.retrieval.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["retrieval_tables"]


def retrieval_tables(record: Mapping[str, Any]) -> list[Table | str]:
    """Return the tables of a record of :func:`sim.retrieval.record.retrieval_record`."""
    classes = record["provenance"]
    total = record["step_us"]
    parts = _table(f"{record['model']} on {record['system']}: one decode step", ("part", "us", "share", "made from"))
    gpu = record["gpu"]
    rows = [
        ("step", total, f"{record['tokens_per_s']:,.1f} tokens/s [{classes['step_us']['class']}]"),
        ("GPUs", record["gpu_us"], f"[{classes['gpu_us']['class']}]"),
        *((f"  {name.removesuffix('_us').replace('_', ' ')}", us, "") for name, us in gpu.items()),
        ("attention", record["attention_us"], f"[{classes['attention_us']['class']}]"),
        *((f"  {stage['name']}", stage["us"], _made_from(stage)) for stage in record["stages"]),
    ]
    for name, us, text in rows:
        parts.add_row(name, f"{us:,.1f}", f"{us / total:.2%}", text)
    columns = ("device", "requests", "weights GB", "KV GB", "index GB", "room GB", "us", "bound", "provenance")
    devices = _table("devices: what the fullest holds (GPUs and hosts together), what the busiest does", columns)
    for device in record["devices"]:
        sizes = (device[key] / 1e9 for key in ("weight_bytes", "kv_bytes", "index_bytes", "capacity_bytes"))
        devices.add_row(
            f"{device['count']} x {device['name']}",
            str(device["requests"]),
            *(f"{size:,.1f}" for size in sizes),
            f"{device['us']:,.1f}",
            device["bound"],
            device["provenance"],
        )
    layers = _table(
        "layers, us of one", ("layers", "attends to", "GPUs", *(stage["name"] for stage in record["stages"]))
    )
    for layer in record["layers"]:
        stages = layer["stages_us"]
        layers.add_row(
            f"{layer['count']} x {layer['kind']}, {layer['index_role']}",
            f"{layer['attended_tokens']:,}",
            f"{layer['gpu_us']:,.1f}",
            *(f"{stages[stage['name']]:,.2f}" if stage["name"] in stages else "-" for stage in record["stages"]),
        )
    overlap, largest = record["overlap"], record["largest_batch"]
    most = f"{largest['batch']:,}, in {largest['step_us']:,.1f} us, {largest['tokens_per_s']:,.1f} tokens/s"
    return [
        parts,
        devices,
        layers,
        f"batch {record['batch']}, context {record['context']:,} tokens and the step's own; {_method(record)}",
        f"KV {record['kv_bytes_per_token']:,} bytes a token, index {record['index_bytes_per_token']:,.0f}",
        f"{overlap['kind']}: {overlap['note']}",
        f"at best {overlap['bound_us']:,.1f} us, {overlap['bound_note']}",
        _same_factor(record["same_factor"]),
        f"most requests of this context that fit: {most}",
        *_energy(record),
    ]


def _energy(record: Mapping[str, Any]) -> list[str]:
    """Return what is known of the energy in words."""
    lines = [f"energy_j: {record['energy_note']}"]
    if record["energy_bound_j"] is not None:
        lines.append(f"at most {record['energy_bound_j']:,.4g} J: {record['energy_bound_note']}")
    return lines


def _made_from(stage: Mapping[str, Any]) -> str:
    """Return what sets the pace of a stage, the cycles of its unit, and the class of its time."""
    unit = stage["unit"]
    cycles = f", {unit['cycles']:,} cycles of its unit [{unit['provenance']}]" if unit else ""
    hidden = stage["busy_us"] - stage["us"]
    behind = f", {hidden:,.1f} us more hidden" if hidden > 0.05 else ""
    return f"{stage['bound']}{cycles}{behind}; time [{stage['provenance']}]"


def _same_factor(same: Mapping[str, Any]) -> str:
    """Return the step at the other kind of machine's factor in words."""
    return (
        f"attention reads at {same['own_value']:.2f} of its memory's peak ({same['own_factor']}); "
        f"at {same['value']:.2f} ({same['factor']}) the step takes {same['step_us']:,.1f} us, "
        f"at best {same['bound_us']:,.1f} us"
    )


def _method(record: Mapping[str, Any]) -> str:
    """Return the method in words."""
    if record["method"] == "trained":
        return "tokens selected as the model was trained to"
    dense = f", first {record['dense_layers']} layers dense" if record["dense_layers"] else ""
    budget = f", {record['budget']:,} tokens a head" if record["budget"] else ""
    return f"{record['method']}: {METHODS[record['method']].description}{budget}{dense}"


def _table(title: str, columns: Sequence[str]) -> Table:
    left = ("part", "device", "layers", "bound", "made from", "provenance")
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right")
    return table
