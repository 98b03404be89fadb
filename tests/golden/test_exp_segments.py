"""golden.exp.segments against the correctly rounded oracle over all codes, and against its definition in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp.fit.segments import fit
from golden.exp.segment_units import SEGMENT_SPECS
from golden.exp.segments import interpolating
from golden.formats import BF16
from tests.helpers.exp_families import CODES, Figures, check_contract, check_figures, figures
from tests.helpers.exp_oracle import exact_exp

BY_NAME = {spec.name: spec for spec in SEGMENT_SPECS}
LINE = BY_NAME["linear-16-12"]
PARABOLA = BY_NAME["quadratic-4-12"]

# Largest relative error and share correctly rounded over every code with a normal result; then the same of a published
# sweep of such units, which were fitted by least squares, over those with |x| >= 2^-10 (mostly a little easier).
FIGURES = {
    "linear-4-12": (3.08e-3, 0.389, None),
    "linear-8-12": (1.14e-3, 0.717, None),
    "linear-8-14": (1.13e-3, 0.700, (9.3e-4, 0.572)),
    "linear-16-12": (6.64e-4, 0.908, (8.0e-4, 0.846)),
    "linear-16-14": (6.43e-4, 0.931, (6.2e-4, 0.895)),
    "linear-32-14": (5.20e-4, 0.978, (5.4e-4, 0.957)),
    "linear-64-14": (5.17e-4, 0.985, (5.4e-4, 0.961)),
    "linear-64-16": (4.93e-4, 0.996, None),
    "linear-4-10-bf16": (5.81e-3, 0.978, None),
    "linear-8-10-bf16": (4.39e-3, 0.994, None),
    "quadratic-2-12": (7.41e-4, 0.819, None),
    "quadratic-2-14": (6.90e-4, 0.820, None),
    "quadratic-4-12": (6.54e-4, 0.925, (7.0e-4, 0.871)),
    "quadratic-4-14": (5.14e-4, 0.974, (5.6e-4, 0.956)),
    "quadratic-8-14": (5.14e-4, 0.984, (5.3e-4, 0.967)),
    "quadratic-8-16": (4.98e-4, 0.995, (5.0e-4, 0.990)),
    "quadratic-16-16": (4.98e-4, 0.996, None),
}

each = pytest.mark.parametrize("spec", SEGMENT_SPECS, ids=BY_NAME)


@each
def test_figures_over_every_code_with_a_normal_result(spec):
    largest, share, _ = FIGURES[spec.name]
    check_figures(spec, largest, share)


@pytest.mark.parametrize("name", [name for name, row in FIGURES.items() if row[2]])
def test_more_results_are_right_than_in_the_published_sweep(name):
    spec = BY_NAME[name]
    largest, share = FIGURES[name][2]
    found = Figures(spec, within=np.abs(np.log(np.maximum(exact_exp(spec.fmt), 1e-300))) >= 2.0**-10)
    assert found.correctly_rounded >= share
    # With few segments exp(0) = 1 and monotony hold the first and the last from their best place.
    assert found.max_rel <= largest * (1.25 if spec.segments < 16 and spec.degree == 1 else 1.04)


@each
def test_contract(spec):
    check_contract(spec)


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        (LINE, {"domain": "nonpositive"}),
        (LINE, {"subnormals": "flushed"}),
        (PARABOLA, {"domain": "nonpositive", "subnormals": "flushed", "rounding": "nearest_even"}),
    ],
)
def test_contract_of_other_domains(spec, changes):
    check_contract(spec.replace(**changes))


def in_fractions(spec, f):
    """Return 2^f of an integer f as the Notes of SegmentSpec say, in exact arithmetic."""
    place = spec.frac_bits - int(math.log2(len(spec.tables[0])))
    s, u = divmod(f, 2**place)
    h = Fraction(spec.tables[-1][s], 2 ** spec.table_bits[-1])
    for k in reversed(range(len(spec.tables) - 1)):
        dropped = place - spec.operand_bits[k]
        leading = Fraction(u // 2**dropped * 2**dropped, 2**spec.frac_bits)
        unit = 2 ** spec.table_bits[k]
        h = Fraction(math.floor(h * leading * unit) + spec.tables[k][s], unit)
    return h


@pytest.mark.parametrize("spec", [LINE, PARABOLA, BY_NAME["quadratic-8-16"], BY_NAME["linear-8-10-bf16"]])
def test_definition_in_exact_fractions(spec):
    f = np.unique(np.concatenate((np.arange(0, 1 << spec.frac_bits, 37), (1 << spec.frac_bits) - 1 - np.arange(9))))
    assert [Fraction(h, 2**spec.core_bits) for h in spec.core(f).tolist()] == [
        in_fractions(spec, k) for k in f.tolist()
    ]


@each
def test_float_model_has_only_the_error_of_the_method(spec):
    x = np.linspace(-30, 30, 20_001)
    error = np.abs(spec.evaluate_float(x) / np.exp(x) - 1).max()
    # A line over the width w = 1 / segments errs by (w ln 2)^2 / 16 at best, a parabola by (w ln 2)^3 / 192; ends that
    # must meet cost up to three times that, and an entry of the constant table up to one unit.
    width = np.log(2) / spec.segments
    method = width**2 / 16 if spec.degree == 1 else width**3 / 192
    assert error <= 3 * method + 1.5 * 2.0**-spec.core_bits


def test_limits_are_reached():
    for spec in (LINE, PARABOLA):
        last = ((np.arange(spec.segments) + 1) << spec.place_bits) - 1
        assert spec.limits[0] == tuple(spec.core(last).tolist())


@pytest.mark.parametrize("name", ["linear-16-12", "linear-8-10-bf16", "quadratic-4-12"])
def test_shipped_tables_are_the_output_of_the_fit(name):
    spec = BY_NAME[name]
    start = interpolating(
        name="start",
        segments=spec.segments,
        degree=spec.degree,
        frac_bits=spec.frac_bits,
        fmt=spec.fmt,
        rounding=spec.rounding,
    )
    found = fit(start)
    assert found.tables == spec.tables
    assert found.error == pytest.approx(figures(spec).max_rel, abs=1e-9)
    wrong = (1 - figures(spec).correctly_rounded) * found.operands
    assert found.misrounded == pytest.approx(wrong, abs=3)
    width = np.log(2) / spec.segments
    assert found.minimax_error == pytest.approx(width**2 / 16 if spec.degree == 1 else width**3 / 192, rel=0.05)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("segments", [2, 4, 8, 16, 32, 64])
def test_interpolating_units_work_and_a_fit_beats_them(segments, degree):
    naive = interpolating(name="naive", segments=segments, degree=degree, frac_bits=13)
    check_contract(naive)
    fitted = naive.replace(tables=fit(naive).tables)
    assert figures(fitted).max_rel <= figures(naive).max_rel
    # The largest error comes first: of very coarse segments fewer results are right for it.
    if segments > 8 or degree == 2:
        assert figures(fitted).correctly_rounded >= figures(naive).correctly_rounded - 0.01


def test_parameters_of_a_row():
    assert dict(PARABOLA.parameters) == {
        "segments": 4,
        "degree": 2,
        "frac_bits": 12,
        "c0_bits": 12,
        "c1_bits": 12,
        "c2_bits": 10,
    }
    assert (LINE.family, LINE.steps, LINE.latency_cycles, LINE.interval_cycles) == ("segments", 6, 0, 1)
    assert PARABOLA.replace(evaluation="pipelined").latency_cycles == 7


def test_shapes_are_kept():
    assert LINE.evaluate_codes(np.zeros((2, 3), np.uint16)).shape == (2, 3)
    assert LINE.evaluate_codes([]).shape == (0,)
    assert PARABOLA.evaluate_codes(CODES.reshape(256, 256)).shape == (256, 256)


def line_with(s, entry):
    """Return the constants of LINE with another entry."""
    return ((*LINE.tables[0][:s], entry, *LINE.tables[0][s + 1 :]), LINE.tables[1])


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"tables": list(LINE.tables)}, TypeError, "tables must be a tuple"),
        ({"operand_bits": 8}, TypeError, "operand_bits must be a tuple, not 8"),
        ({"tables": LINE.tables[:1]}, ValueError, r"tables must number 2 \(linear\) or 3 \(quadratic\), not 1"),
        ({"table_bits": (12,)}, ValueError, "table_bits must number 2, one a table, not 1"),
        ({"operand_bits": (8, 8)}, ValueError, "operand_bits must number 1, one a product, not 2"),
        (
            {"tables": tuple(table[:12] for table in LINE.tables)},
            ValueError,
            "segments must be a power of two from 2 to 64, so that leading bits of f choose one, not 12",
        ),
        ({"tables": tuple(t[:1] for t in LINE.tables)}, ValueError, "segments must be a power of two .*, not 1"),
        ({"tables": tuple(8 * t for t in LINE.tables)}, ValueError, "segments must be a power of two .*, not 128"),
        (
            {"tables": (LINE.tables[0], LINE.tables[1][:8])},
            ValueError,
            r"tables\[1\] must have 16 entries, one a segment, not 8",
        ),
        ({"tables": line_with(3, -1)}, ValueError, r"tables\[0\]\[3\] must be from 0 to 8191, not -1"),
        ({"tables": line_with(3, 0.5)}, TypeError, r"tables\[0\]\[3\] must be an integer, not 0\.5"),
        ({"table_bits": (10, 10)}, ValueError, r"table_bits\[0\] must be from 11 to 28, not 10"),
        ({"operand_bits": (9,)}, ValueError, r"operand_bits\[0\] must be from 1 to 8, not 9"),
        (
            {"operand_bits": (1,), "table_bits": (12, 1), "tables": (LINE.tables[0], (0,) * 16)},
            ValueError,
            r"table_bits\[0\] must be at most 6, the fraction bits of the product that is added, not 12",
        ),
        ({"tables": line_with(0, 4095)}, ValueError, r"tables\[0\]\[0\] must be from 4096 to 4097 .*, not 4095"),
        ({"tables": line_with(0, 4098)}, ValueError, r"tables\[0\]\[0\] must be from 4096 to 4097 .*, not 4098"),
        (
            {"tables": line_with(5, LINE.limits[0][4] - 1)},
            ValueError,
            r"tables\[0\]\[5\] must be at least \d+, where the segment before ends, so that .* monotone, not \d+",
        ),
        (
            {"tables": line_with(15, 7900)},
            ValueError,
            r"the last segment must stay below 8192, it reaches \d+",
        ),
        ({"frac_bits": 10}, ValueError, "frac_bits must be from 11 to"),
        ({"evaluation": "serial"}, ValueError, "evaluation must be one of combinational, pipelined, not 'serial'"),
    ],
)
def test_bad_specs(changes, error, text):
    with pytest.raises(error, match=text):
        LINE.replace(**changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"degree": 3}, r"degree must be 1 \(linear\) or 2 \(quadratic\), not 3"),
        (
            {"segments": 24},
            "segments must be a power of two from 2 to 64, so that leading bits of f choose one, not 24",
        ),
        ({"fmt": BF16, "frac_bits": 7}, "frac_bits must be from 8 to"),
    ],
)
def test_bad_interpolating_units(changes, text):
    with pytest.raises(ValueError, match=text):
        interpolating(**{"name": "bad", "segments": 16, "degree": 1, "frac_bits": 12, **changes})
