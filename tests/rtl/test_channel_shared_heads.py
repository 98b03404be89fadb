"""Promise: query heads that share a KV head read the same rows, one pass each, and the first writes the new token."""

from __future__ import annotations

import numpy as np
import pytest

from hw.channel_operation import shared_head
from hw.presets.devices import DEVICE_PRESETS
from tests.helpers.channels import checked_run, grown, make_channel_operation

ATTACC = DEVICE_PRESETS["attacc"].channel


@pytest.mark.parametrize(("queries", "expected"), [(1, 3724), (4, 14860), (8, 29708)])
def test_each_query_is_a_pass(queries, expected):
    """128 tokens a bank group: as many cycles as on rows of their own, 3,712 a query head, and 12 to begin with."""
    rng = np.random.default_rng(queries)
    base = make_channel_operation(ATTACC, rng, head_dim=128, tokens=2048, kv_head=3)
    draws = [make_channel_operation(ATTACC, rng, head_dim=128, tokens=2048) for _ in range(queries)]
    shared, counts = checked_run(ATTACC, shared_head(base, [op.query for op in draws]))
    own, _ = checked_run(ATTACC, draws)
    np.testing.assert_array_equal(shared.read_cycles, own.read_cycles)
    assert shared.read_cycles[-1] == expected == 3712 * queries + 12
    assert counts["ACTAB"] == queries * 2 * 8
    rows = {fields["row"] for _, bus, fields in shared.commands() if bus == "row" and fields["kind"] == 0}
    assert len(rows) == 2 * 8


def test_every_query_attends_to_the_new_token():
    """Two KV heads, their query heads in turn; the token is written once a KV head."""
    rng = np.random.default_rng(9)
    operations = []
    for head in range(2):
        base = make_channel_operation(ATTACC, rng, head_dim=128, tokens=300 + head, kv_head=head)
        queries = [make_channel_operation(ATTACC, rng, head_dim=128, tokens=0).query for _ in range(4)]
        operations += shared_head(grown(base, rng, 0), queries)
    _, counts = checked_run(ATTACC, operations[::4] + operations[1:4] + operations[5:])
    assert counts["WR"] == 2 * 16
