"""The formats of public traces: the keys by which each is told, and how a row of it becomes a request.

Azure 2023 and 2024 (Azure/AzurePublicDataset), Mooncake (kvcache-ai/Mooncake), BurstGPT (HPMLL/BurstGPT), vidur
(microsoft/vidur), LLMServingSim (casys-kaist/LLMServingSim), and sessions of agents, one row a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sim.traces.fields import FieldError, date_time_s, seconds, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMATS", "RowRequest", "TraceFormat", "find_format"]

_SECOND, _MILLISECOND, _NANOSECOND = Decimal(1), Decimal("1e-3"), Decimal("1e-9")
_MOONCAKE_BLOCK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequest:
    """What one row says.

    Parameters
    ----------
    input_tokens, output_tokens : int
        As written; either may be 0.
    arrival_s : Decimal or None
        In the file's own time; None where the file has none.
    end_s : Decimal or None
        When it was answered, in the same time; None where the file does not say.
    since_last_s : Decimal or None
        From the arrival of the session's row before it, where the file gives arrivals that way.
    session : str
        Its session.
    blocks : tuple of int
        Names of its blocks.
    """

    input_tokens: int
    output_tokens: int
    arrival_s: Decimal | None = None
    end_s: Decimal | None = None
    since_last_s: Decimal | None = None
    session: str = ""
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraceFormat:
    """One format.

    Parameters
    ----------
    name : str
        Its name.
    keys : frozenset of str
        Keys that a file of it has, in lower case; others may stand beside them.
    read : callable
        Makes a request of a row's fields; raises :class:`sim.traces.fields.FieldError` where it is none.
    arrival_keys : tuple of str
        Keys of which any gives arrivals.
    block_tokens : int
        Tokens of a named block.
    """

    name: str
    keys: frozenset[str]
    read: Callable[[dict[str, Any]], RowRequest]
    arrival_keys: tuple[str, ...]
    block_tokens: int = 0


def _azure(row: dict[str, Any]) -> RowRequest:
    return RowRequest(
        input_tokens=tokens(row, "contexttokens"),
        output_tokens=tokens(row, "generatedtokens"),
        arrival_s=date_time_s(row, "timestamp"),
    )


def _mooncake(row: dict[str, Any]) -> RowRequest:
    names: Any = row.get("hash_ids") or []
    if not isinstance(names, list) or not all(isinstance(name, int) for name in names):  # pyright: ignore[reportUnknownVariableType]
        raise FieldError("hash_ids is not a list of whole numbers")
    return RowRequest(
        input_tokens=tokens(row, "input_length"),
        output_tokens=tokens(row, "output_length"),
        arrival_s=seconds(row, "timestamp", unit_s=_MILLISECOND),
        blocks=tuple(names),  # pyright: ignore[reportUnknownArgumentType]
    )


def _burstgpt(row: dict[str, Any]) -> RowRequest:
    return RowRequest(
        input_tokens=tokens(row, "request tokens"),
        output_tokens=tokens(row, "response tokens"),
        arrival_s=seconds(row, "timestamp", unit_s=_SECOND),
    )


def _vidur(row: dict[str, Any]) -> RowRequest:
    return RowRequest(
        input_tokens=tokens(row, "num_prefill_tokens"),
        output_tokens=tokens(row, "num_decode_tokens"),
        arrival_s=seconds(row, "arrived_at", unit_s=_SECOND) if "arrived_at" in row else None,
    )


def _llmservingsim(row: dict[str, Any]) -> RowRequest:
    return RowRequest(
        input_tokens=tokens(row, "input_toks"),
        output_tokens=tokens(row, "output_toks"),
        arrival_s=seconds(row, "arrival_time_ns", unit_s=_NANOSECOND) if "arrival_time_ns" in row else None,
    )


def _timed_session(row: dict[str, Any]) -> RowRequest:
    start_s = seconds(row, "start_s", unit_s=_SECOND)
    return RowRequest(
        input_tokens=tokens(row, "input_tokens"),
        output_tokens=tokens(row, "output_tokens"),
        arrival_s=start_s,
        end_s=start_s + seconds(row, "duration_ms", unit_s=_MILLISECOND),
        session=str(row["session_id"]),
    )


def _spaced_session(row: dict[str, Any]) -> RowRequest:
    return RowRequest(
        input_tokens=tokens(row, "input_tokens"),
        output_tokens=tokens(row, "output_tokens"),
        # The first of a session has nothing before it.
        since_last_s=seconds(row, "request_arrival_delta_s", unit_s=_SECOND)
        if row.get("request_arrival_delta_s")
        else Decimal(0),
        session=str(row["session_id"]),
    )


FORMATS = (
    TraceFormat(
        name="azure",
        keys=frozenset({"timestamp", "contexttokens", "generatedtokens"}),
        read=_azure,
        arrival_keys=("timestamp",),
    ),
    TraceFormat(
        name="mooncake",
        keys=frozenset({"timestamp", "input_length", "output_length"}),
        read=_mooncake,
        arrival_keys=("timestamp",),
        block_tokens=_MOONCAKE_BLOCK,
    ),
    TraceFormat(
        name="burstgpt",
        keys=frozenset({"timestamp", "request tokens", "response tokens"}),
        read=_burstgpt,
        arrival_keys=("timestamp",),
    ),
    TraceFormat(
        name="vidur",
        keys=frozenset({"num_prefill_tokens", "num_decode_tokens"}),
        read=_vidur,
        arrival_keys=("arrived_at",),
    ),
    TraceFormat(
        name="llmservingsim",
        keys=frozenset({"input_toks", "output_toks"}),
        read=_llmservingsim,
        arrival_keys=("arrival_time_ns",),
    ),
    TraceFormat(
        name="sessions",
        keys=frozenset({"session_id", "input_tokens", "output_tokens", "start_s", "duration_ms"}),
        read=_timed_session,
        arrival_keys=("start_s",),
    ),
    TraceFormat(
        name="spaced-sessions",
        keys=frozenset({"session_id", "input_tokens", "output_tokens", "request_arrival_delta_s"}),
        read=_spaced_session,
        arrival_keys=("request_arrival_delta_s",),
    ),
)
"""All formats; no file has the keys of two unless it has those of both, and then the first serves."""


def find_format(keys: frozenset[str]) -> TraceFormat | None:
    """Return the format of a file with these keys; None where it has those of no format."""
    return next((form for form in FORMATS if form.keys <= keys), None)
