"""Runs two ends of the DMA on a Verilated bench: what is to be moved goes in, when each token came goes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from golden.checks import require_int
from golden.dma.descriptors import Status
from hw.conversion import convert_once
from hw.cosim import CosimError, StreamRecord, run_streams
from hw.devices.cells import with_cells
from hw.interface.dma_bench import BENCH_TOP, DmaBench, landed_layout, setup_layout
from hw.interface.dma_layouts import completion_layout, segment_layout
from hw.payloads import pack, unpack

if TYPE_CHECKING:
    from hw.dma_bench_params import DmaBenchParams
    from hw.dma_engine_params import DmaParams

__all__ = ["Counted", "DmaRun", "DmaWork", "Landed", "bench_verilog", "counted", "run_dma"]

_ENDS = ("near", "far")


@dataclass(frozen=True, kw_only=True)
class DmaWork:
    """What ends do in a run.

    Parameters
    ----------
    tokens : int
        Tokens that each of ``senders`` moves; a multiple of ``run_tokens``.
    run_tokens : int
        Tokens that lie together, at either side; runs are in random places.
    compressed : bool
        Whether they are sent in 8 bits.
    senders : tuple of str
        ``near``, ``far`` or both.
    link_beats : tuple of int
        Beats that the link takes, of cycles.
    at_once : bool
        Whether memories take no time.
    seed : int
        Of the places.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or impossible.
    """

    tokens: int
    run_tokens: int = 1
    compressed: bool = False
    senders: tuple[str, ...] = _ENDS
    link_beats: tuple[int, int] = (1, 1)
    at_once: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_int("run_tokens", self.run_tokens, 1)
        require_int("tokens", self.tokens, self.run_tokens)
        if self.tokens % self.run_tokens:
            raise ValueError(f"tokens must be a multiple of the {self.run_tokens} of a run, not {self.tokens!r}")
        if not self.senders or set(self.senders) - set(_ENDS):
            raise ValueError(f"senders must be of {', '.join(_ENDS)}, not {self.senders!r}")
        beats, cycles = self.link_beats
        require_int("cycles of link_beats", cycles, 1, 255)
        require_int("beats of link_beats", beats, 1, cycles)


@dataclass(frozen=True)
class Landed:
    """Tokens that came to one memory.

    Parameters
    ----------
    cycles : ndarray of uint64, shape (tokens,)
        Cycle of the last column of each.
    offered, opened : ndarray of int64, shape (tokens,)
        Beats that the link could have taken until then, and rows that the memory had opened.
    """

    cycles: np.ndarray
    offered: np.ndarray
    opened: np.ndarray


class Counted(NamedTuple):
    """What of a run is counted: tokens, and what passed meanwhile."""

    tokens: int
    cycles: int
    offered: int
    opened: int


@dataclass(frozen=True)
class DmaRun:
    """What a run did.

    Parameters
    ----------
    cycles : int
        Cycles of the whole.
    landed : dict of str to Landed
        By the end that sent.
    first_completions : dict of str to int
        Cycles from the first descriptor of each sender to its completion.
    wall_s : float
        Seconds of the machine.
    """

    cycles: int
    landed: dict[str, Landed]
    first_completions: dict[str, int]
    wall_s: float


def bench_verilog(params: DmaBenchParams) -> str:
    """Return the Verilog of a bench."""
    return with_cells(convert_once(DmaBench, params, name=BENCH_TOP))


def run_dma(params: DmaBenchParams, work: DmaWork, *, long_run: bool = False) -> DmaRun:
    """Move tokens and return when each came; ``long_run`` is that of :func:`hw.cosim.run_streams`.

    Raises
    ------
    CosimError
        If one is lost, differs from its source, or is not there in time.
    hw.toolchain.ToolError
        If the model can't be built.
    ValueError
        If a memory has less room than a run needs.
    """
    rng = np.random.default_rng(work.seed)
    beats, cycles = work.link_beats
    setup = pack(setup_layout(), beats=beats, cycles=cycles, at_once=work.at_once)
    inputs: dict[str, list[int]] = {"setup": [setup]}
    outputs: dict[str, int] = {}
    for name, peer in zip(_ENDS, _ENDS[::-1], strict=True):
        if name in work.senders:
            end, other = getattr(params, name), getattr(params, peer)
            inputs[f"{name}_descriptor"], outputs[f"{name}_completion"] = _descriptors(end, work, rng)
            inputs[f"{peer}_room"] = _places(other, work, rng, upper=True).ravel().tolist()
            outputs[f"{peer}_landed"] = work.tokens
    most = 1000 + work.tokens * 4000
    run = run_streams(bench_verilog(params), BENCH_TOP, inputs, outputs, max_cycles=most, long_run=long_run)
    landed, firsts = {}, {}
    for name, peer in zip(_ENDS, _ENDS[::-1], strict=True):
        if name in work.senders:
            ends = run.streams[f"{name}_completion"]
            _require_moved(name, getattr(params, name), work, ends)
            firsts[name] = int(ends.cycles[0] - run.streams[f"{name}_descriptor"].cycles[0])
            landed[name] = _landed(peer, run.streams[f"{peer}_landed"])
    return DmaRun(run.cycles, landed, firsts, run.wall_s)


def counted(landed: Landed) -> Counted:
    """Return what there was from a fifth of the tokens to the last tenth: ends neither fill nor run empty then."""
    count = len(landed.cycles)
    first, last = count // 5, count * 9 // 10
    spans = (record[last] - record[first] for record in (landed.cycles, landed.offered, landed.opened))
    return Counted(last - first, *(int(span) for span in spans))


def _places(end: DmaParams, work: DmaWork, rng: np.random.Generator, *, upper: bool) -> np.ndarray:
    """Return slots, a run a row: sources are in the lower half of a memory, copies in the upper."""
    half = end.space.space.slots // 2
    runs, many = work.tokens // work.run_tokens, half // work.run_tokens
    if many < 2 * end.copies:
        raise ValueError(f"half of a memory must have room for {2 * end.copies} runs, not for {many}")
    # The same one comes again only when all others have been.
    order = rng.permutation(many)
    starts = order[np.arange(runs) % many] * work.run_tokens
    return starts[:, None] + np.arange(work.run_tokens)[None, :] + half * upper


def _descriptors(end: DmaParams, work: DmaWork, rng: np.random.Generator) -> tuple[list[int], int]:
    """Return the segments, and the number of descriptors: one a run, or one for as many lone tokens as it takes."""
    starts = _places(end, work, rng, upper=False)[:, 0]
    many = 1 if work.run_tokens > 1 else end.max_segments
    size, layout = end.space.space.slot_bytes, segment_layout(end)
    items = [
        pack(
            layout,
            tag=place // many,
            move=True,
            compressed=work.compressed,
            destination=end.peer,
            source=int(start) * size,
            length=work.run_tokens * size,
            last=place % many == many - 1 or place == len(starts) - 1,
        )
        for place, start in enumerate(starts)
    ]
    return items, -(-len(starts) // many)


def _require_moved(name: str, end: DmaParams, work: DmaWork, ends: StreamRecord) -> None:
    found = [unpack(completion_layout(end), payload) for payload in ends.payloads]
    done = sum(one["done"] for one in found)
    if done != work.tokens or any(one["status"] != Status.OK for one in found):
        raise CosimError(f"{name} must move {work.tokens} tokens, it moved {done}")


def _landed(name: str, record: StreamRecord) -> Landed:
    found = [unpack(landed_layout(), payload) for payload in record.payloads]
    for key in ("wrong", "lost"):
        if found[-1][key]:
            raise CosimError(f"{key} at {name} must be 0, not {found[-1][key]}")
    columns = {key: np.array([one[key] for one in found], dtype=np.int64) for key in ("offered", "opened")}
    return Landed(record.cycles, **columns)
