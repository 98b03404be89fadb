"""Promise: what does not fit is refused in bytes, bad requests by name, and the record says where numbers are from."""

from __future__ import annotations

import time

import pytest

from hw.presets import Value
from sim.errors import CapacityError, ConfigError, UnknownNameError, UnsupportedError
from sim.provenance import CLASSES
from sim.report import to_json
from sim.retrieval.presets import load_retrieval_system
from sim.retrieval.record import retrieval_record
from sim.retrieval.request import RetrievalRequest
from sim.retrieval.step import retrieval_step
from tests.sim.test_decode import DEVICE_KEYS, KEYS
from tests.sim.test_retrieval_step import ALONE, DEEPSEEK, GLM, KARAT, LLAMA, MILLION, OFFLOAD


def test_a_device_refuses_one_byte_too_many() -> None:
    # 1,000,001 tokens of 61 latents of 1,152 bytes and 61 index keys of 132; nine requests need two homes of eight.
    wanted = 2 * 1_000_001 * 61 * (1152 + 132)
    nine = RetrievalRequest(context=1_000_000, batch=9)
    fits = KARAT.with_numbers({"pnm.count": 8, "pnm.device.capacity_bytes": wanted})
    assert retrieval_step(fits, DEEPSEEK, nine).memories[1].held_bytes == wanted
    with pytest.raises(CapacityError) as caught:
        retrieval_step(fits.with_numbers({"pnm.device.capacity_bytes": wanted - 1}), DEEPSEEK, nine)
    assert (caught.value.wanted_bytes, caught.value.available_bytes) == (wanted, wanted - 1)
    kv = 2 * 1_000_001 * 61 * 1152
    assert str(caught.value) == (
        "a batch of 9 requests of 1000000 tokens and the step's own on one of 8 PNM devices must fit in "
        f"{wanted - 1} bytes, not {wanted} bytes (KV {kv}, index {wanted - kv}; 2 of 9 requests have the fullest "
        "device as their home)"
    )


def test_gpus_refuse_weights_and_kv_that_do_not_fit() -> None:
    with pytest.raises(
        CapacityError, match=r"memory of 8 GPUs must fit in 1015200000000 bytes, not .*weights 14867516"
    ):
        retrieval_step(KARAT.with_numbers({"gpu.count": 8}), GLM, MILLION)
    with pytest.raises(CapacityError, match="weights 671876907008, KV 562176562176, index 64416064416, activations"):
        retrieval_step(load_retrieval_system("gpu-only"), DEEPSEEK, MILLION)
    with pytest.raises(CapacityError, match="on memory of 8 hosts must fit in 8 bytes, not 562176562176 bytes"):
        retrieval_step(OFFLOAD.with_numbers({"host.node_bytes": 1}), DEEPSEEK, MILLION)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    largest = retrieval_record(KARAT, DEEPSEEK, MILLION)["largest_batch"]["batch"]
    # 549,755,813,888 bytes hold 7 requests of 78.3 GB; 128 devices.
    assert largest == 7 * 128
    retrieval_step(KARAT, DEEPSEEK, RetrievalRequest(context=1_000_000, batch=largest))
    with pytest.raises(CapacityError):
        retrieval_step(KARAT, DEEPSEEK, RetrievalRequest(context=1_000_000, batch=largest + 1))


def test_units_of_selection_refuse_one_candidate_and_one_token_too_many() -> None:
    most = RetrievalRequest(context=2**20 - 1, batch=1)
    assert retrieval_step(KARAT, DEEPSEEK, most).layers[0].work.candidates == 2**20
    with pytest.raises(UnsupportedError, match=r"candidates of a selection must be at most 1048576, .*, not 1048577"):
        retrieval_step(KARAT, DEEPSEEK, RetrievalRequest(context=2**20, batch=1))
    with pytest.raises(UnsupportedError, match=r"selected candidates must be at most 2048, .*, not 2049"):
        retrieval_step(KARAT, LLAMA, RetrievalRequest(context=10_000, batch=1, method="double-sparsity", budget=2049))
    # GPUs alone have no such unit.
    assert retrieval_step(ALONE, DEEPSEEK, RetrievalRequest(context=2**20, batch=1)).total_s > 0


# The record.


def test_record_has_the_promised_keys_and_says_where_numbers_are_from() -> None:
    record = retrieval_record(KARAT, DEEPSEEK, MILLION)
    assert set(record) >= KEYS
    assert all(set(device) >= DEVICE_KEYS for device in record["devices"])
    assert record["active_tokens"] == 8 * 2048
    assert record["kv_bytes_total"] == 8 * 1_000_000 * 70272
    classes = {stage["name"]: (stage["unit"] or {}).get("provenance") for stage in record["stages"]}
    assert classes["score"] == classes["select"] == classes["gather"] == "formula-rtl"
    assert all(stage["provenance"] in CLASSES and stage["parts"] for stage in record["stages"])
    assert {stage["provenance"] for stage in record["stages"]} == {"modelled"}
    assert to_json(record) == to_json(retrieval_record(KARAT, DEEPSEEK, MILLION))


def test_a_step_of_a_million_tokens_is_simulated_in_under_a_second() -> None:
    start = time.perf_counter()
    retrieval_record(KARAT, DEEPSEEK, MILLION)
    assert time.perf_counter() - start < 1


def test_bad_requests_and_numbers() -> None:
    for changes, message in (
        ({"context": 0}, "context must be an integer of at least 1, not 0"),
        ({"batch": True}, "batch must be an integer of at least 1, not True"),
        ({"budget": 0}, "budget must be an integer of at least 1, not 0"),
        ({"dense_layers": -1}, "dense_layers must be an integer of at least 0, not -1"),
    ):
        with pytest.raises(ConfigError, match=message):
            RetrievalRequest(**({"context": 1, "batch": 1} | changes))
    with pytest.raises(UnknownNameError, match="method must be a known name, not 'qest'; nearest: quest"):
        RetrievalRequest(context=1, batch=1, method="qest")
    with pytest.raises(UnsupportedError, match=r"model llama-3.1-70b must have a selection of its own"):
        retrieval_step(KARAT, LLAMA, RetrievalRequest(context=1, batch=1, method="trained"))
    with pytest.raises(UnknownNameError, match=r"number of the system must be .*nearest: pnm.count"):
        KARAT.with_numbers({"pnm.cuont": 3})
    with pytest.raises(ConfigError, match=r"pnm.count must be a whole number above 0, not 2.5"):
        KARAT.with_numbers({"pnm.count": 2.5})
    with pytest.raises(ConfigError, match=r"gpu.count must be a multiple of cluster.tensor_parallel = 8, not 12"):
        KARAT.with_numbers({"gpu.count": 12})
    with pytest.raises(ConfigError, match=r"cluster.tensor_parallel must be at most cluster.node_gpus = 8, not 16"):
        KARAT.with_numbers({"cluster.tensor_parallel": 16})
    # Both together are a machine again.
    changed = KARAT.with_numbers({"gpu.count": 12, "cluster.tensor_parallel": 4})
    assert dict(changed.values())["gpu.count"] == Value(12, "1", "given on the command line")
    assert changed.groups == 3
