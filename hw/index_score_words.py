"""Operations of the index scoring unit as words of its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.formats import FP32
from golden.retrieval.index_beats import key_beats, query_beats
from hw.payloads import pack
from hw.units.index_score_layouts import command_layout, query_layout

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from golden.retrieval.index_spec import ScoreMode
    from hw.index_score_params import IndexScoreParams, ScoreWork

    Codes = npt.NDArray[np.unsignedinteger]
    Floats = npt.NDArray[np.float32]

__all__ = ["command_word", "key_words", "query_words"]


def command_word(params: IndexScoreParams, work: ScoreWork) -> int:
    """Return the command of an operation.

    Raises
    ------
    ValueError
        If the unit has no room for it.
    """
    work.require_fits(params)
    mode = work.mode
    groups = work.groups(params)
    return pack(
        command_layout(params),
        keys=work.keys,
        beats=work.vector_beats(params) - 1,
        groups=groups - 1,
        last_lane=work.heads - (groups - 1) * params.spec.lanes(mode, work.dim) - 1,
        block=mode.block_keys - 1,
        pairs=work.beat_keys(params) == 2,
        shares=params.spec.shares_lanes(mode, work.dim),
        wide=mode.wide,
        relu=mode.relu,
        largest=mode.largest,
        bounds=mode.bounds,
        scaled=mode.scaled,
    )


def query_words(params: IndexScoreParams, mode: ScoreMode, query: Codes, weights: Floats) -> list[int]:
    """Return the beats of a query, as :func:`golden.retrieval.index_beats.query_beats` orders them."""
    beats, factors = query_beats(params.spec, mode, query, weights)
    layout = query_layout(params)
    return [
        pack(layout, elements=int.from_bytes(beat.tobytes(), "little"), weight=code)
        for beat, code in zip(beats, FP32.to_codes(factors).tolist(), strict=True)
    ]


def key_words(params: IndexScoreParams, mode: ScoreMode, keys: Codes, scales: Floats | None) -> list[int]:
    """Return the beats of keys and scales, as :func:`golden.retrieval.index_beats.key_beats` orders them."""
    beats, _ = key_beats(params.spec, mode, keys, scales)
    return [int.from_bytes(beat.tobytes(), "little") for beat in beats]
