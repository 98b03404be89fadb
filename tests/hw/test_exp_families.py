# amaranth: UnusedElaboratable=no
"""The datapaths of the piecewise, table, Schraudolph and direct exponentials in Amaranth's simulator."""

from __future__ import annotations

import pytest
from amaranth.hdl import Module, Signal

from golden.exp.direct import DIRECT_SPECS
from golden.exp.schraudolph import SCHRAUDOLPH_SPECS
from golden.exp.segment_units import SEGMENT_SPECS
from golden.exp.table_units import TABLE_SPECS
from hw.units.exp import ExpUnit, datapath
from hw.units.exp.lookup import lookup
from tests.helpers.exp_bench import run_back_to_back, run_stalled
from tests.helpers.pysim import run_pysim

SPECS = {spec.name: spec for spec in (*SEGMENT_SPECS, *TABLE_SPECS, *SCHRAUDOLPH_SPECS, *DIRECT_SPECS)}
CHOSEN = (
    "linear-8-12",
    "linear-8-10-bf16",
    "quadratic-2-12",
    "quadratic-4-14",
    "table-64",
    "table-64-bf16",
    "schraudolph",
    "schraudolph-offset-bf16",
    "schraudolph-corrected-bf16",
    "schraudolph-corrected-14",
    "direct-6-8",
    "taylor-6-2",
)

each = pytest.mark.parametrize("name", CHOSEN)


def codes_for(spec, count):
    """Return ``count`` codes of both signs: ends of ranges, and a spread over all exponents."""
    fmt = spec.fmt
    ends = [0, 1, 1 << fmt.significand_bits, fmt.one_code, fmt.inf_code - 1, fmt.inf_code, fmt.inf_code + 1]
    magnitudes = [*ends, fmt.sign_mask - 1, *range(77, fmt.inf_code, 2 * fmt.inf_code // count)]
    return [magnitude | sign for magnitude in magnitudes for sign in (0, fmt.sign_mask)]


def simulate(spec, scenario, *arguments):
    async def run(bench):
        await scenario(bench, spec, *arguments)

    run_pysim(ExpUnit(spec), run)


@each
@pytest.mark.parametrize("layout", ["pipelined", "registers"])
def test_layouts_with_a_clock(name, layout):
    spec = SPECS[name].replace(evaluation="pipelined", registers=2 if layout == "registers" else 0)
    simulate(spec, run_back_to_back, codes_for(spec, 150))


@each
def test_combinational(name):
    # The bench has a clock of its own.
    spec = SPECS[name]
    assert spec.evaluation == "combinational"
    simulate(spec, run_back_to_back, codes_for(spec, 150))


@pytest.mark.parametrize("name", ["quadratic-2-12", "taylor-6-2"])
def test_idles_and_back_pressure(name):
    spec = SPECS[name].replace(evaluation="pipelined")
    simulate(spec, run_stalled, codes_for(spec, 60), 0.3, 0.3)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("linear-8-12", {"domain": "nonpositive", "subnormals": "flushed"}),
        ("table-64", {"domain": "nonpositive", "rounding": "nearest_even"}),
        ("schraudolph-offset", {"domain": "nonpositive", "subnormals": "flushed"}),
    ],
)
def test_other_domains(name, changes):
    spec = SPECS[name].replace(**changes)
    simulate(spec, run_back_to_back, codes_for(spec, 150))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_one_step_a_stage(spec):
    assert len(datapath(spec)) == spec.steps


def test_lookup_takes_an_index_of_all_entries():
    m = Module()
    assert len(lookup(m, Signal(2), [0, 1, 2, 9], name="t")) == 4
    assert len(lookup(m, Signal(1), [0, 0], name="t")) == 1
    with pytest.raises(ValueError, match="index must choose among 3 entries, not 4"):
        lookup(m, Signal(2), [0, 1, 2], name="t")
