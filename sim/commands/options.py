"""Options that several commands share, and the types that read them."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING

from sim.energy.account import PARTS
from sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Subparsers",
    "add_command",
    "add_energy",
    "add_json",
    "add_parallelism",
    "fraction",
    "natural",
    "number",
    "positive",
]

Subparsers = argparse._SubParsersAction  # pyright: ignore[reportPrivateUsage]
"""What :meth:`argparse.ArgumentParser.add_subparsers` returns."""


def add_command(
    commands: Subparsers[argparse.ArgumentParser],
    name: str,
    summary: str,
    details: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a command: ``summary`` stands in the list of commands, ``details`` with examples below its options."""
    parser = commands.add_parser(
        name,
        help=summary.replace("%", "%%"),  # the one text of the three that argparse reads as a format
        description=summary,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def add_energy(parser: argparse.ArgumentParser) -> None:
    """Add ``--energy-without``."""
    parser.add_argument(
        "--energy-without",
        action="append",
        metavar="PART",
        help=f"leave a part out of the energy: {', '.join(PARTS)}; may be given several times",
    )


def add_parallelism(parser: argparse.ArgumentParser) -> None:
    """Add what says how GPUs share a model."""
    for option, text in (
        ("--tp", "GPUs that share a layer; KV heads that are fewer are kept several times (default: all by --pp)"),
        ("--pp", "stages that the layers are divided over (default: all GPUs by --tp, else 1)"),
        ("--micro-batches", "parts that follow one another through the stages (default: as many as stages)"),
    ):
        parser.add_argument(option, type=positive(option), metavar="N", help=text)


def positive(option: str) -> Callable[[str], int]:
    """Return a reader of whole numbers of at least 1 that names ``option`` when it refuses."""

    def read(text: str) -> int:
        if re.fullmatch(r"[+]?[0-9]{1,12}", text, re.ASCII) is None or int(text) < 1:
            raise ConfigError(f"{option} must be an integer from 1 to 999999999999, not {text!r}")
        return int(text)

    return read


def natural(option: str) -> Callable[[str], int]:
    """Return a reader of whole numbers of at least 0 that names ``option`` when it refuses."""

    def read(text: str) -> int:
        if re.fullmatch(r"[+]?[0-9]{1,12}", text, re.ASCII) is None:
            raise ConfigError(f"{option} must be an integer from 0 to 999999999999, not {text!r}")
        return int(text)

    return read


def number(option: str) -> Callable[[str], float]:
    """Return a reader of finite numbers above 0 that names ``option`` when it refuses."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0.0 < value < math.inf:
            raise ConfigError(f"{option} must be a number above 0, not {text!r}")
        return value

    return read


def fraction(option: str) -> Callable[[str], float]:
    """Return a reader of numbers above 0 and at most 1 that names ``option`` when it refuses."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0.0 < value <= 1.0:
            raise ConfigError(f"{option} must be a number above 0 and at most 1, not {text!r}")
        return value

    return read
