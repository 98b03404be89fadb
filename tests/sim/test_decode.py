"""The whole step: hand-counted parts, sums that must add up, lower bounds, directions, provenance."""

from __future__ import annotations

import dataclasses
import itertools
import json

import pytest

from hw.presets import Value
from hw.tables import load_table
from sim.calibration import factors
from sim.decode import decode_step
from sim.gpu import head_time, layer_time
from sim.links import Link, transfer_s
from sim.model_config import load_model, parse_model
from sim.provenance import CLASSES
from sim.record import decode_record
from sim.report import to_json
from sim.step import StepRequest
from sim.system_config import load_system

PAM = load_system("pam")
LLAMA2 = load_model("llama-2-7b")
LLAMA3 = load_model("llama-3.1-70b")
OPT = load_model("opt-175b")
GIB = 2**30

# Keys that scripts rely on.
KEYS = {
    "system", "model", "context", "batch", "placement", "keep", "active_tokens", "step_us", "attention_us",
    "reduction_us", "reduction_busy_us", "reduction_share", "kv_bytes_per_token", "kv_bytes_total", "energy_j",
    "devices",
}  # fmt: skip
DEVICE_KEYS = {
    "name", "tokens", "capacity_bytes", "cycles", "clock_hz", "us", "bytes", "bound", "provenance",
}  # fmt: skip


def test_opt_175b_has_2304_gib_of_kv() -> None:
    record = decode_record(PAM, OPT, StepRequest(context=2048, batch=256))
    assert record["kv_bytes_per_token"] == 4718592
    assert record["kv_bytes_total"] == 2304 * GIB
    assert record["active_tokens"] == 256 * 2049
    assert [device["name"] for device in record["devices"]] == ["hbm-pim", "ddr-pim", "ssd-pim"]
    assert sum(device["tokens"] for device in record["devices"]) == 256 * 2048
    assert sum(device["kv_bytes"] for device in record["devices"]) == 2304 * GIB
    assert all(device["tokens"] > 0 for device in record["devices"])
    # The drives hold 718.6 GiB and read 64 channels x 4 pages of 16 KB each 30 us: 5.5 s, nearly all of the step.
    drives = record["devices"][2]
    assert drives["us"] / 1e6 == pytest.approx(718.6 * GIB / (64 * 4 * 16384 / 30e-6), rel=5e-3)
    assert record["slowest_tier"] == "ssd-pim"
    assert 0.98 < drives["us"] / record["step_us"] < 1


def test_record_has_the_promised_keys() -> None:
    record = decode_record(PAM, LLAMA3, StepRequest(context=8192, batch=16))
    assert set(record) >= KEYS
    for device in record["devices"]:
        assert set(device) >= DEVICE_KEYS
        assert device["cycles"] == pytest.approx(device["us"] * 1e-6 * device["clock_hz"], abs=0.5)
    assert record["energy_j"] == pytest.approx(sum(record["energy"]["parts_j"].values()))
    assert json.loads(to_json(record))["model"] == "llama-3.1-70b"


def test_parts_add_up() -> None:
    for model in (LLAMA3, OPT):
        record = decode_record(PAM, model, StepRequest(context=4000, batch=48))
        assert record["step_us"] == pytest.approx(record["gpu_us"] + record["attention_us"])
        assert record["attention_us"] == pytest.approx(record["tier_us"] + record["link_us"] + record["reduction_us"])
        assert record["reduction_share"] == pytest.approx(record["reduction_us"] / record["attention_us"])
        layers = sum(layer["count"] * layer["layer_us"] for layer in record["layers"])
        assert record["step_us"] == pytest.approx(layers + record["gpu"]["head_us"])
        assert sum(layer["count"] for layer in record["layers"]) == len(model.layers)
        assert record["conflict"]["kind"] == "serialised"
        assert record["conflict"]["overlap_us"] == 0


def test_gpu_part_by_hand() -> None:
    # llama-2-7b, one request: 4 x 4096^2 + 3 x 4096 x 11008 parameters of 2 B, and the activations of each product
    read = (3 * 4096**2) * 2 + (4096 + 4096 + 2 * 4096) * 2
    read += 4096**2 * 2 + (4096 + 4096) * 2
    read += 3 * 4096 * 11008 * 2 + (2 * 4096 + 2 * 11008) * 2
    time = layer_time(PAM, LLAMA2, LLAMA2.layers[0], 1)
    assert time.read_bytes == read
    assert time.matrices_s == pytest.approx(read / (40 * 665.6e9 * 0.85))
    # two all-reduces of 8 KB: 2 x 7/8 of it in protocol LL, 87.7 GB/s, 6.6 us and 14 hops of 0.6 us
    assert time.allreduce_s == pytest.approx(2 * (6.6e-6 + 14 * 0.6e-6 + 2 * 7 / 8 * 8192 / 87.7e9))
    # Many requests are bound by operations: 2 a parameter and token at 8 x 989.4 TFLOPS x 0.8
    many = layer_time(PAM, LLAMA2, LLAMA2.layers[0], 4096)
    parameters = 4 * 4096**2 + 3 * 4096 * 11008
    assert many.matrices_s == pytest.approx(2 * 4096 * parameters / (8 * 989.4e12 * 0.8))
    head = head_time(PAM, LLAMA2, 1)
    assert head.matrices_s == pytest.approx((32000 * 4096 * 2 + 32000 * 4 + 4096 * 2) / (40 * 665.6e9 * 0.85))


def test_small_step_by_hand() -> None:
    step = decode_step(PAM, LLAMA2, StepRequest(context=1023, batch=20))
    (entry,) = step.layers
    assert (entry.count, entry.attended, entry.critical) == (32, 1024, "hbm-pim")
    query, new_kv = 20 * 32 * 128 * 2, 20 * 2 * 32 * 128 * 2
    assert entry.out_s["hbm-pim"] == pytest.approx(0.1e-6 + (query + new_kv) / 26.624e12)
    assert entry.back_s == pytest.approx(0.1e-6 + query / 26.624e12)
    assert entry.gather_s == {"hbm-pim": 0.0, "ddr-pim": 0.0, "ssd-pim": 0.0}
    # One state an operation: only the division is left, 15 cycles to 1/l, 2 to the first beat, 8 beats
    assert entry.root_s == pytest.approx(25 / 666e6)
    # One pair a channel, by its RTL: the first column after 58 cycles, 256 columns of which 32 are saved up, one in
    # 20.48 ns, 54 cycles to the state of a bank group; then 16 states to the logic die and a merge of them
    assert entry.tiers["hbm-pim"].total_s == pytest.approx(
        58 * 0.769e-9 + (256 - 32) * 20.48e-9 + 54 * 0.769e-9 + 139 / 666e6 + 200e-9, abs=2 * 0.769e-9
    )
    assert step.total_s == pytest.approx(32 * (entry.gpu.total_s + entry.attention_s) + step.head.total_s)


def test_states_of_far_tiers_cross_the_links() -> None:
    step = decode_step(PAM, OPT, StepRequest(context=2048, batch=256))
    (entry,) = step.layers
    states = 256 * 96 * 520
    # Both far tiers send over PCIe, the drives then over 40 GB/s, which is what they wait for
    assert entry.gather_s["ssd-pim"] == pytest.approx(0.3e-6 + 10e-6 + states / 40e9)
    assert entry.gather_s["ddr-pim"] == pytest.approx(0.3e-6 + 2 * states / 512e9)
    # 24,576 operations on 40 x 128 units: 5 rounds; three states take 24 cycles, the division 14
    rounds, merge, finish = 5, 8 + 24 + 3, 25
    assert entry.root_s == pytest.approx((merge + finish + (rounds - 1) * 24) / 666e6)


def test_links_that_are_shared_wait_for_all_bytes() -> None:
    shared = Link("shared", 100.0, 1.0, ())
    slow = Link("slow", 10.0, 2.0, ())
    times = transfer_s({"a": (shared,), "b": (shared, slow), "c": (shared,)}, {"a": 100, "b": 50, "c": 0})
    assert times == {"a": 1.0 + 1.5, "b": 3.0 + 5.0, "c": 0.0}


@pytest.mark.parametrize("model", [LLAMA2, LLAMA3, OPT, load_model("mixtral-8x7b")], ids=lambda model: model.name)
@pytest.mark.parametrize(("context", "batch"), [(1, 1), (100, 3), (2048, 64), (9000, 33)])
def test_step_is_no_faster_than_any_resource(model, context: int, batch: int) -> None:
    record = decode_record(PAM, model, StepRequest(context=context, batch=batch))
    seconds = record["step_us"] * 1e-6
    active = sum(
        layer.feed_forward.active_parameters + model.attention.input_parameters + model.attention.output_parameters
        for layer in model.layers
    )
    dense = active if batch == 1 else 0
    assert seconds >= dense * 2 / (40 * 665.6e9)
    assert seconds >= 2 * batch * active / (8 * 989.4e12)
    for device, tier in zip(record["devices"], PAM.tiers, strict=True):
        kv = (device["tokens"] + device["new_tokens"]) * model.kv_bytes_per_token
        assert seconds >= kv / (tier.count.integer * tier.device.cap_bytes_per_s.number)
        assert device["bytes"] >= kv


def test_larger_batches_and_contexts_are_never_faster() -> None:
    # A measured channel's last state leaves with the logic clock, every second cycle of the memory's: a cycle a layer
    # earlier or later after its last column.
    def falls(times: list[float], layers: int) -> bool:
        return any(later < earlier - layers * 0.8e-9 for earlier, later in itertools.pairwise(times))

    for placement in ("top-down", "by-capacity"):
        for model in (LLAMA3, OPT):
            by_batch = [
                decode_step(PAM, model, StepRequest(context=2000, batch=batch, placement=placement)).total_s
                for batch in (*range(1, 70), 100, 200, 256)
            ]
            assert not falls(by_batch, len(model.layers))
            by_context = [
                decode_step(PAM, model, StepRequest(context=context, batch=24, placement=placement)).total_s
                for context in (*range(1, 400, 7), *range(400, 12_000, 401))
            ]
            assert not falls(by_context, len(model.layers))


@pytest.mark.parametrize("link", ["in-package", "pcie", "memory-bus", "nvme"])
def test_faster_links_are_never_slower(link: str) -> None:
    times = []
    for factor in (0.1, 1.0, 10.0):
        old = PAM.links[link]
        faster = dataclasses.replace(old, bytes_per_s=old.bytes_per_s * factor)
        tiers = tuple(
            dataclasses.replace(tier, path=tuple(faster if part.name == link else part for part in tier.path))
            for tier in PAM.tiers
        )
        system = dataclasses.replace(PAM, tiers=tiers)
        times.append(decode_step(system, OPT, StepRequest(context=2048, batch=256)).total_s)
    assert times == sorted(times, reverse=True)


def test_seed_system_is_slower_where_ddr_is() -> None:
    seed = load_system("pam-seed")
    request = StepRequest(context=8192, batch=256)
    ours, theirs = (decode_record(system, LLAMA3, request) for system in (PAM, seed))
    # 4 x 50 GB/s instead of 40 x 204.8 GB/s
    assert theirs["devices"][1]["us"] > 5 * ours["devices"][1]["us"]
    # 2 TB/s a stack instead of 1.6
    assert theirs["devices"][0]["us"] < ours["devices"][0]["us"]


def test_keep_reads_less_and_names_it() -> None:
    full = decode_record(PAM, OPT, StepRequest(context=2048, batch=256))
    part = decode_record(PAM, OPT, StepRequest(context=2048, batch=256, keep=0.125))
    assert part["keep"] == 0.125
    assert part["active_tokens"] == 256 * 257
    assert part["kv_bytes_total"] == full["kv_bytes_total"]
    assert [d["tokens"] for d in part["devices"]] == [d["tokens"] for d in full["devices"]]
    assert part["devices"][0]["bytes"] == pytest.approx(full["devices"][0]["bytes"] / 8, rel=0.03)
    # Pages are read whole, so scattered tokens save little on the drives.
    assert part["devices"][2]["bytes"] > 0.9 * full["devices"][2]["bytes"]


def test_windows_bound_what_is_read() -> None:
    shape = {
        "model_type": "x", "hidden_size": 1024, "intermediate_size": 1024, "num_attention_heads": 8,
        "num_hidden_layers": 2, "vocab_size": 1000, "sliding_window": 128,
        "layer_types": ["full_attention", "sliding_attention"],
    }  # fmt: skip
    model = parse_model(json.dumps(shape), where="x.json", name="x")
    record = decode_record(PAM, model, StepRequest(context=4096, batch=4))
    assert [(entry["kind"], entry["attended_tokens"]) for entry in record["layers"]] == [
        ("dense", 4097),
        ("dense, window 128", 128),
    ]
    assert record["layers"][1]["attention_us"] < record["layers"][0]["attention_us"]
    assert record["kv_bytes_total"] == 4 * 4096 * model.kv_bytes_per_token


def test_both_readings_of_the_power_cap_are_shown() -> None:
    request = StepRequest(context=8192, batch=64)
    record = decode_record(PAM, LLAMA3, request)
    other = decode_record(PAM, LLAMA3, dataclasses.replace(request, power_cap="flops"))
    assert record["power_cap"]["kind"] == "bytes"
    assert record["power_cap"]["other"]["kind"] == "flops"
    assert record["power_cap"]["other"]["step_us"] == other["step_us"] > record["step_us"]
    assert other["power_cap"]["other"]["step_us"] == record["step_us"]


def test_every_number_carries_its_weakest_class() -> None:
    record = decode_record(PAM, OPT, StepRequest(context=2048, batch=256))
    for name, entry in record["provenance"].items():
        kinds = [part["class"] for part in entry["parts"]]
        assert entry["class"] == max(kinds, key=CLASSES.index), name
        assert all(part["source"] for part in entry["parts"])
    for name, value in record.items():
        if isinstance(value, float) and name != "keep":
            assert name in record["provenance"], name
    assert record["provenance"]["step_us"]["class"] == "modelled"
    assert record["provenance"]["kv_bytes_total"]["class"] == "literature"
    for device in record["devices"]:
        assert device["provenance"] == "modelled"
        assert "formula-rtl" in {part["class"] for part in device["parts"]}


def test_cycles_of_the_units_follow_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    # A processing unit that takes ten times the cycles must show, or the step is not made from its timing.
    from hw.timing import processing
    from sim import unit_cycles

    plain = decode_step(PAM, LLAMA3, StepRequest(context=32768, batch=64))
    original = processing.cycles
    monkeypatch.setattr(
        processing, "cycles", lambda params, tokens: dataclasses.replace(original(params, tokens), interval=10**7)
    )
    unit_cycles.operation_cycles.cache_clear()
    try:
        assert decode_step(PAM, LLAMA3, StepRequest(context=32768, batch=64)).total_s > 10 * plain.total_s
    finally:
        unit_cycles.operation_cycles.cache_clear()


def test_one_gpu_reduces_nothing() -> None:
    gpu = dataclasses.replace(PAM.gpu, count=Value(1, "1", "test"))
    time = layer_time(dataclasses.replace(PAM, gpu=gpu), LLAMA2, LLAMA2.layers[0], 1)
    assert time.allreduce_s == 0.0


def test_factors_stay_within_their_bounds() -> None:
    for factor in factors().values():
        low, high = factor.bounds
        assert low <= factor.value <= high
        assert factor.source
        assert factor.fitted_to
        assert factor.part.kind == "calibrated"


def test_a_measured_channel_names_its_verilog_and_counts_in_its_memory_clock() -> None:
    record = decode_record(PAM, OPT, StepRequest(context=512, batch=20))
    device = record["devices"][0]
    channel = device["channel"]
    assert channel["provenance"] == "measured-rtl"
    assert channel["verilog_sha256"] == load_table("pam").verilog_sha256
    assert channel["clock_hz"] == device["clock_hz"] == pytest.approx(1e9 / 0.769)
    assert channel["free_cycles"] == 96 * load_table("pam").cycles.cycles(128, 33, 3).last_state
    (part,) = [part for part in device["parts"] if part["class"] == "measured-rtl"]
    assert channel["verilog_sha256"] in part["source"]
    assert part in record["provenance"]["tier_us"]["parts"]
    for other in record["devices"][1:]:
        assert other["channel"] == {"provenance": "modelled", "why_not_measured": "no channel of it is in RTL"}


def test_where_no_channel_was_measured_the_result_says_so() -> None:
    step = StepRequest(context=512, batch=20)
    shared = decode_record(PAM, LLAMA3, step)["devices"][0]
    assert "operations of 8 query heads are not in the table of pam" in shared["channel"]["why_not_measured"]
    assert shared["clock_hz"] == 666e6
    assert all(part["class"] != "measured-rtl" for part in shared["parts"])
    passes = decode_record(PAM, LLAMA3, dataclasses.replace(step, power_cap="flops"))["devices"][0]
    assert passes["channel"]["passes"] == 8
    seed = decode_record(load_system("pam-seed"), OPT, step)["devices"][0]
    assert seed["channel"]["why_not_measured"] == "its RTL was made for cap_bytes_per_s 1.6e+12, not 2e+12"
