"""Error of the bit-exact model on real tensors, beside plain fp16 attention.

``pytest tests/golden/test_attention_error.py -s`` prints the tables.
"""

import numpy as np
import pytest

from golden.attention import attention_fp16_reference, attention_reference, pam_attention
from golden.exp import POLY6, POLY6_SERIAL
from golden.numerics import unit_numerics
from golden.samples import SLICE, load_layers
from tests.helpers.data import full_tensors

LIMIT = 2.0  # ours over the fp16 reference, largest and rms error alike


def unnormalised_p(q, k, v, scale):
    """Return plain fp16 attention where P = exp(S - m) is rounded before the division: a stricter yardstick."""
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    scores = np.einsum("bhd,thd->bht", q, k, optimize=True) * np.float32(scale)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    with np.errstate(under="ignore"):
        rounded = p.astype(np.float16).astype(np.float32)
    output = np.einsum("bht,thd->bhd", rounded, v, optimize=True) / p.sum(axis=-1, dtype=np.float32)[..., None]
    return output.astype(np.float16)


def shapes(num_tokens):
    """Name, unit numerics, parts and tree of each run: one unit; three devices; many banks; single tokens."""
    order = np.random.default_rng(0).permutation(num_tokens)
    uneven = np.split(order, [num_tokens // 2, num_tokens // 2, 3 * num_tokens // 4, num_tokens - 5, num_tokens - 1])
    return [
        ("1 part", unit_numerics(POLY6), [range(num_tokens)], None),
        ("3 devices, uneven", unit_numerics(POLY6), uneven, [[0, 1, 2], [3, 4], [5]]),
        ("64 banks, fan-in 4", unit_numerics(POLY6_SERIAL, 8, 4), np.array_split(order, 64), 4),
    ]


def measure(output, exact):
    error = np.abs(output.astype(np.float64) - exact)
    return error.max(), np.sqrt(np.square(error).mean())


@pytest.mark.parametrize("source", ["slice", "full"])
def test_error_is_at_most_twice_that_of_fp16_attention(source):
    layers = load_layers(SLICE if source == "slice" else full_tensors())
    worst = 0.0
    print(f"\n{source}: error against float64 (largest, rms), and ours over P = softmax(S) and over P = exp(S - m)")
    print(f"{'layer':5} {'shape':20} {'ours':>19} {'fp16 reference':>19} {'ratio':>11} {'stricter':>11}")
    for tensors in layers:
        q, k, v, scale = tensors.q, tensors.k, tensors.v, tensors.scale
        exact = attention_reference(q, k, v, scale)
        plain = np.array(measure(attention_fp16_reference(q, k, v, scale), exact))
        strict = np.array(measure(unnormalised_p(q, k, v, scale), exact))
        for name, numerics, splits, tree in shapes(len(k)):
            result = pam_attention(q, k, v, scale, splits, numerics, tree)
            assert not result.empty.any()
            ours = np.array(measure(result.output, exact))
            cells = [f"{a:9.2e} {b:9.2e}" for a, b in (ours, plain)]
            cells += [f"{a:5.2f} {b:5.2f}" for a, b in (ours / plain, ours / strict)]
            print(f"{tensors.layer:5} {name:20}", *cells)
            worst = max(worst, *(ours / plain), *(ours / strict))
    assert worst <= LIMIT


def test_fixture_holds_the_score_that_needs_the_maximum():
    """Layer 0 has a scaled score of 79: exp overflows fp16, and comes within a factor 2**14 of the end of fp32."""
    layer = load_layers(SLICE)[0]
    scores = layer.scale * np.einsum("bhd,thd->hbt", layer.q.astype(float), layer.k.astype(float))
    assert layer.layer == 0
    assert np.unravel_index(scores.argmax(), scores.shape) == (0, 108, 107)
    assert scores.max() == pytest.approx(79.04, abs=0.01)
    exact = attention_reference(layer.q, layer.k, layer.v, layer.scale)[108, 0]
    ours = pam_attention(
        layer.q[108], layer.k, layer.v, layer.scale, [range(100), range(100, 128)], unit_numerics(POLY6)
    ).output[0]
    np.testing.assert_array_equal(ours, exact.astype(np.float16))


def test_slice_is_cut_from_the_full_tensors():
    full = {tensors.layer: tensors for tensors in load_layers(full_tensors())}
    for tensors in load_layers(SLICE):
        for name in "qkv":
            cut = getattr(full[tensors.layer], name)[256:384][:, [2, 4]]
            np.testing.assert_array_equal(getattr(tensors, name), cut)
