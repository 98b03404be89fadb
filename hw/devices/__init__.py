"""Whole devices: memory and the units in it, behind one command stream."""
