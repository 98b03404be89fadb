"""Cells of a memory for simulation, of any depth."""

from __future__ import annotations

from amaranth.hdl import ClockSignal, Instance, Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

__all__ = ["Cells", "with_cells"]

_LARGEST_MEMORY_BITS = 1 << 18  # Amaranth writes the initial value of every bit of a memory into the text
_NAME = "nearkv_cells"
_TEXT = f"""
module {_NAME} #(parameter WIDTH = 1, parameter DEPTH = 1, parameter ADDRESS = 1) (
    input clk,
    input write,
    input [ADDRESS-1:0] write_address,
    input [WIDTH-1:0] write_data,
    input read,
    input [ADDRESS-1:0] read_address,
    output reg [WIDTH-1:0] read_data
);
    reg [WIDTH-1:0] cells [0:DEPTH-1];
    always @(posedge clk) begin
        if (write) cells[write_address] <= write_data;
        if (read) read_data <= cells[read_address];
    end
endmodule
"""


class Cells(wiring.Component):
    """Hold ``depth`` words of ``width`` bits; write and read at a rising edge. Simulation only.

    Small ones are an Amaranth memory. A large one is an instance of the module that :func:`with_cells` adds to the
    Verilog, which Amaranth's own simulator cannot run.

    Parameters
    ----------
    width, depth : int
        Bits of a word, and words.

    Members
    -------
    write, write_address, write_data : ``In(1)``, ``In(range(depth))``, ``In(width)``
        One word to write.
    read, read_address : ``In(1)``, ``In(range(depth))``
        One word to read; in the cycle in which it is written, the old one.
    read_data : ``Out(width)``
        The word of the last read, from the cycle after it.
    """

    simulation_only = True

    def __init__(self, width: int, depth: int) -> None:
        require_int("width", width, 1)
        require_int("depth", depth, 1)
        self.width, self.depth = width, depth
        super().__init__(
            {
                "write": In(1),
                "write_address": In(range(depth)),
                "write_data": In(width),
                "read": In(1),
                "read_address": In(range(depth)),
                "read_data": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make a memory or an instance, by size."""
        m = Module()
        if self.width * self.depth <= _LARGEST_MEMORY_BITS:
            m.submodules.words = words = memory.Memory(shape=self.width, depth=self.depth, init=[])
            write, read = words.write_port(), words.read_port()
            m.d.comb += [
                write.en.eq(self.write),
                write.addr.eq(self.write_address),
                write.data.eq(self.write_data),
                read.en.eq(self.read),
                read.addr.eq(self.read_address),
                self.read_data.eq(read.data),
            ]
            return m
        m.submodules.words = Instance(
            _NAME,
            p_WIDTH=self.width,
            p_DEPTH=self.depth,
            p_ADDRESS=len(self.write_address),
            i_clk=ClockSignal(),
            i_write=self.write,
            i_write_address=self.write_address,
            i_write_data=self.write_data,
            i_read=self.read,
            i_read_address=self.read_address,
            o_read_data=self.read_data,
        )
        return m


def with_cells(verilog: str) -> str:
    """Return ``verilog`` with the module of large cells behind it, if any of its modules has some."""
    return verilog + _TEXT if f"{_NAME} #(" in verilog else verilog
