"""Sums and products of floats computed by the simulating machine instead of by the gates of a unit.

Long runs of a device spend nine tenths of their time in the gates of adders and multipliers whose every result is
known: IEEE 754, rounded to nearest even, subnormals kept. Verilog made for :data:`NATIVE` calls C++ for them, one
function a kind, and is otherwise the same: every register, every handshake, every cycle. It is for simulation alone.
``tests/rtl/test_native_arithmetic.py`` holds the functions against the gates, and a channel made either way against
itself: same commands, same cycles, same states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.formats import BF16, FP16, FP32

if TYPE_CHECKING:
    from golden.formats import FloatFormat

__all__ = ["NATIVE", "NativeArithmetic", "native_cpp", "native_module", "with_native"]

_OPERANDS = (FP16, BF16, FP32)
_WIDENED = {
    FP16.name: "from_half(static_cast<std::uint16_t>({0}))",
    BF16.name: "from_bits({0} << 16)",
    FP32.name: "from_bits({0})",
}
_OPERATORS = {"add": "+", "mul": "*"}


class NativeArithmetic:
    """The platform that Verilog with calls to native arithmetic is made for; see :func:`hw.conversion.convert`."""

    def __repr__(self) -> str:
        return "NativeArithmetic()"


NATIVE = NativeArithmetic()
"""The one platform of its kind."""


def with_native(verilog: str) -> str:
    """Return ``verilog`` and behind it the modules of native arithmetic that it places."""
    return verilog + "".join(_module(*use) for use in _uses(verilog))


def native_cpp(verilog: str) -> str:
    """Return the C++ functions that the modules in ``verilog`` call; empty where there are none."""
    uses = _uses(verilog)
    return _CPP_HEAD + "".join(_function(*use) for use in uses) if uses else ""


def _uses(verilog: str) -> list[tuple[str, str, str]]:
    """Return kind and formats of the native modules that a text places."""
    return [
        (kind, a, b) for kind in _OPERATORS for a in _WIDENED for b in _WIDENED if f"{_name(kind, a, b)} " in verilog
    ]


def native_module(
    platform: object, kind: str, operands: tuple[FloatFormat, FloatFormat], result: FloatFormat
) -> str | None:
    """Return the name of the Verilog module that computes a result natively, or None where gates have to do it.

    Parameters
    ----------
    platform : object
        What the unit is made for; anything but :data:`NATIVE` wants gates.
    kind : {"add", "mul"}
        The operation.
    operands, result : FloatFormat
        Formats; operands of fp16, bf16 or fp32, result of fp32.
    """
    if platform is not NATIVE or result != FP32 or any(fmt not in _OPERANDS for fmt in operands):
        return None
    return _name(kind, operands[0].name, operands[1].name)


def _name(kind: str, a: str, b: str) -> str:
    return f"nearkv_native_{kind}_{a}_{b}"


def _module(kind: str, a: str, b: str) -> str:
    name = _name(kind, a, b)
    high = {fmt.name: fmt.bits - 1 for fmt in _OPERANDS}
    return f"""
module {name} (input [{high[a]}:0] a, input [{high[b]}:0] b, output [31:0] o);
    import "DPI-C" pure function int unsigned {name}_c(input int unsigned a, input int unsigned b);
    assign o = {name}_c(32'(a), 32'(b));
endmodule
"""


def _function(kind: str, a: str, b: str) -> str:
    left, right = _WIDENED[a].format("a"), _WIDENED[b].format("b")
    return f"""
extern "C" unsigned int {_name(kind, a, b)}_c(unsigned int a, unsigned int b) {{
    return to_bits({left} {_OPERATORS[kind]} {right});
}}
"""


_CPP_HEAD = """\
// Arithmetic of the machine: IEEE 754 single precision, rounded to nearest even, subnormals kept.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

static_assert(FLT_EVAL_METHOD == 0, "floats must be computed as floats");

static inline float from_bits(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float from_half(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7FFFu) << 13;
    if (magnitude >= 0x0F800000u) return from_bits(sign | 0x70000000u | magnitude);
    // The exponents differ by 112; a product with a power of two is exact, of a subnormal too.
    return from_bits(sign | magnitude) * 0x1p112f;
}

static inline std::uint32_t to_bits(float value) {
    if (std::isnan(value)) return 0x7FC00000u;
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
"""
