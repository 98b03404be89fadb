"""golden.exp.table against the correctly rounded oracle over all codes."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.fit.table import fit
from golden.exp.table import stepping
from golden.exp.table_units import TABLE_SPECS
from golden.formats import FP16
from tests.helpers.exp_families import CODES, Figures, check_contract, check_figures, figures
from tests.helpers.exp_oracle import exact_exp

BY_NAME = {spec.name: spec for spec in TABLE_SPECS}
TABLE = BY_NAME["table-64"]

# Largest relative error and share correctly rounded over every code with a normal result.
FIGURES = {
    "table-64": (5.80e-3, 0.229),
    "table-128": (3.15e-3, 0.275),
    "table-256": (1.79e-3, 0.375),
    "table-512": (1.13e-3, 0.589),
    "table-1024": (7.97e-4, 0.778),
    "table-64-bf16": (8.43e-3, 0.942),
    "table-128-bf16": (6.39e-3, 0.971),
}

each = pytest.mark.parametrize("spec", TABLE_SPECS, ids=BY_NAME)


@each
def test_figures_over_every_code_with_a_normal_result(spec):
    check_figures(spec, *FIGURES[spec.name])


@pytest.mark.parametrize(("name", "largest"), [("table-256", 1.96e-3), ("table-1024", 9.7e-4)])
def test_better_than_the_published_sweep_over_its_operands(name, largest):
    spec = BY_NAME[name]
    found = Figures(spec, within=np.abs(np.log(np.maximum(exact_exp(spec.fmt), 1e-300))) >= 2.0**-10)
    assert found.max_rel <= 0.95 * largest


@each
def test_contract(spec):
    check_contract(spec)


def test_contract_of_another_domain():
    check_contract(TABLE.replace(domain="nonpositive", subnormals="flushed"))


def test_every_result_is_an_entry():
    x = np.linspace(-5, 5, 999)
    codes = TABLE.evaluate_codes(FP16.to_codes(x))
    values = FP16.from_codes(codes).astype(np.float64)
    mantissas = values / 2.0 ** np.floor(np.log2(values))
    entries = np.floor(np.array(TABLE.table) / 4 + 0.5) / 1024  # ties up
    assert set(mantissas) <= set(entries)
    # The entry is the one whose number is nearest to t, to within the rounding of log2(e) and the cut of t.
    t = FP16.from_codes(FP16.to_codes(x)).astype(np.float64) * np.log2(np.e)
    distance = np.abs(np.log2(values) - np.rint(t * 64) / 64)
    far = np.abs(t * 64 - np.floor(t * 64) - 0.5) > 0.02
    assert distance[far].max() < 0.0015


@each
def test_float_model_has_only_the_error_of_the_method(spec):
    x = np.linspace(-30, 30, 20_001)
    relative = np.abs(spec.evaluate_float(x) / np.exp(x) - 1).max()
    # Half a step, and an entry up to a few units off the middle for the sake of rounded results.
    assert relative <= np.log(2) / (2 * spec.entries) + 2.0 ** -(spec.fmt.significand_bits + 1.5)
    assert relative >= 0.98 * np.tanh(np.log(2) / (2 * spec.entries))


@pytest.mark.parametrize("name", ["table-64", "table-256", "table-128-bf16"])
def test_shipped_entries_are_the_output_of_the_fit(name):
    spec = BY_NAME[name]
    start = stepping(
        name="start",
        entries=spec.entries,
        frac_bits=spec.frac_bits,
        table_bits=spec.table_bits,
        fmt=spec.fmt,
        rounding=spec.rounding,
    )
    found = fit(start)
    assert found.table == spec.table
    assert found.error == pytest.approx(figures(spec).max_rel, abs=1e-9)
    assert found.misrounded == pytest.approx((1 - figures(spec).correctly_rounded) * found.operands, abs=3)
    assert found.method_error == pytest.approx(np.log(2) / (2 * spec.entries), rel=1e-4)
    assert figures(spec).max_rel <= figures(start).max_rel


def test_an_entry_that_no_operand_chooses_is_kept_in_order():
    # In bf16 operands are so far apart that most of 1024 entries serve a few or none.
    start = stepping(name="start", entries=1024, frac_bits=12, table_bits=9, fmt=BY_NAME["table-64-bf16"].fmt)
    check_contract(start.replace(table=fit(start).table))


def test_parameters_of_a_row():
    assert dict(TABLE.parameters) == {"entries": 64, "frac_bits": 12, "table_bits": 12}
    assert (TABLE.family, TABLE.steps, TABLE.latency_cycles) == ("table", 6, 0)


def test_shapes_are_kept():
    assert TABLE.evaluate_codes(CODES.reshape(256, 256)).shape == (256, 256)
    assert TABLE.evaluate_codes([]).shape == (0,)


def table_with(k, entry):
    return (*TABLE.table[:k], entry, *TABLE.table[k + 1 :])


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"table": list(TABLE.table)}, TypeError, "table must be a tuple"),
        ({"table": TABLE.table[:48]}, ValueError, "entries must be a power of two from 64 to 1024, not 48"),
        ({"table": TABLE.table[:32]}, ValueError, "entries must be a power of two from 64 to 1024, not 32"),
        ({"table": TABLE.table * 32}, ValueError, "entries must be a power of two from 64 to 1024, not 2048"),
        ({"table_bits": 10}, ValueError, "table_bits must be from 11 to 24, not 10"),
        ({"table": table_with(7, 4095)}, ValueError, r"table\[7\] must be from 4096 to 8191, not 4095"),
        ({"table": table_with(7, 8192)}, ValueError, r"table\[7\] must be from 4096 to 8191, not 8192"),
        ({"table": table_with(7, 4400.0)}, TypeError, r"table\[7\] must be an integer, not 4400\.0"),
        (
            {"table": table_with(7, 4096)},
            ValueError,
            r"table\[7\] must be at least \d+, the entry before, so that the result is monotone, not 4096",
        ),
        ({"table": table_with(0, 4098)}, ValueError, r"table\[0\] must be from 4096 to 4097 .*, not 4098"),
    ],
)
def test_bad_specs(changes, error, text):
    with pytest.raises(error, match=text):
        TABLE.replace(**changes)


def test_too_few_bits_for_the_entries():
    text = "frac_bits must be at least 9 to round to one of 256 entries, not 8"
    with pytest.raises(ValueError, match=text):
        stepping(name="short", entries=256, frac_bits=8, table_bits=9, fmt=BY_NAME["table-64-bf16"].fmt)
