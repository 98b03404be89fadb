"""Operations for the processing unit: made, packed, and checked against the golden model and the timing formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.attention import local_state
from golden.formats import FP16, FP32
from golden.numerics import unit_numerics
from hw.layouts import body_layout, command_layout, head_layout
from hw.timing.processing import kv_vectors, predict
from tests.helpers.floats import random_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from golden.partial import PartialState
    from hw.params import ProcessingParams
    from tests.helpers.streams import StreamBench

__all__ = [
    "KINDS",
    "Operation",
    "State",
    "check_cycles",
    "check_states",
    "make_operation",
    "offer",
    "run",
    "sizes",
    "stimulus",
    "unpack",
]

STREAMS = ("command", "query", "kv", "head", "body")


@dataclass(frozen=True)
class Operation:
    """One operation in codes: q (head_dim,), k and v (num_tokens, head_dim), and the fp32 scale."""

    op_id: int
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: np.float32

    @property
    def num_tokens(self):
        return len(self.k)

    def expected(self, params: ProcessingParams) -> PartialState:
        """State of shape (1,) by the bit-exact golden model."""
        numerics = unit_numerics(params.exp, lanes=params.lanes, tile_tokens=params.tile_tokens)
        q, k, v = (FP16.from_codes(codes) for codes in (self.q, self.k, self.v))
        return local_state(q[None], k[:, None], v[:, None], float(self.scale), numerics)


@dataclass(frozen=True)
class State:
    """What the unit sent: the head's fields and the codes of o, None if no body follows."""

    op_id: int
    empty: int
    fault: int
    m: int
    l: int
    o: np.ndarray | None


def _normal(rng, params, n):
    return rng.normal(size=(n, params.head_dim)) * 2, rng.normal(size=(n, params.head_dim))


def _scores(rng, params, scores):
    """Keys whose scores with q = 1 are ``scores``: the first element carries them."""
    k = np.zeros((len(scores), params.head_dim))
    k[:, 0] = np.asarray(scores) * params.head_dim**0.5
    return np.ones(params.head_dim), k, rng.normal(size=k.shape)


def make_operation(params: ProcessingParams, rng: np.random.Generator, n: int, kind: str, op_id: int = 0) -> Operation:
    """Return an operation of ``n`` tokens; ``kind`` is one of :data:`KINDS`."""
    scale = np.float32(params.head_dim**-0.5)
    q = rng.normal(size=params.head_dim) * 2
    k, v = _normal(rng, params, n)
    match kind:
        case "normal":
            pass
        case "eighty":
            q, k, v = _scores(rng, params, rng.choice([-80.0, 80.0, -79.5, 79.0], n))
        case "equal":
            q, k, v = _scores(rng, params, np.full(n, 3.25))
        case "one far above":
            scores = rng.normal(size=n)
            scores[rng.integers(n) if n else slice(0)] = 70.0
            q, k, v = _scores(rng, params, scores)
        case "rising":  # every tile rescales
            q, k, v = _scores(rng, params, np.arange(n) * 0.75)
        case "largest":  # q.k = 65504^2 * head_dim: 11,585 times what fp16 holds
            q, k = np.full(params.head_dim, FP16.max_finite), np.full((n, params.head_dim), FP16.max_finite)
            k[rng.integers(0, 2, n) == 1] *= -1
        case "subnormal":
            tiny = 2.0**-24
            q = np.where(rng.integers(0, 2, q.shape) == 1, q * tiny * 100, q)
            k, v = np.round(k * 50) * tiny, np.round(v * 50) * tiny
        case "zero":
            q, k, v = np.zeros_like(q), -np.zeros_like(k), -np.zeros_like(v)
        case "any code":
            codes = [random_codes(FP16, count, rng) for count in (params.head_dim, k.size, v.size)]
            return Operation(op_id, codes[0], codes[1].reshape(k.shape), codes[2].reshape(v.shape), scale)
        case "special":  # a few infinities and NaNs among ordinary numbers
            for array in (k, v):
                places = rng.random(array.shape) < 0.3 / params.head_dim
                array[places] = rng.choice([np.inf, -np.inf, np.nan], array.shape)[places]
        case _:
            raise ValueError(f"kind must be one of {KINDS}, not {kind!r}")
    return Operation(op_id, *(FP16.to_codes(array) for array in (q, k, v)), scale)


KINDS = (
    "normal",
    "eighty",
    "equal",
    "one far above",
    "rising",
    "largest",
    "subnormal",
    "zero",
    "any code",
    "special",
)


def sizes(params: ProcessingParams) -> list[int]:
    """Token counts around every border: empty, one, two, a tile, two tiles, a few tiles and a rest."""
    tile = params.tile_tokens
    return [1, 0, 2, max(tile - 1, 1), tile, 1, tile + 1, 2 * tile, 0, 2 * tile + 1, 3 * tile, 3 * tile + 5, 1]


def _beats(params, codes):
    rows = np.ascontiguousarray(codes, dtype="<u2").reshape(-1, params.lanes)
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def stimulus(params: ProcessingParams, operations: Sequence[Operation]) -> dict[str, list[int]]:
    """Payloads of the three input streams."""
    layout = command_layout(params)
    payloads = {"command": [], "query": [], "kv": []}
    for op in operations:
        fields = {"op_id": op.op_id, "num_tokens": op.num_tokens, "scale": int(FP32.to_codes(op.scale))}
        payloads["command"].append(layout.const(fields).as_value().value)
        payloads["query"] += _beats(params, op.q)
        payloads["kv"] += _beats(params, kv_vectors(params.tile_tokens, op.k, op.v))
    return payloads


def unpack(params: ProcessingParams, heads: Sequence[int], bodies: Sequence[int]) -> list[State]:
    """States out of the payloads of the two output streams; ``last`` must end every body."""
    layout, beats = head_layout(params), iter(bodies)
    states = []
    for payload in heads:
        head = layout.from_bits(payload)
        o = None if head.empty else _body(params, beats)
        states.append(State(head.op_id, head.empty, head.fault, head.m, head.l, o))
    assert next(beats, None) is None, "no body beat may be left over"
    return states


def _body(params, beats):
    bits = params.state_format.bits * params.lanes
    assert body_layout(params).size == bits + 1
    words = []
    for index in range(params.beats):
        payload = next(beats)
        assert payload >> bits == (index == params.beats - 1), "last must mark the last beat and no other"
        words.append((payload & ((1 << bits) - 1)).to_bytes(bits // 8, "little"))
    return np.frombuffer(b"".join(words), dtype="<u4")


def offer(bench: StreamBench, params: ProcessingParams, operations: Sequence[Operation], *, idle: float = 0.0) -> None:
    """Queue everything; ``idle`` is the probability of offering nothing, on all inputs."""
    for name, payloads in stimulus(params, operations).items():
        bench.send(name, payloads, idle=idle)


async def run(bench: StreamBench, params: ProcessingParams, operations: Sequence[Operation]) -> None:
    """Advance until every state is out."""
    bodies = params.beats * sum(op.num_tokens > 0 for op in operations)
    await bench.until(head=len(operations), body=bodies, timeout_cycles=200_000)


def check_states(params: ProcessingParams, operations: Sequence[Operation], states: Sequence[State]) -> None:
    """Demand the golden model's states, bit for bit."""
    assert len(states) == len(operations)
    for number, (op, state) in enumerate(zip(operations, states, strict=True)):
        what = f"operation {number} of {op.num_tokens} tokens"
        assert (state.op_id, state.fault) == (op.op_id, 0), what
        assert state.empty == (op.num_tokens == 0), what
        expected = op.expected(params)
        assert state.m == int(FP32.to_codes(expected.m)[0]), f"m of {what}"
        assert state.l == int(FP32.to_codes(expected.l)[0]), f"l of {what}"
        if state.o is not None:
            np.testing.assert_array_equal(state.o, FP32.to_codes(expected.o)[0], err_msg=f"o of {what}")


def check_cycles(
    params: ProcessingParams, operations: Sequence[Operation], bench: StreamBench, *, stalled: bool
) -> None:
    """Demand that every transfer and every first offer came in the predicted cycle."""
    counts = [op.num_tokens for op in operations]
    traces = {name: bench.trace(name) for name in STREAMS} if stalled else {}
    predicted = predict(params, counts, **traces)
    for name in STREAMS:
        trace = bench.trace(name)
        np.testing.assert_array_equal(trace.transfers, getattr(predicted, name), err_msg=f"transfers of {name}")
        if name in ("head", "body"):
            offers = getattr(predicted, f"{name}_presented")
            np.testing.assert_array_equal(trace.presented, offers, err_msg=f"first offers of {name}")
