"""Scans of index keys through the RTL of the scoring unit, alone and with the shards that select among its scores."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP8_E4M3, FP32
from golden.retrieval.index_score import index_scores
from golden.retrieval.index_spec import MODES
from golden.retrieval.topk import top_k
from hw.conversion import convert_once
from hw.cosim import run_streams
from hw.index_score_params import IndexScoreParams, IndexSelectParams, ScoreWork
from hw.index_score_words import command_word, key_words, query_words
from hw.native_arithmetic import NATIVE, with_native
from hw.presets import UNIT_PRESETS
from hw.presets.pnm import PNM_PRESETS
from hw.timing.index_score import predict
from hw.timing.trace import StreamTrace
from hw.top_k_words import selected_words
from hw.units.index_score import IndexScore
from hw.units.index_select import IndexSelect

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from hw.cosim import StreamRun

__all__ = ["Scan", "channel_share", "drawn_query", "run_scan", "scan_once", "score_verilog", "select_of_keys"]


@dataclass(frozen=True)
class Scan:
    """Keys of an indexer and a query of several heads, in fp8, with the scores that they have.

    Parameters
    ----------
    params : IndexScoreParams
        The unit that scores them.
    work : ScoreWork
        Their number and shape.
    command : int
        Word of the command.
    query, keys : list of int
        Beats.
    scores : ndarray of float32
        Golden scores.
    """

    params: IndexScoreParams
    work: ScoreWork
    command: int
    query: list[int]
    keys: list[int]
    scores: npt.NDArray[np.float32]

    @classmethod
    def draw(
        cls, params: IndexScoreParams, keys: int, query: npt.NDArray[np.uint8], weights: Any, rng: np.random.Generator
    ) -> Scan:
        """Return a scan of random keys; a sixteenth of them come twice, so that scores tie."""
        heads, dim = query.shape
        mode = MODES["indexer"]
        codes = FP8_E4M3.to_codes(rng.standard_normal((keys, dim), np.float32))
        scales = rng.uniform(0.5, 2.0, keys).astype(np.float32)
        for numbers in (codes, scales):
            numbers[: keys // 16] = numbers[keys - keys // 16 :]
        work = ScoreWork(mode=mode, heads=heads, dim=dim, keys=keys)
        return cls(
            params,
            work,
            command_word(params, work),
            query_words(params, mode, query, weights),
            key_words(params, mode, codes, scales),
            index_scores(params.spec, mode, query, weights, codes, scales),
        )


def drawn_query(
    heads: int, dim: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Return codes and weights of a query."""
    codes = FP8_E4M3.to_codes(rng.standard_normal((heads, dim), np.float32))
    return codes, rng.standard_normal(heads).astype(np.float32)


def channel_share() -> dict[str, object]:
    """Score 16,384 keys of DeepSeek's shape in the unit of a KARAT device's channel, at the rate of its memory."""
    params = UNIT_PRESETS["karat"].index_score
    device = PNM_PRESETS["karat-pnm"]
    assert params is not None, "the preset has a scoring unit"
    bytes_per_cycle = device.bytes_per_s.number / device.channels.integer / device.core_clock_hz.number
    return scan_once(params, heads=64, dim=128, keys=16384, bytes_per_cycle=bytes_per_cycle)


def scan_once(
    params: IndexScoreParams, *, heads: int, dim: int, keys: int, bytes_per_cycle: float | None = None
) -> dict[str, object]:
    """Score random keys once; every score and every cycle is held to the models.

    Parameters
    ----------
    params : IndexScoreParams
    heads, dim, keys : int
        Of the query and the keys.
    bytes_per_cycle : float, optional
        Rate at which the keys come, from the cycle on in which the query is there; as fast as they are taken if not
        given.

    Returns
    -------
    dict
        Sizes, cycles from the command to the last score, both included, and of the keys alone; the share of the keys'
        rate that is kept where they have one; seconds, hash of the Verilog.

    Raises
    ------
    AssertionError
        If scores or cycles differ from the models'.
    """
    rng = np.random.default_rng(10)
    scan = Scan.draw(params, keys, *drawn_query(heads, dim, rng), rng)
    earliest, paced_s = {}, 0.0
    if bytes_per_cycle is not None:
        # The last byte of a beat has come.
        arrival = np.arange(1, len(scan.keys) + 1) * params.spec.beat_bytes / bytes_per_cycle
        paced_s = float(arrival[-1])
        earliest["keys"] = np.ceil(arrival).astype(np.int64) + 1 + len(scan.query)
    verilog = score_verilog(params)
    run = run_scan(verilog, scan, earliest)
    total = int(run.streams["scores"].cycles[-1]) + 1
    return {
        "keys": keys,
        "heads": heads,
        "dim": dim,
        "cycles": total,
        "keys_cycles": int(run.streams["keys"].cycles[-1] - run.streams["keys"].cycles[0]) + 1,
        "key_rate_share": paced_s / total if earliest else None,
        "wall_s": run.wall_s,
        "verilog_sha256": hashlib.sha256(verilog.encode()).hexdigest(),
    }


def score_verilog(params: IndexScoreParams) -> str:
    """Return the Verilog of module ``nearkv_index_score``, with native arithmetic."""
    return with_native(convert_once(IndexScore, params, name="nearkv_index_score", platform=NATIVE))


def run_scan(verilog: str, scan: Scan, earliest: Mapping[str, npt.NDArray[np.integer]] | None = None) -> StreamRun:
    """Run a scan through a unit; every score and every cycle is held to the models.

    Parameters
    ----------
    verilog : str
        The unit, as :func:`score_verilog` writes it.
    scan : Scan
    earliest : mapping of str to ndarray of int, optional
        First cycles in which beats of the ``keys`` are offered.

    Raises
    ------
    AssertionError
        If scores or cycles differ from the models'.
    """
    earliest = earliest or {}
    run = run_streams(
        verilog,
        "nearkv_index_score",
        {"command": [scan.command], "query": scan.query, "keys": scan.keys},
        {"scores": len(scan.scores)},
        earliest=earliest,
    )
    codes = FP32.to_codes(scan.scores).astype(np.uint64)
    wanted = codes | np.arange(len(codes), dtype=np.uint64) << np.uint64(FP32.bits)
    assert run.streams["scores"].payloads == wanted.tolist(), "scores must be those of the golden model"
    traces = {}
    if earliest:
        offered = np.zeros(run.cycles, bool)
        offered[run.streams["keys"].cycles] = True
        traces["keys"] = StreamTrace(offered, np.ones(run.cycles, bool))
    predicted = predict(scan.params, [scan.work], traces)
    for name, record in run.streams.items():
        assert record.cycles.tolist() == predicted[name].tolist(), f"cycles of {name} must be those of the formula"
    return run


def select_of_keys(params: IndexSelectParams, *, heads: int, dim: int, count: int, k: int) -> dict[str, object]:
    """Score keys that are spread evenly over the shards and select ``k``; the ids are held to the golden model.

    Parameters
    ----------
    params : IndexSelectParams
        Units; each has room for its keys.
    heads, dim : int
        Of the query and the keys.
    count, k : int
        Keys, a multiple of the shards, and how many are taken.

    Returns
    -------
    dict
        Sizes, cycles of the whole and from the last key to the last end, seconds, hash of the Verilog.

    Raises
    ------
    ValueError
        If the keys can't be spread evenly.
    AssertionError
        If the ids differ from the model's.
    """
    shards, shard = params.top_k.shards, params.top_k.shard
    each, rest = divmod(count, shards)
    if rest:
        raise ValueError(f"count must be a multiple of {shards}, not {count!r}")
    rng = np.random.default_rng(11)
    query = drawn_query(heads, dim, rng)
    inputs: dict[str, list[int]] = {"command": [k]}
    scores = []
    for s in range(shards):
        scan = Scan.draw(params.score, each, *query, rng)
        scores.append(scan.scores)
        inputs[f"score__{s}"], inputs[f"query__{s}"], inputs[f"keys__{s}"] = [scan.command], scan.query, scan.keys
        inputs[f"scan__{s}"] = [each | s * each << shard.count_bits]
    taken = top_k(np.concatenate(scores), k)
    wanted = {
        f"selected__{s}": selected_words(
            shard, s * each, taken[(taken >= s * each) & (taken < (s + 1) * each)] - s * each
        )
        for s in range(shards)
    }
    verilog = with_native(convert_once(IndexSelect, params, name="nearkv_index_select", platform=NATIVE))
    run = run_streams(verilog, "nearkv_index_select", inputs, {name: len(items) for name, items in wanted.items()})
    for name, items in wanted.items():
        assert run.streams[name].payloads == items, f"ids on {name} must be those of the golden model"
    last_key = max(int(run.streams[f"keys__{s}"].cycles[-1]) for s in range(shards))
    return {
        "keys": count,
        "heads": heads,
        "dim": dim,
        "k": k,
        "shards": shards,
        "cycles": run.cycles,
        "after_last_key_cycles": max(int(run.streams[name].cycles[-1]) for name in wanted) - last_key,
        "wall_s": run.wall_s,
        "verilog_sha256": hashlib.sha256(verilog.encode()).hexdigest(),
    }
