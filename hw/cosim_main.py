"""The C++ main program of :mod:`hw.cosim`: one table row a stream, then a loop that is the same for all units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.waves import TRACED_CYCLES

if TYPE_CHECKING:
    from hw.cosim import Port

__all__ = ["main_cpp"]


def main_cpp(ports: list[Port], has_clock: bool) -> str:
    """Return the main program for these ports: one table row a stream, then a loop that is the same for all."""
    rows = "\n".join(
        f'        {{{"true" if port.is_input else "false"}, "{port.name}", '
        f"reinterpret_cast<char *>(&top->{_cpp_name(port.name + '__payload')}), "
        f"&top->{_cpp_name(port.name + '__valid')}, &top->{_cpp_name(port.name + '__ready')}, {port.storage_bytes}}},"
        for port in ports
    )
    return (
        _MAIN.replace("@ROWS@", rows)
        .replace("@CLOCK@", "1" if has_clock else "0")
        .replace("@TRACED@", str(TRACED_CYCLES))
    )


def _cpp_name(name: str) -> str:
    """Return Verilator's C++ name of a port: it escapes doubled underscores, which C++ reserves."""
    return name.replace("__", "___05F")


_MAIN = """\
// One row a stream; every input is offered as early as possible or as it may be, every output is taken at once.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

double sc_time_stamp() { return 0; }

struct Stream {
    bool is_input;
    const char *name;
    char *payload;
    CData *valid;
    CData *ready;
    std::size_t bytes;
    std::vector<char> data{};
    std::vector<std::uint64_t> earliest{};
    std::size_t sent = 0;
    std::size_t next = 0;
    std::uint64_t wanted = 0;
    std::uint64_t taken = 0;
    std::ofstream log{};

    void record(std::uint64_t cycle) {
        log.write(reinterpret_cast<const char *>(&cycle), sizeof cycle);
        log.write(payload, static_cast<std::streamsize>(bytes));
        ++taken;
    }
};

int main(int argc, char **argv) {
    auto context = std::make_unique<VerilatedContext>();
    auto top = std::make_unique<Vtop>(context.get());
    Stream streams[] = {
@ROWS@
    };
    const std::string folder = argv[1];
    const std::uint64_t max_cycles = std::strtoull(argv[2], nullptr, 10);
    int index = 3;
    for (auto &stream : streams) {
        stream.wanted = std::strtoull(argv[index++], nullptr, 10);
        stream.log.open(folder + "/" + stream.name + ".log", std::ios::binary);
        if (stream.is_input) {
            std::ifstream file(folder + "/" + stream.name, std::ios::binary);
            stream.data.assign(std::istreambuf_iterator<char>(file), {});
            std::ifstream cycles(folder + "/" + stream.name + ".cycles", std::ios::binary);
            std::uint64_t cycle;
            while (cycles.read(reinterpret_cast<char *>(&cycle), sizeof cycle)) stream.earliest.push_back(cycle);
        }
    }
#if VM_TRACE
    context->traceEverOn(true);
    VerilatedVcdC trace;
    top->trace(&trace, 99);
    trace.open(argv[index]);
#endif
    const auto clock = [&](int level) {
#if @CLOCK@
        top->clk = level;
#endif
        top->eval();
#if VM_TRACE
        context->timeInc(1);
        if (context->time() <= 2 * @TRACED@) trace.dump(context->time());
#endif
    };
    const auto offer = [&](std::uint64_t cycle) {
        for (auto &stream : streams) {
            if (!stream.is_input) {
                *stream.ready = 1;
                continue;
            }
            *stream.valid = stream.sent < stream.data.size() &&
                            (stream.earliest.empty() || stream.earliest[stream.next] <= cycle);
            if (*stream.valid) std::memcpy(stream.payload, &stream.data[stream.sent], stream.bytes);
        }
    };
#if @CLOCK@
    top->rst = 1;
    for (int i = 0; i < 4; ++i) clock(i & 1);
    top->rst = 0;
#endif
    bool done = false;
    std::uint64_t cycle = 0;
    for (; !done; ++cycle) {
        if (cycle == max_cycles) {
            std::fprintf(stderr, "outputs must come within %llu cycles:", static_cast<unsigned long long>(max_cycles));
            for (auto &stream : streams)
                std::fprintf(stderr, " %s %llu", stream.name, static_cast<unsigned long long>(stream.taken));
            std::fprintf(stderr, " items transferred\\n");
            return 1;
        }
        offer(cycle);
        clock(0);
        done = true;
        for (auto &stream : streams) {
            if (*stream.valid && *stream.ready) {
                stream.record(cycle);
                if (stream.is_input) {
                    stream.sent += stream.bytes;
                    ++stream.next;
                }
            }
            if (!stream.is_input && stream.taken < stream.wanted) done = false;
        }
        clock(1);
    }
    std::printf("%llu\\n", static_cast<unsigned long long>(cycle));
    return 0;
}
"""
