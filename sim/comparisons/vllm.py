"""Three runs of a real vLLM beside ours: 300 requests each on two GPUs, recorded request by request.

The recordings are those of casys-kaist/LLMServingSim, bench/examples, under MIT; they are read from a folder that the
user names. Factors of :mod:`sim.serving.host` are fitted to every second request of one run; that run never counts as
reached, the other two are predicted from data sheets with the same factors. Cards, how they share, requests that run
at a time, tokens of a step, tokens of KV where memory is the limit, and that steps are decided ahead stand in
``meta.json`` and ``hardware.yaml`` beside the publisher's recordings.

Times to first token count from the user's request, on the engine's clock: the clocks are taken to differ by the
shortest way of any request to the engine. The publisher's summaries beside these recordings count from when the engine
took a request, at the end of a step (138.8 ms in the median of the mixture, where a user waited 170.2).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sim.comparisons.row import calibrated_row
from sim.errors import ConfigError
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model
from sim.serving.arrivals import OpenArrivals
from sim.serving.engine import run
from sim.serving.gpu_model import GpuStepModel
from sim.serving.kv_store import KvStore
from sim.serving.machine import tier_room_bytes
from sim.serving.metrics import latencies_s
from sim.serving.parallelism import choose_parallelism
from sim.serving.parameters import ServerParams
from sim.serving.requests import RequestStates
from sim.traces import TraceRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from sim.models import Model
    from sim.serving.host import ServerFactors

__all__ = ["NOTES", "RUNS", "Times", "VllmRun", "read_recording", "simulate", "vllm_rows"]

_SOURCE = "casys-kaist/LLMServingSim bench/examples, MIT"
_KEYS = ("input_toks", "output_toks", "arrival_time", "queued_ts", "first_token_ts", "last_token_ts")
_BUDGET_TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class VllmRun:
    """One recording and what it was made with.

    Parameters
    ----------
    name, file : str
        Name in the rows, and the file.
    server, model : str
        Presets.
    max_running : int
        Requests that run at most.
    kv_tokens : int
        Tokens of KV there is room for; 0 where the memory of the preset decides.
    fit : bool
        Factors are fitted to it.
    cards : int
        Cards, each with requests of its own; a mixture's experts are shared out to them.
    stated : str
        Where limits stand.
    """

    name: str
    file: str
    server: str
    model: str
    max_running: int
    kv_tokens: int
    fit: bool
    cards: int = 1
    stated: str


RUNS = (
    VllmRun(
        name="RTX PRO 6000, Llama-3.1-8B",
        file="vllm_measured_RTXPRO6000_Llama-3.1-8B.jsonl",
        server="rtx-pro-6000-server",
        model="llama-3.1-8b",
        max_running=128,
        kv_tokens=0,
        fit=True,
        stated="128 run, by the recording's meta.json; the card is a Server Edition, by hardware.yaml",
    ),
    VllmRun(
        name="RTX 4090, Llama-3.1-8B",
        file="vllm_measured_RTX4090_Llama-3.1-8B.jsonl",
        server="rtx-4090",
        model="llama-3.1-8b",
        max_running=256,
        kv_tokens=41_408,
        fit=False,
        stated="41,408 tokens of KV, 256 run at most, by the recording's meta.json; by the tokens at most 50 do",
    ),
    VllmRun(
        name="RTX PRO 6000, Qwen3-30B-A3B",
        file="vllm_measured_RTXPRO6000_Qwen3-30B-A3B-Instruct-2507.jsonl",
        server="rtx-pro-6000-server",
        model="qwen3-30b-a3b",
        max_running=256,
        kv_tokens=0,
        fit=False,
        cards=2,
        stated="two cards with 128 each and the experts shared, by the recording's meta.json",
    ),
)
"""The runs; the first is fitted to."""


NOTES = (
    "rows of the first run were fitted to and count for nothing; steps of 2,048 tokens a card",
    "RTX 4090: products of 2,048 tokens were measured at 0.998 of its data sheet's peak, at 0.775 on the other card;",
    "  both are taken at 0.8, so that its prompts come out a quarter slow",
    "Qwen3: two cards; routing as measured elsewhere (128 tokens meet 120.6 experts), uniform in rows of their own",
    "both were looked at for what was missing (card, steps ahead, tiles, prompts whole, kernels); no factor is theirs",
    "not modelled: prefixes that requests share (7 % of the prompts)",
)
"""What is known of the misses."""


@dataclass(frozen=True)
class Times:
    """What a run's requests saw: first token, mean gap of a request's tokens, and the end of the run, in seconds."""

    ttft_s: npt.NDArray[np.float64]
    tpot_s: npt.NDArray[np.float64]
    makespan_s: float


def read_recording(path: Path) -> tuple[list[TraceRequest], Times]:
    """Return the requests of a recording in the order of arrival, and what they saw.

    Raises
    ------
    ConfigError
        If the file can't be read or a line has not the keys of a recording.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: recording must be a readable text file: {error}") from None
    rows: list[tuple[float, ...]] = []
    for number, line in enumerate(lines, 1):
        try:
            entry = cast("dict[str, Any]", json.loads(line))
            rows.append(tuple(float(entry[key]) for key in _KEYS))
        except (ValueError, TypeError, KeyError):
            raise ConfigError(f"{path}: line {number} must have the numbers {', '.join(_KEYS)}") from None
    if not rows:
        raise ConfigError(f"{path}: recording must hold requests, it is empty")
    rows.sort(key=lambda row: row[2])
    _, outputs, came, queued, first, last = np.array(rows).T
    came = came - came[0]
    # The engine's clock when the first request came; no request can have been taken before it came.
    origin_s = float((queued - came).min())
    first, last = first - origin_s, last - origin_s
    requests = [
        TraceRequest(line=0, arrival_s=arrival_s, input_tokens=int(row[0]), output_tokens=int(row[1]))
        for arrival_s, row in zip(came.tolist(), rows, strict=True)
    ]
    return requests, Times(first - came, (last - first) / (outputs - 1), float(last.max()))


def simulate(entry: VllmRun, requests: list[TraceRequest], factors: ServerFactors, *, skewed: bool = True) -> Times:
    """Return what the requests of a run see on its server with these factors.

    Parameters
    ----------
    entry : VllmRun
    requests : list of TraceRequest
    factors : ServerFactors
    skewed : bool
        A mixture's experts are met as was measured, where it was; else uniformly.
    """
    model = load_model(entry.model)
    return _served(entry, model if skewed else replace(model, expert_skew=0.0), requests, factors)


def _served(entry: VllmRun, model: Model, requests: list[TraceRequest], factors: ServerFactors) -> Times:
    """Return what the requests of a run see with a model."""
    card = GPU_SERVERS[entry.server]
    server = replace(card, gpu=replace(card.gpu, count=replace(card.gpu.count, value=entry.cards)))
    layout = choose_parallelism(server, tensor=1, pipeline=None, micro_batches=None, data=entry.cards)
    budget = _BUDGET_TOKENS * entry.cards
    params = ServerParams(scheduler="chunked", token_budget=budget, max_running=entry.max_running, steps_ahead=1)
    tokens = entry.kv_tokens or tier_room_bytes(server, model, params, 0, layout)[0] // model.kv_bytes_per_token
    states = RequestStates(requests)
    store = KvStore([tokens // params.block_tokens], block_tokens=params.block_tokens, requests=len(states))
    log = run(params, states, store, OpenArrivals(requests), GpuStepModel(server, model, factors, groups=entry.cards))
    times = latencies_s(states, np.arange(len(states)))
    return Times(times["ttft"], times["tpot"], float(log.end_s))


def _figures(times: Times) -> dict[str, float]:
    """Return the compared figures of a run, in ms and s."""
    return {
        "TPOT p50": 1e3 * float(np.percentile(times.tpot_s, 50)),
        "TPOT p90": 1e3 * float(np.percentile(times.tpot_s, 90)),
        "TTFT p50": 1e3 * float(np.percentile(times.ttft_s, 50)),
        "makespan": times.makespan_s,
    }


def vllm_rows(
    recorded: Mapping[str, Times], ours: Mapping[str, Times], ours_default: Mapping[str, Times], *, routing: str = ""
) -> list[dict[str, Any]]:
    """Return recorded figures beside ours, with calibrated and with default factors; all by name of the run.

    TPOT holds within 10 %, TTFT and makespan within 15 %. Runs that ``ours`` has not are left out; ``routing`` says how
    experts are met in the names of the rows.
    """
    rows: list[dict[str, Any]] = []
    for entry in RUNS:
        if entry.name not in ours:
            continue
        fitted, default = _figures(ours[entry.name]), _figures(ours_default[entry.name])
        for name, reference in _figures(recorded[entry.name]).items():
            limit = 0.1 if name.startswith("TPOT") else 0.15
            rows.append(
                calibrated_row(
                    f"{entry.name}{routing}: {name}",
                    reference,
                    fitted[name],
                    default[name],
                    unit="s" if name == "makespan" else "ms",
                    source=f"{_SOURCE}, {entry.file}",
                    within=not entry.fit and abs(fitted[name] / reference - 1) <= limit,
                    fit=entry.fit,
                    note=f"limit {limit:.0%}; {entry.stated}" if name == "TPOT p50" else f"limit {limit:.0%}",
                )
            )
    return rows
