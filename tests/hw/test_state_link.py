# amaranth: UnusedElaboratable=no
"""Promise: a bus carries every item once, in its group's order, at the distances of the memory, and blocks no other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hw.devices.state_link import HEAD_DEPTH, StateLink
from hw.logic_die_params import LogicDieParams
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.logic_die import link_cycles
from tests.helpers.logic_die import GroupStates
from tests.helpers.native import run_native
from tests.helpers.pysim import run_pysim

PAM = LogicDieParams(channel=DEVICE_PRESETS["pam"].channel)
BEATS = 3


def _timed(n_bl: int, n_ccds: int, n_ccdl: int) -> LogicDieParams:
    timing = replace(PAM.channel.timing, n_bl=n_bl, n_ccds=n_ccds, n_ccdl=n_ccdl, n_ccdab=max(n_ccdl, 4))
    return PAM.replace(channel=PAM.channel.replace(timing=timing))


_TIMINGS = {
    "hbm3": PAM,
    "as fast as can be": _timed(1, 1, 1),
    "uneven": _timed(3, 4, 9),
    "one group slow": _timed(2, 2, 20),
}


@pytest.fixture(params=_TIMINGS.values(), ids=_TIMINGS.keys())
def params(request) -> LogicDieParams:
    return request.param


def _items(params: LogicDieParams, kinds: list[str], seed: int = 1) -> dict[str, list[int]]:
    """Return the items of every group's two streams, by the names that streams of either end end with."""
    work = GroupStates.make(params, [[kind] * params.channel.groups for kind in kinds], [BEATS] * len(kinds), seed)
    heads, bodies = work.records(np.zeros((len(kinds), params.channel.groups), np.int64))
    found = {}
    for group in range(params.link_groups):
        found[f"head {group}"] = heads[group].payloads
        found[f"body {group}"] = bodies[group].payloads
    return found


def _port(name: str, end: str) -> str:
    kind, group = name.split()
    return f"{kind}_{end}__{group}"


def _simulate(params: LogicDieParams, scenario) -> None:
    """Run natively, and where bursts follow each other at once in Amaranth's simulator."""
    if params is _TIMINGS["as fast as can be"]:
        run_pysim(StateLink(params), scenario)
    else:
        run_native(StateLink, params, scenario)


async def _run(bench, items: dict[str, list[int]], *, idle: float = 0.0, stall: float = 0.0) -> None:
    await bench.reset()
    for name, payloads in items.items():
        bench.send(_port(name, "i"), payloads, idle=idle)
        bench.stall(_port(name, "o"), stall)
    await bench.until(timeout_cycles=20_000, **{_port(name, "o"): len(payloads) for name, payloads in items.items()})
    await bench.advance(20)
    for name, payloads in items.items():
        assert bench.items(_port(name, "o")) == payloads, name


def _arrivals(bench, name: str) -> np.ndarray:
    """Cycle in which each item was there, where none is ever refused."""
    return bench.trace(_port(name, "o")).transfers


def test_the_example_of_the_docstring() -> None:
    items = _items(PAM, ["plain"])
    items = {
        name: payloads[:1] if name in ("head 0", "head 1", "body 0", "body 1") else []
        for name, payloads in items.items()
    }

    async def scenario(bench) -> None:
        await _run(bench, items)
        found = {name: _arrivals(bench, name).tolist() for name, payloads in items.items() if payloads}
        assert found == {"head 0": [3], "head 1": [5], "body 0": [11], "body 1": [13]}

    _simulate(PAM, scenario)


def test_bursts_keep_their_distances(params: LogicDieParams) -> None:
    items = _items(params, ["plain", "empty", "plain"])

    async def scenario(bench) -> None:
        await _run(bench, items)
        timing = params.channel.timing
        arrivals = np.sort(np.concatenate([_arrivals(bench, name) for name in items]))
        assert np.diff(arrivals).min() >= timing.n_ccds
        for group in range(params.link_groups):
            # The burst before an item's last is one of its own, or the last of the item before: n_ccdl apart.
            own = np.sort(np.concatenate([_arrivals(bench, f"{kind} {group}") for kind in ("head", "body")]))
            assert np.diff(own).min() >= timing.n_ccdl
            assert np.diff(_arrivals(bench, f"body {group}")).min() >= params.body_bursts * timing.n_ccdl

    _simulate(params, scenario)


@pytest.mark.parametrize("name", ["hbm3", "as fast as can be"])
def test_states_offered_at_once_take_the_cycles_of_the_formula(name: str) -> None:
    params = _TIMINGS[name]

    async def scenario(bench) -> None:
        items = _items(params, ["plain"])
        await _run(bench, items)
        timing = params.channel.timing
        # One cycle into the buffer, then the bus is busy to the end; the last burst is n_bl cycles on the pins.
        last = max(int(_arrivals(bench, item)[-1]) for item in items)
        assert last == 1 + link_cycles(params, BEATS) - timing.n_ccds + timing.n_bl

    _simulate(params, scenario)


@pytest.mark.parametrize(
    ("name", "idle", "stall"), [("hbm3", 0.0, 0.8), ("hbm3", 0.8, 0.0), ("hbm3", 0.5, 0.5), ("uneven", 0.5, 0.5)]
)
def test_stalls(name: str, idle: float, stall: float) -> None:
    items = _items(_TIMINGS[name], ["plain", "empty", "special", "plain"], seed=3)
    _simulate(_TIMINGS[name], lambda bench: _run(bench, items, idle=idle, stall=stall))


def test_a_group_whose_bodies_are_refused_holds_up_neither_heads_nor_other_groups() -> None:
    operations = 4
    items = _items(PAM, ["plain"] * operations)

    async def scenario(bench) -> None:
        await bench.reset()
        for name, payloads in items.items():
            bench.send(_port(name, "i"), payloads)
        bench.stall("body_o__2", 1.0)
        others = {_port(name, "o"): len(payloads) for name, payloads in items.items() if name != "body 2"}
        await bench.until(timeout_cycles=20_000, **others)
        bench.stall("body_o__2", 0.0)
        await bench.until(timeout_cycles=20_000, body_o__2=len(items["body 2"]))
        assert bench.items("body_o__2") == items["body 2"]

    _simulate(PAM, scenario)


def test_a_group_is_free_of_its_state_at_once_and_the_room_is_what_it_is_said_to_be() -> None:
    params = PAM.replace(group_states=2, die_states=1)
    items = _items(params, ["plain"] * 10)

    async def scenario(bench) -> None:
        await bench.reset()
        for name, payloads in items.items():
            bench.stall(_port(name, "o"), 1.0)
            bench.send(_port(name, "i"), payloads)
        await bench.advance(900)
        beats = params.channel.reduction.beats
        assert len(bench.items("head_i__0")) == 2 * HEAD_DEPTH
        assert len(bench.items("body_i__0")) == 3 * beats
        # The first 2 states of beats went in without a pause.
        assert bench.trace("body_i__0").transfers[: 2 * beats].tolist() == list(range(2 * beats))

    _simulate(params, scenario)


def test_reset_at_any_cycle() -> None:
    broken = _items(PAM, ["special"] * 2, seed=5)
    whole = _items(PAM, ["plain"], seed=6)

    async def scenario(bench) -> None:
        for cut in (1, 2, 3, 5, 8, 17, 34):
            await bench.reset()
            for name, payloads in broken.items():
                bench.send(_port(name, "i"), payloads, idle=0.1)
            await bench.advance(cut)
            await _run(bench, whole)

    _simulate(PAM, scenario)
