"""Systems: GPUs, links and tiers of memories, each number with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from hw.presets import Value
from sim.collectives import COLLECTIVES, Collectives

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hw.presets import Deviation, MemoryDevice
    from sim.links import Link

__all__ = ["Gpu", "System", "Tier"]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """The GPUs, which hold the weights and compute everything but attention.

    Parameters
    ----------
    count : Value
        GPUs, working as one tensor-parallel group unless told otherwise.
    peak_flops : Value
        Dense 16-bit peak of one.
    stacks_per_gpu : Value
        Memory stacks of one; they are devices of the tier shared with it.
    allreduce_bytes_per_s : Value
        Rate of one GPU's links to the others, one direction.
    reserved_bytes : Value
        Memory of all GPUs kept free for management.
    collectives : Collectives
        How they exchange over their links.
    idle_w, board_w : Value or None
        Power of one at rest and at most, its memory included; None where nothing published was found.
    """

    count: Value
    peak_flops: Value
    stacks_per_gpu: Value
    allreduce_bytes_per_s: Value
    reserved_bytes: Value
    collectives: Collectives = COLLECTIVES["nvlink"]
    idle_w: Value | None = None
    board_w: Value | None = None

    @property
    def products(self) -> None:
        """Products were not measured on them: the calibration decides what they reach."""

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number of its own by its name."""
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Value):
                yield item.name, value


@dataclass(frozen=True, kw_only=True)
class Tier:
    """Equal memories at one distance from the GPUs.

    Parameters
    ----------
    name : str
        Name in the system.
    device : MemoryDevice
        What one of them is.
    count : Value
        How many there are.
    path : tuple of Link
        From the GPUs to them.
    shared_with_gpu : bool
        They are the GPUs' own memory: weights, activations and the reserve take room, and while they compute
        attention the GPUs can't read them.
    """

    name: str
    device: MemoryDevice
    count: Value
    path: tuple[Link, ...]
    shared_with_gpu: bool

    @property
    def raw_bytes(self) -> int:
        """Bytes of all devices together."""
        return self.count.integer * self.device.capacity_bytes.integer

    @property
    def channels(self) -> int:
        """Channels of all devices together."""
        return self.count.integer * self.device.channels.integer

    def with_values(self, **changes: Value) -> Tier:
        """Return the tier with numbers of its device replaced."""
        return replace(self, device=self.device.with_values(changes))


@dataclass(frozen=True, kw_only=True)
class System:
    """A machine.

    Parameters
    ----------
    name, description, source : str
        Name, what it is, and where it is described.
    gpu : Gpu
        The GPUs.
    links : mapping of str to Link
        All links by name.
    link_values : mapping of str to Value
        Rates of the links, for listing.
    tiers : tuple of Tier
        From the nearest to the farthest.
    deviations : tuple of Deviation
        Printed numbers that were not used.
    """

    name: str
    description: str
    source: str
    gpu: Gpu
    links: Mapping[str, Link]
    link_values: Mapping[str, Value]
    tiers: tuple[Tier, ...]
    deviations: tuple[Deviation, ...] = ()

    @property
    def gpu_tier(self) -> Tier:
        """The tier that is the GPUs' own memory."""
        return next(tier for tier in self.tiers if tier.shared_with_gpu)

    @property
    def gpu_bytes_per_s(self) -> float:
        """Rate at which one GPU reads its own memory."""
        return self.gpu.stacks_per_gpu.integer * self.gpu_tier.device.external_bytes_per_s.number

    def tier(self, name: str) -> Tier:
        """Return the tier of that name.

        Raises
        ------
        KeyError
            If there is none.
        """
        for tier in self.tiers:
            if tier.name == name:
                return tier
        raise KeyError(name)

    def with_tier(self, changed: Tier) -> System:
        """Return the system with the tier of that name replaced."""
        return replace(self, tiers=tuple(changed if tier.name == changed.name else tier for tier in self.tiers))

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name."""
        for name, value in self.gpu.values():
            yield f"gpu.{name}", value
        for name, value in self.link_values.items():
            yield f"links.{name}.bytes_per_s", value
        for tier in self.tiers:
            yield f"tiers.{tier.name}.count", tier.count
            for name, value in tier.device.values():
                yield f"tiers.{tier.name}.{name}", value

    def all_deviations(self) -> tuple[Deviation, ...]:
        """Return the deviations of the system and of its memories, named by tier."""
        of_tiers = (
            replace(deviation, field=f"tiers.{tier.name}.{deviation.field}")
            for tier in self.tiers
            for deviation in tier.device.deviations
        )
        return (*self.deviations, *of_tiers)
