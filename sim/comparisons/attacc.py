"""Attention of 64 heads on one HBM3 stack: cycles and commands of AttAcc's simulator beside those of our RTL.

AttAcc's simulator runs a trace of commands through a cycle model of the DRAM. Ours are cycles of a Verilated channel
with units at its banks, or at its bank groups. Both count the memory clock (0.769 ns) from the first command, with the
first refresh due after one refresh interval, 4 of the 64 heads on each of 16 channels, and the tokens over the
channel's 16 bank groups. Units at the banks have the head dimension over a group's 4 banks. A unit at a bank group
reads whole tokens, rows of which go to the banks in turn; AttAcc has its keys so too, but its values element by
element, of all tokens of a group, which makes as many columns.

Symmetry: channels are alike and take no notice of each other, and the bank groups of a channel get the same commands;
with as many tokens in each, they do the same in the same cycles. So one bank group of one channel is simulated.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hw.presets.devices import DEVICE_PRESETS
from hw.tables import load_table
from sim.comparisons.row import comparison_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hw.tables import DeviceTable

__all__ = [
    "CYCLES",
    "REFERENCE_WALL_S",
    "SYMMETRY",
    "TABLES",
    "StackRun",
    "attacc_rows",
    "pace",
    "run_stack",
]

_SOURCE = "scale-snu/attacc_simulator c600051, preset HBM3_5.2Gbps{}, {} level, run with 64 heads, d 128, fp16"
_SOURCES = {
    "attacc": _SOURCE.format("", "bank"),
    "attacc-unlimited": _SOURCE.format("_NPC", "bank"),
    "attacc-bankgroup": _SOURCE.format("", "bank-group"),
    "attacc-bankgroup-unlimited": _SOURCE.format("_NPC", "bank-group"),
}
_GENERATOR = "scale-snu/attacc_simulator c600051, gen_trace_attacc_bg.py: counted by hand"
_HEADS, _HEAD_DIM = 64, 128

CYCLES = {
    "attacc": {512: 3711, 2048: 16161, 4096: 32595},
    "attacc-unlimited": {512: 2719, 2048: 11755, 4096: 23673},
    "attacc-bankgroup": {512: 13299, 2048: 53951},
    "attacc-bankgroup-unlimited": {512: 8739, 2048: 36149},
}
"""Cycles of AttAcc's simulator by our device preset and tokens a head."""

_COUNTED_TOKENS = 2048
_MACS = {
    "attacc": ("all banks", 32784, "one more a channel than 2 columns of keys and of values for each token"),
    "attacc-bankgroup": ("a bank a group", 131088, "one more a channel than 8 columns of keys and of values a token"),
}
_COUNTS = {
    "writes of queries": (512, "BROADCAST", "ours with the commands of the units, which AttAcc has none of"),
    "moves to the softmax buffer": (5120, "", "ours: scores stay in the bank group"),
    "moves to the GEMV buffer": (4096, "", "ours: weights stay in the units that made them"),
    "softmax": (64, "", "ours: in the units, while the keys stream by"),
}
"""Commands of AttAcc's power-limited runs at 2,048 tokens, the kind of ours beside each, and why they differ."""

TABLES = ("pam", "pam-wide")
"""Devices of our own whose cycles stand beside, from their tables."""

REFERENCE_WALL_S = 5.4
"""Seconds of AttAcc's simulator for 2,048 tokens: median of 5 whole processes, 5.37 s, on two shared cores."""

SYMMETRY = "one bank group of one channel simulated: 16 channels, and the 16 groups of each, do the same"


@dataclass(frozen=True, kw_only=True)
class StackRun:
    """A run of all heads on one stack, of which one bank group was simulated.

    Parameters
    ----------
    last_column, last_state : int
        Cycles from the start to the last column read, and to the last beat of the last state out of a bank group.
    counts : mapping of str to int
        Commands of one channel by kind.
    cycles : int
        Cycles simulated, loading of the cells included.
    model_s, wall_s : float
        Seconds that the model ran, and that everything took, from making the data to reading the states; the model
        being built.
    """

    last_column: int
    last_state: int
    counts: Mapping[str, int]
    cycles: int
    model_s: float
    wall_s: float


def run_stack(preset: str, tokens: int) -> StackRun:
    """Run the heads of one channel of a device preset under Verilator.

    Parameters
    ----------
    preset : str
        Key of :data:`hw.presets.devices.DEVICE_PRESETS`.
    tokens : int
        Tokens a head, a multiple of the parts of a channel.

    Raises
    ------
    hw.cosim.CosimError
        If a rule of the memory was broken, or units lost something.
    """
    from hw.measure import RunSizes, command_counts, measured_run

    params = DEVICE_PRESETS[preset].channel
    sizes = RunSizes(_HEAD_DIM, tokens // params.parts, _HEADS // params.organisation.channels)
    start = time.perf_counter()
    measured = measured_run(params, sizes, first_refresh_cycles=params.timing.n_refi)
    return StackRun(
        last_column=int(measured.reads[-1]),
        last_state=int(measured.run.bodies[0].cycles[-1]),
        counts=command_counts(measured.run),
        cycles=measured.run.simulated_cycles,
        model_s=measured.run.wall_s,
        wall_s=time.perf_counter() - start,
    )


def attacc_rows(runs: Mapping[tuple[str, int], StackRun]) -> list[dict[str, Any]]:
    """Return the rows of the comparison.

    Parameters
    ----------
    runs : mapping of (str, int) to StackRun
        Runs by device preset and tokens, one for each entry of :data:`CYCLES`.

    Returns
    -------
    list of dict
        For each of AttAcc's numbers our last column read and our last state out, then command counts of the whole
        stack, then our own devices. ``within`` of a cycle count is 1 % at 512 tokens and 5 % elsewhere.
    """
    rows: list[dict[str, Any]] = []
    for preset, cycles in CYCLES.items():
        for tokens, reference in cycles.items():
            run = runs[preset, tokens]
            for what, ours in (("last column read", run.last_column), ("last state out", run.last_state)):
                rows.append(
                    comparison_row(
                        f"{preset}, {tokens} tokens: {what}",
                        reference,
                        ours,
                        unit="cycles",
                        source=_SOURCES[preset],
                        within=abs(ours / reference - 1) <= (0.01 if tokens == 512 else 0.05),
                        note="measured-rtl",
                    )
                )
    for preset, (reached, macs, note) in _MACS.items():
        counts = runs[preset, _COUNTED_TOKENS].counts
        for what, (reference, kind, why) in ({f"MACs of {reached}": (macs, "MAC", note)} | _COUNTS).items():
            ours = DEVICE_PRESETS[preset].channels * counts.get(kind, 0)
            rows.append(
                comparison_row(
                    f"{preset}, {_COUNTED_TOKENS} tokens: {what}",
                    reference,
                    ours,
                    unit="commands",
                    source=_SOURCES[preset] if preset == "attacc" else _GENERATOR,
                    within=ours <= reference,
                    note=why,
                )
            )
    return [*rows, *_own_rows([load_table(name) for name in TABLES])]


def _own_rows(tables: Sequence[DeviceTable]) -> list[dict[str, Any]]:
    """Return our own devices beside AttAcc with its power limit."""
    rows: list[dict[str, Any]] = []
    for table in tables:
        params = DEVICE_PRESETS[table.name].channel
        mapping = f"mapping {params.mapping.value}, 1.6 TB/s a stack"
        for tokens, reference in CYCLES["attacc"].items():
            operations = _HEADS // params.organisation.channels
            sizes = (_HEAD_DIM, -(-tokens // params.parts), operations)
            ours = table.cycles.with_refresh(*sizes, params.timing.n_refi).last_column
            rows.append(
                comparison_row(
                    f"{table.name}, {tokens} tokens: last column read",
                    reference,
                    ours,
                    unit="cycles",
                    source=_SOURCES["attacc"],
                    within=ours <= reference,
                    note=f"another device, {mapping}: hw/tables/{table.name}.json and refresh by formula",
                )
            )
    return rows


def pace(runs: Mapping[tuple[str, int], StackRun]) -> dict[str, float]:
    """Return what differs between machines: seconds and cycles a second of our run beside AttAcc's."""
    run = runs["attacc", _COUNTED_TOKENS]
    params = DEVICE_PRESETS["attacc"].channel
    groups = params.groups * params.organisation.channels
    return {
        "wall_s": run.wall_s,
        "reference_wall_s": REFERENCE_WALL_S,
        "simulated_group_cycles_per_s": run.cycles / run.model_s,
        "symmetric_group_cycles_per_s": groups * run.last_state / run.wall_s,
        "reference_group_cycles_per_s": groups * CYCLES["attacc"][_COUNTED_TOKENS] / REFERENCE_WALL_S,
    }
