"""Promise: a channel of bf16 keys and values answers as the golden model does, in the cycles of an fp16 channel."""

from __future__ import annotations

import numpy as np

from golden.formats import BF16
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from tests.helpers.channels import checked_run, make_channel_operation

CHANNEL = DEVICE_PRESETS["attacc"].channel


def _operations(params):
    """Ordinary numbers of every size; scores near both ends of fp32; and codes of every kind among the tokens."""
    rng = np.random.default_rng(4)
    sizes = [(128, 700), (64, 33), (256, 100), (80, 1), (128, 0)]
    operations = [make_channel_operation(params, rng, head_dim=d, tokens=tokens) for d, tokens in sizes]
    operations += [
        make_channel_operation(params, rng, head_dim=128, tokens=300, spread=spread)
        for spread in (1.0, 2.0**-72, 2.0**55)
    ]
    for vectors in (operations[-3].keys, operations[-3].values):
        vectors[0][1] = rng.integers(0, BF16.inf_code, 128)
        vectors[0][2, ::43] = BF16.inf_code, BF16.nan_code, 1
    return operations


def test_states_are_those_of_the_golden_model_and_cycles_those_of_fp16():
    brain = CHANNEL.replace(processing=CHANNEL.processing.replace(kv_format=BF16))
    runs = [checked_run(params, _operations(params), platform=NATIVE) for params in (brain, CHANNEL)]
    (run, counts), (fp16_run, fp16_counts) = runs
    assert counts == fp16_counts
    np.testing.assert_array_equal(run.read_cycles, fp16_run.read_cycles)
    for ours, fp16 in zip(run.bodies, fp16_run.bodies, strict=True):
        np.testing.assert_array_equal(ours.cycles, fp16.cycles)
