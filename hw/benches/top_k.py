"""A million scores through the RTL of the top-k unit, over several shards and their merge."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FP32
from golden.retrieval.topk import top_k
from hw.conversion import convert_once
from hw.cosim import run_streams
from hw.devices.placed import Placed, UnitModule
from hw.presets import UNIT_PRESETS
from hw.timing.top_k import ShardWork, predict
from hw.top_k_params import TopKParams, TopKShardParams
from hw.top_k_words import selected_words
from hw.units.top_k import TopK
from hw.units.top_k_shard import TopKShard

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["million_scores", "million_scores_of_64_shards", "select_once", "top_k_verilog"]

_MILLION = TopKParams(shard=TopKShardParams(depth=1 << 17, lanes=32, id_bits=20), shards=8, max_k=2048)


def million_scores() -> dict[str, object]:
    """Select 2,048 of 1,000,000 scores in eight shards of 125,000, in random order."""
    return select_once(_MILLION, 1_000_000, 2048)


def million_scores_of_64_shards() -> dict[str, object]:
    """Select 2,048 of 1,000,000 scores in the shards of a KARAT device, 15,625 scores each."""
    params = UNIT_PRESETS["karat"].top_k
    assert params is not None, "the preset has units of selection"
    return select_once(params, 1_000_000, 2048)


def top_k_verilog(params: TopKParams) -> str:
    """Return the Verilog of module ``nearkv_top_k``, the shard written once however often it is placed."""
    return convert_once(_top_k, params, name="nearkv_top_k") + _shard_module(params.shard).text()


def _top_k(params: TopKParams) -> TopK:
    return TopK(params, lambda shard: Placed(_shard_module(shard)))


def _shard_module(params: TopKShardParams) -> UnitModule:
    return UnitModule("nearkv_top_k_shard", TopKShard, params)


def select_once(params: TopKParams, count: int, k: int) -> dict[str, object]:
    """Select ``k`` of ``count`` scores, spread evenly over the shards; ids and every cycle are held to the models.

    Half of the scores have one of eight values, so that the threshold may be a tie.

    Parameters
    ----------
    params : TopKParams
        Unit; each shard has room for its scores.
    count, k : int
        Scores, and how many are taken; ``count`` a multiple of the shards.

    Returns
    -------
    dict
        Sizes, cycles of the whole and from the last score to the last end, seconds, hash of the Verilog.

    Raises
    ------
    ValueError
        If the scores can't be spread evenly, or a shard has no room for its own.
    AssertionError
        If ids or cycles differ from the models'.
    """
    each, rest = divmod(count, params.shards)
    if rest or each > params.shard.depth:
        most = params.shards * params.shard.depth
        raise ValueError(f"count must be a multiple of {params.shards} up to {most}, not {count!r}")
    shard = params.shard
    rng = np.random.default_rng(9)
    scores = rng.standard_normal(count).astype(np.float32)
    tied = rng.random(count) < 0.5
    scores[tied] = rng.integers(-4, 4, int(tied.sum())).astype(np.float32)
    taken = top_k(scores, k)

    inputs: dict[str, list[int] | npt.NDArray[np.unsignedinteger]] = {"command": [k]}
    wanted: dict[str, list[int]] = {}
    work: list[ShardWork] = []
    for s in range(params.shards):
        base = s * each
        order = rng.permutation(each)
        codes = FP32.to_codes(scores[base : base + each][order]).astype(np.uint64)
        inputs[f"scan__{s}"] = [each | base << shard.count_bits]
        inputs[f"scores__{s}"] = codes | order.astype(np.uint64) << np.uint64(32)
        mine = taken[(taken >= base) & (taken < base + each)]
        work.append(ShardWork.of(shard, order, mine - base))
        wanted[f"selected__{s}"] = selected_words(shard, base, mine - base)
    verilog = top_k_verilog(params)
    run = run_streams(verilog, "nearkv_top_k", inputs, {name: len(items) for name, items in wanted.items()})
    predicted = predict(params, [work])
    for name, record in run.streams.items():
        if name in wanted:
            assert record.payloads == wanted[name], f"ids on {name} must be those of the golden model"
        assert record.cycles.tolist() == predicted[name].tolist(), f"cycles of {name} must be those of the formula"
    last_score = max(int(run.streams[f"scores__{s}"].cycles[-1]) for s in range(params.shards))
    last_end = max(int(run.streams[name].cycles[-1]) for name in wanted)
    return {
        "scores": count,
        "k": k,
        "shards": params.shards,
        "lanes": shard.lanes,
        "cycles": run.cycles,
        "select_cycles": last_end - last_score,
        "wall_s": run.wall_s,
        "verilog_sha256": hashlib.sha256(verilog.encode()).hexdigest(),
    }
