"""Promise: a scenario is exactly what its document works out, and the same request on our numbers stands beside it."""

from __future__ import annotations

import json

import pytest

from sim.cli import main


def _record(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert main(["decode", *options, "--scenario", "worked-example", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("options", [(), ("--system", "karat-seed")])
def test_the_worked_example_to_its_last_digit(capsys: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    record = _record(capsys, *options)
    assert record["system"] == "karat-seed"
    assert record["step_us"] == 2938.00512
    assert record["gpu_only_us"] == 12800
    assert record["gpu_only_with_pv_us"] == 25600
    assert record["provenance"] == "literature"
    assert [stage["us"] for stage in record["stages"]] == [50, 0.00512, 128, 2560, 200]  # type: ignore[index]


def test_ratios_say_what_they_compare(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = _record(capsys)["ratios"]
    assert [ratio["value"] for ratio in ratios] == [10, 5, 10, pytest.approx(25600 / 2688)]  # type: ignore[union-attr]


def test_the_same_request_on_our_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    ours = _record(capsys)["on_our_numbers"]
    # 100,000 keys of 132 B at 1.2 TB/s; 2,048 latents, 128 heads, 512 + 576 products of 2 operations at 125 TFLOPS.
    assert ours["score_us"] == pytest.approx(100_000 * 132 / 1.2e6)  # type: ignore[index]
    assert ours["gather_and_attend_us"] == pytest.approx(2048 * 2 * 128 * (512 + 576) / 125e6)  # type: ignore[index]
    # Query of 576 and output of 512 elements a head, 16 bit, at 16 GB/s, and 600 ns.
    assert ours["link_us"] == pytest.approx(0.6 + 128 * (576 + 512) * 2 / 16e3)  # type: ignore[index]
    assert ours["provenance"]["class"] == "modelled"  # type: ignore[index]


def test_rates_that_do_not_hold_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    rates = _record(capsys)["rates"]
    assert len(rates) == 5  # type: ignore[arg-type]
    assert not any(rate["holds"] for rate in rates)  # type: ignore[union-attr]


def test_people_see_stages_ratios_and_rates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--scenario", "worked-example"]) == 0
    shown = capsys.readouterr().out
    assert "2,938.00512" in shown
    assert "62,500" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scenario", "worked"], "scenario must be a known name"),
        (
            ["--scenario", "worked-example", "--system", "pam"],
            "--system must be karat-seed for scenario worked-example",
        ),
        (["--scenario", "worked-example", "--batch", "3"], "--batch must not be given with --scenario"),
        (["--system", "pam", "--model", "opt-175b", "--batch", "1"], "--context must be given unless --scenario is"),
    ],
)
def test_bad_combinations_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["decode", *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
