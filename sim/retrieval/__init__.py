"""Decode with retrieval: indices are scored, tokens selected, gathered and attended to, near the memory or on GPUs."""
