"""The study of exponential units: rows, front, targets, figure, the command line with real tools and without."""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from golden.exp import POLY6
from golden.exp.catalogue import DEFAULT_UNITS, FAMILIES, UNITS
from golden.exp.oracle import rounded_exp
from golden.formats import BF16, FP16, UQ0_16
from sim.cli import main
from sim.errors import ConfigError
from sim.plot_labels import place_labels
from sim.plots_exp import exp_figure
from sim.report import to_csv
from sim.studies.exp import combinational_units, mark_front
from sim.studies.exp_downstream import downstream
from sim.studies.exp_tables import csv_rows
from sim.studies.exp_targets import TARGETS, target_rows, target_units
from sim.studies.exp_units import parse_units
from tests.helpers.exp_rows import study_row

if TYPE_CHECKING:
    from pathlib import Path

KEYS = (
    *("name", "family", "parameters", "format", "domain", "subnormals", "max_rel", "mean_rel", "max_ulp"),
    *("correctly_rounded", "area_ge", "area_um2", "delay_ns", "latency_cycles", "interval_cycles", "library", "yosys"),
    *("pareto", "worst_input", "mean_rel_uniform", "flip_flops", "cells", "delay_nand2", "pipelined"),
    *("softmax_max_error", "attention_rms_error", "argmax_kept", "provenance", "equal_to_golden", "verilog_sha256"),
)

TINY = """\
[[unit]]
name = "raw"
base = "schraudolph-bf16"

[[unit]]
name = "line"
family = "polynomial"
fmt = "bf16"
coefficients = [1024, 1020]
frac_bits = 10
"""


def test_the_default_set() -> None:
    assert len(DEFAULT_UNITS) >= 40
    assert set(DEFAULT_UNITS) <= set(UNITS)
    assert {type(spec) for spec in UNITS.values()} <= set(FAMILIES.values())
    assert {spec.fmt.name for spec in DEFAULT_UNITS.values()} == {"fp16", "bf16", "q5.10"}
    assert {spec.family for spec in DEFAULT_UNITS.values()} == set(FAMILIES)
    assert {spec.evaluation for spec in DEFAULT_UNITS.values()} == {"combinational", "pipelined", "serial"}
    assert {spec.domain for spec in DEFAULT_UNITS.values()} == {"full", "nonpositive"}


def test_rows_through_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    units = tmp_path / "units.toml"
    units.write_text(TINY)
    table, figure = tmp_path / "rows.csv", tmp_path / "rows.png"
    arguments = [
        "study",
        "exp",
        "--spec",
        str(units),
        "--jobs",
        "1",
        "--json",
        "--csv",
        str(table),
        "--plot",
        str(figure),
    ]
    assert main(arguments) == 0
    first = capsys.readouterr()
    record = json.loads(first.out)
    raw, line = record["rows"]
    for row in (raw, line):
        assert set(KEYS) <= set(row)
        assert row["equal_to_golden"] and row["monotone"] and row["specials"]
        # The package's own library is in gate equivalents and NAND2 delays alone.
        assert row["area_um2"] is row["delay_ns"] is None
        assert 100 < row["area_ge"] < 3000
        assert row["flip_flops"] < row["cells"]
        assert row["provenance"]["accuracy"]["class"] == "measured-rtl"
        assert row["verilog_sha256"] in row["provenance"]["accuracy"]["parts"][0]["source"]
        assert row["provenance"]["area"]["class"] == "modelled"
    assert (raw["latency_cycles"], raw["flip_flops"]) == (0, 0)
    assert line["latency_cycles"] == 5  # log2(e), shift, a product, scaling, rounding
    assert line["flip_flops"] > 50
    # Pipelined is what has no registers yet; the faster the clock, the more it takes.
    assert [pipe["area_ge"] for pipe in line["pipelined"]] == [None] * 3
    assert all(pipe["delay_nand2"] <= pipe["clock_nand2"] for pipe in raw["pipelined"])
    fast, medium, slow = (pipe["area_ge"] for pipe in raw["pipelined"])
    assert fast > medium > slow > raw["area_ge"]
    assert raw["max_rel"] == pytest.approx(0.0645, rel=0.05)  # 1 + f for 2^f: 6.1 %, and rounding to bf16
    assert [entry["asked_ge"] for entry in record["targets"]] == [target.area_ge for target in TARGETS]
    assert "left] line: accuracy and area" in first.err
    read = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["name"] for row in read] == ["raw", "line"]
    assert "frac_bits=8; " in read[0]["parameters"]
    assert figure.read_bytes()[:4] == b"\x89PNG"

    # What is kept is not measured again, and the bytes are the same.
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("must come from the build folder")

    monkeypatch.setattr("hw.cosim.run_streams", refuse)
    monkeypatch.setattr("hw.synth.mapped_netlist", refuse)
    monkeypatch.setattr("hw.pipelining.pipeline", refuse)
    assert main(arguments) == 0
    assert capsys.readouterr().out == first.out


def test_rtl_that_differs_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    units = tmp_path / "units.toml"
    units.write_text(TINY.split("\n\n", maxsplit=1)[0])
    wrong = UNITS["schraudolph-bf16"].evaluate_codes(np.arange(1 << 16))
    wrong[0x3F80] ^= 1
    monkeypatch.setattr("sim.studies.exp_measure.rtl_results", lambda verilog: wrong)
    assert main(["study", "exp", "--spec", str(units), "--jobs", "1", "--json"]) == 1
    captured = capsys.readouterr()
    (row,) = json.loads(captured.out)["rows"]
    assert not row["equal_to_golden"]
    assert not row["pareto"]
    assert captured.err.endswith("RTL must equal the golden model, it differs in raw\n")


def test_front() -> None:
    areas = {"linear-16-12": 900.0, "table-256": 1500.0, "poly6-f14": 3000.0, "poly6-f14-softmax": 2000.0}
    rows = [study_row(name, area) for name, area in areas.items()]
    rows += [study_row("linear-16-12", 870.0, name="twin"), study_row("poly6-f16", 3100.0, monotone=False)]
    rows += [study_row("linear-8-10-bf16", 9000.0), study_row("poly6-serial", 9000.0)]
    mark_front(rows)
    front = {row["name"] for row in rows if row["pareto"]}
    # 3 % less area is not ranked; another format or layout, and a smaller domain, are matters of their own.
    assert front == {"linear-16-12", "twin", "poly6-f14", "poly6-f14-softmax", "linear-8-10-bf16", "poly6-serial"}
    assert combinational_units(rows) == {row["name"] for row in rows} - {"poly6-serial", "poly6-f16"}


def test_targets() -> None:
    tenth = study_row("linear-16-12", 931.0)
    found = target_rows([tenth, study_row("poly6-f14", 3000.0), study_row("poly6-f14-serial", 2071.0)])
    assert [entry["reached"] for entry in found] == ["within noise", "no", "no", "no", "no", "no"]
    assert found[0]["unit"] == "linear-16-12"
    assert [entry["reached_ge"] for entry in found] == [931.0, 3000.0, None, None, 3000.0, 2071.0]
    assert [pipe["area_ge"] for pipe in found[0]["pipelined"]] == [2 * 931.0 / clock for clock in (1.5, 3.0, 6.0)]
    assert target_units([tenth, study_row("poly6-f14", 3000.0)]) == {"linear-16-12", "poly6-f14"}
    assert target_rows([study_row("linear-16-12", 900.0)])[0]["reached"] == "yes"
    for change in ({"monotone": False}, {"specials": False}, {"equal_to_golden": False}, {"domain": "nonpositive"}):
        assert target_rows([tenth | change])[0]["unit"] is None


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)
def test_what_rounding_alone_does_downstream(fmt) -> None:
    found = downstream(rounded_exp(fmt), fmt, fmt)
    # A weight of at most 1 errs by its rounding and that of the sum it is divided by.
    assert found["softmax_max_error"] <= 2.0**-fmt.significand_bits
    assert found["argmax_kept"] and found["argmax_changed"] == 0
    if fmt is FP16:
        assert found["attention_max_over_fp16"] < 2
        assert found["attention_rms_over_fp16"] < 2


def test_a_unit_that_forgets_the_order_changes_the_argmax() -> None:
    results = rounded_exp(FP16).copy()
    results[0x8000] = results[0] = FP16.to_codes(0.5)
    found = downstream(results, FP16, FP16)
    assert not found["argmax_kept"]
    assert found["argmax_changed"] > 0


def test_csv_and_figure_from_rows(tmp_path: Path) -> None:
    names = ("linear-16-12", "poly6-f14", "poly6-serial", "poly3-f17-q1.15", "linear-8-10-bf16", "schraudolph-bf16")
    rows = [study_row(name, 600.0 + 300 * place) for place, name in enumerate(names)]
    mark_front(rows)
    read = list(csv.DictReader(to_csv(csv_rows(rows)).splitlines()))
    assert [row["name"] for row in read] == list(names)
    assert float(read[0]["pipelined_1.5ns_area_ge"]) == 800.0
    for name in ("a.png", "b.png"):
        exp_figure(rows, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with pytest.raises(ValueError, match="rows must not be empty"):
        exp_figure([], tmp_path / "c.png")
    with pytest.raises(ConfigError, match=r"a\.xyz: file must be of a format for figures"):
        exp_figure(rows, tmp_path / "a.xyz")


def test_labels_cover_neither_each_other_nor_points() -> None:
    figure = Figure(figsize=(6, 5))
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    points = [(1 + 0.03 * place, 1 + 0.02 * (place % 3)) for place in range(12)]
    axes.plot(*zip(*points, strict=True), "o", markersize=4)
    axes.set(xlim=(0.5, 2), ylim=(0.5, 2))
    figure.draw_without_rendering()
    place_labels(axes, [(x, y, f"a-unit-{place}") for place, (x, y) in enumerate(points)], points)
    canvas.draw()
    # The text's own extent: an annotation's would hold its line as well.
    boxes = [Text.get_window_extent(text, canvas.get_renderer()) for text in axes.texts]
    assert len(boxes) == 12
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    frame = axes.get_window_extent()
    for box in boxes:
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
        assert not any(box.contains(*axes.transData.transform(point)) for point in points)


def test_units_of_a_file() -> None:
    base, own, parts, fixed = parse_units(
        '[[unit]]\nname = "a"\nbase = "poly6"\nfmt = "bf16"\n'
        '[[unit]]\nname = "b"\nfamily = "polynomial"\ncoefficients = [4097, 2795, 1301]\nfrac_bits = 12\n'
        '[[unit]]\nname = "c"\nbase = "schraudolph-corrected-bf16"\ncorrection = {lower_constant = 364}\n'
        '[[unit]]\nname = "d"\nbase = "poly4-f18-q1.15"\nresult = "uq0.16"\n',
        where="units.toml",
    )
    softex = UNITS["schraudolph-corrected-bf16"]
    assert parts == softex.replace(name="c", correction=replace(softex.correction, lower_constant=364))
    assert fixed == UNITS["poly4-f18-q1.15"].replace(name="d", result=UQ0_16)
    assert base == POLY6.replace(name="a", fmt=BF16)
    assert own == POLY6.replace(name="b", coefficients=(4097, 2795, 1301), frac_bits=12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[unit]", "u.toml: units file must be TOML: "),
        ("", "u.toml: unit must be a list of tables [[unit]], not None"),
        ("unit = 3", "u.toml: unit must be a list of tables [[unit]], not 3"),
        ("units = 3", "u.toml: key must be a known name, not 'units'; nearest: unit"),
        ("[[unit]]", "u.toml: name of unit 1 must be a text, not None"),
        ('[[unit]]\nname = "a"', "u.toml: unit a: exactly one of family and base must be given, not ['name']"),
        ('[[unit]]\nname = "a"\nbase = "poly9"', "u.toml: unit a: base must be a known name, not 'poly9'; nearest: "),
        ('[[unit]]\nname = "a"\nfamily = "poly"', "u.toml: unit a: family must be a known name, not 'poly'; "),
        ('[[unit]]\nname = "a"\nbase = 3', "u.toml: unit a: base must be a known name, not '3'; "),
        ('[[unit]]\nname = "a"\nbase = "poly6"\nfrac = 3', "u.toml: unit a: key must be a known name, not 'frac'; "),
        (
            '[[unit]]\nname = "a"\nbase = "poly6"\nfmt = "fp17"',
            "u.toml: unit a: fmt must be a known name, not 'fp17'; ",
        ),
        ('[[unit]]\nname = "a"\nbase = "poly6"\nfmt = [1]', "u.toml: unit a: fmt must be a known name, not '[1]'; "),
        (
            '[[unit]]\nname = "a"\nfamily = "polynomial"',
            "u.toml: unit a: key coefficients must be present, it is missing",
        ),
        (
            '[[unit]]\nname = "a"\nbase = "poly6"\nfrac_bits = {a = 4}',
            "u.toml: unit a: frac_bits must not be a table, but where base has such parts",
        ),
        (
            '[[unit]]\nname = "a"\nbase = "schraudolph-corrected-bf16"\ncorrection = {low = 4}',
            "u.toml: unit a: correction: key must be a known name, not 'low'; nearest: lower",
        ),
        (
            '[[unit]]\nname = "a"\nbase = "poly6"\nfrac_bits = 4',
            "u.toml: unit a: frac_bits must be from 11 to 20, not 4",
        ),
        (
            '[[unit]]\nname = "a"\nbase = "poly6"\n[[unit]]\nname = "a"\nbase = "poly6"',
            "u.toml: name of unit 2 must be new, 'a' is unit 1",
        ),
    ],
)
def test_bad_units(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_units(text, where="u.toml")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study"], "the following arguments are required: NAME (see nearkv study --help)"),
        (["study", "exq"], "argument NAME: invalid choice: 'exq'"),
        (["study", "exp", "--jobs", "0"], "--jobs must be an integer from 1 to 999999999999, not '0'"),
        (["study", "exp", "--spec", "/no/such.toml"], "/no/such.toml: units file must be readable: No such file"),
        (["study", "exp", "--liberty", "/no/such.lib"], "--liberty: liberty file /no/such.lib can't be read: No such"),
        (["compare"], "the following arguments are required: NAME (see nearkv compare --help)"),
        (["compare", "exp-seed", "--liberty", "/"], "--liberty: liberty file / can't be read: Is a directory"),
    ],
)
def test_bad_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"nearkv: error: {message}")
