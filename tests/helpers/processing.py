"""Operations for the processing unit: made, packed, and checked against the golden model and the timing formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.attention import local_state
from golden.exp.catalogue import UNITS
from golden.formats import BF16, FORMATS, FP32
from golden.numerics import unit_numerics
from hw.layouts import body_layout, command_layout, head_layout, kv_layout, vector_layout
from hw.params import ProcessingParams
from hw.payloads import pack
from hw.timing.kv_order import kv_vectors
from hw.timing.operation import OperationKind, OperationSizes
from hw.timing.processing_prediction import predict
from tests.helpers.floats import random_codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from golden.partial import PartialState
    from tests.helpers.streams import StreamBench

__all__ = [
    "BF16_KINDS",
    "KINDS",
    "STREAMS",
    "Operation",
    "State",
    "check_cycles",
    "check_states",
    "kinds_of",
    "largest",
    "make_operation",
    "mixed_sizes",
    "offer",
    "params_of",
    "run",
    "sizes",
    "stimulus",
    "unpack",
]

STREAMS = ("command", "query", "kv", "head", "body")


@dataclass(frozen=True)
class Operation:
    """One operation in codes: q (queries, head_dim), k and v (walk_tokens, head_dim), and the fp32 scale.

    Rows of k and v that are passed over, and those behind the tokens that count, hold any codes. With slices, head_dim
    is that of all of them.
    """

    op_id: int
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: np.float32
    sizes: OperationSizes
    skips: np.ndarray

    @property
    def num_tokens(self):
        return self.sizes.num_tokens

    def read(self, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rows of ``k`` and ``v``, or of ``k`` alone, in the order of the kv stream."""
        return k if self.sizes.kind is OperationKind.SCORE else kv_vectors(self.sizes.tile_tokens, k, v)

    def expected(self, params: ProcessingParams) -> PartialState:
        """State of shape (queries,) by the bit-exact golden model: as many attentions, each by itself."""
        fmt = params.kv_format
        numerics = unit_numerics(params.exp, params.lanes, self.sizes.tile_tokens, params.slices, fmt)
        q, k, v = (fmt.from_codes(codes) for codes in (self.q, self.k[: self.num_tokens], self.v[: self.num_tokens]))
        wanted = ~self.skips[: self.num_tokens]
        return local_state(q, k[:, None], v[:, None], float(self.scale), numerics, wanted)


@dataclass(frozen=True)
class State:
    """What the unit sent: the head's fields and the codes of o, None if no body follows."""

    op_id: int
    empty: int
    fault: int
    m: int
    l: int
    o: np.ndarray | None


def _scores(rng, queries, head_dim, scores):
    """Keys whose scores with the first q, 1, are ``scores``: the first element carries them; and -1/2, 1/4, ... of."""
    k = np.zeros((len(scores), head_dim))
    k[:, 0] = np.asarray(scores) * head_dim**0.5
    return np.ones((queries, head_dim)) * (-0.5) ** np.arange(queries)[:, None], k, rng.normal(size=k.shape)


def make_operation(
    params: ProcessingParams,
    rng: np.random.Generator,
    sizes: OperationSizes | int,
    kind: str,
    op_id: int = 0,
    skipped: float = 0.0,
) -> Operation:
    """Return an operation of these sizes, a number the tokens of largest ones; ``kind`` is one of :func:`kinds_of`.

    A share ``skipped`` of the tokens is passed over, by chance, the last that counts left out.
    """
    if isinstance(sizes, int):
        sizes = largest(params, sizes)
    fmt = params.kv_format
    n, head_dim, queries = sizes.num_tokens, sizes.beats * params.lanes * params.slices, sizes.queries
    scale = np.float32(head_dim**-0.5)
    q = rng.normal(size=(queries, head_dim)) * 2
    k, v = rng.normal(size=(n, head_dim)) * 2, rng.normal(size=(n, head_dim))
    match kind:
        case "normal":
            pass
        case "eighty":
            q, k, v = _scores(rng, queries, head_dim, rng.choice([-80.0, 80.0, -79.5, 79.0], n))
        case "equal":
            q, k, v = _scores(rng, queries, head_dim, np.full(n, 3.25))
        case "one far above":
            scores = rng.normal(size=n)
            scores[rng.integers(n) if n else slice(0)] = 70.0
            q, k, v = _scores(rng, queries, head_dim, scores)
        case "rising":  # every tile rescales
            q, k, v = _scores(rng, queries, head_dim, np.arange(n) * 0.75)
        case "largest":  # q.k = 65504^2 * head_dim: 11,585 times what fp16 holds; infinite and NaN in bf16
            q, k = np.full(q.shape, fmt.max_finite), np.full((n, head_dim), fmt.max_finite)
            k[rng.integers(0, 2, n) == 1] *= -1
        case "subnormal":
            tiny = fmt.min_normal * 2.0**-fmt.significand_bits
            q = np.where(rng.integers(0, 2, q.shape) == 1, q * tiny * 100, q)
            k, v = np.round(k * 50) * tiny, np.round(v * 50) * tiny
        case "zero":
            q, k, v = np.zeros_like(q), -np.zeros_like(k), -np.zeros_like(v)
        case "any code":
            q, k, v = (fmt.from_codes(random_codes(fmt, x.size, rng)).reshape(x.shape) for x in (q, k, v))
        case "ends of fp32":  # bf16 alone: products from below fp32's subnormals to its largest numbers, and beyond
            high = rng.integers(2)
            q, v = q * 2.0 ** (63 if high else -63), v * 2.0 ** rng.integers(-131, 120, v.shape)
            k = k * 2.0 ** rng.choice([-63, 40, 58, 63] if high else [-87, -82, -64, 60], (n, 1))
        case "special":  # a few infinities and NaNs among ordinary numbers
            for array in (k, v):
                places = rng.random(array.shape) < 0.3 / head_dim
                array[places] = rng.choice([np.inf, -np.inf, np.nan], array.shape)[places]
        case _:
            raise ValueError(f"kind must be one of {BF16_KINDS}, not {kind!r}")
    codes = [fmt.to_codes(array) for array in (q, k, v)]
    dropped = (sizes.walk_tokens - n, head_dim)
    noise = [random_codes(fmt, dropped[0] * head_dim, rng).reshape(dropped) for _ in range(2)]
    k, v = (np.concatenate(pair) for pair in zip(codes[1:], noise, strict=True))
    skips = (rng.random(len(k)) < skipped) & (np.arange(len(k)) != n - 1)
    for array in (k, v):
        array[skips] = random_codes(fmt, array[skips].size, rng).reshape(-1, head_dim)
    return Operation(op_id, codes[0], k, v, scale, sizes, skips)


def largest(params: ProcessingParams, num_tokens: int) -> OperationSizes:
    """Sizes of an operation of the largest head dimension and tiles, and of as many queries as the unit holds of it."""
    return OperationSizes.of(params, num_tokens, queries=params.held_beats // params.beats)


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
BF16_KINDS = (*KINDS, "ends of fp32")


def kinds_of(params: ProcessingParams) -> tuple[str, ...]:
    """Kinds of numbers that the format of q, k and v holds."""
    return BF16_KINDS if params.kv_format == BF16 else KINDS


def params_of(case: Mapping[str, Any]) -> ProcessingParams:
    """Return the parameters of a test case, in which a format and an exponential unit stand by their names."""
    named = {"kv_format": FORMATS, "exp": UNITS}
    return ProcessingParams(**{key: named[key][value] if key in named else value for key, value in case.items()})


def sizes(params: ProcessingParams) -> list[int]:
    """Token counts around every border: empty, one, two, a tile, two tiles, a few tiles and a rest."""
    tile = params.tile_tokens
    return [1, 0, 2, max(tile - 1, 1), tile, 1, tile + 1, 2 * tile, 0, 2 * tile + 1, 3 * tile, 3 * tile + 5, 1]


def mixed_sizes(params: ProcessingParams, rng: np.random.Generator, operations: int) -> list[OperationSizes]:
    """Operations of every run-time size in turn, with walks of their own length, a little, and much longer."""
    beats = sorted({1, 2, min(3, params.beats), (params.beats + 1) // 2, params.beats})
    tiles = sorted({1, min(2, params.tile_tokens), min(3, params.tile_tokens), params.tile_tokens})
    made = []
    for number in range(operations):
        held = min(params.queries, params.held_beats // beats[number % len(beats)])
        queries = held - number // (len(beats) * len(tiles)) % held if number % 3 else held
        tile_tokens = tiles[number // len(beats) % len(tiles)]
        num_tokens = int(rng.choice([0, 1, tile_tokens, rng.integers(1, 4 * tile_tokens + 2)]))
        longer = int(rng.choice([0, 0, 1, tile_tokens, rng.integers(3 * tile_tokens + 2)]))
        made.append(
            OperationSizes.of(
                params,
                num_tokens,
                walk_tokens=num_tokens + longer,
                beats=beats[number % len(beats)],
                tile_tokens=tile_tokens,
                queries=queries,
            )
        )
    return made


def _beats(params, codes, slice_beats):
    """Beats of the rows of ``codes``, one word a slice."""
    rows = np.ascontiguousarray(codes, dtype="<u2").reshape(-1, params.slices, slice_beats, params.lanes)
    beats = rows.swapaxes(1, 2).reshape(-1, params.slices, params.lanes)
    return [[int.from_bytes(word.tobytes(), "little") for word in beat] for beat in beats]


def _side_by_side(words, bits):
    return sum(word << number * bits for number, word in enumerate(words))


def stimulus(params: ProcessingParams, operations: Sequence[Operation]) -> dict[str, list[int]]:
    """Payloads of the three input streams."""
    # The size of a layout is worked out anew whenever it is asked for.
    layout, bits, kv_bits = command_layout(params), vector_layout(params).size, kv_layout(params).size
    payloads = {"command": [], "query": [], "kv": []}
    for op in operations:
        fields = {"op_id": op.op_id, "scale": int(FP32.to_codes(op.scale)), **op.sizes.command_fields}
        payloads["command"].append(pack(layout, **fields))
        payloads["query"] += [_side_by_side(words, bits) for words in _beats(params, op.q, op.sizes.beats)]
        beats = _beats(params, op.read(op.k, op.v), op.sizes.beats)
        marks = op.read(op.skips[:, None], op.skips[:, None]).repeat(op.sizes.beats)
        for words, mark in zip(beats, marks, strict=True):
            payloads["kv"].append(_side_by_side([word | int(mark) << bits for word in words], kv_bits))
    return payloads


def _unpack_unit(params, heads, bodies):
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
    for payload in beats:
        words.append((payload & ((1 << bits) - 1)).to_bytes(bits // 8, "little"))
        if payload >> bits:
            break
    return np.frombuffer(b"".join(words), dtype="<u4")


def unpack(params: ProcessingParams, heads: Sequence[int], bodies: Sequence[int]) -> list[State]:
    """States out of the payloads of the two output streams; ``last`` must end every body.

    The payloads of a group of units stand side by side, and their heads must be the same.
    """
    parts = []
    for number in range(params.slices):
        own = [
            [word >> number * layout.size & ((1 << layout.size) - 1) for word in words]
            for layout, words in ((head_layout(params), heads), (body_layout(params), bodies))
        ]
        parts.append(_unpack_unit(params, *own))
    states = []
    for group in zip(*parts, strict=True):
        assert len({replace(state, o=None) for state in group}) == 1, "the heads of a group must be the same"
        o = None if group[0].o is None else np.concatenate([state.o for state in group])
        states.append(replace(group[0], o=o))
    return states


def offer(bench: StreamBench, params: ProcessingParams, operations: Sequence[Operation], *, idle: float = 0.0) -> None:
    """Queue everything; ``idle`` is the probability of offering nothing, on all inputs."""
    for name, payloads in stimulus(params, operations).items():
        bench.send(name, payloads, idle=idle)


async def run(bench: StreamBench, params: ProcessingParams, operations: Sequence[Operation]) -> None:
    """Advance until every state is out and every kv beat in."""
    attending = [op for op in operations if op.sizes.kind is OperationKind.ATTENTION]
    heads = sum(op.sizes.queries for op in attending)
    bodies = sum(op.sizes.query_beats for op in attending if op.num_tokens)
    kv = sum(op.sizes.kv_beats for op in operations)
    await bench.until(head=heads, body=bodies, kv=kv, timeout_cycles=200_000)


def check_states(params: ProcessingParams, operations: Sequence[Operation], states: Sequence[State]) -> None:
    """Demand the golden model's states, bit for bit, one for each query, with ids that count on."""
    assert len(states) == sum(op.sizes.queries for op in operations)
    following = iter(states)
    for number, op in enumerate(operations):
        expected = op.expected(params)
        for query in range(op.sizes.queries):
            state = next(following)
            what = f"query {query} of operation {number} of {op.sizes}"
            assert (state.op_id, state.fault) == ((op.op_id + query) % (1 << params.op_id_bits), 0), what
            assert state.empty == (op.num_tokens == 0), what
            assert state.m == int(FP32.to_codes(expected.m)[query]), f"m of {what}"
            assert state.l == int(FP32.to_codes(expected.l)[query]), f"l of {what}"
            if state.o is not None:
                np.testing.assert_array_equal(state.o, FP32.to_codes(expected.o)[query], err_msg=f"o of {what}")


def check_cycles(
    params: ProcessingParams, operations: Sequence[Operation], bench: StreamBench, *, stalled: bool
) -> None:
    """Demand that every transfer and every first offer came in the predicted cycle."""
    traces = {name: bench.trace(name) for name in STREAMS} if stalled else {}
    predicted = predict(params, [op.sizes for op in operations], **traces)
    for name in STREAMS:
        trace = bench.trace(name)
        np.testing.assert_array_equal(trace.transfers, getattr(predicted, name), err_msg=f"transfers of {name}")
        if name in ("head", "body"):
            offers = getattr(predicted, f"{name}_presented")
            np.testing.assert_array_equal(trace.presented, offers, err_msg=f"first offers of {name}")
