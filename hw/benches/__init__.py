"""Long runs of the hardware, once in a while: each holds its results to the golden model and says what it measured.

A benchmark is a function without arguments that returns what it measured by name, units in the names, and raises
:class:`AssertionError` where the hardware differs from the model; :mod:`hw.benches.__main__` lists them.
"""
