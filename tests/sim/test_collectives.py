"""Promise: an all-reduce takes the hops and bytes of a ring that is walked message by message, in NCCL's protocols."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sim.collectives import COLLECTIVES, allreduce_s, load_collectives, ring_bytes, send_s
from sim.errors import ConfigError
from sim.system_config import load_system

if TYPE_CHECKING:
    from pathlib import Path

NVLINK, PCIE = COLLECTIVES["nvlink"], COLLECTIVES["pcie"]
LINK = 450e9


def walk(count: int, elements: int) -> tuple[list[np.ndarray], int, list[int]]:
    """Walk a ring all-reduce message by message; return the sums, the rounds, and the elements that each rank sent."""
    draw = np.random.default_rng(count)
    data = [draw.integers(-9, 9, elements) for _ in range(count)]
    pieces = np.array_split(np.arange(elements), count)
    held = [values.copy() for values in data]
    rounds, sent = 0, [0] * count
    for phase in ("add", "copy"):
        for turn in range(count - 1):
            moved = []
            for rank in range(count):
                piece = pieces[(rank - turn + (phase == "copy")) % count]
                moved.append((rank, piece, held[rank][piece].copy()))
                sent[rank] += len(piece)
            for rank, piece, values in moved:
                neighbour = held[(rank + 1) % count]
                neighbour[piece] = neighbour[piece] + values if phase == "add" else values
            rounds += 1
    assert all((values == sum(data)).all() for values in held)
    return held, rounds, sent


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_hops_and_bytes_are_those_of_a_ring(count: int) -> None:
    elements = 24 * count
    _, rounds, sent = walk(count, elements)
    assert set(sent) == {round(ring_bytes(count, elements))}
    bytes_each = 2.0 * sent[0]  # 16 bit an element
    slow = dataclasses.replace(NVLINK, protocols={"simple": NVLINK.protocols["simple"]})
    assert allreduce_s(slow, count, 2.0 * elements, LINK) == pytest.approx(8.4e-6 + rounds * 3.4e-6 + bytes_each / LINK)


def test_one_gpu_and_no_message_take_nothing() -> None:
    assert allreduce_s(NVLINK, 1, 1e9, LINK) == 0.0
    assert ring_bytes(1, 1e9) == 0.0
    assert send_s(NVLINK, 0, LINK) == 0.0


def test_the_protocol_follows_the_size() -> None:
    # 8 GPUs, 14 hops: LL starts after 15 us at 87.7 GB/s, LL128 after 40.6 us at 414, Simple after 56 us at 450.
    assert allreduce_s(NVLINK, 8, 16384, LINK) == pytest.approx(15e-6 + 1.75 * 16384 / 87.7e9)
    assert allreduce_s(NVLINK, 8, 8 << 20, LINK) == pytest.approx(40.6e-6 + 1.75 * (8 << 20) / 414e9)
    assert allreduce_s(NVLINK, 8, 1 << 30, LINK) == pytest.approx(56e-6 + 1.75 * (1 << 30) / 450e9)
    # Over PCI Express at 32 GB/s a quarter of the link is less than the protocol could do.
    assert allreduce_s(PCIE, 2, 4096, 32e9) == pytest.approx(6.6e-6 + 2 * 1e-6 + 4096 / 8e9)
    assert send_s(NVLINK, 16384, LINK) == pytest.approx(6.6e-6 + 0.6e-6 + 16384 / 87.7e9)


@pytest.mark.parametrize("kind", COLLECTIVES.values(), ids=lambda kind: kind.name)
def test_more_bytes_or_gpus_are_never_faster(kind: object) -> None:
    sizes = [2**exponent for exponent in range(8, 31)]
    for count in (2, 4, 8, 16):
        times = [allreduce_s(kind, count, size, LINK) for size in sizes]  # type: ignore[arg-type]
        more = [allreduce_s(kind, 2 * count, size, LINK) for size in sizes]  # type: ignore[arg-type]
        assert times == sorted(times)
        assert all(few < many for few, many in zip(times, more, strict=True))


def test_every_number_has_a_source() -> None:
    for kind in COLLECTIVES.values():
        values = dict(kind.values())
        assert all("NVIDIA/nccl" in value.source for value in values.values())
        assert {"ll.base_s", "ll.hop_s", "ll.share", "ll.most_bytes_per_s"} <= set(values)
        assert kind.part.kind == "literature"


def test_a_system_names_its_links(tmp_path: Path) -> None:
    assert load_system("pam").gpu.collectives is NVLINK
    path = tmp_path / "mine.toml"
    head = 'name = "mine"\nbase = "pam"\ndescription = "d"\nsource = "s"\n'
    path.write_text(f'{head}[gpu]\ncollectives = "pcie"\n')
    assert load_system(str(path)).gpu.collectives is PCIE
    path.write_text(f'{head}[gpu]\ncollectives = "pci"\n')
    with pytest.raises(ConfigError, match="gpu: collectives must be a known name, not 'pci'; nearest: pcie"):
        load_system(str(path))
    assert load_collectives("nvlink", "links") is NVLINK
