"""Machines that decode with retrieval: GPUs with the weights, and where keys, values and indices lie.

The GPUs form groups that share the projections of their requests (tensor parallel), and all of them share the experts
(expert parallel). Keys and values lie near PNM devices, in the hosts' memory, or with the GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from hw.presets import Value
from sim.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hw.presets.pnm import PnmDevice
    from sim.gpu_server import GpuServer

__all__ = ["Cluster", "HostPool", "PnmPool", "RetrievalSystem"]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """How GPUs work together.

    Parameters
    ----------
    tensor_parallel : Value
        GPUs of a group; groups share nothing but the experts.
    node_gpus : Value
        GPUs of a node, which NVLink or PCI Express connects.
    node_bytes_per_s : Value
        Rate of a node's links to the others, one direction.
    """

    tensor_parallel: Value
    node_gpus: Value
    node_bytes_per_s: Value


@dataclass(frozen=True, kw_only=True)
class PnmPool:
    """Devices that keep KV and indices and attend to them; each request has one of them as its home.

    Parameters
    ----------
    device : PnmDevice
        What one is.
    count, node_devices : Value
        How many there are, and how many a node holds.
    node_bytes_per_s : Value
        Rate of a node's link to the GPUs, one direction.
    unit_preset : str
        Units of selection and gathering that each channel has.
    """

    device: PnmDevice
    count: Value
    node_devices: Value
    node_bytes_per_s: Value
    unit_preset: str


@dataclass(frozen=True, kw_only=True)
class HostPool:
    """Memory of the GPUs' hosts that keeps KV; indices stay with the GPUs, which read selected tokens over their links.

    Parameters
    ----------
    node_bytes : Value
        Memory of one host.
    """

    node_bytes: Value


@dataclass(frozen=True, kw_only=True)
class RetrievalSystem:
    """A machine.

    Parameters
    ----------
    server : GpuServer
        All GPUs; its name and description are the machine's.
    cluster : Cluster
        How they work together.
    pnm : PnmPool or None
        Devices near LPDDR memory.
    host : HostPool or None
        Hosts' memory; with neither, KV lies with the GPUs.
    """

    server: GpuServer
    cluster: Cluster
    pnm: PnmPool | None = None
    host: HostPool | None = None

    @property
    def name(self) -> str:
        """Name of the machine."""
        return self.server.name

    @property
    def groups(self) -> int:
        """Groups of GPUs."""
        return self.server.gpu.count.integer // self.cluster.tensor_parallel.integer

    @property
    def nodes(self) -> int:
        """Nodes of GPUs."""
        return -(-self.server.gpu.count.integer // self.cluster.node_gpus.integer)

    @property
    def group(self) -> GpuServer:
        """The GPUs of one group."""
        return replace(self.server, gpu=replace(self.server.gpu, count=self.cluster.tensor_parallel))

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name."""
        yield from self.server.values()
        parts: tuple[tuple[str, object], ...] = (
            ("cluster", self.cluster),
            ("pnm", self.pnm),
            ("pnm.device", self.pnm and self.pnm.device),
            ("host", self.host),
        )
        for path, part in parts:
            if part is not None:
                for key, value in _values(part):
                    yield f"{path}.{key}", value

    def with_numbers(self, changes: Mapping[str, float]) -> RetrievalSystem:
        """Return the machine with numbers replaced, their source saying so.

        Parameters
        ----------
        changes : mapping of str to float
            By the names of :meth:`values`.

        Raises
        ------
        UnknownNameError
            If there is no such number.
        ConfigError
            If a number is not above 0, or not whole where it must be, GPUs are no whole groups, or a group crosses
            nodes.
        """
        known = dict(self.values())
        system = self
        for name, number in changes.items():
            if name not in known:
                raise UnknownNameError("number of the system", name, known)
            old = known[name]
            whole = isinstance(old.value, int)
            if not 0 < number < float("inf") or (whole and number != int(number)):
                raise ConfigError(f"{name} must be {'a whole' if whole else 'a'} number above 0, not {number!r}")
            value = Value(int(number) if whole else number, old.unit, "given on the command line")
            system = system._replaced(name, value)
        system._check_groups()
        return system

    def _check_groups(self) -> None:
        """Raise unless the GPUs are whole groups, each within a node."""
        gpus, group, node = (
            value.integer for value in (self.server.gpu.count, self.cluster.tensor_parallel, self.cluster.node_gpus)
        )
        if gpus % group:
            raise ConfigError(f"gpu.count must be a multiple of cluster.tensor_parallel = {group}, not {gpus}")
        if group > node:
            raise ConfigError(f"cluster.tensor_parallel must be at most cluster.node_gpus = {node}, not {group}")

    def _replaced(self, name: str, value: Value) -> RetrievalSystem:
        """Return the machine with one number replaced."""
        path, _, key = name.rpartition(".")
        if path == "gpu":
            return replace(self, server=replace(self.server, gpu=replace(self.server.gpu, **{key: value})))
        if path == "cluster":
            return replace(self, cluster=replace(self.cluster, **{key: value}))
        if path == "host":
            assert self.host is not None, "only a host has numbers of that name"
            return replace(self, host=replace(self.host, **{key: value}))
        assert self.pnm is not None, "only PNM devices have numbers of that name"
        if path == "pnm":
            return replace(self, pnm=replace(self.pnm, **{key: value}))
        return replace(self, pnm=replace(self.pnm, device=replace(self.pnm.device, **{key: value})))


def _values(part: object) -> Iterator[tuple[str, Value]]:
    """Yield the numbers of a part by name."""
    for item in fields(part):  # pyright: ignore[reportArgumentType]
        value = getattr(part, item.name)
        if isinstance(value, Value):
            yield item.name, value
