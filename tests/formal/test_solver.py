# amaranth: UnusedElaboratable=no
"""Promise: what the solvers say is true of a circuit whose answers are known, and a run they find can be read."""

from __future__ import annotations

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.interface.window import Window
from hw.toolchain import ToolError
from tests.formal import proofs, solver
from tests.formal.bench import Bench
from tests.formal.proofs import Proof, mutant, prove
from tests.formal.replay import replay
from tests.formal.scoreboard import in_order

LAST = 6


class Counter(wiring.Component):
    """Counts up to 6 and stays, where ``up`` is high; the reset takes it back."""

    def __init__(self) -> None:
        super().__init__({"up": In(1), "value": Out(3)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.value.eq(self.value + (self.up & (self.value != LAST)))
        return m


class Register(wiring.Component):
    """A stream through one register."""

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(4)), "o": Out(stream.Signature(4))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        return m


def counted(limit: int, *, forbidden: bool = False) -> Bench:
    counter = Counter()
    bench = Bench(counter)
    up = bench.free("up")
    bench.m.d.comb += counter.up.eq(up)
    if forbidden:
        bench.assume(~up | (counter.value < 2))
    bench.claim("below", counter.value < limit)
    return bench


def check(bench: Bench, **limits: int) -> solver.Outcome:
    return solver.check(solver.graph(*bench.finish()), 0, **limits)


def test_a_claim_that_always_holds_is_proven():
    outcome = check(counted(LAST + 1), cycles=3, seconds=20)
    assert outcome.result == "proven"


def test_a_claim_that_fails_late_holds_up_to_the_bound():
    # 5 is there after five steps up, so in the sixth cycle of a run.
    outcome = check(counted(5), cycles=5, seconds=0)
    assert (outcome.result, outcome.cycles) == ("bounded", 5)


@pytest.mark.parametrize("seconds", [0, 20])
def test_the_shortest_run_is_found(seconds):
    outcome = check(counted(5), cycles=9, seconds=seconds)
    assert (outcome.result, outcome.cycles) == ("fails", 6)
    assert [cycle["up"] for cycle in outcome.inputs[:5]] == [1] * 5
    assert [cycle["rst"] for cycle in outcome.inputs[:5]] == [0] * 5


def test_what_is_assumed_holds_over_resets():
    # With no step up from 2 on, 3 is never there, resets or not.
    assert check(counted(3, forbidden=True), cycles=4, seconds=20).result == "proven"
    assert check(counted(2, forbidden=True), cycles=4, seconds=20).result == "fails"


def test_a_run_is_read_and_fails_in_the_simulator_too(tmp_path):
    outcome = check(counted(2), cycles=4, seconds=0)
    shown = replay(counted(2), "below", outcome.inputs, tmp_path / "run.vcd")
    assert shown.confirmed
    lines = [line.split() for line in shown.table.splitlines()]
    assert lines[0] == ["cycle", "0", "1", "2"]
    assert lines[1][:3] == ["up", "1", "1"]
    assert lines[2][:3] == ["rst", "0", "0"]
    assert "$enddefinitions" in (tmp_path / "run.vcd").read_text()


def test_a_run_that_does_not_fail_is_not_confirmed(tmp_path):
    assert not replay(counted(2), "below", [{"up": 1}, {"up": 0}], tmp_path / "run.vcd").confirmed


def flow(*, doubled: bool = False, lost: bool = False, changed: bool = False) -> Bench:
    """Return a register, or what would be seen of one that does not do its work."""
    register = Register()
    bench = Bench(register)
    i, o = bench.source("i", register.i), bench.sink("o", register.o)
    odd = Signal()
    with bench.m.If(o.go):
        bench.m.d.sync += odd.eq(~odd)
    in_order(
        bench,
        "order",
        capacity=1,
        pushed=[i.payload],
        push=i.go,
        popped=[Mux(odd, o.payload ^ 8, o.payload) if changed else o.payload],
        pop=o.valid if doubled else o.go & ~(odd & lost),
    )
    return bench


@pytest.mark.parametrize(
    ("fault", "result"),
    [({}, "proven"), ({"doubled": True}, "fails"), ({"lost": True}, "fails"), ({"changed": True}, "fails")],
    ids=["none", "doubled", "lost", "changed"],
)
def test_the_scoreboard_tells_faults_from_none(fault, result):
    bench = flow(**fault)
    number = list(bench.claims).index("order")
    assert solver.check(solver.graph(*bench.finish()), number, cycles=6, seconds=20).result == result


def test_items_of_two_widths_are_refused():
    bench = Bench(Register())
    with pytest.raises(ValueError, match=r"items must have one width, not \[4, 3\]"):
        in_order(bench, "order", capacity=1, pushed=[Signal(4)], push=1, popped=[Signal(3)], pop=1)


def test_the_second_run_takes_what_the_first_found(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path))
    proof = Proof(block="counter", parameters="3 bits", bench=lambda: counted(LAST + 1), cycles=3)
    (bounded,) = prove(proof)
    (proven,) = prove(proof, seconds=20)
    assert (bounded.outcome.result, proven.outcome.result) == ("bounded", "proven")
    monkeypatch.setattr(proofs.solver, "check", lambda *_, **__: pytest.fail("searched once more"))
    assert list(prove(proof)) == list(prove(proof, seconds=300)) == [proven]
    assert proven.to_dict()["method"].startswith("induction, k = 1")
    assert bounded.to_dict()["method"] == "bounded, n = 3"


def test_a_wider_bound_is_searched_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path))
    proof = Proof(block="counter", parameters="3 bits", bench=lambda: counted(5), cycles=3)
    found = [next(prove(proof, cycles=cycles)).outcome for cycles in (3, 5, 4, 8, 9)]
    # A wider search answers a narrower one; 5 is reached in the sixth cycle.
    assert [(outcome.result, outcome.cycles) for outcome in found] == [
        ("bounded", 3),
        ("bounded", 5),
        ("bounded", 5),
        ("fails", 6),
        ("fails", 6),
    ]


def test_a_claim_without_invariant_is_only_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path))
    bounded = frozenset({"below"})
    proof = Proof(block="counter", parameters="3 bits", bench=lambda: counted(7), cycles=4, bounded=bounded)
    (finding,) = prove(proof, seconds=20)
    assert (finding.outcome.result, finding.outcome.cycles, finding.outcome.limit_seconds) == ("bounded", 4, 0)


def test_a_mutation_that_meets_nothing_is_refused():
    with pytest.raises(ValueError, match=r"before must be once in window\.py, not 0 times"):
        mutant(Window, "no such text", "")
    assert mutant(Window, "kept <= self.capacity", "kept < self.capacity") is not Window


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(solver.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match=r"proofs need the Python package pyosys: pip install pyosys==0\.70"):
        solver.check(b"", 0, cycles=1, seconds=0)


def test_tools_that_fail_say_so(monkeypatch):
    with pytest.raises(solver.SolverError, match="ABC"):
        solver.check(b"no graph", 0, cycles=1, seconds=0)
    monkeypatch.setattr(solver, "_FLOW", "no_such_command\n")
    with pytest.raises(solver.SolverError, match=r"Yosys makes no graph: .*no_such_command"):
        solver.graph(*counted(2).finish())
