"""All presets in one list, in one form: kind, name, numbers with unit and source, deviations."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from golden.retrieval.access import LOCALITIES
from hw.presets import DRAM_ORGANISATIONS, DRAM_TIMINGS, MEMORY_PRESETS, UNIT_PRESETS, Deviation, Value
from hw.presets.devices import DEVICE_PRESETS
from hw.presets.gemv import GEMV_PRESETS
from hw.presets.links import LINK_PRESETS
from hw.presets.organisations import DIMM_ORGANISATIONS, DRIVE_ORGANISATIONS
from hw.presets.pnm import PNM_PRESETS
from sim.calibration import factors
from sim.collectives import COLLECTIVES
from sim.energy.costs import cost_values
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model, model_names
from sim.placement import PLACEMENTS
from sim.retrieval.methods import METHODS
from sim.retrieval.presets import RETRIEVAL_SYSTEMS
from sim.system_config import load_system, system_names
from sim.tiering.policies import POLICIES
from sim.tiering.sparsity import SPARSITIES

if TYPE_CHECKING:
    from sim.models import Model

__all__ = ["Entry", "catalogue"]


@dataclass(frozen=True)
class Entry:
    """One preset.

    Parameters
    ----------
    kind : str
        ``unit``, ``device``, ``dram``, ``drive``, ``link``, ``system``, ``model``, ``policy``, ``calibration`` or
        ``energy``.
    name, description : str
        Name and what it is.
    fields : dict of str to Value
        Every number.
    deviations : tuple of Deviation
        Printed numbers that were not used.
    """

    kind: str
    name: str
    description: str
    fields: dict[str, Value]
    deviations: tuple[Deviation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the preset as it stands in JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "description": self.description,
            "fields": {name: value.to_dict() for name, value in self.fields.items()},
            "deviations": [deviation.to_dict() for deviation in self.deviations],
        }

    def tables(self) -> list[Table | str]:
        """Return the preset as it is shown to people."""
        table = Table(title=f"{self.kind} {self.name}: {self.description}", title_justify="left")
        table.add_column("field", no_wrap=True)
        table.add_column("value", justify="right")
        table.add_column("unit")
        table.add_column("source")
        for name, value in self.fields.items():
            shown = f"{value.value:,g}" if isinstance(value.value, float) else str(value.value)
            table.add_row(name, shown, value.unit, value.source)
        lines = [
            f"  deviation {d.field}: printed {d.printed}; used {d.used}; because {d.reason}" for d in self.deviations
        ]
        return [table, *lines]


def catalogue() -> list[Entry]:
    """Return every preset: units, devices, memories, links, systems, models, policies, calibration."""
    units = [
        Entry("unit", preset.name, preset.description, dict(preset.values()), preset.deviations)
        for preset in UNIT_PRESETS.values()
    ]
    devices = [
        Entry("device", device.name, device.description, dict(device.values()), device.deviations)
        for device in (*MEMORY_PRESETS.values(), *DEVICE_PRESETS.values(), *GEMV_PRESETS.values())
    ]
    devices += [Entry("device", pnm.name, pnm.description, dict(pnm.values())) for pnm in PNM_PRESETS.values()]
    drams = [
        Entry("dram", preset.name, preset.description, dict(preset.fields), preset.deviations)
        for preset in (*DRAM_ORGANISATIONS.values(), *DIMM_ORGANISATIONS.values(), *DRAM_TIMINGS.values())
    ]
    drives = [
        Entry("drive", preset.name, preset.description, dict(preset.fields), preset.deviations)
        for preset in DRIVE_ORGANISATIONS.values()
    ]
    links = [
        Entry("link", link.name, link.description, dict(link.values()))
        for link in (*LINK_PRESETS.values(), *COLLECTIVES.values())
    ]
    systems = [
        Entry("system", system.name, system.description, dict(system.values()), system.all_deviations())
        for system in map(load_system, system_names())
    ]
    systems += [
        Entry("system", server.name, server.description, dict(server.values())) for server in GPU_SERVERS.values()
    ]
    systems += [
        Entry("system", system.name, system.server.description, dict(system.values()))
        for system in RETRIEVAL_SYSTEMS.values()
    ]
    models = [
        Entry("model", model.name, f"{model.attention.kind}, {model.parameters / 1e9:.1f} B parameters", _fields(model))
        for model in map(load_model, model_names())
    ]
    calibration = Entry(
        "calibration",
        "default",
        "free factors of sim/calibration.toml",
        {
            name: Value(factor.value, factor.unit, f"{factor.source}; bounds {factor.bounds}; {factor.fitted_to}")
            for name, factor in factors().items()
        },
    )
    energy = Entry("energy", "default", "costs of a bit, an operation and a second", dict(cost_values()))
    policies = [
        Entry("policy", name, "placement of the KV cache", {"rule": Value(rule, "text", "sim/placement.py")})
        for name, rule in PLACEMENTS.items()
    ]
    policies += [
        Entry(
            "policy",
            name,
            "movement of the KV cache while serving",
            {"rule": Value(rule.description, "text", "sim/tiering/policies.py")},
        )
        for name, rule in POLICIES.items()
    ]
    policies += [
        Entry(
            "policy",
            f"sparsity {name}",
            "sparsity of attention while serving",
            {"rule": Value(rule.description, "text", "sim/tiering/sparsity.py")},
        )
        for name, rule in SPARSITIES.items()
    ]
    policies += [
        Entry(
            "policy",
            f"locality {name}",
            "locality of reads while serving",
            {key: Value(value, "1", "golden/retrieval/access.py") for key, value in asdict(locality).items()},
        )
        for name, locality in LOCALITIES.items()
    ]
    policies += [
        Entry("policy", name, "selection of tokens", {"rule": Value(method.description, "text", method.source)})
        for name, method in METHODS.items()
    ]
    return [*units, *devices, *drams, *drives, *links, *systems, *models, *policies, calibration, energy]


def _fields(model: Model) -> dict[str, Value]:
    """Return a model's numbers."""
    attention = model.attention
    read: dict[str, tuple[int | float | str, str]] = {
        "layers": (len(model.layers), "1"),
        "hidden": (model.hidden, "elements"),
        "query_heads": (attention.num_heads, "1"),
        "kv_heads": (attention.num_kv_heads, "1"),
        "head_dim": (attention.head_dim, "elements"),
        "vocab": (model.vocab, "1"),
        "weight_format": (model.weight_format, "name"),
    }
    if attention.kv_lora_rank:
        read["kv_lora_rank"] = (attention.kv_lora_rank, "elements")
        read["qk_rope_head_dim"] = (attention.qk_rope_head_dim, "elements")
    sparse = next((layer.feed_forward for layer in model.layers if layer.feed_forward.num_experts), None)
    if sparse is not None:
        read["experts"] = (sparse.num_experts, "1")
        read["experts_per_token"] = (sparse.experts_per_token, "1")
        read["dense_layers"] = (sum(not layer.feed_forward.num_experts for layer in model.layers), "1")
    if model.selection is not None:
        read["index_layers"] = (model.layers_with("owns"), "1")
        read["index_heads"] = (model.selection.index_heads, "1")
        read["index_dim"] = (model.selection.index_dim, "elements")
        read["selected_tokens"] = (model.selection.top_k * model.selection.block_tokens, "tokens")
    result = {name: Value(value, unit, model.source) for name, (value, unit) in read.items()}
    result["kv_bytes_per_token"] = Value(
        model.kv_bytes_per_token, "bytes", f"computed at 16 bit an element from {model.source}"
    )
    result["parameters"] = Value(model.parameters, "1", f"computed without norms and biases from {model.source}")
    return result
