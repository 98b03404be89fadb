"""Runs of both ends of the DMA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.dma.compression import BlockCompression
from golden.dma.descriptors import Status
from golden.dma.flits import FlitFormat
from golden.formats import FP16
from golden.kv.address_map import AddressMap, Level
from golden.kv.block_table import Place
from hw.dma_crossed_params import DmaCrossedParams
from hw.dma_engine_params import DmaParams
from hw.dma_params import AddressParams, CompressionParams, FlitParams, LinkParams, PathParams
from tests.helpers.dma_ends import ENDS
from tests.helpers.dma_shadow import Shadow

if TYPE_CHECKING:
    from golden.kv.block_table import TokenAddress
    from tests.helpers.dma import World

PATH = PathParams(
    compression=CompressionParams(compression=BlockCompression(fmt=FP16, block=8), lanes=4),
    link=LinkParams(flit=FlitParams(flits=FlitFormat(24), beat_bytes=8), window=16, timeout_cycles=200, attempts=6),
    payload_beats=4,
)
"""Beats of 8 bytes in flits of three, so that everything is small and crosses every border."""


def _space(name: str, *levels: tuple[str, int]) -> AddressParams:
    return AddressParams(space=AddressMap(name, tuple(Level(*level) for level in levels), 3))


SIZES = {
    "path": PATH,
    "groups": ("bank",),
    "rows": ("row",),
    "reorder_depth": 4,
    "regions": 4,
    "copies": 8,
    "attempts": 4,
    "queue_depth": 3,
    "max_segments": 3,
    "verdict_wait_cycles": 40,
    "silence_cycles": 3000,
}
SMALL = (
    # Slots of 4 columns: in one row and bank at the near end, over two banks at the far end.
    DmaParams(
        space=_space("near", ("byte", 8), ("column", 2), ("column", 2), ("column", 2), ("row", 8), ("bank", 3)),
        memory=0,
        peer=1,
        **SIZES,
    ),
    DmaParams(
        space=_space("far", ("byte", 8), ("column", 2), ("bank", 2), ("column", 2), ("row", 9)),
        memory=1,
        peer=0,
        **SIZES,
    ),
)

CROSSED = tuple(DmaCrossedParams(dma=one) for one in SMALL)
"""The same with crossings to the link."""


def _segments(world: World, name: str, busy: set[TokenAddress]) -> list[tuple[int, int]]:
    """Return up to three runs of up to three tokens that no other descriptor names, as (source, length) in bytes."""
    params, random = world.ends[name].params, world.random
    size = params.space.space.slot_bytes
    free = {slot for slot in world.homes(name) if world.owners[Place(name, slot)] not in busy}
    found = []
    for _ in range(random.randrange(1, params.max_segments + 1)):
        if not free:
            break
        first = random.choice(sorted(free))
        run = [first]
        while len(run) < 3 and run[-1] + 1 in free and random.random() < 0.7:
            run.append(run[-1] + 1)
        free -= set(run)
        found.append((first * size, len(run) * size))
    return found


async def traffic(world: World, *, count: int, idle: float = 0.0, stall: float = 0.0) -> None:
    """Random descriptors at both ends at once: each ends as the golden mover's does, and so does every token.

    Moves and copies, raw and compressed, of tokens that are read meanwhile, with repeated descriptors of one token, and
    with a token at each end that can't be read at all.
    """
    bench = world.bench
    await bench.reset()
    for name in ENDS:
        for _ in range(7):
            world.append(name)
    world.read_chance = 0.05
    for end in world.ends.values():
        end.damage(world.homes(end.name)[3])
    world.pause(idle, stall)
    shadow, random, tag = Shadow(world), world.random, 0
    under_way: dict[int, tuple[str, set[TokenAddress]]] = {}
    ended = 0
    while ended < count:
        name = random.choice(ENDS)
        busy = set().union(*(addresses for _, addresses in under_way.values()))
        waiting = sum(other == name for other, _ in under_way.values())
        if tag < count and waiting < SMALL[0].queue_depth and random.random() < 0.1:
            segments = _segments(world, name, busy)
            move, compressed = random.random() < 0.7, random.random() < 0.3
            # The same once more: what it finds at its destination by then is not sent again.
            again = not move and random.random() < 0.3 and waiting < SMALL[0].queue_depth - 1 and tag < count - 1
            for moves in (move, True) if again else (move,):
                if segments:
                    _give(world, shadow, under_way, tag, name, segments, move=moves, compressed=compressed)
                    tag += 1
        await world.step()
        for number in [number for number in under_way if number in world.completions]:
            assert world.completions[number] == shadow.complete(number)
            del under_way[number]
            ended += 1
        assert bench.cycle < 20000 + 2000 * count, f"{ended} of {count} descriptors ended"
    for _ in range(300):
        await world.step()
    world.check()
    shadow.check()


def _give(
    world: World,
    shadow: Shadow,
    under_way: dict[int, tuple[str, set[TokenAddress]]],
    tag: int,
    name: str,
    segments: list[tuple[int, int]],
    *,
    move: bool,
    compressed: bool,
) -> None:
    end = world.ends[name]
    size = end.params.space.space.slot_bytes
    slots = [slot for source, length in segments for slot in range(source // size, (source + length) // size)]
    addresses = [world.owners[Place(name, slot)] for slot in slots]
    status = shadow.submit(tag, addresses, move=move, compressed=compressed, destination=end.peer)
    assert status is Status.OK
    world.submit(name, tag, segments, move=move, compressed=compressed, destination=end.params.peer)
    under_way[tag] = name, set(addresses)
