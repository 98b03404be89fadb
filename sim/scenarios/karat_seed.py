"""A decode step with an inverted index, worked out by hand in a design document, and the same request on our numbers.

The document's request: one head of d = 128 over 100,000 tokens, 1,000 centroids, the 10 best lists of 1,000 tokens. Its
stages one after another::

    projection                  50 us
    query to the memory         512 B at 100 GB/s
    scores of centroids         1,000 d multiplications at 1 a ns
    attention                   2 * 10,000 d multiplications at 1 a ns: q.K and P.V
    experts                     200 us

Its comparison is a GPU that reads all tokens at the same rate, q.K alone. Every rate is the document's; none is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hw.presets.pnm import PNM_PRESETS
from sim.manifest import manifest
from sim.model_config import load_model
from sim.provenance import Part, combine

__all__ = ["SeedExample", "our_request", "worked_example"]

_GPU_MACS_PER_NS = 7912e12 / 8 / 2 / 1e9

_DOCUMENT = "design document of karat-seed, worked example"


@dataclass(frozen=True)
class SeedExample:
    """The document's numbers; times follow exactly.

    Parameters
    ----------
    context, centroids, lists, list_tokens, head_dim : int
        Tokens of the request, clusters, lists that are read and tokens of each, elements of a vector.
    query_bytes : int
        Bytes of the query on the link.
    projection_us, experts_us : int
        Projection before attention, feed-forward part behind it.
    link_bytes_per_s : int
        Link to the memory.
    macs_per_ns : int
        Multiplications that the memory's cores, and the GPU it is compared with, make.
    """

    context: int = 100_000
    centroids: int = 1_000
    lists: int = 10
    list_tokens: int = 1_000
    head_dim: int = 128
    query_bytes: int = 512
    projection_us: int = 50
    experts_us: int = 200
    link_bytes_per_s: int = 100_000_000_000
    macs_per_ns: int = 1

    def _macs_us(self, vectors: int) -> Fraction:
        return Fraction(vectors * self.head_dim, self.macs_per_ns * 1000)

    @property
    def selected(self) -> int:
        """Tokens attended to."""
        return self.lists * self.list_tokens

    def stages_us(self) -> dict[str, Fraction]:
        """Return the time of each stage by its name."""
        return {
            "projection": Fraction(self.projection_us),
            "query to the memory": Fraction(self.query_bytes * 10**6, self.link_bytes_per_s),
            "scores of centroids": self._macs_us(self.centroids),
            "attention of selected tokens, q.K and P.V": 2 * self._macs_us(self.selected),
            "experts": Fraction(self.experts_us),
        }

    @property
    def step_us(self) -> Fraction:
        """All stages, one after another."""
        return sum(self.stages_us().values(), Fraction(0))

    @property
    def gpu_only_us(self) -> Fraction:
        """All tokens at the same rate, q.K alone, as the document compares."""
        return self._macs_us(self.context)

    @property
    def gpu_only_with_pv_us(self) -> Fraction:
        """All tokens at the same rate, q.K and P.V."""
        return 2 * self.gpu_only_us


def our_request(context: int) -> dict[str, Any]:
    """Return one layer of DeepSeek-V3.2 over as many tokens on one ``karat-pnm`` device, by its rates.

    Every stage takes the larger of its bytes over the memory's rate and its operations over the cores' peak: all index
    keys with their scales are scored (fp8), the selected latents are read and attended to (bf16). What selecting adds
    to scoring is not in it.
    """
    model, device = load_model("deepseek-v3.2"), PNM_PRESETS["karat-pnm"]
    selection, attention = model.selection, model.attention
    assert selection is not None, "DeepSeek-V3.2 has an indexer"
    selected = selection.attended_tokens(context)
    rate = device.bytes_per_s.number
    query = attention.num_heads * (attention.kv_lora_rank + attention.qk_rope_head_dim) * 2
    output = attention.num_heads * attention.kv_lora_rank * 2
    # A latent is multiplied as key and as value by every query head.
    products = 2 * attention.num_heads * (2 * attention.kv_lora_rank + attention.qk_rope_head_dim)
    stages = {
        "score": (context * selection.stored_key_bytes, context * selection.flops_per_key, device.fp8_flops.number),
        "gather and attend": (selected * attention.kv_bytes, selected * products, device.bf16_flops.number),
    }
    found: dict[str, Any] = {
        f"{name.replace(' ', '_')}_us": 1e6 * max(read / rate, flops / peak)
        for name, (read, flops, peak) in stages.items()
    }
    link_s = device.link_round_trip_s.number + (query + output) / device.link_bytes_per_s.number
    return {
        "model": model.name,
        "layers": 1,
        "context": context,
        "attended_tokens": selected,
        **found,
        "link_us": 1e6 * link_s,
        "attention_us": sum(found.values()) + 1e6 * link_s,
        "provenance": combine(
            [
                Part("model shape", "literature", model.source),
                *(Part(name, "literature", value.source) for name, value in device.values()),
                Part("stages by the device's rates", "modelled", "sim/scenarios/karat_seed.py"),
            ]
        ).to_dict(),
    }


def _rates(example: SeedExample, ours: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each of the document's rates beside what a published device has, and whether it holds."""
    device = PNM_PRESETS["karat-pnm"]
    flops = {"fp8": device.fp8_flops.number, "bf16": device.bf16_flops.number}
    macs = {name: peak / 2e9 for name, peak in flops.items()}
    return [
        {
            "name": "multiplications a ns",
            "seed": example.macs_per_ns,
            "ours": macs["bf16"],
            "holds": False,
            "why": f"{device.name} makes {macs['bf16']:,.0f} in bf16 and {macs['fp8']:,.0f} in fp8; one would be a "
            "single multiplier at 1 GHz",
        },
        {
            "name": "bytes/s of the link",
            "seed": example.link_bytes_per_s,
            "ours": device.link_bytes_per_s.number,
            "holds": False,
            "why": "a device has PCIe5 x4; the document leaves out the round trip, "
            f"{device.link_round_trip_s.number * 1e9:.0f} ns, which is longer than its transfer",
        },
        {
            "name": "query bytes",
            "seed": example.query_bytes,
            "ours": 2 * 128 * 576,
            "holds": False,
            "why": "128 heads of 576 elements in bf16 leave for a layer, not one of 128 in fp32",
        },
        {
            "name": "attention, us",
            "seed": float(example.stages_us()["attention of selected tokens, q.K and P.V"]),
            "ours": ours["gather_and_attend_us"],
            "holds": False,
            "why": f"of {ours['attended_tokens']:,} selected tokens in one layer, bound by the memory or the cores",
        },
        {
            "name": "multiplications a ns of the GPU",
            "seed": example.macs_per_ns,
            "ours": _GPU_MACS_PER_NS,
            "holds": False,
            "why": "the document gives a GPU one multiplier too; 7,912 TFLOPS of 8 H200 are "
            f"{_GPU_MACS_PER_NS:,.0f} a ns each (arXiv:2608.03555)",
        },
    ]


def worked_example() -> dict[str, Any]:
    """Return the record of the document's example, and of the same request on our numbers beside it."""
    example = SeedExample()
    ours = our_request(example.context)
    stages = {name: float(us) for name, us in example.stages_us().items()}
    attention = stages["attention of selected tokens, q.K and P.V"]
    full, full_with_pv = float(example.gpu_only_us), float(example.gpu_only_with_pv_us)
    return {
        "system": "karat-seed",
        "scenario": "worked-example",
        "model": "one head of d = 128",
        "context": example.context,
        "batch": 1,
        "placement": "memory",
        "keep": example.selected / example.context,
        "active_tokens": example.selected,
        "step_us": float(example.step_us),
        "attention_us": attention,
        "gpu_only_us": full,
        "gpu_only_with_pv_us": full_with_pv,
        "stages": [{"name": name, "us": us} for name, us in stages.items()],
        "ratios": [
            {"name": "document: q.K of all tokens over q.K of the selected", "value": full / (attention / 2)},
            {"name": "q.K of all tokens over q.K and P.V of the selected", "value": full / attention},
            {"name": "q.K and P.V of both", "value": full_with_pv / attention},
            {
                "name": "q.K and P.V of both, scores of centroids counted",
                "value": full_with_pv / (attention + stages["scores of centroids"]),
            },
        ],
        "rates": _rates(example, ours),
        "on_our_numbers": ours,
        "provenance": "literature",
        "parts": [Part("all numbers of the example", "literature", _DOCUMENT).to_dict()],
        "manifest": manifest({"example": {name: str(us) for name, us in example.stages_us().items()}, "ours": ours}),
    }
