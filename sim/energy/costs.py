"""What a bit, an operation and a second cost, each with its source.

Dynamic costs of memories are of two kinds: what leaves through the pins, and what units near the banks read. Neither
has a published measurement for a machine like PAM: the numbers are those that simulators and data sheets give, and
where they bound rather than state a cost the source says so.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hw.presets import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GPU_BYTE", "HOST", "LINKS", "MEMORIES", "HostCost", "MemoryCost", "cost_values"]

_ATTACC = "scale-snu/attacc_simulator c600051, config.py"
_FGDRAM = f"{_ATTACC}, after O'Connor et al., MICRO 2017"
_LLMSERVINGSIM = "casys-kaist/LLMServingSim e0f49118, evaluation/figure_10"
_MAC = Value(0.32, "pJ", f"{_ATTACC}: a multiplication and addition in fp16")


@dataclass(frozen=True, kw_only=True)
class MemoryCost:
    """A kind of memory.

    Parameters
    ----------
    pin_read_pj, pin_write_pj : Value
        A bit that leaves through the pins, or comes in by them, cells included.
    near_read_pj : Value
        A bit that units near the memory read.
    mac_pj : Value
        A multiplication and addition in such a unit.
    idle_w : Value or None
        Power of a device at rest; None where that of the GPUs includes it.
    idle_bytes : Value or None
        Bytes of the device that ``idle_w`` speaks of, to which it is in proportion; None for a device of any size.
    """

    pin_read_pj: Value
    pin_write_pj: Value
    near_read_pj: Value
    mac_pj: Value = _MAC
    idle_w: Value | None = None
    idle_bytes: Value | None = None


@dataclass(frozen=True, kw_only=True)
class HostCost:
    """The host: power of the node without GPUs, of its processors at rest and at work, and how busy they are."""

    base_w: Value
    cpu_idle_w: Value
    cpu_active_w: Value
    cpu_share: Value

    @property
    def watts(self) -> float:
        """Mean power."""
        idle = self.cpu_idle_w.number
        return self.base_w.number + idle + self.cpu_share.number * (self.cpu_active_w.number - idle)


_HBM_PIN = Value(3.59, "pJ/bit", f"{_FGDRAM}: cells, column path, both multiplexers, TSV and interposer of HBM")
_DDR_PIN = Value(6.0, "pJ/bit", f"{_LLMSERVINGSIM}: energy_per_bit of DRAM")

MEMORIES = {
    "hbm": MemoryCost(
        pin_read_pj=_HBM_PIN,
        pin_write_pj=_HBM_PIN,
        near_read_pj=Value(0.55, "pJ/bit", f"{_FGDRAM}: activation 0.11 and cells 0.44, units at the banks"),
    ),
    "ddr": MemoryCost(
        pin_read_pj=_DDR_PIN,
        pin_write_pj=_DDR_PIN,
        near_read_pj=Value(
            5.5,
            "pJ/bit",
            "DRAMsim3 DDR4_8Gb_x8_3200: (IDD4R 168 - IDD3N 52 mA) 1.2 V at 25.6 Gb/s a chip is 5.44, activation of a "
            "row 0.06; a bound from above, for units at the banks do not drive the chip's data path",
        ),
        idle_w=Value(4.0, "W", f"{_LLMSERVINGSIM}: idle power of a DIMM of 32 GB"),
        idle_bytes=Value(32 * 2**30, "bytes", f"{_LLMSERVINGSIM}: dimm_size"),
    ),
    "ssd": MemoryCost(
        pin_read_pj=Value(
            18.9,
            "pJ/bit",
            "SimpleSSD, PAL configuration (Micron MT29F64): 3.3 V 25 mA over a page read of 30 us, 16 KB",
        ),
        pin_write_pj=Value(
            472.0, "pJ/bit", "SimpleSSD, PAL configuration: 3.3 V 25 mA over a program of 750 us (MQSim, MLC), 16 KB"
        ),
        near_read_pj=Value(
            18.9,
            "pJ/bit",
            "SimpleSSD, PAL configuration (Micron MT29F64): 3.3 V 25 mA over a page read of 30 us, 16 KB",
        ),
        idle_w=Value(5.9, "W", f"{_LLMSERVINGSIM}: idle power of a storage device"),
    ),
}
"""Costs by kind of memory."""

GPU_BYTE = Value(0.46, "pJ/bit", f"{_ATTACC}: L2 0.3 and L1 0.16, every byte that a GPU reads or writes")

_PCIE = Value(
    6.5, "pJ/bit", "NVIDIA Grace Hopper whitepaper: NVLink-C2C takes 1.3 pJ/bit, a fifth of what PCI Express 5.0 takes"
)

LINKS = {
    "gpu-links": Value(4.0, "pJ/bit", f"{_LLMSERVINGSIM}: energy_per_bit of a link"),
    "in-package": Value(0.8, "pJ/bit", f"{_FGDRAM}: TSV 0.5 and interposer 0.3"),
    "pcie": _PCIE,
    "nvme": _PCIE,
    "memory-bus": Value(
        6.0, "pJ/bit", f"{_LLMSERVINGSIM}: energy_per_bit of DRAM, a bound from above for its bus alone"
    ),
}
"""Costs of a bit by name of the link; ``gpu-links`` are those between GPUs."""

HOST = HostCost(
    base_w=Value(219.0, "W", f"{_LLMSERVINGSIM}: base_node_power"),
    cpu_idle_w=Value(10.0, "W", f"{_LLMSERVINGSIM}: idle_power of the CPU"),
    cpu_active_w=Value(185.0, "W", f"{_LLMSERVINGSIM}: active_power of the CPU"),
    cpu_share=Value(0.5, "1", f"{_LLMSERVINGSIM}: util of the CPU"),
)


def cost_values() -> Iterator[tuple[str, Value]]:
    """Yield every number by its name."""
    for kind, cost in (*MEMORIES.items(), ("host", HOST)):
        for item in fields(cost):
            value = getattr(cost, item.name)
            if value is not None:
                yield f"{kind}.{item.name}", value
    yield "gpu.byte_pj", GPU_BYTE
    for name, value in LINKS.items():
        yield f"links.{name}", value
