"""Energy of steps and runs: what was moved and computed, and what a bit, an operation and a second cost."""
