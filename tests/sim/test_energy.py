"""Promise: energy is what was moved and computed at costs that have a source, part by part, and nothing is guessed."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from sim.cli import main
from sim.collectives import ring_bytes
from sim.comparisons.energy import attacc_energy_rows, ispass_rows, read_ispass
from sim.comparisons.vllm import RUNS, read_recording
from sim.energy.account import PARTS, account, check_parts
from sim.energy.activity import Activity, steps_activity
from sim.energy.costs import GPU_BYTE, HOST, LINKS, MEMORIES, cost_values
from sim.errors import ConfigError
from sim.gpu_server import GPU_SERVERS
from sim.model_config import load_model
from sim.serving.batch import StepWork
from sim.serving.parallelism import Parallelism, choose_parallelism
from sim.system_config import load_system
from sim.tiering.sparsity import Sparsity
from tests.helpers.data import data_file

if TYPE_CHECKING:
    from pathlib import Path

    from sim.gpu_server import GpuServer
    from sim.system import System

PAM, SERVER, LLAMA = load_system("pam"), GPU_SERVERS["gpu-only"], load_model("llama-2-7b")
WHOLE = choose_parallelism(PAM, tensor=None, pipeline=None, micro_batches=None)


def work(tokens: tuple[int, ...], *, prompt: tuple[int, ...] = (), pairs: int = 0, swapped: int = 0) -> StepWork:
    busy = tuple(int(count > 0) for count in tokens)
    prompt = prompt or (0,) * len(tokens)
    return StepWork(
        decoding=busy[0],
        tier_tokens=tokens,
        tier_requests=busy,
        prompt_requests=int(any(prompt)),
        prompt_tokens=sum(prompt),
        prompt_pairs=pairs,
        prompt_context=(0,) * len(tokens),
        decode_appended=(busy[0], *(0,) * (len(tokens) - 1)),
        prompt_appended=prompt,
        ending=busy[0],
        swapped_tokens=swapped,
    )


def counted(
    machine: System | GpuServer, works: list[StepWork], seconds: float = 0.0, layout: Parallelism = WHOLE
) -> Activity:
    return steps_activity(machine, LLAMA, works, layout, seconds=seconds, busy_s=seconds)


WEIGHTS = 32 * (4 * 4096**2 + 3 * 4096 * 11008)


def test_a_decode_step_by_hand() -> None:
    found = counted(PAM, [work((1000, 24, 0))])
    # Keys and values of a token are 524,288 B; a multiplication for each of their elements, for heads are not shared.
    assert found.near_bytes["hbm-pim"] == 1000 * 524_288
    assert found.near_bytes["ddr-pim"] == 24 * 524_288
    assert found.macs["hbm-pim"] == 1000 * 524_288 / 2
    assert found.written_bytes["hbm-pim"] == 524_288
    head = 4096 * 32000
    assert found.gpu_flops == pytest.approx(2 * (WEIGHTS + head))
    activations = 32 * ((4 * 4096 + 2 * 4096 + 2 * 4096 + 2 * 11008) * 2) + 32000 * 4 + 4096 * 2
    assert found.read_bytes["hbm-pim"] == pytest.approx(2 * (WEIGHTS + head) + activations, rel=1e-9)
    # Two all-reduces a layer of 8 KB, which 8 GPUs send round.
    assert found.link_bytes["gpu-links"] == pytest.approx(64 * 8 * ring_bytes(8, 8192))
    # A query of 8 KB to either tier, a key and value to the nearest, an output back from it; a state of 520 B a head.
    assert found.link_bytes["in-package"] == 32 * 8192 + 524_288 + 32 * 8192
    assert found.link_bytes["pcie"] == found.link_bytes["memory-bus"] == 32 * 8192 + 32 * 32 * 520
    assert found.link_bytes["nvme"] == 0


def test_joules_by_hand() -> None:
    activity = Activity(seconds=2.0, busy_s=1.5, gpu_flops=1e15, gpu_bytes=1e12)
    activity.near_bytes["ssd-pim"], activity.macs["ddr-pim"], activity.link_bytes["nvme"] = 1e9, 1e12, 1e9
    energy = account(PAM, activity)
    idle, board = 80.3, 700.0
    assert energy.parts_j["gpu"] == pytest.approx(
        8 * idle * 2.0 + 1e15 * (board - idle) / 989.4e12 + 1e12 * 8 * 0.46e-12
    )
    assert energy.board_j == pytest.approx(8 * (idle * 2.0 + (board - idle) * 1.5))
    assert energy.parts_j["hbm"] == 0.0
    # 40 DIMMs of 32 GB at 4 W, 8 drives at 5.9 W.
    assert energy.parts_j["ddr"] == pytest.approx(2.0 * 40 * 4.0 + 1e12 * 0.32e-12)
    assert energy.parts_j["ssd"] == pytest.approx(2.0 * 8 * 5.9 + 8e9 * 18.9e-12)
    assert energy.parts_j["links"] == pytest.approx(8e9 * 6.5e-12)
    assert energy.parts_j["host"] == pytest.approx(2.0 * (219 + 10 + 0.5 * 175))


def test_parts_add_up_and_one_left_out_is_missing_exactly() -> None:
    activity = counted(PAM, [work((1000, 24, 8)), work((500, 0, 0), prompt=(70, 6, 0), pairs=2926)], seconds=0.1)
    whole = account(PAM, activity)
    assert whole.total_j is not None
    assert tuple(whole.parts_j) == PARTS
    assert whole.total_j == pytest.approx(sum(whole.parts_j.values()))
    for part in PARTS:
        less = account(PAM, activity, left_out=(part,))
        assert less.total_j is not None
        assert whole.total_j - less.total_j == pytest.approx(whole.parts_j[part])
        assert less.to_record()["energy"]["left_out"] == [part]


@pytest.mark.parametrize("machine", [PAM, SERVER], ids=lambda machine: machine.name)
def test_steps_add_up(machine: System | GpuServer) -> None:
    tiers = 3 if machine is PAM else 1
    steps = [
        work((900, 40, 8)[:tiers]),
        work((500, 3, 1)[:tiers], prompt=(70, 6, 0)[:tiers], pairs=2926),
        work((0, 0, 0)[:tiers], prompt=(100, 0, 9)[:tiers], pairs=5995, swapped=11),
        work((900, 40, 8)[:tiers]),
    ]
    whole, parts = counted(machine, steps), [counted(machine, [step]) for step in steps]
    assert whole.gpu_flops == pytest.approx(sum(part.gpu_flops for part in parts))
    assert whole.gpu_bytes == pytest.approx(sum(part.gpu_bytes for part in parts))
    for name in ("near_bytes", "macs", "read_bytes", "written_bytes", "link_bytes"):
        for key, value in getattr(whole, name).items():
            assert value == pytest.approx(sum(getattr(part, name)[key] for part in parts))
    assert counted(machine, []).gpu_flops == 0.0


def test_prompts_swaps_and_windows_by_hand() -> None:
    prompt = counted(SERVER, [work((0,), prompt=(100,), pairs=5050, swapped=7)])
    assert prompt.gpu_flops == pytest.approx(2 * 100 * WEIGHTS + 32 * 4 * 5050 * 32 * 128)
    assert prompt.written_bytes["gpu-memory"] == 100 * 524_288
    assert prompt.link_bytes["pcie"] == 7 * 524_288
    windowed = dataclasses.replace(
        LLAMA, layers=(*LLAMA.layers[:16], *(dataclasses.replace(layer, window=100) for layer in LLAMA.layers[16:]))
    )
    found = steps_activity(PAM, windowed, [work((400, 0, 0))], WHOLE, seconds=0.0, busy_s=0.0)
    assert found.near_bytes["hbm-pim"] == pytest.approx((16 * 400 + 16 * 100) * 524_288 / 32)


def test_a_pipeline_reads_weights_for_every_micro_batch() -> None:
    one = dataclasses.replace(work((4000, 0, 0)), decoding=4, decode_appended=(4, 0, 0), tier_requests=(4, 0, 0))
    layout = choose_parallelism(PAM, tensor=4, pipeline=2, micro_batches=None)
    whole, staged = counted(PAM, [one]), counted(PAM, [one], layout=layout)
    assert staged.read_bytes["hbm-pim"] - whole.read_bytes["hbm-pim"] == pytest.approx(2 * WEIGHTS, rel=1e-3)
    assert staged.gpu_flops == pytest.approx(whole.gpu_flops)
    # Two micro-batches of 2 tokens: rings of 4 GPUs, and 4 GPUs that send 16 KB on.
    assert staged.link_bytes["gpu-links"] == pytest.approx(2 * (64 * 4 * ring_bytes(4, 16384) + 4 * 16384))


def test_a_card_at_peak_draws_its_board_power() -> None:
    peak = 8 * 989.4e12
    energy = account(PAM, Activity(seconds=3.0, busy_s=3.0, gpu_flops=3.0 * peak))
    assert energy.parts_j["gpu"] == pytest.approx(8 * 700 * 3.0)
    assert energy.parts_j["gpu"] == pytest.approx(energy.board_j)


def test_what_has_no_source_is_named_and_no_number_is_given() -> None:
    card = GPU_SERVERS["rtx-4090"]
    activity = Activity(seconds=1.0, busy_s=1.0)
    activity.link_bytes["optical"] = 5.0
    energy = account(card, activity)
    record = energy.to_record()
    assert record["energy_j"] is None
    assert "gpu (power of a GPU of rtx-4090 at rest, idle_w)" in record["energy_note"]
    assert "links (a bit on optical)" in record["energy_note"]
    # Its board power bounds it all the same.
    assert energy.board_j == 450.0
    assert record["energy"]["gpu_board_j"] == 450.0
    rest = account(card, activity, left_out=("gpu", "links"))
    assert rest.total_j == pytest.approx(HOST.watts)
    assert rest.to_record()["energy_note"] is None


def test_every_cost_has_a_source_and_a_unit() -> None:
    values = dict(cost_values())
    assert len(values) == 3 * 4 + 3 + 4 + 1 + len(LINKS)
    assert all(value.source and value.number > 0 for value in values.values())
    assert set(MEMORIES) == {"hbm", "ddr", "ssd"}
    assert GPU_BYTE.unit == "pJ/bit"
    # A DDR4 chip's read current above standby, at 8 pins of 3.2 Gb/s, and a row of 8 Kb.
    assert MEMORIES["ddr"].near_read_pj.number == pytest.approx((168 - 52) * 1.2 / 25.6 + 0.525e3 / 8192, rel=2e-3)
    assert MEMORIES["ssd"].near_read_pj.number == pytest.approx(3.3 * 25e-3 * 30e-6 / (16384 * 8) * 1e12, rel=2e-3)
    assert MEMORIES["ssd"].pin_write_pj.number == pytest.approx(3.3 * 25e-3 * 750e-6 / (16384 * 8) * 1e12, rel=2e-3)


def test_names_of_parts() -> None:
    assert check_parts(["host", "gpu", "host"]) == ("gpu", "host")
    assert check_parts([]) == ()
    with pytest.raises(ConfigError, match="part of the energy must be a known name, not 'cpu'"):
        check_parts(["cpu"])


def test_decode_and_serve_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = ("decode", "--system", "pam", "--model", "llama-2-7b", "--context", "500", "--batch", "2")
    assert main([*step, "--json", "--energy-without", "host", "--energy-without", "ssd"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["energy"]["left_out"] == ["ssd", "host"]
    assert set(record["energy"]["parts_j"]) == {"gpu", "hbm", "ddr", "links"}
    assert record["energy_j"] == pytest.approx(sum(record["energy"]["parts_j"].values()))
    assert main(list(step)) == 0
    assert "GPUs and their memory at board power while steps run" in capsys.readouterr().out
    trace = tmp_path / "trace.csv"
    trace.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,1,2\n")
    run = ("serve", "--model", "llama-2-7b", "--trace", str(trace))
    assert main([*run, "--system", "rtx-4090"]) == 0
    shown = capsys.readouterr().out
    assert "energy_j: null: no source for gpu (power of a GPU of rtx-4090 at rest" in shown
    assert "GPUs and their memory, at most, at board power" in shown
    assert main([*run, "--system", "pam", "--energy-without", "disk"]) == 2
    assert "part of the energy must be a known name, not 'disk'" in capsys.readouterr().err


def test_attacc_rows() -> None:
    rows = attacc_energy_rows()
    missed = [row["name"] for row in rows if not row["within"]]
    assert missed == ["GPT-175B, attention in memory, batch 64"]
    # 174 G weights of 16 bit and 2,049 tokens at 3.59 pJ through the pins and 0.46 through the caches.
    weights = 96 * 12 * 12288**2
    least = (2 * weights + 2049 * 2 * 2 * 96 * 12288) * 8 * (3.59 + 0.46) * 1e-12 + 2 * weights * 0.16e-12
    assert least < rows[0]["ours"] < 1.01 * least


def test_ispass_rows(tmp_path: Path) -> None:
    folder = data_file("validation", "ispass26_fig10_component_energy.tsv").parent
    components = read_ispass(folder)
    # All of it over 52.395 s of a node of 219 W, and the joules of a token that are published.
    assert components["Others"] == pytest.approx(219 * 52.395, rel=1e-4)
    requests = read_recording(folder / RUNS[0].file)[0][:40]
    rows = ispass_rows(components, requests)
    assert [row["unit"] for row in rows] == ["J/token"] * 3
    assert rows[0]["reference"] == pytest.approx(15703.27 / 36952.84 * 0.281906, rel=1e-4)
    assert rows[0]["ours"] < rows[1]["ours"]
    with pytest.raises(ConfigError, match="must have a column gpu-only of numbers"):
        read_ispass(tmp_path)


def tiered(**changes: object) -> StepWork:
    step = dataclasses.replace(
        work((1000, 24, 8)), tier_held=(8000.0, 200.0, 64.0), tier_pages=(0.0, 0.0, 5.0), swaps=(0.0, 0.0)
    )
    return dataclasses.replace(step, **changes)


def test_pairs_that_change_places_are_read_and_written_on_both_sides() -> None:
    still, moving = (
        counted(PAM, [tiered(swaps=swaps, tier_held=(1000.0, 24.0, 8.0))]) for swaps in ((0.0, 0.0), (3.0, 2.0))
    )
    token = 524_288
    # What banks were given is read back; flash answers out of its write buffer.
    for name, count, reads in (("hbm-pim", 3, 2), ("ddr-pim", 5, 2), ("ssd-pim", 2, 1)):
        assert moving.read_bytes[name] - still.read_bytes[name] == reads * count * token
        assert moving.written_bytes[name] - still.written_bytes[name] == count * token
    # From HBM to DIMMs over all three links between; from there to drives over what their ways don't share.
    for name, count in (("in-package", 3), ("pcie", 3), ("memory-bus", 5), ("nvme", 2)):
        assert moving.link_bytes[name] - still.link_bytes[name] == 2 * count * token
    assert moving.near_bytes == still.near_bytes


def test_scattered_tokens_cost_whole_pages_and_labels_their_scan() -> None:
    dense = counted(PAM, [tiered(tier_held=(1000.0, 24.0, 8.0))])
    assert dense.near_bytes["ssd-pim"] == 8 * 524_288
    scattered = counted(PAM, [tiered()])
    # 5 pages of each of 32 heads in 32 layers.
    assert scattered.near_bytes["ssd-pim"] == pytest.approx(5 * 32 * 32 * 16384)
    assert scattered.near_bytes["hbm-pim"] == dense.near_bytes["hbm-pim"]
    labelled = steps_activity(
        PAM, LLAMA, [tiered()], WHOLE, seconds=0.0, busy_s=0.0, sparsity=Sparsity(name="double", label_place="own")
    )
    # An eighth of 16th channels: 8 of 128 elements of 16 bit a head, of every token that is held.
    for name, held in (("hbm-pim", 8000), ("ddr-pim", 200), ("ssd-pim", 64)):
        assert labelled.near_bytes[name] - scattered.near_bytes[name] == pytest.approx(held * 32 * 32 * 16)
        assert labelled.macs[name] - scattered.macs[name] == pytest.approx(held * 32 * 32 * 8)
    on_gpus = steps_activity(
        PAM,
        LLAMA,
        [tiered()],
        WHOLE,
        seconds=0.0,
        busy_s=0.0,
        sparsity=Sparsity(name="double", label_place="own", scorer="gpu", label_format="int4"),
    )
    assert on_gpus.near_bytes == scattered.near_bytes
    assert on_gpus.gpu_bytes - scattered.gpu_bytes == pytest.approx(8264 * 32 * 32 * 4)
    assert on_gpus.gpu_flops - scattered.gpu_flops == pytest.approx(2 * 8264 * 32 * 32 * 8)
    assert on_gpus.link_bytes["nvme"] - scattered.link_bytes["nvme"] == pytest.approx(64 * 32 * 32 * 4)
