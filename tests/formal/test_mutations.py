# amaranth: UnusedElaboratable=no
"""Promise: a block that loses, doubles or changes an item, or leaks a credit or a slot, fails its claim in seconds."""

from __future__ import annotations

import pytest

from hw.devices.clock_crossing import ToLogic
from hw.interface.address_generator import AddressGenerator
from hw.interface.crossing import Crossing
from hw.interface.framer import Framer
from hw.interface.link_receiver import LinkReceiver
from hw.interface.link_sender import LinkSender
from hw.interface.packer import Packer
from hw.interface.relayout_buffer import RelayoutBuffer
from hw.interface.reorder import CommandReorder
from hw.interface.unpacker import Unpacker
from hw.interface.window import Window
from hw.units.state_join import StateJoin
from tests.formal.blocks import (
    address_generator,
    clock_registers,
    crossing,
    framer,
    link,
    link_receiver,
    link_sender,
    packer,
    relayout,
    reorder,
    state_join,
    unpacker,
    window,
)
from tests.formal.proofs import mutant, prove

HELD = "(~self.o.valid | self.o.ready)"
MUTATIONS = {
    "state join changes a stalled beat": (
        state_join.PROOF,
        StateJoin,
        "ready.eq(plans.r_rdy & (~self.body_o.valid | self.body_o.ready))",
        "ready.eq(plans.r_rdy)",
        "stream rules",
    ),
    "state join takes the first source twice": (
        state_join.PROOF,
        StateJoin,
        "served.eq(Mux(final, 0, served | chosen))",
        "served.eq(0)",
        "turns",
    ),
    "link whose receiver lets a flit through once more": (
        link.PROOF,
        LinkReceiver,
        "check & sound & (number == expected)",
        "check & sound",
        "each once and in order",
    ),
    "window adds at the wrong place": (
        window.PROOF,
        Window,
        "<< (kept * self.unit_bits)",
        "<< (self.level * self.unit_bits)",
        "order",
    ),
    "address generator goes on while stalled": (
        address_generator.PROOF,
        AddressGenerator,
        "If(self.o.valid & self.o.ready)",
        "If(self.o.valid)",
        "stream rules",
    ),
    "address generator loses a slot": (
        address_generator.PROOF,
        AddressGenerator,
        "(self.o.ready & last)",
        "self.o.ready",
        "order",
    ),
    "register takes an item twice": (
        clock_registers.TO_LOGIC,
        ToLogic,
        "m.d.sync += self.o.valid.eq(0)",
        "m.d.sync += self.o.valid.eq(1)",
        "order",
    ),
    "reorder unit changes a stalled command": (
        reorder.PROOF,
        CommandReorder,
        f"there.any() & {HELD}",
        "there.any()",
        "stream rules",
    ),
    "reorder unit loses a command": (
        reorder.PROOF,
        CommandReorder,
        "Mux(taken, held << 1 | 1, held)",
        "Mux(taken & ~go, held << 1 | 1, held)",
        "progress",
    ),
    "reorder unit doubles a command": (
        reorder.PROOF,
        CommandReorder,
        "Mux(go, there >> 1, there)",
        "there",
        "each once",
    ),
    "reorder unit forgets its patience": (
        reorder.PROOF,
        CommandReorder,
        "passed == params.patience) & there[0]",
        "passed == params.patience) & 0",
        "patience",
    ),
    "crossing takes what has no room": (
        crossing.PROOF,
        Crossing,
        "self.i.ready.eq(~full)",
        "self.i.ready.eq(1)",
        "order",
    ),
    "crossing gives out what is not there": (
        crossing.PROOF,
        Crossing,
        "self.o.valid.eq(tail_gray != head_seen)",
        "self.o.valid.eq(1)",
        "order",
    ),
    "re-layout buffer changes a stalled column": (
        relayout.PROOF,
        RelayoutBuffer,
        f"fetched & {HELD}",
        "fetched",
        "stream rules",
    ),
    "re-layout buffer leaks a region": (
        relayout.PROOF,
        RelayoutBuffer,
        "(is_free & ~given) | returned",
        "is_free & ~given",
        "slots come back",
    ),
    "re-layout buffer gives a region twice": (
        relayout.PROOF,
        RelayoutBuffer,
        "(is_free & ~given) | returned",
        "is_free | returned",
        "slots kept",
    ),
    "re-layout buffer reads from the wrong place": (
        relayout.PROOF,
        RelayoutBuffer,
        "complete.r_data * columns + place",
        "complete.r_data * columns",
        "order",
    ),
    "packer changes a stalled beat": (packer.PROOF, Packer, f"& {HELD}", "", "stream rules"),
    "packer loses words behind a flush": (
        packer.PROOF,
        Packer,
        "self.i.ready.eq(window.room & ~flushing)",
        "self.i.ready.eq(window.room)",
        "order",
    ),
    "unpacker takes filling for a frame": (
        unpacker.PROOF,
        Unpacker,
        "skipping.eq(skipped != in_flit)",
        "skipping.eq(0)",
        "order",
    ),
    "framer counts too few bytes": (
        framer.PROOF,
        Framer,
        "lengths.w_data.eq(length + window.take)",
        "lengths.w_data.eq(length)",
        "lengths",
    ),
    "sender takes one flit more than it has credits": (
        link_sender.PROOF,
        LinkSender,
        "(_distance(freed, head) < params.window)",
        "(_distance(freed, head) <= params.window)",
        "credits",
    ),
    "sender leaks a credit": (
        link_sender.PROOF,
        LinkSender,
        "[freed.eq(told.freed), ",
        "[",
        "credits come back",
    ),
    "sender changes a stalled beat": (link_sender.PROOF, LinkSender, f"fetched & {HELD}", "fetched", "stream rules"),
    "sender does not wait for the oldest flit": (
        link_sender.PROOF,
        LinkSender,
        "[following.eq(expected - ",
        "[following.eq(head - ",
        "goes again",
    ),
    "receiver lets a flit out of turn through": (
        link_receiver.PROOF,
        LinkReceiver,
        "check & sound & (number == expected)",
        "check & sound",
        "in turn",
    ),
    "receiver gives no credit back": (
        link_receiver.PROOF,
        LinkReceiver,
        "(told.freed != freed) | ",
        "",
        "told at last",
    ),
    "sender does not ask whether the last answer was lost": (
        link_sender.PROOF,
        LinkSender,
        "(lacks_none & go_back)",
        "0",
        "goes again",
    ),
    "receiver tells what is not so": (
        link_receiver.PROOF,
        LinkReceiver,
        "told.expected.eq(expected)",
        "told.expected.eq(expected + 1)",
        "told truly",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_block_fails(name):
    proof, unit, before, after, claim = MUTATIONS[name]
    broken = mutant(unit, before, after)
    (finding,) = prove(proof, bench=proof.bench(broken), claims=[claim])
    assert finding.outcome.result == "fails"
    assert len(finding.outcome.inputs) == finding.outcome.cycles
