"""``nearkv decode``: one decode step of a model on a system."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sim.commands.options import add_command, add_json, fraction, positive
from sim.errors import ConfigError
from sim.model_config import load_model
from sim.placement import PLACEMENTS
from sim.record import decode_record
from sim.report import decode_tables, print_tables, to_json
from sim.scenarios import SCENARIOS, decode_scenario, scenario_tables
from sim.step import StepRequest
from sim.system_config import load_system
from sim.tier import POWER_CAPS

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
The context counts a request's tokens before the step; the step appends its own token and attends to it as well.
Room is kept for every token in every layer; layers with a window read the tokens of their window only.
A memory's power limit counts columns read (bytes) or operations (flops): they differ where query heads share keys.

examples:
  nearkv decode --system pam --model llama-3.1-70b --context 32768 --batch 64
  nearkv decode --system pam --model opt-175b --context 2048 --batch 256 --json
  nearkv decode --system pam --model deepseek-v3.2 --context 8192 --batch 16 --allow-mla
  nearkv decode --system pam-seed --model path/to/config.json --context 8192 --batch 16 --keep 0.125
  nearkv decode --system karat-seed --scenario worked-example --json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "decode", "latency of one decode step, broken down", _DETAILS, run)
    parser.add_argument("--system", help="system preset, or path of a .toml file")
    parser.add_argument("--model", help="model preset, or path of a Hugging Face style config.json")
    parser.add_argument("--context", type=positive("--context"), metavar="N", help="tokens a request")
    parser.add_argument("--batch", type=positive("--batch"), metavar="B", help="requests")
    parser.add_argument(
        "--scenario",
        metavar="NAME",
        help=f"system, model and workload together: {', '.join(SCENARIOS)}; instead of --model, --context and --batch",
    )
    parser.add_argument(
        "--placement", default="top-down", metavar="POLICY", help=f"{', '.join(PLACEMENTS)} (default: %(default)s)"
    )
    parser.add_argument(
        "--keep",
        default=1.0,
        type=fraction("--keep"),
        metavar="F",
        help="part of each request's context that is attended to, rounded up to tokens (default: 1, dense)",
    )
    parser.add_argument(
        "--power-cap",
        default="bytes",
        metavar="KIND",
        help=f"how a memory's power limit is read: {', '.join(POWER_CAPS)} (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-mla",
        action="store_true",
        help="model multi-head latent attention, which keeps the units busy far longer than the memory",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the record of the step and return 0."""
    if arguments.scenario is not None:
        return _run_scenario(arguments)
    missing = [f"--{name}" for name in ("system", "model", "context", "batch") if getattr(arguments, name) is None]
    if missing:
        raise ConfigError(f"{', '.join(missing)} must be given unless --scenario is (see nearkv decode --help)")
    request = StepRequest(
        context=arguments.context,
        batch=arguments.batch,
        placement=arguments.placement,
        keep=arguments.keep,
        power_cap=arguments.power_cap,
        allow_mla=arguments.allow_mla,
    )
    record = decode_record(load_system(arguments.system), load_model(arguments.model), request)
    if arguments.json:
        sys.stdout.write(to_json(record))
    else:
        print_tables(decode_tables(record))
    return 0


def _run_scenario(arguments: argparse.Namespace) -> int:
    """Print the record of a scenario and return 0."""
    for name in ("model", "context", "batch"):
        if getattr(arguments, name) is not None:
            raise ConfigError(f"--{name} must not be given with --scenario, which has its own, it is")
    record = decode_scenario(arguments.scenario, system=arguments.system)
    if arguments.json:
        sys.stdout.write(to_json(record))
    else:
        print_tables(scenario_tables(record))
    return 0
