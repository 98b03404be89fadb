"""Request traces: what a request is, the formats that are read, and the file that tells by its content which it is."""

from __future__ import annotations

from sim.traces.read import read_trace
from sim.traces.trace import SkippedLine, Trace, TraceRequest

__all__ = ["SkippedLine", "Trace", "TraceRequest", "read_trace"]
