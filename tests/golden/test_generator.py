"""Promise: drawn attention is as concentrated, and as steady from step to step, as in the layers it is fitted to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from golden.retrieval.generator import DecodeTensors, Locality, generate
from golden.retrieval.locality import attention_locality, tokens_for

# Layers 5, 11 and 17 of Gemma-3-270M over 7,855 tokens of text.
MEASURED = {
    "tokens_for_half": (4, 6, 3),
    "tokens_for_90": (91, 412, 207),
    "tokens_for_95": (236, 968, 501),
    "tokens_for_99": (1358, 2982, 1700),
    "sink_mass": (0.308, 0.300, 0.376),
    "last_16_mass": (0.07, 0.17, 0.16),
    "last_64_mass": (0.16, 0.22, 0.24),
    "last_256_mass": (0.28, 0.31, 0.37),
    "overlap_64": (0.54, 0.65, 0.58),
    "overlap_256": (0.51, 0.65, 0.64),
    "overlap_1024": (0.57, 0.68, 0.72),
    "accessed_share": (0.141, 0.226, 0.084),
    "accessed_again": (0.63, 0.70, 0.65),
    "page_accessed_again": (0.82, 0.88, 0.77),
    "accessed_in_last_20": (0.022, 0.016, 0.041),
}


@pytest.fixture(scope="module")
def drawn() -> dict[str, float]:
    """Mean statistics of four requests that the fit has not seen."""
    found = []
    for seed in range(4):
        tensors = generate(Locality(), tokens=7855, steps=48, heads=4, seed=seed)
        found.append(dataclasses.asdict(attention_locality([tensors.mass(step) for step in range(48)])))
    return {name: float(np.mean([one[name] for one in found])) for name in MEASURED}


@pytest.mark.parametrize("name", MEASURED)
def test_statistics_lie_in_the_range_of_the_layers_widened_by_a_quarter(drawn: dict[str, float], name: str) -> None:
    layers = MEASURED[name]
    assert min(layers) / 1.25 <= drawn[name] <= 1.25 * max(layers)


def test_equal_seeds_draw_equal_tensors() -> None:
    one, same, other = (generate(Locality(), tokens=40, steps=3, heads=2, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.keys, same.keys)
    assert np.array_equal(one.queries, same.queries)
    assert not np.array_equal(one.keys, other.keys)
    assert one.keys.shape == (40, 128)
    assert one.queries.shape == (3, 2, 128)
    assert np.isfinite(one.keys).all()
    assert np.isfinite(one.queries).all()


def test_steps_see_their_own_token_and_those_before() -> None:
    tensors = generate(Locality(), tokens=9, steps=4, heads=3, seed=0)
    assert [tensors.seen(step) for step in range(4)] == [6, 7, 8, 9]
    assert [len(mass) for mass in tensors.mass(0)] == [6, 6, 6]
    assert all(mass.sum() == pytest.approx(1) for mass in tensors.mass(3))
    alone = generate(Locality(), tokens=1, steps=1, heads=1, seed=0)
    assert alone.mass(0)[0].tolist() == [1.0]


def scores(tensors: DecodeTensors) -> np.ndarray:
    """Scaled scores of the last step's first head."""
    return tensors.scale * (tensors.keys.astype(float) @ tensors.queries[-1, 0].astype(float))


def test_sink_and_place_are_what_the_parameters_say() -> None:
    bare = generate(Locality(content=0.0, sink=5.0, place=3.0), tokens=500, steps=1, heads=1, seed=0)
    found = scores(bare)
    frequencies = np.geomspace(1.0, 1e-4, 16)
    distances = 499 - np.arange(500)
    expected = 3.0 * np.cos(np.outer(distances, frequencies)).mean(axis=1) + 5.0 * (np.arange(500) == 0)
    assert found == pytest.approx(expected, abs=1e-4)
    assert found[-1] == pytest.approx(3.0, abs=1e-5)


def test_content_has_its_deviation() -> None:
    drawn = [
        scores(generate(Locality(content=2.0, sink=0.0, place=0.0), tokens=2000, steps=1, heads=1, seed=seed)).std()
        for seed in range(40)
    ]
    # 40 queries of 95 unequal elements: the mean square is known to a tenth.
    assert np.sqrt(np.mean(np.square(drawn))) == pytest.approx(2.0, rel=0.1)


def test_drift_and_likeness_of_heads() -> None:
    even = Locality(spectrum=0.0, steady=0.8, alike=0.6)
    queries = generate(even, tokens=600, steps=600, heads=2, seed=1).queries[..., 33:].astype(float)

    def correlation(a: np.ndarray, b: np.ndarray) -> float:
        return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))

    assert correlation(queries[1:, 0], queries[:-1, 0]) == pytest.approx(0.8, abs=0.03)
    assert correlation(queries[:, 0], queries[:, 1]) == pytest.approx(0.6, abs=0.05)


def test_bad_parameters() -> None:
    for changes, message in (
        ({"steady": 1.1}, "steady must be from 0 to 1, not 1.1"),
        ({"alike": float("nan")}, "alike must be from 0 to 1, not nan"),
        ({"run_tokens": 0.5}, "run_tokens must be at least 1, not 0.5"),
        ({"content_dim": 0}, "content_dim must be at least 1, not 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Locality(**changes)
    with pytest.raises(ValueError, match="steps must be from 1 to 4, not 5"):
        generate(Locality(), tokens=4, steps=5, heads=1, seed=0)


# The statistics themselves, counted by hand.


def test_fewest_tokens_for_parts_of_the_mass() -> None:
    mass = np.array([0.1, 0.4, 0.1, 0.4])
    assert [part.tolist() for part in tokens_for(mass, 0.0, 0.4, 0.41, 0.85, 1.0)] == [
        [1],
        [1],
        [1, 3],
        [1, 3, 0],
        [1, 3, 0, 2],
    ]


def test_statistics_of_two_steps_by_hand() -> None:
    # One head; the second step has a token more. 90 % are tokens 0 and 1, then 0 and 2.
    steps = [[np.array([0.5, 0.45, 0.05])], [np.array([0.5, 0.02, 0.43, 0.05])]]
    found = attention_locality(steps)
    assert found.tokens_for_half == 1
    assert found.tokens_for_90 == 2
    assert found.tokens_for_99 == 3.5
    assert found.sink_mass == pytest.approx(0.5)
    assert found.last_16_mass == pytest.approx(1)
    assert found.accessed_share == pytest.approx((2 / 3 + 2 / 4) / 2)
    assert found.accessed_again == pytest.approx(0.5)
    assert found.page_accessed_again == 1
    assert found.accessed_in_last_20 == 1
    # All three tokens of the first step are among the 64 largest of the second.
    assert found.overlap_64 == 1
    with pytest.raises(ValueError, match="steps must be at least 2, not 1"):
        attention_locality(steps[:1])
