"""Results on their way out: JSON and CSV for programs, tables for people; files appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich import box
from rich.console import Console
from rich.table import Table

from sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["decode_row", "decode_tables", "energy_lines", "print_tables", "to_csv", "to_json", "write_text"]

_SIGNIFICANT = 12
_WIDTH = 120


def _rounded(value: Any) -> Any:
    """Return ``value`` with every float cut to 12 significant digits, so that no library's last bit shows."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"value must be finite to be reported, not {value!r}")
        return float(f"{value:.{_SIGNIFICANT}g}")
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in cast("list[Any]", value)]
    return value


def to_json(record: Mapping[str, Any]) -> str:
    """Return ``record`` as one JSON object, the same text for the same record."""
    return json.dumps(_rounded(dict(record)), indent=2, ensure_ascii=True) + "\n"


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return ``rows`` as CSV under the keys of the first.

    Raises
    ------
    ValueError
        If there are no rows, or one has other keys.
    """
    if not rows:
        raise ValueError("rows must not be empty")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(_rounded(dict(row)))
    return text.getvalue()


def write_text(path: Path, text: str) -> None:
    """Write a file whole: it is made under another name and then takes its place.

    Raises
    ------
    ConfigError
        If it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path}: file must be writable: {error.strerror}") from None


def decode_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat row of a decode record: what sweeps collect and figures are drawn from."""
    keys = ("system", "model", "context", "batch", "placement", "keep", "step_us", "tokens_per_s")
    row: dict[str, Any] = {key: record[key] for key in keys}
    for key in ("gpu_us", "attention_us", "link_us", "tier_us", "slowest_tier"):
        row[key] = record[key]
    for key in ("reduction_us", "reduction_share", "kv_bytes_total"):
        row[key] = record[key]
    for device in record["devices"]:
        name = str(device["name"]).replace("-", "_")
        row[f"{name}_tokens"] = device["tokens"]
        row[f"{name}_us"] = device["us"]
        row[f"{name}_bound"] = device["bound"]
    row["config_sha256"] = record["manifest"]["config_sha256"]
    return row


def print_tables(tables: Iterable[Table | str]) -> None:
    """Print tables and lines of text to standard output."""
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH, highlight=False, markup=False)
    plain = not console.encoding.lower().startswith("utf")
    for table in tables:
        if plain and isinstance(table, Table):
            table.box = box.ASCII
        console.print(table)


def decode_tables(record: Mapping[str, Any]) -> list[Table | str]:
    """Return what ``nearkv decode`` shows to people."""
    summary = Table(title=f"{record['model']} on {record['system']}: one decode step", title_justify="left")
    for column in ("part", "us", "share", "what it is"):
        summary.add_column(column, justify="right" if column in ("us", "share") else "left")
    classes = record["provenance"]
    parts = [
        ("step_us", "the whole step"),
        ("gpu_us", "projections, feed-forward, all-reduce, head"),
        ("attention_us", "queries out to output back"),
        ("tier_us", "of it: access and columns of the tier waited for"),
        ("link_us", "of it: links"),
        ("reduction_us", "of it: reduction behind the last column, merge of the tiers"),
    ]
    if record["pipeline_parallel"] > 1:
        parts.append(("send_us", "activations to the next stage"))
        parts.append(("bubble_us", "waiting for tokens: micro-batches are fewer than stages"))
    for name, text in parts:
        share = record[name] / record["step_us"]
        summary.add_row(name[:-3], f"{record[name]:,.1f}", f"{share:.2%}", f"{text} [{classes[name]['class']}]")
    devices = Table(title="devices", title_justify="left")
    for column in ("device", "tokens", "KV GiB", "room GiB", "us", "cycles", "MHz", "bound", "read GB", "provenance"):
        devices.add_column(column, justify="left" if column in ("device", "bound", "provenance") else "right")
    for device in record["devices"]:
        devices.add_row(
            f"{device['count']} x {device['name']}",
            f"{device['tokens'] + device['new_tokens']:,}",
            f"{device['kv_bytes'] / 2**30:,.1f}",
            f"{device['capacity_bytes'] / 2**30:,.1f}",
            f"{device['us']:,.1f}",
            f"{device['cycles']:,}",
            f"{device['clock_hz'] / 1e6:,.0f}",
            device["bound"],
            f"{device['bytes'] / 1e9:,.2f}",
            device["provenance"],
        )
    cap = record["power_cap"]
    lines = [
        f"batch {record['batch']}, context {record['context']} tokens and the step's own",
        f"placement {record['placement']}, keep {record['keep']:g}",
        f"KV {record['kv_bytes_per_token']:,} bytes a token, {record['kv_bytes_total'] / 2**30:,.3f} GiB",
        f"{record['tokens_per_s']:,.1f} tokens/s; reduction {record['reduction_share']:.2%} of attention",
        f"power cap read as {cap['kind']}; as {cap['other']['kind']} the step takes {cap['other']['step_us']:,.1f} us",
    ]
    if record["pipeline_parallel"] > 1:
        lines.append(
            f"{record['pipeline_parallel']} stages of {record['tensor_parallel']} GPUs, {record['micro_batches']} "
            "micro-batches: parts and devices are those of the slowest stage"
        )
    lines += energy_lines(record, record["batch"])
    lines += [_latent_line(cost) for cost in record["latent_attention"]]
    return [summary, devices, *lines, *(_channel_line(device) for device in record["devices"])]


def energy_lines(record: Mapping[str, Any], tokens: int) -> list[str]:
    """Return energy in words: by part, and what is left out or has no source.

    Parameters
    ----------
    record : mapping
        Of a step or a run.
    tokens : int
        Tokens that were given.
    """
    energy = record["energy"]
    parts = ", ".join(f"{name} {joules:,.4g}" for name, joules in energy["parts_j"].items())
    lines = [f"energy in J [modelled]: {parts}"]
    if energy["left_out"]:
        lines.append(f"left out of the energy: {', '.join(energy['left_out'])}")
    if record["energy_j"] is None:
        lines.append(f"energy_j: {record['energy_note']}")
        if energy["gpu_board_j"] is not None:
            lines.append(f"GPUs and their memory, at most, at board power: {energy['gpu_board_j']:,.4g} J")
        return lines
    each = f", {record['energy_j'] / tokens:,.4g} a token" if tokens else ""
    board = energy["gpu_board_j"]
    bound = f"; GPUs and their memory at board power while steps run: {board:,.4g}" if board is not None else ""
    return [*lines, f"{record['energy_j']:,.4g} J in all{each}{bound}"]


def _latent_line(cost: Mapping[str, Any]) -> str:
    """Return what multi-head latent attention asks of a tier, in words."""
    return (
        f"{cost['tier']}: --allow-mla, {cost['flop_per_byte']:.0f} FLOP a byte on units that do "
        f"{cost['unit_flop_per_byte']:.3g}: {cost['slowdown']:.3g} times the memory's time [{cost['provenance']}]"
    )


def _channel_line(device: Mapping[str, Any]) -> str:
    """Return what the cycles of a device's channels are, in words."""
    channel = device["channel"]
    if channel["provenance"] != "measured-rtl":
        return f"{device['name']}: channel cycles by formula, for {channel['why_not_measured']}"
    return (
        f"{device['name']}: channel cycles measured on Verilog {channel['verilog_sha256'][:16]}, "
        f"{channel['free_cycles']:,} and {channel['refresh_cycles']:,.0f} of refresh"
    )
