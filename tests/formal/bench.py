# amaranth: UnusedElaboratable=no
"""A block between free streams, what is assumed of them, and what is to hold: one circuit that a solver can take.

The circuit is plain Amaranth without assertion cells: each claim is an output that is high where it fails, as long as
everything assumed has held so far. So the same circuit runs in Amaranth's simulator, which confirms what a solver says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, ResetSignal, Signal, Value

if TYPE_CHECKING:
    from amaranth.hdl import Elaboratable, ShapeLike
    from amaranth.lib import stream

__all__ = ["Bench", "Flow"]


class Flow:
    """A stream as the bench sees it: ``go`` in the cycles of its transfers, ``offers`` in the first of each item."""

    def __init__(self, port: stream.Interface, go: Value, stalled: Value) -> None:
        self.valid: Value = port.valid
        self.ready: Value = port.ready
        self.payload = port.payload
        self.go = go
        self.offers: Value = port.valid & ~stalled


class Bench:
    """Builder of one circuit.

    Parameters
    ----------
    blocks : Elaboratable
        What is in it, in the domain ``sync``.

    Attributes
    ----------
    inputs : dict of str to Signal
        Free inputs.
    claims : dict of str to list of Value
        What is to hold in every cycle.
    leaves : dict of str to Value
        When something leaves the block, by where: runs must be left in which it does.

    Notes
    -----
    ``rst`` is free too: a reset may come in any cycle, in which nothing is claimed. The bench is reset with the block;
    memories, which are not, hold whatever they held.
    """

    def __init__(self, *blocks: Elaboratable) -> None:
        self.m = Module()
        self.m.submodules += blocks
        self.inputs: dict[str, Signal] = {}
        self.claims: dict[str, list[Value]] = {}
        self.assumed: list[Value] = []
        self.leaves: dict[str, Value] = {}

    def free(self, name: str, shape: ShapeLike = 1) -> Signal:
        """Return an input that may have any value in any cycle."""
        self.inputs[name] = signal = Signal(Value.cast(Signal(shape)).shape(), name=name)
        return signal

    def assume(self, holds: Value) -> None:
        """Leave out all runs in which ``holds`` was ever low."""
        self.assumed.append(Value.cast(holds).bool())

    def never_reset(self) -> None:
        """Leave out all runs with a reset behind the first cycle."""
        self.assume(~ResetSignal())

    def claim(self, name: str, holds: Value) -> None:
        """Add to what the claim ``name`` says: ``holds`` is high in every cycle."""
        self.claims.setdefault(name, []).append(holds)

    def constant(self, name: str, shape: ShapeLike = 1) -> Signal:
        """Return a number that is free, but the same in all cycles of a run."""
        offered, known = self.free(name, shape), Signal(name=f"{name}_known")
        kept, value = Signal.like(offered, name=f"{name}_kept"), Signal.like(offered, name=f"{name}_value")
        self.m.d.comb += value.eq(Mux(known, kept, offered))
        self.m.d.sync += [known.eq(1), kept.eq(value)]
        return value

    def source(self, name: str, port: stream.Interface, enable: Value | int = 1) -> Flow:
        """Drive an input of the block by any stream that keeps the rules: once valid, it holds until it is taken."""
        payload = Value.cast(port.payload)
        valid, offered = self.free(f"{name}_valid"), self.free(f"{name}_payload", payload.shape())
        go, stalled, before = self._transfers(name, port, enable)
        self.m.d.comb += [port.valid.eq(valid | stalled), payload.eq(Mux(stalled, before, offered))]
        return Flow(port, go, stalled)

    def sink(self, name: str, port: stream.Interface, enable: Value | int = 1) -> Flow:
        """Take an output of the block whenever; claim ``stream rules`` of it."""
        self.m.d.comb += port.ready.eq(self.free(f"{name}_ready"))
        return self.watch(name, port, enable)

    def watch(self, name: str, port: stream.Interface, enable: Value | int = 1) -> Flow:
        """Claim ``stream rules`` of a stream that something else takes."""
        go, stalled, before = self._transfers(name, port, enable)
        self.leaves[name] = go
        self.claim("stream rules", ~stalled | (port.valid & (Value.cast(port.payload) == before)))
        return Flow(port, go, stalled)

    def _transfers(self, name: str, port: stream.Interface, enable: Value | int) -> tuple[Signal, Signal, Signal]:
        """Return whether an item goes, whether the one before this cycle did not, and what it was."""
        payload = Value.cast(port.payload)
        go, stalled = Signal(name=f"{name}_go"), Signal(name=f"{name}_stalled")
        before = Signal(payload.shape(), name=f"{name}_before")
        self.m.d.comb += go.eq(port.valid & port.ready & enable)
        self.m.d.sync += [stalled.eq(port.valid & ~go), before.eq(payload)]
        return go, stalled, before

    def moves(self, name: str, waiting: Value, moved: Value, limit: int) -> None:
        """Claim that ``waiting`` never lasts ``limit`` cycles without a cycle in which ``moved``."""
        idle = Signal(range(limit + 1), name=f"{name.replace(' ', '_')}_idle")
        self.m.d.sync += idle.eq(Mux(waiting & ~moved, idle + (idle != limit), 0))
        self.claim(name, idle != limit)

    def finish(self) -> tuple[Module, list[Signal], list[Signal]]:
        """Return circuit, inputs and, in the order of the claims, outputs that are high where a claim fails."""
        before = Signal(init=1, name="assumed_so_far", reset_less=True)
        alive = Signal(name="assumed")
        self.m.d.comb += alive.eq(before & Cat(self.assumed).all() if self.assumed else before)
        self.m.d.sync += before.eq(alive)
        fails = []
        for number, terms in enumerate(self.claims.values()):
            fail = Signal(name=f"fails_{number}")
            self.m.d.comb += fail.eq(alive & ~ResetSignal() & ~Cat(Value.cast(term).bool() for term in terms).all())
            fails.append(fail)
        return self.m, list(self.inputs.values()), fails
