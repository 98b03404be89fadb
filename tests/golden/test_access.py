"""Promise: reads of a request are as steady as those of the tensor generator, exact in number, the same for a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.retrieval.access import LOCALITIES, AccessLocality, AccessStream
from golden.retrieval.generator import Locality, generate

if TYPE_CHECKING:
    import numpy.typing as npt

LAGS = (1, 2, 4, 8, 16, 32)


def _reads(locality: AccessLocality, tokens: int, steps: int, seed: int) -> npt.NDArray[np.bool_]:
    stream = AccessStream(locality, tokens, np.random.default_rng(seed))
    rows: list[npt.NDArray[np.bool_]] = []
    for _ in range(steps):
        stream.append()
        rows.append(stream.step(-(-len(stream) // 8))[:tokens])
    return np.array(rows)


def _reuse(reads: npt.NDArray[np.bool_], lag: int) -> float:
    return float((reads[:-lag] & reads[lag:]).sum() / reads[:-lag].sum())


def test_reuse_is_that_of_the_tensor_generator() -> None:
    # The last 64 tokens are left out on both sides: the tensors have their own way with recent ones.
    found: list[list[float]] = []
    for seed in (0, 1):
        tensors = generate(Locality(), tokens=7855, steps=64, heads=4, seed=seed)
        reads = np.zeros((64, 7727), np.bool_)
        for step in range(64):
            keys = tensors.keys[: tensors.seen(step)]
            score = (keys @ tensors.queries[step].T).max(axis=1)
            best = np.argsort(-score, kind="stable")[: -(-len(keys) // 8)]
            reads[step, best[(best > 0) & (best < 7727)]] = True
        found.append([_reuse(reads, lag) for lag in LAGS])
    ours = _reads(LOCALITIES["fitted"], 7855, 64, 5)[:, 1:7727]
    for lag, expected in zip(LAGS, np.mean(found, axis=0), strict=True):
        assert _reuse(ours, lag) == pytest.approx(expected, abs=0.05)
        assert LOCALITIES["fitted"].reuse(lag) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("name", sorted(LOCALITIES))
def test_the_stream_has_the_reuse_of_its_formula(name: str) -> None:
    locality = LOCALITIES[name]
    reads = _reads(locality, 20_000, 40, 1)[:, locality.sinks : 20_000 - locality.recent]
    for lag in (1, 4, 16):
        assert _reuse(reads, lag) == pytest.approx(locality.reuse(lag), abs=0.03)
    # A window alone may be read: nobody else is due ever.
    stream = AccessStream(locality, 500, np.random.default_rng(0))
    assert not stream.step(locality.sinks + locality.recent)[locality.sinks : 500 - locality.recent].any()


def test_the_seed_preset_reads_again_what_the_seed_says() -> None:
    assert LOCALITIES["seed"].reuse(1) == pytest.approx(0.85, abs=1e-3)
    assert LOCALITIES["seed"].recent == 20


@given(tokens=st.integers(1, 300), kept=st.integers(1, 320), seed=st.integers(0, 99))
def test_a_step_reads_exactly_what_is_kept_and_always_first_and_last(tokens: int, kept: int, seed: int) -> None:
    stream = AccessStream(AccessLocality(), tokens, np.random.default_rng(seed))
    for _ in range(3):
        due = stream.due.copy()
        read = stream.step(kept)
        assert read.sum() == min(tokens, kept)
        first, last = AccessLocality().always(tokens, kept)
        assert read[:first].all()
        assert read[tokens - last :].all()
        assert (stream.history >> 7 == read).all()
        inner = np.arange(first, tokens - last)
        chosen, left = inner[read[inner]], inner[~read[inner]]
        # Nobody due later is read before somebody due sooner, and who waits comes nearer by a step.
        if len(chosen) and len(left):
            assert due[chosen].max() <= due[left].min()
        assert (stream.due[~read] == np.maximum(due[~read] - 1, 1)).all()


def test_equal_seeds_give_equal_reads() -> None:
    assert (_reads(AccessLocality(), 500, 9, 3) == _reads(AccessLocality(), 500, 9, 3)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steady_share": 1.5}, "steady_share must be from 0 to 1, not 1.5"),
        ({"steady_rate": 0.0}, "steady_rate must be above 0 and below 1, not 0.0"),
        ({"fleeting_memory": 1.0}, "fleeting_memory must be from 0 to below 1, not 1.0"),
        ({"recent": 0}, "recent must be"),
        ({"sinks": -1}, "sinks must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AccessLocality(**changes)  # type: ignore[arg-type]
