"""Requests of a trace, and what of the file they came from was left out or looked odd."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SkippedLine", "Trace", "TraceRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """One request.

    Parameters
    ----------
    line : int
        Line of the file, from 1.
    arrival_s : float
        Since the first request of the trace.
    input_tokens, output_tokens : int
        Tokens of the prompt, and tokens generated; at least 1 each.
    session : str
        Conversation or agent that it belongs to; empty where the trace has none.
    gap_s : float
        From the end of the session's request before it to its arrival, as recorded; 0 for the first.
    blocks : tuple of int
        Names of the prompt's blocks of ``block_tokens`` tokens; equal names mean equal prefixes up to there.
    """

    line: int
    arrival_s: float
    input_tokens: int
    output_tokens: int
    session: str = ""
    gap_s: float = 0.0
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A row that is no request: its line, from 1, and why."""

    line: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The requests of one file, in the order of arrival; those of one moment in the order of the file.

    Parameters
    ----------
    name : str
        Name of the file.
    format : str
        Name of its format.
    sha256 : str
        Hash of its bytes.
    requests : tuple of TraceRequest
        Rows that are requests.
    skipped : tuple of SkippedLine
        Rows that are none. Rows of the file, blank lines left out, are these and the requests.
    oddities : dict of str to int
        How often something was met that a user may want to know of.
    has_arrivals : bool
        The file says when requests arrive; else all arrive at once.
    block_tokens : int
        Tokens of a prompt's block; 0 where blocks have no names.
    """

    name: str
    format: str
    sha256: str
    requests: tuple[TraceRequest, ...]
    skipped: tuple[SkippedLine, ...]
    oddities: dict[str, int]
    has_arrivals: bool
    block_tokens: int = 0

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return len(self.requests) + len(self.skipped)

    @property
    def span_s(self) -> float:
        """From the first arrival to the last."""
        return self.requests[-1].arrival_s if self.requests else 0.0

    def skip_reasons(self) -> dict[str, int]:
        """Return how many rows were skipped for each reason, in the order in which the reasons came up."""
        counts: dict[str, int] = {}
        for line in self.skipped:
            counts[line.reason] = counts.get(line.reason, 0) + 1
        return counts
