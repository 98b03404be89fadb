"""``nearkv serve``: a trace of requests served by a machine, and what users see of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from sim.commands.options import add_command, add_energy, add_json, add_parallelism, number, positive
from sim.commands.tier_options import add_tier_options, tier_plan
from sim.energy.account import check_parts
from sim.errors import ConfigError
from sim.model_config import load_model
from sim.report import energy_lines, print_tables, to_csv, to_json, write_text
from sim.serving.fill import FILL_RULES
from sim.serving.machine import load_machine
from sim.serving.parameters import ADMISSIONS, PREEMPTIONS, SCHEDULERS, ServerParams
from sim.serving.record import request_rows, service_record
from sim.serving.service import ServiceRequest, serve
from sim.tier import POWER_CAPS
from sim.traces import read_trace

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers
    from sim.serving.service import Service

__all__ = ["add_parser", "run"]

_DETAILS = """\
The format of the trace is told by its content: Azure 2023 and 2024, Mooncake, BurstGPT, vidur, LLMServingSim, sessions.
ttft counts from arrival; tbt is every gap between tokens of a request, all pooled; tpot is a request's mean gap.
saturated: more than 5 % of the requests wait at the last arrival, and more than a quarter of the time before.
Where not all tokens are read, --locality says which: fitted is a model of measured tensors. There 0.63 to 0.70 of the
tokens read are read again in the next step (0.77 to 0.88 of pages of 16), and 0.02 to 0.04 are among the last 20; seed
reads 0.85 again, token by token, which no tensor measured does.
--slo-ms is held against p99 tbt and against mean tpot; both answers are given.

examples:
  nearkv serve --system pam --model llama-3.1-70b --trace conversation.csv
  nearkv serve --system gpu-only --model llama-3.1-70b --trace conversation.csv --rate-scale 2 --slo-ms 50 --json
  nearkv serve --system pam --model llama-3.1-70b --trace conversation.csv --tp 4 --pp 2
  nearkv serve --system pam --model llama-3.1-8b --trace sessions.csv --sessions 16 --report out"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "serve", "latencies of a trace of requests", _DETAILS, run)
    parser.add_argument("--system", required=True, help="system or server of GPUs by name, or path of a .toml file")
    parser.add_argument("--model", required=True, help="model preset, or path of a Hugging Face style config.json")
    parser.add_argument("--trace", required=True, metavar="FILE", help="requests")
    parser.add_argument("--slo-ms", type=number("--slo-ms"), metavar="T", help="level for p99 tbt and mean tpot")
    parser.add_argument("--fill", default="top-down", help=f"{', '.join(FILL_RULES)} (default: %(default)s)")
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--rate-scale",
        type=number("--rate-scale"),
        default=1.0,
        metavar="X",
        help="times faster than in the trace (default: 1)",
    )
    when.add_argument(
        "--sessions", type=positive("--sessions"), metavar="N", help="so many sessions at a time, waiting for answers"
    )
    parser.add_argument(
        "--warmup",
        type=_part,
        default=0.0,
        metavar="F",
        help="share of the requests, the first, that no latency counts",
    )
    parser.add_argument("--scheduler", default="chunked", help=f"{', '.join(SCHEDULERS)} (default: %(default)s)")
    for option, default, text in (
        ("--max-running", 256, "requests that run at a time"),
        ("--token-budget", 8192, "tokens of a step"),
    ):
        parser.add_argument(
            option, type=positive(option), default=default, metavar="N", help=f"{text} (default: %(default)s)"
        )
    add_parallelism(parser)
    parser.add_argument(
        "--dp",
        type=positive("--dp"),
        metavar="N",
        help="groups of GPUs with requests of their own, which share a mixture's experts (default: 1)",
    )
    parser.add_argument(
        "--steps-ahead",
        type=int,
        choices=(0, 1),
        default=0,
        help="steps that are decided while another runs (default: %(default)s)",
    )
    parser.add_argument("--admission", default="on-demand", help=f"{', '.join(ADMISSIONS)} (default: %(default)s)")
    parser.add_argument("--preemption", default="recompute", help=f"{', '.join(PREEMPTIONS)} (default: %(default)s)")
    parser.add_argument(
        "--power-cap", default="bytes", choices=POWER_CAPS, help="how a memory's limit is read (default: %(default)s)"
    )
    parser.add_argument(
        "--prefix-reuse",
        action="store_true",
        help="read what is still stored of a prompt's beginning: by block names of the trace, or in a session",
    )
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="seed of what is read (default: 0)")
    add_tier_options(parser)
    add_energy(parser)
    parser.add_argument("--report", metavar="DIR", help="also write record, rows and figure into a folder")
    add_json(parser)


def _part(text: str) -> float:
    """Read a part from 0 to below 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1.0:
        raise ConfigError(f"--warmup must be a number from 0 to below 1, not {text!r}")
    return value


def _seed(text: str) -> int:
    """Read a seed."""
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise ConfigError(f"--seed must be an integer from 0 to 999999999999, not {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Print the record of the run and return 0."""
    request = ServiceRequest(
        params=ServerParams(
            scheduler=arguments.scheduler,
            token_budget=arguments.token_budget,
            max_running=arguments.max_running,
            admission=arguments.admission,
            preemption=arguments.preemption,
            steps_ahead=arguments.steps_ahead,
        ),
        plan=tier_plan(arguments),
        fill=arguments.fill,
        rate_scale=arguments.rate_scale,
        sessions=arguments.sessions or 0,
        warmup=arguments.warmup,
        power_cap=arguments.power_cap,
        prefix_reuse=arguments.prefix_reuse,
        tensor_parallel=arguments.tp,
        pipeline_parallel=arguments.pp,
        micro_batches=arguments.micro_batches,
        data_parallel=arguments.dp or 1,
        energy_without=check_parts(arguments.energy_without or ()),
    )
    machine, model = load_machine(arguments.system), load_model(arguments.model)
    trace = read_trace(Path(arguments.trace))
    if arguments.report is not None:
        _make_folder(Path(arguments.report))
    service = serve(machine, model, trace, request)
    record = service_record(service, slo_ms=arguments.slo_ms)
    if arguments.report is not None:
        _write_report(Path(arguments.report), service, record)
    if arguments.json:
        sys.stdout.write(to_json(record))
    else:
        print_tables(_tables(record))
    return 0


def _make_folder(folder: Path) -> None:
    """Make the folder of the report, before a long run rather than after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: --report must be a folder that can be made: {error.strerror}") from None


def _write_report(folder: Path, service: Service, record: dict[str, Any]) -> None:
    """Write the record, one row a request, one of the run, and the figure."""
    from sim.plots_serve import serve_figure

    write_text(folder / "record.json", to_json(record))
    rows = request_rows(service)
    if rows:
        write_text(folder / "requests.csv", to_csv(rows))
        write_text(folder / "run.csv", to_csv([_flat(record)]))
    if service.log.steps:
        serve_figure(service, folder / "serve.png")


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record's single values as one row, percentiles by names of their own."""
    row = {key: value for key, value in record.items() if not isinstance(value, dict | list)}
    for name in ("ttft", "tbt", "tpot", "queue", "e2e"):
        found: dict[str, float] = record[f"{name}_ms"] or {}
        row |= {f"{name}_{percent}_ms": value for percent, value in found.items()}
    return row | {"config_sha256": record["manifest"]["config_sha256"]}


def _tables(record: dict[str, Any]) -> list[Table | str]:
    """Return what people are shown."""
    title = f"{record['model']} on {record['system']}, trace {record['trace']['name']} [modelled]"
    times = Table(title=title, title_justify="left")
    for column in ("ms", "p50", "p90", "p99", "what it is"):
        times.add_column(column, justify="left" if column in ("ms", "what it is") else "right")
    for name, text in (
        ("ttft", "arrival to first token"),
        ("tbt", "gaps between tokens, all requests pooled"),
        ("tpot", "mean gap of a request"),
        ("queue", "arrival to first step"),
        ("e2e", "arrival to last token"),
    ):
        found = record[f"{name}_ms"]
        times.add_row(name, *(f"{found[p]:,.1f}" if found else "-" for p in ("p50", "p90", "p99")), text)
    tiers = Table(title="memories", title_justify="left")
    for column in ("memory", "room GiB", "peak GiB", "attended TB", "fetched TB", "written TB"):
        tiers.add_column(column, justify="left" if column == "memory" else "right")
    for tier in record["tiers"]:
        sizes = (tier[key] / 2**30 for key in ("room_bytes", "peak_bytes"))
        moved = (tier[key] / 1e12 for key in ("attended_bytes", "fetched_bytes", "written_bytes"))
        tiers.add_row(tier["name"], *(f"{size:,.1f}" for size in sizes), *(f"{size:,.3f}" for size in moved))
    return [times, tiers, *_lines(record)]


def _reads(record: dict[str, Any]) -> list[str]:
    """Return what part of the tokens was read, and what finding it took; nothing where all of them were."""
    if record["sparsity"] == "dense" or record["token_ratio"] is None:
        return []
    ratios = f"{record['token_ratio']:,.2f} times fewer tokens, {record['byte_ratio']:,.2f} times fewer bytes"
    fullest = ", ".join(
        f"{tier['name']} {tier['fullest_group']:.2f}" for tier in record["tiers"] if tier["fullest_group"] is not None
    )
    lines = [
        f"{record['sparsity']}: {ratios} attended to than stored, labels included",
        f"fullest bank group of a channel, times an even share: {fullest}",
    ]
    if labels := record["labels"]:
        scanned = ", ".join(f"{name} {amount / 1e12:,.3f}" for name, amount in labels["scanned_bytes"].items())
        each = f"{labels['bytes_per_token_and_layer']} bytes a token and layer"
        lines.append(
            f"{labels['format']} labels, {each}, place {labels['place']}, scorer {labels['scorer']}: TB read: {scanned}"
        )
    return lines


def _moves(record: dict[str, Any]) -> list[str]:
    """Return what was moved between memories, and what was read where."""
    read = sum(tier["attended_tokens"] for tier in record["tiers"])
    lines = [f"{record['far_tokens']:,} of {read:,} reads of a token outside the nearest memory"]
    if record["moved_tokens"]:
        each = ", ".join(f"{move['between']} {move['tokens']:,}" for move in record["moves"])
        migration = record["migration"]
        lines.append(
            f"{record['moved_tokens']:,} tokens moved ({each}), {migration['exposed_s']:,.1f} s waited for them"
        )
    return lines


def _lines(record: dict[str, Any]) -> list[str]:
    """Return counts and answers in words."""
    counts = ", ".join(f"{record[key]:,} {key}" for key in ("requests", "served", "refused", "unfinished"))
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in record["skipped_lines"].items()) or "none"
    lines = [
        counts,
        f"rows skipped: {skipped}",
        f"{record['tokens_out']:,} tokens in {record['sim_s']:,.1f} s, {record['tokens_per_s']:,.1f} a second",
        f"{record['steps']:,} steps, {record['preemptions']:,} preemptions",
        f"{record['swapped_tokens']:,} tokens swapped",
        *_reads(record),
        *_moves(record),
        f"{record['prompt_tokens_computed']:,} tokens of prompts computed",
        f"{record['prompt_tokens_reused']:,} tokens of prompts found stored",
        "saturated: the queue grows to the end" if record["saturated"] else "not saturated",
    ]
    if record["refused_bytes"]:
        sizes = record["refused_bytes"]
        lines.append(
            f"refused need {sizes['least']:,} to {sizes['most']:,} bytes, there is room for {sizes['room']:,} in all"
        )
    if record["slo_attained"]:
        met = {name: "met" if held else "missed" for name, held in record["slo_attained"].items()}
        lines.append(f"{record['slo_ms']:g} ms: p99 tbt {met['p99_tbt']}, mean tpot {met['mean_tpot']}")
    parts = ", ".join(f"{name} {seconds:,.1f}" for name, seconds in record["parts_s"].items())
    lines.append(f"busy {record['busy_s']:,.1f} s: {parts}")
    lines += energy_lines(record, record["tokens_out"])
    lines.append(f"{record['host']['steps_per_s']:,.0f} steps/s here, {record['wall_s']:.1f} s")
    return lines
