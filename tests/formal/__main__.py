"""Prove all blocks: a table as it goes, ``build/formal.json`` at the end, a run and a waveform of what fails."""

from __future__ import annotations

import json
import re
import sys

from rich.console import Console
from rich.table import Table

from hw.builds import build_root, replace_text
from tests.formal.blocks import PROOFS
from tests.formal.proofs import prove
from tests.formal.replay import replay

SECONDS = 300
"""Limit of the search for one invariant; where none is found, all runs of a bound are gone through."""


def main() -> int:
    """Return 1 if a claim fails."""
    console = Console()
    root = build_root()
    findings = []
    for proof in PROOFS:
        for finding in prove(proof, seconds=SECONDS):
            findings.append(finding)
            row = finding.to_dict()
            console.print(
                f"{row['result']:8} {row['block']}: {row['claim']} ({row['method']}, {row['seconds']} s)",
                soft_wrap=True,
            )
            if finding.outcome.result == "fails":
                waveform = root / "formal" / f"{re.sub('[^a-z]+', '-', f'{finding.block} {finding.claim}')}.vcd"
                shown = replay(proof.bench(), finding.claim, finding.outcome.inputs, waveform)
                console.print(shown.table, highlight=False, soft_wrap=True)
                console.print(
                    f"{'fails' if shown.confirmed else 'holds'} in the simulator too: {waveform}", soft_wrap=True
                )
    rows = [finding.to_dict() for finding in findings]
    replace_text(root / "formal.json", json.dumps(rows, indent=2) + "\n")
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console.print(table)
    return int(any(finding.outcome.result == "fails" for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
