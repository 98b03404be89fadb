"""The compact degree-6 units that have a clock, for the tests in both simulators' processes."""

from __future__ import annotations

from golden.exp.compact_polynomial import COMPACT_POLYNOMIAL_SPECS

__all__ = ["CLOCKED", "SERIAL", "UNITS"]

UNITS = {spec.name: spec for spec in COMPACT_POLYNOMIAL_SPECS}
SERIAL = UNITS["compact-poly6-serial"]
_PIPELINED = UNITS["compact-poly6"].replace(name="pipelined", evaluation="pipelined")
CLOCKED = {
    spec.name: spec
    for spec in (
        SERIAL,
        SERIAL.replace(name="serial-nonpositive", domain="nonpositive", subnormals="flushed"),
        _PIPELINED,
        _PIPELINED.replace(name="retimed", registers=3),
    )
}
