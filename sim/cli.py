"""The command ``nearkv``: results to standard output, everything else to standard error.

Exit codes: 0 done, 1 a check failed, 2 bad input, with one line that says what was wanted and what was given.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from sim.commands import area, compare, decode, demo, measure, presets, serve, study, verilog
from sim.errors import SimError
from sim.manifest import version

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_COMMANDS = (demo, presets, verilog, area, measure, decode, serve, study, compare)


class _Parser(argparse.ArgumentParser):
    """A parser that reports bad input in one line."""

    def error(self, message: str) -> NoReturn:
        """Raise with the message; :func:`main` prints it."""
        raise _UsageError(f"{message} (see {self.prog} --help)")


class _UsageError(SimError):
    """The command line can't be read."""


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="nearkv",
        description="RTL-grounded model of LLM decoding with the KV cache computed where it lies",
        epilog="example: nearkv decode --system pam --model llama-3.1-70b --context 32768 --batch 64",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"nearkv {version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for module in _COMMANDS:
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of the process by default.
    """
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except SimError as error:
        print(f"nearkv: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has gone. Standard output becomes a sink, or the interpreter would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
