"""A million keys through the RTL of scoring and selection: channel by channel to scores, and these to ids."""

from __future__ import annotations

import hashlib
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from golden.retrieval.topk import top_k
from hw.benches.index_score import Scan, drawn_query, run_scan, score_verilog
from hw.benches.top_k import top_k_verilog
from hw.cosim import run_streams
from hw.index_score_params import IndexSelectParams
from hw.presets import UNIT_PRESETS
from hw.timing import index_score
from hw.timing.top_k import ShardWork, predict, select_cycles
from hw.timing.trace import StreamTrace
from hw.top_k_words import selected_words

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["million_keys", "score_and_select"]


def million_keys() -> dict[str, object]:
    """Score 1,000,000 keys of DeepSeek's shape and select 2,048, in the 64 channels of a KARAT device."""
    preset = UNIT_PRESETS["karat"]
    assert preset.index_score is not None, "the preset has a scoring unit"
    assert preset.top_k is not None, "the preset has units of selection"
    params = IndexSelectParams(score=preset.index_score, top_k=preset.top_k)
    return score_and_select(params, heads=64, dim=128, keys=15_625, k=2048)


def score_and_select(params: IndexSelectParams, *, heads: int, dim: int, keys: int, k: int) -> dict[str, object]:
    """Score so many keys in each channel, one channel after the other in the same unit, and select among all scores.

    The top-k unit gets every score in the cycle in which it left its scoring unit, all channels at once, and must take
    it in that cycle: so both together do what they would do joined. Scores, ids and every cycle are held to the models.

    Parameters
    ----------
    params : IndexSelectParams
        Units of a channel, and how many channels there are.
    heads, dim : int
        Of the query and the keys.
    keys, k : int
        Keys of each channel, and how many are taken of all.

    Returns
    -------
    dict
        Sizes; cycles from the query's command to the last score, and from there to the last end, both as the formulas
        have them; seconds, hashes of the Verilog.

    Raises
    ------
    AssertionError
        If scores, ids or cycles differ from the models'.
    """
    began = time.perf_counter()
    shards, shard = params.top_k.shards, params.top_k.shard
    rng = np.random.default_rng(11)
    query = drawn_query(heads, dim, rng)
    score_text = score_verilog(params.score)
    # Behind reset a shard clears its store, and then takes its scan.
    begins = shard.rows + 1
    inputs: dict[str, list[int] | npt.NDArray[np.unsignedinteger]] = {"command": [k]}
    earliest: dict[str, npt.NDArray[np.integer]] = {}
    scores = []
    score_cycles = 0
    for s in range(shards):
        scan = Scan.draw(params.score, keys, *query, rng)
        given = run_scan(score_text, scan).streams["scores"]
        scores.append(scan.scores)
        score_cycles = int(given.cycles[-1]) + 1
        wanted = index_score.operation_cycles(params.score, scan.work) - 1
        assert score_cycles == wanted, f"cycles of scoring must be {wanted}, not {score_cycles}"
        inputs[f"scan__{s}"] = [keys | s * keys << shard.count_bits]
        inputs[f"scores__{s}"] = np.array(given.payloads, np.uint64)
        earliest[f"scores__{s}"] = given.cycles.astype(np.int64) + begins
        print(f"channel {s + 1} of {shards} scored, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    taken = top_k(np.concatenate(scores), k)
    outputs: dict[str, list[int]] = {}
    work: list[ShardWork] = []
    for s in range(shards):
        mine = taken[(taken >= s * keys) & (taken < (s + 1) * keys)] - s * keys
        outputs[f"selected__{s}"] = selected_words(shard, s * keys, mine)
        work.append(ShardWork.of(shard, np.arange(keys), mine))
    select_text = top_k_verilog(params.top_k)
    run = run_streams(
        select_text, "nearkv_top_k", inputs, {name: len(items) for name, items in outputs.items()}, earliest=earliest
    )
    traces = {}
    for name, cycles in earliest.items():
        offered = np.zeros(run.cycles, bool)
        offered[cycles] = True
        traces[name] = StreamTrace(offered, np.ones(run.cycles, bool))
    predicted = predict(params.top_k, [work], traces)
    for name, record in run.streams.items():
        if name in earliest:
            assert record.cycles.tolist() == earliest[name].tolist(), f"{name} must hold up no score"
        if name in outputs:
            assert record.payloads == outputs[name], f"ids on {name} must be those of the golden model"
        assert record.cycles.tolist() == predicted[name].tolist(), f"cycles of {name} must be those of the formula"
    last_score = max(int(cycles[-1]) for cycles in earliest.values())
    select = max(int(run.streams[name].cycles[-1]) for name in outputs) - last_score
    rows = work[0].rows
    wanted = select_cycles(params.top_k, rows, shards - 1, rows)
    assert select == wanted, f"cycles of selection must be {wanted}, not {select}"
    return {
        "keys": shards * keys,
        "heads": heads,
        "dim": dim,
        "k": k,
        "shards": shards,
        "score_cycles": score_cycles,
        "select_cycles": select,
        "wall_s": time.perf_counter() - began,
        "verilog_sha256": [hashlib.sha256(text.encode()).hexdigest() for text in (score_text, select_text)],
    }
