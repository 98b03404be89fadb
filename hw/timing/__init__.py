"""Cycles of every unit, as formulas: the only bridge from the hardware to the system harness.

One module a unit. Each has the latency, the interval and the cycles of whole operations without
stalls, proven equal to the RTL, and a recurrence that predicts the cycles of a stalled run from the
recorded handshakes (:class:`hw.timing.trace.StreamTrace`). Nothing here loads Amaranth.
"""
