"""Long runs of both ends of the DMA: ``python -m tests.helpers.dma_soak [descriptors [seed]]``.

Random descriptors with faults, idles and back-pressure, in runs of 2,000, of a quarter as many where the far end has
flash, and of an eighth over crossings between clocks, each with a seed of its own that is printed before it begins;
then the cycles of the formulas at the sizes of a device, and the rates there.
"""

from __future__ import annotations

import json
import secrets
import sys
import time

from hw.benches.dma import hundred_thousand_tokens
from hw.presets.dma_bench import DMA_BENCHES
from tests.helpers.dma_crossed import CrossedPair
from tests.helpers.dma_ends import DmaPair
from tests.helpers.dma_runs import CROSSED, SMALL
from tests.helpers.rtl import run_cocotb

__all__ = ["main"]

_RUN = 2000


def main(arguments: list[str]) -> int:
    """Run and return 0; a failure ends it with the run's assertion."""
    descriptors, seed = (int(value) for value in (arguments + ["100000", str(secrets.randbits(31))][len(arguments) :]))
    start = time.monotonic()
    for first in range(0, descriptors, _RUN):
        count = min(_RUN, descriptors - first)
        said = f"{first} of {descriptors} descriptors, {time.monotonic() - start:.0f} s, next seed {seed}"
        sys.stderr.write(said + "\n")
        for module, tests, share in (("tb_dma", 12, count), ("tb_dma_nand", 6, -(-count // 4))):
            case = {"descriptors": share}
            run_cocotb(DmaPair, SMALL, module=f"tests.rtl.{module}", expected=tests, case=case, seed=seed)
        case = {"descriptors": max(8, count // 8)}
        run_cocotb(CrossedPair, CROSSED, module="tests.rtl.tb_dma_crossed", expected=12, case=case, seed=seed)
        seed = (seed + 1) % (1 << 31)
    device = DMA_BENCHES["device"]
    run_cocotb(DmaPair, (device.near, device.far), module="tests.rtl.tb_dma_cycles", expected=1)
    sys.stderr.write(f"rates {json.dumps(hundred_thousand_tokens())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
