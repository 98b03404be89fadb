"""Named sizes of the units: what ``nearkv verilog --preset`` takes and what the memories refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.exp import POLY6, ExpSpec
from golden.exp.compact_bf16_units import COMPACT_BF16_ACCURATE_NONPOSITIVE
from golden.formats import BF16, FP16, FloatFormat
from golden.retrieval.index_spec import KARAT_SCORES, ScoreSpec
from hw.gather_params import GatherParams
from hw.index_score_params import IndexScoreParams
from hw.params import FinishParams, ProcessingParams, ReductionParams, ScoreAdderParams, StateJoinParams
from hw.presets.dma import STACK_END, TINY_END
from hw.presets.unit_preset import UnitPreset
from hw.presets.value import Deviation
from hw.top_k_params import TopKParams, TopKShardParams

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = ["DEFAULT_UNIT_PRESET", "UNIT_PRESETS"]

_PAM = "arXiv:2602.11521"
_OURS = "chosen here"


def _preset(
    name: str,
    description: str,
    *,
    head_dim: int,
    lanes: int,
    num_sources: int = 4,
    tile_tokens: int = 16,
    op_id_bits: int = 8,
    kv_format: FloatFormat = FP16,
    exp: ExpSpec = POLY6,
    slices: int | None = None,
    queries: int = 1,
    query_beats: int | None = None,
    index_score: IndexScoreParams | None = None,
    top_k: TopKParams | None = None,
    gather: GatherParams | None = None,
    dma: DmaParams | None = None,
    sources: dict[str, str],
    deviations: tuple[Deviation, ...] = (),
) -> UnitPreset:
    """Return a preset whose units share ``head_dim``, ``lanes``, ``op_id_bits`` and the format of tensors.

    With ``slices``, ``head_dim`` can also be cut over as many processing units, two beats each at least.
    """
    score_adder = state_join = None
    if slices is not None:
        score_adder = ScoreAdderParams(slices=slices)
        slice_dim = max(head_dim // slices, 2 * lanes)
        state_join = StateJoinParams(head_dim=slice_dim, lanes=lanes, op_id_bits=op_id_bits, slices=slices)
    return UnitPreset(
        name=name,
        description=description,
        exp=exp,
        processing=ProcessingParams(
            head_dim=head_dim,
            lanes=lanes,
            op_id_bits=op_id_bits,
            tile_tokens=tile_tokens,
            queries=queries,
            query_beats=query_beats,
            exp=exp,
            kv_format=kv_format,
        ),
        reduction=ReductionParams(
            head_dim=head_dim, lanes=lanes, op_id_bits=op_id_bits, num_sources=num_sources, exp=exp
        ),
        finish=FinishParams(head_dim=head_dim, lanes=lanes, op_id_bits=op_id_bits, output_format=kv_format),
        score_adder=score_adder,
        state_join=state_join,
        index_score=index_score,
        top_k=top_k,
        gather=gather,
        dma=dma,
        sources=sources,
        deviations=deviations,
    )


_PAM_SOURCES = {
    "head_dim": "head dimension of the models of arXiv:2602.11521, 7.1 (Qwen2.5-32B, LLaMA3-70B, OPT-175B)",
    "lanes": f"{_PAM}, table 1: lanes of the processing unit",
    "num_sources": f"{_PAM}, table 1: 4 banks in a bank group",
    "other": f"{_OURS}; the paper gives no value",
}

_BF16_SOURCE = "torch_dtype of Llama 3.1 8B and 70B, Qwen2.5 32B and Mixtral 8x7B as published (config.json)"
_SLICES = "scale-snu/attacc_simulator c600051, gen_trace_attacc_bank.py: the head dimension is cut over a group's banks"

_KARAT_SOURCES = {
    "depth": f"{_OURS}: a million tokens over 64 channels, to the next power of two",
    "shards": "arXiv:2608.03555, section on the device: 64 channels",
    "max_k": "index_topk of DeepSeek-V3.2 as published (config.json)",
    "id_bits": f"{_OURS}: 2^20 tokens, 2^14 of them in a channel",
    "beat_bytes": f"{_OURS}: 8 keys of 128 bytes and their scales are 33 beats, 132 bytes a key",
    "head_lanes": f"{_OURS}: fewest with which 64 heads of 128 take fewer cycles a key than its 132 bytes take to come",
    "wide_head_lanes": f"{_OURS}: as many as keys of 256 bytes take at the rate at which they come",
    "address_bits": f"{_OURS}: 512 GB need 39 bits",
    "row_bits": f"{_OURS}: 128 tokens of 1,152 B need 18 bits",
    "other": f"{_OURS}; the paper gives no value",
}

_BUFFER = Deviation(
    field="processing.local_buffer",
    printed="512 B (128 B in DDR-PIM)",
    used="q in 16 bits and o in fp32: 768 B at head_dim 128, and the score buffer",
    reason="sums are kept in fp32 on every wire and in every buffer; 128 B cannot hold q and o of one head either way",
)

_WIDE_BUFFER = Deviation(
    field="processing.local_buffer",
    printed="512 B",
    used="q in fp16 and o in fp32: 6 B for each of head_dim elements, of 1024 with 8 queries, and the score buffer",
    reason="a column is read once for all query heads that share it, and a head dimension of 256 has to fit",
)

_RU_LANES = Deviation(
    field="reduction.lanes",
    printed="16 lanes",
    used="4 lanes",
    reason="here a bank group's reduction unit takes its processing units' 4-lane states as they come; the units at "
    "the DIMM's buffer have 16 lanes, as printed",
)

UNIT_PRESETS = {
    preset.name: preset
    for preset in (
        _preset(
            "pam-hbm",
            "HBM-PIM of PAM: 16 lanes at each bank, 4 banks a bank group",
            head_dim=128,
            lanes=16,
            slices=4,
            sources=_PAM_SOURCES | {"slices": _SLICES},
            deviations=(_BUFFER,),
        ),
        _preset(
            "pam-hbm-bf16",
            "pam-hbm for models whose tensors are bf16; weights and exponential stay fp16",
            head_dim=128,
            lanes=16,
            kv_format=BF16,
            sources=_PAM_SOURCES | {"kv_format": _BF16_SOURCE, "output_format": _BF16_SOURCE},
            deviations=(_BUFFER,),
        ),
        _preset(
            "pam-hbm-bf16-small",
            "pam-hbm for models whose tensors are bf16, with weights and exponential in bf16, too",
            head_dim=128,
            lanes=16,
            kv_format=BF16,
            exp=COMPACT_BF16_ACCURATE_NONPOSITIVE.replace(evaluation="pipelined"),
            sources=_PAM_SOURCES | {"kv_format": _BF16_SOURCE, "output_format": _BF16_SOURCE},
            deviations=(_BUFFER,),
        ),
        _preset(
            "pam-wide",
            "HBM-PIM of PAM with units for 8 query heads of 128 elements, or 4 of 256, that share a KV head",
            head_dim=256,
            lanes=16,
            tile_tokens=8,
            queries=8,
            query_beats=64,
            sources=_PAM_SOURCES | {"head_dim": f"{_OURS}: that of the device pam-wide"},
            deviations=(_WIDE_BUFFER,),
        ),
        _preset(
            "pam-wide-single",
            "the same with units for one query head, which read what heads share once for each",
            head_dim=256,
            lanes=16,
            tile_tokens=8,
            sources=_PAM_SOURCES | {"head_dim": f"{_OURS}: that of the device pam-wide"},
            deviations=(_WIDE_BUFFER,),
        ),
        _preset(
            "pam-ddr",
            "DDR-PIM of PAM: 4 lanes at each bank, 4 banks a bank group",
            head_dim=128,
            lanes=4,
            sources=_PAM_SOURCES,
            deviations=(_BUFFER, _RU_LANES),
        ),
        _preset(
            "pam-ssd",
            "SSD-PIM of PAM: 16 lanes, 8 processing units to a reduction unit in the controller",
            head_dim=128,
            lanes=16,
            num_sources=8,
            sources=_PAM_SOURCES | {"num_sources": f"{_PAM}, table 1: 64 processing, 8 reduction units a controller"},
            deviations=(_BUFFER,),
        ),
        _preset(
            "pam-root",
            "merge of the three memories in PAM: one state from each tier; the stack's end of the DMA",
            head_dim=128,
            lanes=16,
            num_sources=3,
            dma=STACK_END,
            sources=_PAM_SOURCES
            | {
                "num_sources": f"{_PAM}, section 4: the partial results of three devices",
                "space": f"{_PAM}: physical addresses, not hashed; a token in one row is {_OURS}",
            },
        ),
        _preset(
            "karat",
            "a channel of a KARAT device, one of 64: up to 2,048 of 2^20 tokens, rows of latent attention",
            head_dim=128,
            lanes=16,
            kv_format=BF16,
            index_score=IndexScoreParams(spec=KARAT_SCORES, max_groups=3, query_rows=24, id_bits=14),
            top_k=TopKParams(shard=TopKShardParams(depth=16384, lanes=32, id_bits=20), shards=64, max_k=2048),
            gather=GatherParams(id_bits=20, address_bits=40, row_bits=20, max_burst_rows=64, lanes=32),
            sources=_KARAT_SOURCES,
        ),
        _preset(
            "tiny",
            "smallest units that do everything, for tests and waveforms",
            head_dim=8,
            lanes=4,
            num_sources=2,
            tile_tokens=2,
            op_id_bits=4,
            slices=2,
            index_score=IndexScoreParams(
                spec=ScoreSpec(beat_bytes=8, head_lanes=2, wide_head_lanes=1), max_groups=2, query_rows=4, id_bits=4
            ),
            top_k=TopKParams(shard=TopKShardParams(depth=16, lanes=4, id_bits=6), shards=2, max_k=16),
            gather=GatherParams(id_bits=6, address_bits=16, row_bits=8, max_burst_rows=4, lanes=4),
            dma=TINY_END,
            sources={"other": f"{_OURS}: small, yet two beats a vector and two tokens a tile"},
        ),
    )
}
"""Unit presets by name."""

DEFAULT_UNIT_PRESET = "pam-hbm"
"""The preset taken when none is named."""
