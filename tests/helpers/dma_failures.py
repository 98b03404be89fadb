"""What can go wrong with a descriptor or with both ends of the DMA, one thing after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.dma.descriptors import Completion, Status
from tests.helpers.dma import World
from tests.helpers.dma_ends import ENDS, Faults
from tests.helpers.dma_runs import SMALL

if TYPE_CHECKING:
    from tests.helpers.streams import StreamBench

__all__ = ["cut", "full", "refused", "reset_anywhere", "unusable"]


async def refused(bench: StreamBench) -> list[Completion]:
    """One descriptor for every reason to refuse it, while a token waits for its answer; return what they ended with."""
    await bench.reset()
    world = World(bench, SMALL, seed=1)
    world.append("near")
    size, end = 32, SMALL[0].space.space.capacity_bytes
    cases = [
        ([(0, 0)], 1),
        ([(0, 32), (32, 0)], 1),
        ([(end, 32)], 1),
        ([(end - 32, 64)], 1),
        ([(0, 32)], 2),
        ([(8, 32)], 1),
        ([(0, 40)], 1),
        ([(0, 64), (32, 32)], 1),
        ([(32, 32), (32, 32)], 1),
        ([(0, 32)], 0),
        ([(0, 32), (8, 0), (0, 32)], 0),
        ([(0, 32)] * 4, 1),
    ]
    for tag, (segments, destination) in enumerate(cases):
        world.submit("near", tag, segments, move=True, compressed=False, destination=destination)
    await world.until_complete(len(cases), 2000)
    assert not bench.count("near_ask")
    # More than may be accepted, while the holder takes its time.
    for name in ("ask", "message"):
        bench.stall(f"near_{name}", 1.0)
    for tag in range(12, 17):
        world.submit("near", tag, [((tag - 12) * size, size)], move=True, compressed=False, destination=1)
    await world.until_complete(14, 3000)
    for name in ("ask", "message"):
        bench.stall(f"near_{name}", 0.0)
    await world.until_complete(17, 6000)
    world.check()
    return [world.completions[tag] for tag in range(17)]


async def full(bench: StreamBench) -> Completion:
    """Move more tokens than the far end has room for; return how that ended."""
    await bench.reset()
    world = World(bench, SMALL, seed=1)
    for _ in range(20):
        world.append("near")
    world.submit("near", 0, [(0, 20 * 32)], move=True, compressed=False, destination=1)
    await world.until_complete(1, 20000)
    world.check()
    assert world.table.free_lists["far"].free == 0
    assert world.homes("near") == [18, 19]
    return world.completions[0]


async def unusable(bench: StreamBench, fault: str) -> tuple[Completion, Completion]:
    """Move five tokens, the third of which can't be read, or be kept by the slot that it gets; then what is left."""
    await bench.reset()
    world = World(bench, SMALL, seed=1)
    for _ in range(5):
        world.append("near")
    if fault == "unreadable":
        world.ends["near"].unreadable.add(2)
    else:
        world.ends["far"].spoilt.add(2)
    world.submit("near", 0, [(0, 5 * 32)], move=True, compressed=False, destination=1)
    await world.until_complete(1, 20000)
    world.check()
    assert world.homes("near") == [2, 3, 4]
    assert world.table.free_lists["far"].free == 16
    world.ends["near"].unreadable.clear()
    world.ends["far"].spoilt.clear()
    world.submit("near", 1, [(2 * 32, 3 * 32)], move=True, compressed=False, destination=1)
    await world.until_complete(2, 40000)
    world.check()
    return world.completions[0], world.completions[1]


async def cut(bench: StreamBench, streams: set[str], after: int) -> dict[str, Completion]:
    """Cut what the near end sends in mid-traffic; return how a descriptor of either end ended.

    What is not verified stays where it was, and moves once both ends have been reset.
    """
    await bench.reset()
    world = World(bench, SMALL, seed=after)
    for name in ENDS:
        for _ in range(7):
            world.append(name)
    for tag, name in enumerate(ENDS):
        peer = world.ends[name].params.peer
        world.submit(name, tag, [(0, 7 * 32)], move=True, compressed=False, destination=peer)
    for _ in range(after):
        await world.step()
    world.ends["near"].cut |= streams
    await world.until_complete(2, 40000)
    found = {name: world.completions[tag] for tag, name in enumerate(ENDS)}
    # A link that is down stays so: what is given to it fails at once and keeps no slot.
    down = [name for name in ENDS if found[name].status is Status.LINK_DOWN]
    reserved = set(world.quarantined)
    for tag, name in enumerate(down, 2):
        slot, peer = world.homes(name)[0], world.ends[name].params.peer
        world.submit(name, tag, [(slot * 32, 32)], move=True, compressed=False, destination=peer)
        await world.until_complete(tag + 1, world.bench.cycle + 500)
        assert world.completions[tag].status is Status.LINK_DOWN
    assert world.quarantined == reserved
    world.check()
    await world.reset()
    world.check()
    await _move_all(world)
    return found


async def _move_all(world: World) -> None:
    """Move every token once more; nothing stands in the way now."""
    tags = 0
    for name in ENDS:
        for slot in world.homes(name):
            peer = world.ends[name].params.peer
            world.submit(name, 1000 + tags, [(slot * 32, 32)], move=True, compressed=False, destination=peer)
            tags += 1
            await world.until_complete(tags, world.bench.cycle + 10000)
    assert {one.status for one in world.completions.values()} == {Status.OK}
    world.check()


async def reset_anywhere(world: World, cuts: list[int]) -> None:
    """Reset both ends in any cycle of traffic with faults: no token is lost, no slot leaks, and all go on."""
    await world.bench.reset()
    world.faults = Faults(link=0.01, read=0.01, write=0.01)
    for name in ENDS:
        for _ in range(7):
            world.append(name)
    world.bench.stall("near_message", 0.5)
    for cycles in cuts:
        for number, name in enumerate(ENDS):
            peer = world.ends[name].params.peer
            for place, slot in enumerate(world.homes(name)[:3]):
                tag = 10 * number + place
                move, compressed = place != 1, place == 2
                world.submit(name, tag, [(slot * 32, 32)], move=move, compressed=compressed, destination=peer)
        for _ in range(cycles):
            await world.step()
        await world.reset()
        world.check()
    await _move_all(world)
