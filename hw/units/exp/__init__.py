"""The exponential unit, and the datapaths of its families; importing a family registers its own."""

from hw.units.exp import (  # noqa: F401
    compact,
    compact_bf16,
    compact_polynomial,
    direct,
    fixed,
    polynomial,
    polynomial_serial,
    schraudolph,
    segments,
    shift_add,
    table,
)
from hw.units.exp.datapath import Step, datapath, serial_layout
from hw.units.exp.unit import ExpUnit

__all__ = ["ExpUnit", "Step", "datapath", "serial_layout"]
