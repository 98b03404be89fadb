"""The registers between the memory clock and logic under an enable of it: items pass once each, in order."""

from __future__ import annotations

from hw.devices.clock_crossing import FromLogic, ToLogic
from tests.formal.bench import Bench
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["FROM_LOGIC", "TO_LOGIC"]


def to_logic(unit: type = ToLogic) -> Bench:
    """Let items arrive only where there is room, as the protocol says."""
    register = unit(4)
    result = Bench(register)
    enable = result.free("enable")
    result.m.d.comb += [
        register.enable.eq(enable),
        register.valid.eq(result.free("valid")),
        register.payload.eq(result.free("payload", 4)),
    ]
    o = result.sink("o", register.o, enable=enable)
    result.assume(~register.valid | register.free | o.go)
    level = in_order(
        result, "order", capacity=1, pushed=[register.payload], push=register.valid, popped=[o.payload], pop=o.go
    )
    result.claim("progress", o.valid == (level != 0))
    result.claim("no overrun", ~register.overrun)
    return result


def from_logic(unit: type = FromLogic) -> Bench:
    """Offer items under the enable and take them in the memory clock."""
    register = unit(4)
    result = Bench(register)
    enable = result.free("enable")
    result.m.d.comb += register.enable.eq(enable)
    i, o = result.source("i", register.i, enable=enable), result.sink("o", register.o)
    level = in_order(result, "order", capacity=1, pushed=[i.payload], push=i.go, popped=[o.payload], pop=o.go)
    result.claim("progress", o.valid == (level != 0))
    return result


TO_LOGIC = Proof(block="register to logic", parameters="4 bits", bench=to_logic, cycles=16)
FROM_LOGIC = Proof(block="register from logic", parameters="4 bits", bench=from_logic, cycles=16)
