# amaranth: UnusedElaboratable=no
"""hw.heap in Amaranth's simulator, against Python integers."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Const, Module, Signal, signed, unsigned
from amaranth.sim import Simulator

from hw.heap import Heap, HeapCost

ORDERS = ("ripple", "dadda")


def simulate(inputs, total, vectors):
    """Return the value of ``total`` for each tuple of input values."""
    m, value = total
    result, found = Signal(len(value)), []
    m.d.comb += result.eq(value)

    async def testbench(context):
        for vector in vectors:
            for signal, value in zip(inputs, vector, strict=True):
                context.set(signal, value)
            await context.delay(1e-9)
            found.append(context.get(result))

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    return found


def vectors_of(inputs, count, seed):
    """Return extremes and random values of each input."""
    rng = random.Random(seed)
    spans = []
    for signal in inputs:
        shape = signal.shape()
        low = -(1 << shape.width - 1) if shape.signed else 0
        spans.append((low, low + (1 << shape.width) - 1))
    ends = [tuple(span[side] for span in spans) for side in (0, 1)]
    return ends + [tuple(rng.randint(*span) for span in spans) for _ in range(count)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(6))
def test_sum_of_random_rows(order, seed):
    rng = random.Random(seed)
    m, lowest, heap = Module(), -5, Heap(-5)
    inputs, rows = [], []
    for index in range(rng.randint(1, 9)):
        bits, weight = rng.randint(1, 9), rng.randint(-9, 3)
        inputs.append(Signal(signed(bits) if rng.random() < 0.5 else unsigned(bits), name=f"x{index}"))
        kind = rng.choice(("add", "subtract", "ones"))
        rows.append((kind, weight))
        if kind == "add":
            heap.add(inputs[-1], weight)
        else:
            heap.subtract(inputs[-1], weight, ones=kind == "ones")
    constants = [(rng.randint(-99, 99), rng.randint(-5, 3)) for _ in range(2)]
    for constant in constants:
        heap.add_constant(*constant)
    width = rng.randint(1, 14)
    total = heap.sum(m, width, order=order)
    vectors = vectors_of(inputs, 40, seed)

    def shifted(value, weight):
        return value << weight - lowest if weight >= lowest else value >> lowest - weight

    expected = []
    for vector in vectors:
        value = sum(shifted(*constant) for constant in constants)
        for x, (kind, weight) in zip(vector, rows, strict=True):
            if kind == "add":
                value += shifted(x, weight)
            else:
                # Inverted, cut, and only then is the 1 of two's complement added, if it has a place at all.
                value += shifted(-x - 1, weight) + (shifted(1, weight) if kind == "subtract" else 0)
        expected.append(value % (1 << width))
    assert simulate(inputs, (m, total), vectors) == expected


@pytest.mark.parametrize("order", ORDERS)
def test_multiplier(order):
    a, b, m, heap = Signal(6), Signal(6), Module(), Heap()
    for position, bit in enumerate(b):
        heap.add(a & bit.replicate(6), position)
    assert heap.heights == {w: min(w + 1, 11 - w) for w in range(11)}
    total = heap.sum(m, 12, order=order)
    vectors = vectors_of((a, b), 100, 1)
    assert simulate((a, b), (m, total), vectors) == [x * y for x, y in vectors]
    # n (n - 2) full adders and n half adders; a Dadda tree leaves 2 n - 2 of them to the addition.
    adders = heap.cost.full_adders + heap.cost.half_adders
    assert adders == {"ripple": 30, "dadda": 20}[order]
    assert heap.cost.full_ones == heap.cost.half_ones == 0


def test_tree_is_shallower_than_ripple():
    depths = {}
    for order in ORDERS:
        m, heap = Module(), Heap()
        for index in range(9):
            heap.add(Signal(8, name=f"x{index}"))
        heap.sum(m, 12, order=order)
        depths[order] = heap.cost.depth
    # 9 rows, at most 6, 4, 3, 2.
    assert depths == {"ripple": 12, "dadda": 4}


def test_constants_cost_no_full_adder():
    x, m, heap = Signal(4), Module(), Heap()
    heap.add(x)
    heap.add_constant(3)
    heap.add_constant(2)
    total = heap.sum(m, 4)
    # 0101 on four bits: an inverter, a half adder, an XNOR with an OR, a half adder.
    assert heap.cost == HeapCost(half_adders=2, full_ones=1, half_ones=1, depth=3)
    assert heap.cost.gate_equivalents == 3 * 3.25 + 0.75
    assert simulate((x,), (m, total), [(n,) for n in range(16)]) == [(n + 5) % 16 for n in range(16)]


def test_nothing_and_a_bit():
    m, heap = Module(), Heap(-2)
    assert simulate((), (m, heap.sum(m, 3)), [()]) == [0]
    assert heap.cost == HeapCost()
    m, bit = Module(), Signal()
    heap.add_bit(bit, -3)  # dropped
    heap.add_bit(bit, 0)
    assert simulate((bit,), (m, heap.sum(m, 3)), [(1,)]) == [4]


def test_refusals():
    heap = Heap()
    with pytest.raises(ValueError, match="bit must be 1 bit wide, not 2"):
        heap.add_bit(Const(3, 2), 0)
    with pytest.raises(ValueError, match="order must be one of ripple, dadda, not 'tree'"):
        heap.sum(Module(), 4, order="tree")
