"""Promise: a step near memory is what its stages add up to, each counted by hand and none faster than its parts."""

from __future__ import annotations

import itertools

import pytest

from sim.errors import ConfigError
from sim.model_config import load_model, parse_model
from sim.retrieval.methods import METHODS
from sim.retrieval.presets import RETRIEVAL_SYSTEMS, load_retrieval_system
from sim.retrieval.record import retrieval_record
from sim.retrieval.request import RetrievalRequest
from sim.retrieval.step import retrieval_step
from tests.helpers.data import data_file

KARAT = load_retrieval_system("karat")
ALONE = load_retrieval_system("gpu-only-h200")
OFFLOAD = load_retrieval_system("gpu-offload")
DEEPSEEK = load_model("deepseek-v3.2")
GLM = load_model("glm-5.2")
MINIMAX = load_model("minimax-m3")
LLAMA = load_model("llama-3.1-70b")
SPARSE = (DEEPSEEK, GLM, MINIMAX)
MILLION = RetrievalRequest(context=1_000_000, batch=8)

MEMORY = 1.2e12 * 0.85
FP8, BF16 = 250e12 * 0.8, 125e12 * 0.8
CLOCK = 1.83e9


def stages(system, model, request=MILLION, layer=-1):
    """Stages of one kind of layer by name, the last one by default."""
    return {stage.name: stage for stage in retrieval_step(system, model, request).layers[layer].stages}


def step_bytes(model, name):
    """Bytes of one stage of a step at a million tokens for one request, all layers."""
    step = retrieval_step(KARAT, model, RetrievalRequest(context=10**6 - 1, batch=1))
    return sum(entry.count * stage.read_bytes for entry in step.layers for stage in entry.stages if stage.name == name)


# One layer of DeepSeek-V3.2, counted by hand.


def test_deepseek_layer_on_a_device() -> None:
    found = stages(KARAT, DEEPSEEK)
    tokens = 1_000_001
    # Keys of 128 bytes and a scale of four come slower than 12 cycles a key; the query of 256 beats goes before.
    assert found["score"].seconds == pytest.approx(tokens * 132 / MEMORY + (256 + 17) / CLOCK)
    assert found["score"].unit_cycles == 15_626 * 12 + 1954 + 256 + 17
    assert found["score"].flops == tokens * 64 * 128 * 2
    assert found["score"].bound == "memory"
    # 64 shards of 15,626 scores in 489 rows: the figure of the unit's docstring.
    assert found["select"].unit_cycles == 4189
    assert found["select"].seconds == pytest.approx(4189 / CLOCK)
    # 2,048 latents of 1,152 bytes; each channel makes addresses for 32 ids in 38 cycles while they are read.
    assert found["gather"].seconds == pytest.approx(5 / CLOCK + 2048 * 1152 / MEMORY)
    assert found["gather"].unit_cycles == 38
    # 128 heads multiply 576 and 512 elements of each token.
    busy = 2048 * 128 * 2 * (576 + 512) / BF16
    assert found["attend"].busy_s == pytest.approx(busy)
    assert found["attend"].seconds == pytest.approx(busy - 2048 * 1152 / MEMORY)


def test_messages_of_a_deepseek_layer() -> None:
    found = stages(KARAT, DEEPSEEK)
    # 64 fp8 queries of 128, their weights in fp32, and the new index key with its scale: 8,580 bytes.
    assert found["index query out"].seconds == pytest.approx(300e-9 + 8580 / 16e9)
    # 128 queries of 576 and the new latent, in 16 bit; they travel while keys are scored.
    assert found["query out"].busy_s == pytest.approx((128 * 576 + 576) * 2 / 16e9)
    assert found["query out"].seconds == 0
    assert found["output back"].seconds == pytest.approx(300e-9 + 128 * 512 * 2 / 16e9)


def test_a_query_that_scoring_does_not_hide_shows() -> None:
    found = stages(KARAT, DEEPSEEK, RetrievalRequest(context=1000, batch=1))
    hidden = found["score"].seconds + found["select"].seconds
    assert found["query out"].seconds == pytest.approx(found["query out"].busy_s - hidden)
    assert found["query out"].seconds > 0


def test_the_slowest_link_sets_the_pace() -> None:
    # 1,280 requests are 10 a device and 320 a node of devices or GPUs: 320 at 400 GB/s take longer than 10 at 16 GB/s.
    message = 128 * 512 * 2
    request = RetrievalRequest(context=1000, batch=1280)

    def back_s(**changes: float) -> float:
        system = KARAT.with_numbers({name.replace("__", "."): number for name, number in changes.items()})
        return stages(system, DEEPSEEK, request)["output back"].seconds - 300e-9

    assert back_s() == pytest.approx(320 * message / 400e9)
    assert back_s(pnm__device__link_bytes_per_s=10e9) == pytest.approx(10 * message / 10e9)
    assert back_s(pnm__node_bytes_per_s=200e9) == pytest.approx(320 * message / 200e9)
    assert back_s(cluster__node_bytes_per_s=100e9) == pytest.approx(320 * message / 100e9)


# What published configurations and the paper's figure 2 say.


@pytest.mark.parametrize(
    ("model", "scales", "local", "printed"),
    [(DEEPSEEK, 61 * 4e6, 0, 8.0), (GLM, 21 * 4e6, 0, 2.9), (MINIMAX, 0, 57 * 128 * 2048, 21)],
    ids=lambda value: getattr(value, "name", None),
)
def test_bytes_of_a_step_at_a_million_tokens_are_those_of_the_paper(model, scales, local, printed) -> None:
    read = step_bytes(model, "score") + step_bytes(model, "gather") - scales - local
    digits = 0 if isinstance(printed, int) else 1
    assert round(read / 1e9, digits) == printed


def test_layers_that_score_share_and_attend_to_all() -> None:
    for model, owners in ((DEEPSEEK, 61), (GLM, 21), (MINIMAX, 57)):
        step = retrieval_step(KARAT, model, MILLION)
        assert sum(entry.count for entry in step.layers if entry.work.score_bytes) == owners
        assert sum(entry.count for entry in step.layers) == len(model.layers)
    dense = [entry for entry in retrieval_step(KARAT, MINIMAX, MILLION).layers if not entry.work.selections]
    assert [(entry.count, entry.work.attended) for entry in dense] == [(3, 1_000_001)]
    shared = [entry for entry in retrieval_step(KARAT, GLM, MILLION).layers if not entry.work.selections]
    assert [(sum(entry.count for entry in shared), {entry.work.attended for entry in shared})] == [(57, {2048})]
    # 16 blocks and the local one; 7,813 blocks are candidates.
    sparse = next(entry.work for entry in retrieval_step(KARAT, MINIMAX, MILLION).layers if entry.work.selections)
    assert (sparse.attended, sparse.candidates, sparse.chosen) == (17 * 128, 7813, 16)


@pytest.mark.parametrize(
    ("name", "index_bytes", "owners"),
    [("glm-5.1", 78 * 132, 78), ("kimi-k2", 0, 0), ("qwen3-235b-a22b", 0, 0), ("minimax-m2.5", 0, 0)],
)
def test_published_configurations(name: str, index_bytes: int, owners: int) -> None:
    model = load_model(str(data_file("models", f"{name}.json")))
    record = retrieval_record(KARAT, model, RetrievalRequest(context=100_000, batch=4))
    assert record["index_bytes_per_token"] == index_bytes
    assert sum(layer["count"] for layer in record["layers"] if "score" in layer["stages_us"]) == owners
    assert record["method"] == ("trained" if owners else "dense")


# Sums, bounds and directions.


@pytest.mark.parametrize("system", [KARAT, ALONE, OFFLOAD], ids=lambda system: system.name)
@pytest.mark.parametrize("model", [*SPARSE, LLAMA], ids=lambda model: model.name)
def test_totals_add_up(system, model) -> None:
    record = retrieval_record(system, model, MILLION)
    assert record["step_us"] == pytest.approx(record["gpu_us"] + record["attention_us"])
    assert record["gpu_us"] == pytest.approx(sum(record["gpu"].values()))
    assert record["attention_us"] == pytest.approx(sum(stage["us"] for stage in record["stages"]))
    layers = sum(layer["count"] * layer["layer_us"] for layer in record["layers"])
    assert record["step_us"] == pytest.approx(layers + record["gpu"]["head_us"])
    for layer in record["layers"]:
        assert layer["attention_us"] == pytest.approx(sum(layer["stages_us"].values()))
    assert record["tokens_per_s"] == pytest.approx(8 / record["step_us"] * 1e6)
    assert all(0 <= stage["us"] <= stage["busy_us"] for stage in record["stages"])
    assert record["overlap"]["bound_us"] <= record["step_us"]
    assert record["largest_batch"]["batch"] >= 8


def test_the_bound_is_the_busiest_of_gpus_devices_and_links() -> None:
    step = retrieval_step(KARAT, DEEPSEEK, MILLION)
    near = step.stage_s("score", "select", "gather", "attend")
    assert step.bound_s == pytest.approx(max(step.gpu_s, near))
    assert step.bound_s < step.total_s
    # Without devices there is nothing to overlap with.
    alone = retrieval_step(ALONE, DEEPSEEK, MILLION)
    assert alone.bound_s == alone.total_s


def test_no_stage_is_faster_than_memory_and_cores_at_their_peak() -> None:
    for model in SPARSE:
        for stage in (s for entry in retrieval_step(KARAT, model, MILLION).layers for s in entry.stages):
            if stage.name in ("score", "gather"):
                assert stage.busy_s >= stage.read_bytes / 1.2e12
            if stage.name == "attend":
                assert stage.busy_s >= stage.flops / 125e12


@pytest.mark.parametrize("name", ["karat", "gpu-only-h200", "gpu-offload"])
def test_a_faster_part_never_makes_a_step_slower(name: str) -> None:
    system = RETRIEVAL_SYSTEMS[name]
    before = retrieval_step(system, MINIMAX, MILLION).total_s
    rates = [key for key, value in system.values() if value.unit in ("bytes/s", "FLOP/s", "Hz")]
    assert len(rates) >= 4
    for key in rates:
        rate = dict(system.values())[key].number
        assert retrieval_step(system.with_numbers({key: 2 * rate}), MINIMAX, MILLION).total_s <= before


def test_a_longer_context_never_makes_a_step_faster() -> None:
    contexts = (1, 127, 128, 2046, 2047, 2048, 2049, 2176, 10_000, 131_071, 999_999)
    for model in (*SPARSE, LLAMA):
        times = [retrieval_step(KARAT, model, RetrievalRequest(context=n, batch=3)).total_s for n in contexts]
        # Behind a longer scan more of the query hides, never all that the scan adds.
        assert all(later >= earlier * (1 - 1e-12) for earlier, later in itertools.pairwise(times))


@pytest.mark.parametrize("context", [1, 2, 2046, 2047, 2048, 2049])
def test_contexts_around_k(context: int) -> None:
    work = retrieval_step(KARAT, DEEPSEEK, RetrievalRequest(context=context, batch=1)).layers[-1].work
    assert work.attended == min(context + 1, 2048)
    assert work.selected == min(context + 1, 2048)
    assert work.gather_bytes == work.attended * 1152


def test_devices_are_homes_of_whole_requests() -> None:
    def near(batch: int) -> float:
        step = retrieval_step(KARAT, DEEPSEEK, RetrievalRequest(context=50_000, batch=batch))
        return step.stage_s("score", "select")

    assert near(1) == near(128)
    assert near(129) == pytest.approx(2 * near(1))


# Methods.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("context", [1, 79, 80, 5000])
def test_methods_on_devices(method: str, context: int) -> None:
    request = RetrievalRequest(context=context, batch=2, method=method, budget=256)
    step = retrieval_step(KARAT, LLAMA, request)
    tokens = context + 1
    attended = {"dense": tokens, "infllm": min(tokens, 256 + 128 + 4096)}.get(method, min(tokens, 256))
    assert {entry.work.attended for entry in step.layers} == {attended}
    assert step.total_s > 0


def test_units_score_what_they_have_room_for_and_cores_the_rest() -> None:
    """Pages of latent attention: 128 heads of 576 elements are more than the unit has room for."""
    quest = RetrievalRequest(context=160_000 - 1, batch=1, method="quest", budget=2048)
    found = stages(KARAT, LLAMA, quest)["score"]
    # 10,000 pages a head over 64 channels; 8 heads in two groups, 16 beats of least and largest elements: 32 cycles.
    load, latency = 8 * 8, 16
    assert found.unit_cycles == 8 * (157 * 32 + load + latency + 3)
    assert found.seconds == pytest.approx(8 * 10_000 * 512 / MEMORY + 8 * (load + latency + 3) / CLOCK)
    cores = stages(KARAT, DEEPSEEK, quest)["score"]
    assert (cores.unit_cycles, cores.bound) == (0, "compute")
    assert cores.seconds == pytest.approx(2 * 2 * 128 * 576 * 10_000 / BF16)
    record = retrieval_record(KARAT, DEEPSEEK, quest)
    parts = {stage["name"]: [part["name"] for part in stage["parts"]] for stage in record["stages"]}
    assert "peak of the cores" in parts["score"]
    assert "cycles of index_score" not in parts["score"]
    trained = retrieval_record(KARAT, DEEPSEEK, MILLION)
    score = next(stage for stage in trained["stages"] if stage["name"] == "score")
    assert score["unit"]["source"] == "hw/timing/index_score.py"
    assert "peak of the cores" not in [part["name"] for part in score["parts"]]


def test_machines_are_compared_at_the_same_factor() -> None:
    # 0.85 is KARAT's, 0.98 that of the GPUs' attention: each record has the step at the other one, too.
    shares = {KARAT.name: (0.85, 0.98), ALONE.name: (0.98, 0.85)}
    for system in (KARAT, ALONE):
        same = retrieval_record(system, DEEPSEEK, MILLION)["same_factor"]
        assert (same["own_value"], same["value"]) == shares[system.name]
        step = retrieval_step(system, DEEPSEEK, MILLION, same["value"])
        assert same["step_us"] == pytest.approx(step.total_s * 1e6)
        assert (step.total_s < retrieval_step(system, DEEPSEEK, MILLION).total_s) == (system is KARAT)
    # Keys at 0.63 of 1.2 TB/s, and the query before them.
    slow = retrieval_step(KARAT, DEEPSEEK, MILLION, 0.63).layers[-1].stages[1]
    assert slow.seconds == pytest.approx(1_000_001 * 132 / (0.63 * 1.2e12) + 273 / CLOCK)
    # At the printed rate the unit keeps up, too.
    assert retrieval_step(KARAT, DEEPSEEK, MILLION, 1.0).layers[-1].stages[1].bound == "memory"


def test_labels_of_eight_heads_are_scored_as_fast_as_they_come() -> None:
    """8 elements of 16 bits a token, 8 heads that share lanes: a cycle a token, and the memory needs 1.84."""
    found = stages(KARAT, LLAMA, RetrievalRequest(context=640_000 - 1, batch=1, method="double-sparsity", budget=2048))
    assert found["score"].bound == "memory"
    assert found["score"].unit_cycles == 8 * (10_000 + 8 + 16 + 3)
    assert found["score"].seconds == pytest.approx(8 * (640_000 * 16 / MEMORY + (8 + 16 + 3) / CLOCK))


def test_first_layers_may_be_dense() -> None:
    request = RetrievalRequest(context=100_000, batch=1, method="quest", dense_layers=2)
    step = retrieval_step(KARAT, LLAMA, request)
    assert sorted((entry.count, entry.work.attended) for entry in step.layers) == [(2, 100_001), (78, 2048)]
    with pytest.raises(ConfigError, match="dense_layers must be at most 80, not 81"):
        retrieval_step(KARAT, LLAMA, RetrievalRequest(context=1, batch=1, dense_layers=81))


def test_a_windowed_layer_keeps_its_window() -> None:
    model = parse_model(
        '{"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,'
        ' "intermediate_size": 512, "vocab_size": 1000, "sliding_window": 64,'
        ' "layer_types": ["sliding_attention", "full_attention"]}',
        where="here",
        name="windowed",
    )
    step = retrieval_step(KARAT, model, RetrievalRequest(context=999, batch=1, method="quest", budget=32))
    assert [entry.work.attended for entry in step.layers] == [64, 32]


def test_a_method_scores_with_attentions_own_queries() -> None:
    found = stages(KARAT, LLAMA, RetrievalRequest(context=100_000, batch=1, method="quest"))
    # 64 queries of 128, and the new keys and values of 8 heads, before anything is scored.
    assert found["query out"].seconds == pytest.approx(300e-9 + (64 * 128 * 2 + 4096) / 16e9)
    assert "index query out" not in found
