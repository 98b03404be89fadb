"""Serving: requests arrive, are batched step by step and answered; schedulers, KV storage, event loop, latencies."""
