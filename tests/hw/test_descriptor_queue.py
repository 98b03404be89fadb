# amaranth: UnusedElaboratable=no
"""Promise: a descriptor is refused for the golden model's reasons and only for them; tokens come in its order."""

from __future__ import annotations

from random import Random

import pytest

from golden.dma.descriptors import Segment, Status, check_segments
from hw.interface.commit import Commit
from hw.interface.copy_ring import CopyRing
from hw.interface.descriptor_queue import DescriptorQueue
from hw.interface.destination_writer import DestinationWriter
from hw.interface.dma import Dma
from hw.interface.dma_layouts import completion_layout, segment_layout, token_layout
from hw.interface.dma_sender import DmaSender
from hw.interface.frame_mixer import FrameMixer
from hw.interface.source_reader import SourceReader
from hw.interface.verdict_collector import VerdictCollector
from hw.interface.verdict_spreader import VerdictSpreader
from hw.payloads import pack, unpack
from hw.presets.dma import TINY_END
from tests.helpers.pysim import run_pysim

SIZE, ROOM = TINY_END.space.space.slot_bytes, TINY_END.space.space.capacity_bytes


def drawn(random: Random) -> list[Segment]:
    """Return segments that are sound as often as not: near one another, near the end, of odd sizes, of none."""
    found = []
    for _ in range(random.randint(1, TINY_END.max_segments)):
        source = random.choice([SIZE * random.randrange(8), ROOM - SIZE, ROOM, SIZE * random.randrange(8) + 4])
        length = random.choice([SIZE, 2 * SIZE, 2 * SIZE, 3 * SIZE, 0, SIZE + 8])
        found.append(Segment(source, source, length))
    return found


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.3, 0.5)])
def test_statuses_are_those_of_the_golden_model(idle, stall):
    random = Random(3)

    async def scenario(bench):
        await bench.reset()
        for name in ("o", "refused"):
            bench.stall(name, stall)
        layout, refused, wanted, tokens = segment_layout(TINY_END), [], [], []
        for tag in range(300):
            segments = drawn(random)
            status = check_segments(
                tuple(segments), granule_bytes=SIZE, source_bytes=ROOM, destination_bytes=ROOM, same_memory=False
            )
            for number, one in enumerate(segments):
                fields = {"tag": tag, "move": tag % 2, "compressed": tag % 3 == 0, "destination": TINY_END.peer}
                last = int(number == len(segments) - 1)
                word = pack(layout, source=one.source, length=one.length, last=last, **fields)
                bench.send("i", [word], idle=idle)
            if status is Status.OK:
                slots = [one.source // SIZE + place for one in segments for place in range(one.length // SIZE)]
                tokens += [
                    {
                        "tag": tag,
                        "move": tag % 2,
                        "compressed": int(tag % 3 == 0),
                        "slot": slot,
                        "ends": int(place == len(slots) - 1),
                    }
                    for place, slot in enumerate(slots)
                ]
            else:
                wanted.append((tag, status, 0))
            await bench.until(refused=len(wanted), o=len(tokens), timeout_cycles=500)
            refused = [tuple(unpack(completion_layout(TINY_END), item).values()) for item in bench.items("refused")]
            # Nothing ends an accepted one here, so that every second finds the queue full.
            if len(tokens) and tokens[-1]["tag"] == tag and len({one["tag"] for one in tokens}) % 2 == 0:
                break
        assert refused == wanted
        assert [unpack(token_layout(TINY_END), item) for item in bench.items("o")] == tokens

    for _ in range(40):
        run_pysim(DescriptorQueue(TINY_END), scenario)


def test_cycles_of_the_docstring():
    async def scenario(bench):
        await bench.reset()
        layout = segment_layout(TINY_END)
        common = {"tag": 1, "move": 1, "compressed": 0, "destination": 1, "length": SIZE}
        for source, last in ((0, 0), (SIZE, 1), (2 * SIZE, 1)):
            bench.send("i", [pack(layout, source=source, last=last, **common)])
        await bench.until(o=3)
        assert bench.trace("i").transfers.tolist() == [0, 1, 4]
        assert bench.trace("o").transfers[:2].tolist() == [4, 5]

    run_pysim(DescriptorQueue(TINY_END), scenario)


def test_bad_arguments():
    units = (Commit, CopyRing, DescriptorQueue, DestinationWriter, Dma, DmaSender, FrameMixer, SourceReader)
    for unit in (*units, VerdictCollector, VerdictSpreader):
        with pytest.raises(TypeError, match=r"^params must be a DmaParams, not 3$"):
            unit(3)
