"""Benches of the blocks, one a file."""

from __future__ import annotations

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

__all__ = ["PROOFS"]

PROOFS = (
    window.PROOF,
    address_generator.PROOF,
    clock_registers.TO_LOGIC,
    clock_registers.FROM_LOGIC,
    reorder.PROOF,
    state_join.PROOF,
    crossing.PROOF,
    relayout.PROOF,
    packer.PROOF,
    unpacker.PROOF,
    framer.PROOF,
    link_sender.PROOF,
    link_receiver.PROOF,
    link.PROOF,
)
"""All proofs, the quick ones first."""
