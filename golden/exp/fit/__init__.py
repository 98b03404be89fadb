"""Searches for the constants of exponential units: deterministic, and with the word lengths in place."""
