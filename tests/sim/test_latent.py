"""Multi-head latent attention: refused with the slowdown that hand counts give, and modelled where it is asked for."""

from __future__ import annotations

import dataclasses
import json

import pytest

from sim.cli import main
from sim.decode import decode_step
from sim.errors import UnsupportedError
from sim.latent import latent_costs
from sim.model_config import load_model
from sim.record import decode_record
from sim.step import StepRequest
from sim.system_config import load_system
from sim.tier import TierLoad, tier_rate, tier_time
from sim.unit_cycles import state_bytes

PAM = load_system("pam")
HBM, DDR, SSD = PAM.tiers
DEEPSEEK = load_model("deepseek-v3.2")  # 128 heads on 512 latent and 64 positional elements
GLM = load_model("glm-5.2")  # 64 heads on as many
LLAMA3 = load_model("llama-3.1-70b")
COMMAND = ["decode", "--system", "pam", "--context", "1024", "--batch", "4", "--model"]


def test_the_slowdown_by_hand() -> None:
    costs = {cost.tier: cost for cost in latent_costs(PAM, DEEPSEEK.attention, "bytes")}
    # 128 heads x (576 + 512) elements x 2 operations on 1,152 B
    assert all(cost.flop_per_byte == pytest.approx(278528 / 1152) for cost in costs.values())
    # 1,024 units x 16 lanes x 2 at 666 MHz beside 1.6 TB/s; 128 x 4 x 2 at 500 MHz beside 204.8 GB/s;
    # 64 x 16 x 2 at 1 GHz beside 18 GB/s
    by_hand = {"hbm-pim": 21.823488e12 / 1.6e12, "ddr-pim": 512 / 204.8, "ssd-pim": 2048 / 18}
    assert {name: cost.unit_flop_per_byte for name, cost in costs.items()} == pytest.approx(by_hand)
    assert costs["hbm-pim"].slowdown == pytest.approx(17.726, abs=1e-3)
    # Limits that count operations leave one a byte.
    assert {cost.slowdown for cost in latent_costs(PAM, DEEPSEEK.attention, "flops")} == {278528 / 1152}
    assert latent_costs(PAM, GLM.attention, "bytes")[0].slowdown == pytest.approx(17.726 / 2, abs=1e-3)
    assert latent_costs(PAM, LLAMA3.attention, "bytes") == ()


def test_it_is_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError) as caught:
        decode_step(PAM, DEEPSEEK, StepRequest(context=100, batch=1))
    assert "has 128 query heads on one latent, 242 FLOP a byte" in str(caught.value)
    assert "(bytes): 17.7 times on hbm-pim, 96.7 times on ddr-pim, 2.12 times on ssd-pim" in str(caught.value)
    with pytest.raises(UnsupportedError, match=r"\(flops\): 242 times on hbm-pim"):
        decode_step(PAM, DEEPSEEK, StepRequest(context=100, batch=1, power_cap="flops"))


def test_a_tier_by_hand() -> None:
    # One latent a token and channel, 1,024 tokens each, so 16 on each of 64 banks
    load = TierLoad(640, 1024)
    time = tier_time(HBM, DEEPSEEK.attention, load, power_cap="bytes")
    assert (time.spread, time.channel) == (1, None)
    # keys of 36 beats and values of as many, 128 passes, each with 22 cycles of exponentials in sight
    assert time.unit_cycles == 128 * (2 * 16 * 36 + 22)
    assert time.bound == "unit"
    # A latent is read once for all heads, as a key and as a value.
    assert time.read_bytes == 640 * 1024 * 1152
    assert time.bounds_s["cap"] == pytest.approx(16 * 1024 * 1152 / 1.6e12)
    assert time.bounds_s["column"] == pytest.approx(16 * 36 * 4 * 0.769e-9)
    flops = tier_time(HBM, DEEPSEEK.attention, load, power_cap="flops")
    assert flops.bounds_s["cap"] == pytest.approx(16 * 1024 * 278528 / 1.6e12)
    assert flops.bound == "cap"
    # m, l and o of the latent's 512 elements, in fp32
    assert state_bytes(DEEPSEEK.attention) == 2056


@pytest.mark.parametrize("power_cap", ["bytes", "flops"])
def test_rates_of_busy_tiers_are_bound_by_units_or_operations(power_cap: str) -> None:
    rate = tier_rate(HBM, DEEPSEEK.attention, power_cap=power_cap)
    by_hand = 40 * 1024 * 666e6 / (128 * 72) if power_cap == "bytes" else 40 * 1.6e12 / 278528
    assert rate == pytest.approx(by_hand, rel=1e-2)


def test_queries_states_and_outputs_are_those_of_the_latent() -> None:
    batch = 64
    step = decode_step(PAM, DEEPSEEK, StepRequest(context=8192, batch=batch, placement="by-capacity", allow_mla=True))
    (layer, _) = step.layers
    (new,) = {tier.new_tokens for tier in step.placement if tier.name == "hbm-pim"}
    link = HBM.path[0]
    query = batch * 128 * 576 * 2 + new * 1152
    assert layer.out_s["hbm-pim"] == pytest.approx(link.latency_s + query / link.bytes_per_s)
    assert layer.back_s == pytest.approx(link.latency_s + batch * 128 * 512 * 2 / link.bytes_per_s)


def test_the_record_names_it() -> None:
    request = StepRequest(context=4096, batch=16, allow_mla=True)
    record = decode_record(PAM, DEEPSEEK, request)
    assert [entry["tier"] for entry in record["latent_attention"]] == ["hbm-pim", "ddr-pim", "ssd-pim"]
    assert {entry["provenance"] for entry in record["latent_attention"]} == {"modelled"}
    assert record["kv_bytes_total"] == 16 * 4096 * 61 * 1152
    assert record["provenance"]["attention_us"]["class"] == "modelled"
    assert "no multi-head latent attention" in record["devices"][0]["channel"]["why_not_measured"]
    # Of models without it the option changes nothing but the manifest.
    plain = decode_record(PAM, LLAMA3, dataclasses.replace(request, allow_mla=False))
    allowed = decode_record(PAM, LLAMA3, request)
    assert plain["latent_attention"] == allowed["latent_attention"] == []
    assert {**plain, "manifest": None, "host": None} == {**allowed, "manifest": None, "host": None}


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "deepseek-v3.2"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--allow-mla" in err
    assert main([*COMMAND, "deepseek-v3.2", "--allow-mla"]) == 0
    assert "hbm-pim: --allow-mla, 242 FLOP a byte on units that do 13.6: 17.7 times" in capsys.readouterr().out
    assert main([*COMMAND, "deepseek-v3.2", "--allow-mla", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["latent_attention"][1]["slowdown"] == pytest.approx(96.711, abs=1e-3)
