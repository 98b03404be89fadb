"""``nearkv compare attacc``: rows, tolerances, and what differs between machines stays out of the rows."""

from __future__ import annotations

import json

import pytest

from hw.presets.devices import DEVICE_PRESETS
from sim.cli import main
from sim.comparisons import attacc

ROW_KEYS = {"name", "reference", "ours", "ours_default", "ratio", "unit", "source", "within", "fit", "note"}


def _runs(off: float = 0.0) -> dict[tuple[str, int], attacc.StackRun]:
    return {
        (preset, tokens): attacc.StackRun(
            last_column=round(reference * (1 + off)),
            last_state=round(reference * (1 + off)) + 54,
            counts={"MAC": 2048, "BROADCAST": 44, "ACT": 64},
            cycles=20_000,
            model_s=0.1,
            wall_s=0.2,
        )
        for preset, cycles in attacc.CYCLES.items()
        for tokens, reference in cycles.items()
    }


def test_rows() -> None:
    rows = {row["name"]: row for row in attacc.attacc_rows(_runs())}
    assert all(set(row) == ROW_KEYS and row["source"] and not row["fit"] for row in rows.values())
    assert len(rows) == 2 * (3 + 3 + 2 + 2) + 2 * 5 + 6
    row = rows["attacc, 512 tokens: last column read"]
    assert (row["reference"], row["ours"], row["ratio"], row["within"]) == (3711, 3711, 1.0, True)
    # The states come 54 cycles later: more than 1 % of 3,711.
    assert not rows["attacc, 512 tokens: last state out"]["within"]
    assert rows["attacc, 2048 tokens: last state out"]["within"]
    assert rows["attacc-unlimited, 4096 tokens: last column read"]["reference"] == 23673
    row = rows["attacc, 2048 tokens: MACs of all banks"]
    assert (row["reference"], row["ours"], row["within"]) == (32784, 32768, True)
    row = rows["attacc-bankgroup, 2048 tokens: last column read"]
    assert (row["reference"], row["within"]) == (53951, True)
    assert "bank-group level" in row["source"]
    row = rows["attacc-bankgroup-unlimited, 512 tokens: last column read"]
    assert (row["reference"], "_NPC, bank-group level" in row["source"]) == (8739, True)
    row = rows["attacc-bankgroup, 2048 tokens: MACs of a bank a group"]
    # 64 heads, 2,048 tokens over 16 groups, 8 columns of key and 8 of value; one more in each of 16 channels.
    assert row["reference"] == 64 * 2048 // 16 * 16 + 16
    assert rows["attacc, 2048 tokens: writes of queries"]["ours"] == 16 * 44
    assert rows["attacc, 2048 tokens: moves to the softmax buffer"]["ours"] == 0


@pytest.mark.parametrize(("off", "held"), [(0.009, 10), (0.02, 6), (0.049, 6), (0.06, 0), (-0.02, 6)])
def test_tolerances(off: float, held: int) -> None:
    rows = [row for row in attacc.attacc_rows(_runs(off)) if row["name"].endswith("last column read")]
    assert sum(row["within"] for row in rows if row["name"].startswith("attacc")) == held


def test_own_devices_stand_beside() -> None:
    rows = {row["name"]: row for row in attacc.attacc_rows(_runs())}
    for name in attacc.TABLES:
        row = rows[f"{name}, 2048 tokens: last column read"]
        # 4 heads x 128 tokens x 4 columns a bank group (or 32 tokens x 16), one in 20.48 ns
        assert row["ours"] == pytest.approx((2048 - 32) * 20.48 / 0.769 + 58, rel=2e-3)
        assert not row["within"]
        assert f"mapping {DEVICE_PRESETS[name].channel.mapping.value}" in row["note"]


def test_pace_is_symmetric_over_groups_and_channels() -> None:
    pace = attacc.pace(_runs())
    assert pace["simulated_group_cycles_per_s"] == pytest.approx(200_000)
    assert pace["symmetric_group_cycles_per_s"] == pytest.approx(256 * (16161 + 54) / 0.2)
    assert pace["reference_group_cycles_per_s"] == pytest.approx(766e3, rel=1e-2)


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    runs = _runs()
    hashes = {name: attacc.load_table(name).verilog_sha256 for name in DEVICE_PRESETS}
    of_params = {id(preset.channel): hashes[name] for name, preset in DEVICE_PRESETS.items()}
    monkeypatch.setattr("hw.measure.channel_sha256", lambda params: of_params[id(params)])
    monkeypatch.setattr(attacc, "run_stack", lambda preset, tokens: runs[preset, tokens])
    assert main(["compare", "attacc", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {key for row in record["rows"] for key in row} == ROW_KEYS
    assert record["host"]["wall_s"] == 0.2
    assert "wall_s" not in json.dumps(record["rows"])
    assert main(["compare", "attacc"]) == 0
    out = capsys.readouterr().out
    assert "attacc-bankgroup: a unit at every bank group" in out
    assert max(map(len, out.splitlines())) <= 120
    of_params = dict.fromkeys(of_params, "0" * 64)
    assert main(["compare", "attacc", "--json"]) == 2
    assert "table pam must be measured on today's Verilog 0000000000000000" in capsys.readouterr().err
