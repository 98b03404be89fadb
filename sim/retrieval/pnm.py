"""Attention of one layer on PNM devices: scores, selection, gathering and attention where KV and indices lie.

Every request has one home device; requests are dealt to nodes and devices in turn, so the busiest device has
``r = ceil(B / devices)``, and serves them stage by stage::

    score    (loading and draining of the unit) / clock + max(index bytes / memory, cycles of the keys / clock)
    select   r * selections * (cycles from the last score to the last row of ids, :mod:`hw.timing.top_k`) / clock
    gather   latency of the first burst + max(bytes / memory, cycles of the gather unit / clock)
    attend   what its operations take beyond the gathering, which it follows token by token

The index query goes first, so that scoring starts; the query and the step's own keys and values follow meanwhile, and
add what scoring and selecting don't hide. A transfer takes half the link's round trip and its bytes at the slowest of
the device's link, its node's, and those of the GPUs' nodes. Scores that arrive while selection is under way wait: a
shard stores one request's at a time.

Each channel has a scoring unit (:mod:`sim.retrieval.scoring`). What it has no room for, more heads or elements than its
query's store or more keys than it numbers, is scored by the cores, ``max(index bytes / memory, operations / cores)``.

Memory and cores run at the shares of their peaks that ``calibration.toml`` gives; there is no model of LPDDR's rows
and refresh. Keys, and the rows that are gathered, are spread evenly over channels: ids that crowd in one cost selection
nothing, and gathering as many times as long as there are channels, at worst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.presets import UNIT_PRESETS
from hw.timing import gather, top_k
from sim.calibration import factors
from sim.errors import UnsupportedError
from sim.provenance import Part
from sim.retrieval.scoring import scan_cycles
from sim.retrieval.stages import Stage

if TYPE_CHECKING:
    from hw.top_k_params import TopKParams
    from sim.models import Attention
    from sim.retrieval.machine import PnmPool, RetrievalSystem
    from sim.retrieval.work import LayerWork

__all__ = ["home_requests", "output_bytes", "pnm_sources", "pnm_stages", "query_bytes", "select_cycles"]

_ELEMENT_BYTES = 2


def home_requests(pool: PnmPool, batch: int) -> int:
    """Return the requests of the busiest device."""
    return -(-batch // pool.count.integer)


def query_bytes(attention: Attention) -> int:
    """Return the bytes of one request's query as it meets stored keys, and of the step's own keys and values."""
    return attention.num_heads * attention.key_dim * _ELEMENT_BYTES + attention.kv_bytes


def output_bytes(attention: Attention) -> int:
    """Return the bytes of one request's attention output."""
    return attention.num_heads * attention.value_dim * _ELEMENT_BYTES


def select_cycles(params: TopKParams, candidates: int, chosen: int) -> int:
    """Return the cycles from the last score to the last row of ids of one selection, wherever the ids lie.

    Candidates are spread evenly over the shards.

    Raises
    ------
    UnsupportedError
        If the shards can't store as many scores, or select as many.
    """
    shard = params.shard
    room = params.shards * shard.depth
    if candidates > room:
        raise UnsupportedError(f"candidates of a selection must be at most {room}, what top_k stores, not {candidates}")
    if chosen > params.max_k:
        raise UnsupportedError(f"selected candidates must be at most {params.max_k}, max_k of top_k, not {chosen}")
    rows = max(1, -(-candidates // (params.shards * shard.lanes)))
    return top_k.select_cycles(params, rows, params.shards - 1, rows)


def pnm_stages(
    system: RetrievalSystem, attention: Attention, work: LayerWork, batch: int, utilisation: float
) -> list[Stage]:
    """Return the stages of one layer on the busiest device, in their order.

    Parameters
    ----------
    system : RetrievalSystem
        With PNM devices.
    attention : Attention
    work : LayerWork
        Of one request.
    batch : int
        Requests.
    utilisation : float
        Share of the memory's peak rate that reads reach.

    Raises
    ------
    UnsupportedError
        If the units of selection are too small.
    """
    pool = system.pnm
    assert pool is not None, "the stages are those of PNM devices"
    device, units = pool.device, UNIT_PRESETS[pool.unit_preset]
    mine = home_requests(pool, batch)
    clock = device.core_clock_hz.number
    memory = device.bytes_per_s.number * utilisation
    share = factors()["pnm_compute_utilisation"].value
    latency = device.link_round_trip_s.number / 2
    queries = query_bytes(attention)
    stages: list[Stage] = []
    hidden = 0.0
    # A method that scores with attention's own queries has to wait for them.
    early = (work.query_bytes or queries) if work.score_bytes else 0
    if early:
        first_s = latency + _sent_s(system, pool, batch, early)
        name = "index query out" if work.query_bytes else "query out"
        stages.append(_link_stage(name, first_s, first_s, mine * early))
    if work.score_bytes:
        scored = _score_stage(pool, work, mine, memory, share)
        assert units.top_k is not None, "the preset has units of selection"
        cycles = mine * work.selections * select_cycles(units.top_k, work.candidates, work.chosen)
        selected = Stage(name="select", seconds=cycles / clock, busy_s=cycles / clock, bound="unit", unit_cycles=cycles)
        stages += [scored, selected]
        hidden = scored.seconds + selected.seconds
    if early != queries:
        follows = _sent_s(system, pool, batch, queries) + (0.0 if early else latency)
        stages.append(_link_stage("query out", max(0.0, follows - hidden), follows, mine * queries))
    stages += _attend_stages(attention, work, mine, memory, device.bf16_flops.number * share, pool)
    back = latency + _sent_s(system, pool, batch, output_bytes(attention))
    stages.append(_link_stage("output back", back, back, mine * output_bytes(attention)))
    return stages


def _score_stage(pool: PnmPool, work: LayerWork, mine: int, memory: float, share: float) -> Stage:
    """Return scoring by the channels' units, or by the cores where those have no room."""
    device, params = pool.device, UNIT_PRESETS[pool.unit_preset].index_score
    assert params is not None, "the preset has a scoring unit"
    clock = device.core_clock_hz.number
    found = scan_cycles(params, work.scan, device.channels.integer) if work.scan else None
    read_s = mine * work.score_bytes / memory
    scans = mine * work.selections
    if found is None:
        peak = (device.fp8_flops if work.score_fp8 else device.bf16_flops).number * share
        around_s, other, other_s = 0.0, "compute", mine * work.score_flops / peak
    else:
        around_s, other, other_s = scans * found.around / clock, "unit", scans * found.keys / clock
    seconds = around_s + max(read_s, other_s)
    return Stage(
        name="score",
        seconds=seconds,
        busy_s=seconds,
        bound="memory" if read_s >= other_s else other,
        read_bytes=mine * work.score_bytes,
        flops=mine * work.score_flops,
        unit_cycles=scans * found.total if found else 0,
    )


def _attend_stages(
    attention: Attention, work: LayerWork, mine: int, memory: float, peak: float, pool: PnmPool
) -> list[Stage]:
    """Return gathering, and what attention takes beyond it."""
    clock = pool.device.core_clock_hz.number
    read = mine * (work.gather_bytes + work.list_bytes)
    cycles, first_s = 0, 0.0
    if work.gathers:
        cycles = mine * work.gathers * gather.cycles(-(-work.gathered_ids // pool.device.channels.integer))
        first_s = gather.latency_cycles(1) / clock
    times = {"memory": read / memory, "unit": cycles / clock}
    bound = max(times, key=lambda key: times[key])
    computed = mine * work.attend_flops / peak
    return [
        Stage(
            name="gather",
            seconds=first_s + times[bound],
            busy_s=first_s + times[bound],
            bound=bound,
            read_bytes=read,
            unit_cycles=cycles,
        ),
        Stage(
            name="attend",
            seconds=max(0.0, computed - times[bound]),
            busy_s=computed,
            bound="compute" if computed > times[bound] else bound,
            flops=mine * work.attend_flops,
        ),
    ]


def _sent_s(system: RetrievalSystem, pool: PnmPool, batch: int, message: int) -> float:
    """Return the seconds that a message of every request takes, latency left out."""
    nodes = -(-pool.count.integer // pool.node_devices.integer)
    return message * max(
        home_requests(pool, batch) / pool.device.link_bytes_per_s.number,
        -(-batch // nodes) / pool.node_bytes_per_s.number,
        -(-batch // system.nodes) / system.cluster.node_bytes_per_s.number,
    )


def _link_stage(name: str, seconds: float, busy_s: float, sent: int) -> Stage:
    return Stage(name=name, seconds=seconds, busy_s=busy_s, bound="link", read_bytes=sent)


def pnm_sources(system: RetrievalSystem, stage: str, by_unit: bool) -> tuple[Part, ...]:
    """Return what the time of a stage is made from; ``by_unit`` tells scores of units from those of cores."""
    pool = system.pnm
    assert pool is not None, "the sources are those of PNM devices"
    device = pool.device
    memory = (
        Part("memory rate", "literature", device.bytes_per_s.source),
        factors()["pnm_memory_utilisation"].part,
        Part("memory", "modelled", "sim/retrieval/pnm.py: its rate; no rows, no refresh"),
    )
    cores = (
        Part("peak of the cores", "literature", device.bf16_flops.source),
        factors()["pnm_compute_utilisation"].part,
    )
    clock = Part("clock of the units", "literature", device.core_clock_hz.source)
    even = Part("spread over channels", "modelled", "sim/retrieval/pnm.py: ids spread evenly")
    links = (
        Part("link rate", "literature", device.link_bytes_per_s.source),
        Part("link round trip", "literature", device.link_round_trip_s.source),
        Part("rate of a node", "literature", pool.node_bytes_per_s.source),
        Part("transfers", "modelled", "sim/retrieval/pnm.py: simultaneous, at the slowest link"),
    )
    unit = {
        name: Part(f"cycles of {name}", "formula-rtl", f"hw/timing/{name}.py")
        for name in ("index_score", "top_k", "gather")
    }
    return {
        "score": (*memory, unit["index_score"], clock, even) if by_unit else (*memory, *cores),
        "select": (unit["top_k"], clock, even),
        "gather": (unit["gather"], clock, even, *memory),
        "attend": (*memory, *cores),
    }.get(stage, links)
