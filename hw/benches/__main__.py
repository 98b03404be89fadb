"""Runs benchmarks and prints one JSON object: ``python -m hw.benches [NAME ...]``, all of them without a name."""

from __future__ import annotations

import importlib
import json
import sys

__all__ = ["BENCHES", "main"]

BENCHES = {
    "top-k": ("hw.benches.top_k", "million_scores"),
    "top-k-64": ("hw.benches.top_k", "million_scores_of_64_shards"),
    "index-score": ("hw.benches.index_score", "channel_share"),
    "index-select": ("hw.benches.index_select", "million_keys"),
    "sorter": ("hw.benches.sorter", "beside_a_sorter"),
    "dma": ("hw.benches.dma", "hundred_thousand_tokens"),
}
"""Benchmarks by name: module and function."""


def main(names: list[str]) -> int:
    """Run the benchmarks named; return 0, 1 where one failed, or 2 for a name that is none."""
    for name in names:
        if name not in BENCHES:
            print(f"benchmark must be one of {', '.join(BENCHES)}, not {name!r}", file=sys.stderr)
            return 2
    results: list[dict[str, object]] = []
    failed = False
    for name in names or BENCHES:
        module, function = BENCHES[name]
        print(f"running {name}", file=sys.stderr, flush=True)
        try:
            results.append({"name": name, **getattr(importlib.import_module(module), function)()})
        except AssertionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
    print(json.dumps({"benches": results}, indent=2))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
