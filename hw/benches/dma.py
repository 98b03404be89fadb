"""Both ends of the DMA over a hundred thousand tokens each way, over memories with open rows."""

from __future__ import annotations

import hashlib

from hw.dma_run import DmaWork, bench_verilog, counted, run_dma
from hw.presets.dma_bench import DMA_BENCHES

__all__ = ["hundred_thousand_tokens", "move_scattered"]

_LINK = (2, 5)


def hundred_thousand_tokens() -> dict[str, object]:
    """Move 100,000 tokens of 512 bytes from random slots to random slots, each way at once."""
    return move_scattered(100_000)


def move_scattered(tokens: int) -> dict[str, object]:
    """Move so many tokens each way at once; every column is held to its source.

    Parameters
    ----------
    tokens : int
        Tokens that each end sends.

    Returns
    -------
    dict
        Sizes, cycles, the share of the link's peak that each end reaches, seconds, hash of the Verilog.

    Raises
    ------
    AssertionError
        If an end moves more than the link can.
    """
    params = DMA_BENCHES["device"]
    run = run_dma(params, DmaWork(tokens=tokens, link_beats=_LINK), long_run=True)
    flit = params.near.path.link.flit
    shares = {}
    for name, landed in run.landed.items():
        count = counted(landed)
        shares[name] = count.tokens * params.near.columns / count.offered
        payload = flit.flits.payload_bytes / flit.flits.flit_bytes
        assert shares[name] <= payload, f"share of {name} must be at most {payload}, not {shares[name]}"
    return {
        "tokens": tokens,
        "slot_bytes": params.near.space.space.slot_bytes,
        "link_beats": list(_LINK),
        "cycles": run.cycles,
        **{f"{name}_share_of_peak": share for name, share in shares.items()},
        "wall_s": run.wall_s,
        "cycles_per_s": run.cycles / run.wall_s,
        "verilog_sha256": hashlib.sha256(bench_verilog(params).encode()).hexdigest(),
    }
