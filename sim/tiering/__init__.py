"""Tiering: what a step reads of the stored keys and values, and which of them change their memory for it."""
