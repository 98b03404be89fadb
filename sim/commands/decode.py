"""``nearkv decode``: one decode step of a model on a system."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sim.commands.options import (
    add_command,
    add_energy,
    add_json,
    add_parallelism,
    fraction,
    natural,
    number,
    positive,
)
from sim.energy.account import check_parts
from sim.errors import ConfigError, UnknownNameError
from sim.model_config import load_model
from sim.placement import PLACEMENTS
from sim.record import decode_record
from sim.report import decode_tables, print_tables, to_json
from sim.retrieval.methods import METHODS
from sim.retrieval.presets import load_retrieval_system, retrieval_names
from sim.retrieval.record import retrieval_record
from sim.retrieval.request import RetrievalRequest
from sim.retrieval.tables import retrieval_tables
from sim.scenarios import SCENARIOS, decode_scenario, scenario_tables
from sim.step import StepRequest
from sim.system_config import load_system, system_names
from sim.tier import POWER_CAPS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
The context counts a request's tokens before the step; the step appends its own token and attends to it as well.
Room is kept for every token in every layer; layers with a window read the tokens of their window only.
A memory's power limit counts columns read (bytes) or operations (flops): they differ where query heads share keys.

Systems with retrieval (karat, gpu-only-h200, gpu-offload, servers of GPUs alone) score, select, gather and attend to
tokens as the model was trained to, or by --method. Every number of theirs that nearkv presets lists can be --set.

examples:
  nearkv decode --system pam --model llama-3.1-70b --context 32768 --batch 64
  nearkv decode --system pam --model opt-175b --context 2048 --batch 256 --json
  nearkv decode --system pam --model llama-3.1-70b --context 32768 --batch 64 --tp 4 --pp 2
  nearkv decode --system pam --model deepseek-v3.2 --context 8192 --batch 16 --allow-mla
  nearkv decode --system pam-seed --model path/to/config.json --context 8192 --batch 16 --keep 0.125
  nearkv decode --system karat --model deepseek-v3.2 --context 1000000 --batch 8
  nearkv decode --system karat --model llama-3.1-70b --context 1000000 --batch 8 --method quest --budget 4096
  nearkv decode --system gpu-only-h200 --model glm-5.2 --context 1000000 --batch 8 --set gpu.count=128
  nearkv decode --system karat-seed --scenario worked-example --json"""

_TIERED = ("placement", "keep", "power_cap", "allow_mla")
_DIVIDED = {"tp": "tensor_parallel", "pp": "pipeline_parallel", "micro_batches": "micro_batches"}
_TIERED_ONLY = (*_TIERED, *_DIVIDED, "energy_without")
"""Options of systems whose memories are tiers."""

_RETRIEVAL = ("method", "budget", "dense_layers", "set")
"""Options of systems with retrieval."""


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
        "--placement", metavar="POLICY", help=f"{', '.join(PLACEMENTS)} (default: {StepRequest.placement})"
    )
    parser.add_argument(
        "--keep",
        type=fraction("--keep"),
        metavar="F",
        help="part of each request's context that is attended to, rounded up to tokens (default: 1, dense)",
    )
    parser.add_argument(
        "--power-cap",
        metavar="KIND",
        help=f"how a memory's power limit is read: {', '.join(POWER_CAPS)} (default: {StepRequest.power_cap})",
    )
    parser.add_argument(
        "--allow-mla",
        action="store_true",
        default=None,
        help="model multi-head latent attention, which keeps the units busy far longer than the memory",
    )
    parser.add_argument(
        "--method",
        metavar="NAME",
        help=f"how tokens are selected: trained, {', '.join(METHODS)} (default: trained if the model was, or dense)",
    )
    parser.add_argument(
        "--budget",
        type=positive("--budget"),
        metavar="K",
        help=f"tokens that a method selects in each KV head (default: {RetrievalRequest.budget})",
    )
    parser.add_argument(
        "--dense-layers",
        type=natural("--dense-layers"),
        metavar="N",
        help="first layers that attend to everything (default: 0; Quest leaves out 2)",
    )
    parser.add_argument(
        "--set", action="append", metavar="NAME=X", help="replace a number of the system, such as pnm.count=64"
    )
    add_parallelism(parser)
    add_energy(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the record of the step and return 0."""
    if arguments.scenario is not None:
        return _run_scenario(arguments)
    missing = [f"--{name}" for name in ("system", "model", "context", "batch") if getattr(arguments, name) is None]
    if missing:
        raise ConfigError(f"{', '.join(missing)} must be given unless --scenario is (see nearkv decode --help)")
    if arguments.system in retrieval_names():
        _refuse(arguments, _TIERED_ONLY, "whose memories are no tiers")
        system = load_retrieval_system(arguments.system).with_numbers(_numbers(arguments.set or []))
        request = RetrievalRequest(
            context=arguments.context, batch=arguments.batch, **_given(arguments, ("method", "budget", "dense_layers"))
        )
        record = retrieval_record(system, load_model(arguments.model), request)
        tables = retrieval_tables
    else:
        _known_system(arguments.system)
        _refuse(arguments, _RETRIEVAL, "which has no retrieval")
        divided = {_DIVIDED[name]: value for name, value in _given(arguments, tuple(_DIVIDED)).items()}
        request = StepRequest(context=arguments.context, batch=arguments.batch, **_given(arguments, _TIERED), **divided)
        without = check_parts(arguments.energy_without or ())
        record = decode_record(
            load_system(arguments.system), load_model(arguments.model), request, energy_without=without
        )
        tables = decode_tables
    if arguments.json:
        sys.stdout.write(to_json(record))
    else:
        print_tables(tables(record))
    return 0


def _known_system(name: str) -> None:
    """Raise unless ``name`` is a preset of any kind, or may be a file."""
    known = [*system_names(), *retrieval_names()]
    if not name.endswith(".toml") and name not in known:
        raise UnknownNameError("system", name, known, " or the path of a .toml file")


def _given(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}


def _refuse(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Raise if an option of another kind of system was given."""
    for name in _given(arguments, names):
        raise ConfigError(
            f"--{name.replace('_', '-')} must be left out for system {arguments.system}, {why}, it is given"
        )


def _numbers(texts: Sequence[str]) -> dict[str, float]:
    """Return the numbers that ``--set`` replaces, by name."""
    found: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set must be NAME=X, such as pnm.count=64, not {text!r}")
        found[name] = number(f"--set {name}")(value)
    return found


def _run_scenario(arguments: argparse.Namespace) -> int:
    """Print the record of a scenario and return 0."""
    for name in _given(arguments, ("model", "context", "batch", *_TIERED_ONLY, *_RETRIEVAL)):
        option = name.replace("_", "-")
        raise ConfigError(f"--{option} must not be given with --scenario, which has its own, it is")
    record = decode_scenario(arguments.scenario, system=arguments.system)
    if arguments.json:
        sys.stdout.write(to_json(record))
    else:
        print_tables(scenario_tables(record))
    return 0
