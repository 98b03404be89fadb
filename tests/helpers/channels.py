"""Operations for a channel, what its groups must answer, and its commands as the independent checker reads them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.attention import local_state
from golden.formats import FP16
from golden.numerics import unit_numerics
from golden.partial import merge_chain
from hw.channel_run import ChannelOperation, run_channel
from hw.devices.commands import ColumnKind, RowKind, Scope
from hw.memory.kv_rows import deal, kv_rows
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from tests.helpers.dram_checker import Command, DramChecker, check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from golden.formats import FloatFormat
    from golden.partial import PartialState
    from hw.channel_run import ChannelRun
    from hw.device_params import ChannelParams

__all__ = ["assert_legal", "assert_states", "checked_run", "grown", "make_channel_operation"]
__all__ += ["platform_of"]


def make_channel_operation(
    params: ChannelParams,
    rng: np.random.Generator,
    *,
    head_dim: int,
    tokens: int | Sequence[int],
    groups: int = 1,
    spread: float = 1.0,
    **options: Any,
) -> ChannelOperation:
    """Return an operation of random q, k and v; ``tokens`` in all, dealt out evenly, or of every part.

    ``options`` are further fields of :class:`ChannelOperation`.
    """
    counts = deal(tokens, params.parts) if isinstance(tokens, int) else np.array(tokens)

    def draw(*shape: int) -> np.ndarray:
        return params.processing.kv_format.to_codes(spread * rng.standard_normal(shape))

    simulated = counts[: groups * params.parts_per_group]
    return ChannelOperation(
        query=draw(head_dim),
        keys=[draw(int(count), head_dim) for count in simulated],
        values=[draw(int(count), head_dim) for count in simulated],
        tokens=counts,
        scale=1 / np.sqrt(head_dim),
        **options,
    )


def grown(
    operation: ChannelOperation, rng: np.random.Generator, part: int, *, tokens: int = 1, **changes: Any
) -> ChannelOperation:
    """Return ``operation`` with a random query and ``tokens`` random tokens more in ``part``, the last one new."""

    def draw(*shape: int) -> np.ndarray:
        return FP16.to_codes(rng.standard_normal(shape).astype(np.float16))

    head_dim = operation.head_dim
    keys, values = list(operation.keys), list(operation.values)
    if part < len(keys):
        keys[part], values[part] = (np.concatenate([kind[part], draw(tokens, head_dim)]) for kind in (keys, values))
    counts = operation.tokens + tokens * (np.arange(len(operation.tokens)) == part)
    fields = {"query": draw(head_dim), "keys": keys, "values": values, "tokens": counts, "append_part": part}
    return replace(operation, **(fields | changes))


def platform_of(params: ChannelParams) -> object:
    """Return what a channel is made for: one kind has its own gates, of the others the machine does sums and products.

    Those are the same, cycle for cycle (``tests/rtl/test_native_arithmetic.py``), and cost half the build and a third
    of the run.
    """
    return None if params == DEVICE_PRESETS["attacc"].channel else NATIVE


def checked_run(
    params: ChannelParams, operations: Sequence[ChannelOperation], *, rows: int = 1024, **options: Any
) -> tuple[ChannelRun, dict[str, int]]:
    """Return a run that answered as the golden model does, by legal commands, and how many of each command came.

    ``options`` are those of :func:`hw.channel_run.run_channel`; the rows are the same in most tests, as a channel with
    other ones is another build.
    """
    run = run_channel(params, operations, rows=rows, **({"platform": platform_of(params)} | options))
    assert_states(run, operations, options.get("groups", 1))
    return run, assert_legal(run, refreshing=bool(options.get("first_refresh_cycles")))


def assert_states(run: ChannelRun, operations: Sequence[ChannelOperation], groups: int = 1) -> None:
    """Hold every state of the simulated groups bit for bit against the golden model."""
    for group in range(groups):
        processing = run.params.processing
        given = run.states(group, unit_numerics(processing.exp, kv_format=processing.kv_format))
        for number, (state, expected) in enumerate(zip(given, _expected(run.params, operations, group), strict=True)):
            where = f"group {group}, operation {number}"
            assert bool(state.empty) == bool(expected.empty), where
            if not expected.empty:
                for name in ("m", "l", "o"):
                    codes, wanted = (getattr(s, name).astype(np.float32).view(np.uint32) for s in (state, expected))
                    np.testing.assert_array_equal(codes, wanted, err_msg=f"{where}: {name}")


def _expected(params: ChannelParams, operations: Sequence[ChannelOperation], group: int) -> Iterator[PartialState]:
    processing = params.processing
    for operation in operations:
        keys, values = operation.keys, operation.values
        plan = kv_rows(params, operation.head_dim, operation.walk_tokens)
        width = plan.beats * processing.lanes * processing.slices
        fmt = processing.kv_format
        numerics = unit_numerics(processing.exp, processing.lanes, plan.tile_tokens, processing.slices, fmt)

        def filled(codes: np.ndarray, width: int = width, fmt: FloatFormat = fmt) -> np.ndarray:
            return fmt.from_codes(np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, width - codes.shape[-1])]))

        parts = range(group * params.parts_per_group, (group + 1) * params.parts_per_group)
        states = [
            local_state(
                filled(operation.queries),
                *(filled(_walked(operation, vectors[part]))[:, np.newaxis] for vectors in (keys, values)),
                operation.scale,
                numerics,
                _wanted(operation, part),
            )
            for part in parts
        ]
        state = states[0] if len(states) == 1 else merge_chain(states, numerics)
        yield from (state[query] for query in range(len(operation.queries)))


def _walked(operation: ChannelOperation, vectors: np.ndarray) -> np.ndarray:
    """Return what a part has of the positions that are read."""
    return vectors if operation.positions is None else vectors[operation.positions[operation.positions < len(vectors)]]


def _wanted(operation: ChannelOperation, part: int) -> np.ndarray | None:
    """Return which of those it attends to."""
    if operation.wanted is None or operation.positions is None:
        return None
    return operation.wanted[part, operation.positions < operation.tokens[part]]


def assert_legal(run: ChannelRun, *, refreshing: bool) -> dict[str, int]:
    """Hold the commands against the checker, which shares no code with the sequencer; return how many of each came."""
    organisation = asdict(run.params.organisation)
    timing = {name: number for name, number in asdict(run.params.timing).items() if name != "clock_ns"}
    commands = [
        Command(
            cycle=cycle,
            kind=(RowKind if bus == "row" else ColumnKind)(fields.pop("kind")).name,
            scope=Scope(fields.pop("scope")).name,
            **fields,
        )
        for cycle, bus, fields in run.commands()
    ]
    checker = DramChecker(timing, organisation)
    violations = check(checker, commands)
    if not refreshing:
        violations = [violation for violation in violations if violation.rule != "refresh due"]
    assert not violations, violations[:3]
    return checker.counts
