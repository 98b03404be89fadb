"""Promise: one bank group of a channel stands for all, exactly, up to the state that its own units give.

Two groups are simulated with data of their own, and the first one again alone. It owns the most tokens, as an even
deal has it, so that the channel waits for no other. Then the simulation of one group gives the commands of the channel,
and the cycles of every group that owns as many tokens.
"""

from __future__ import annotations

import numpy as np
import pytest

from golden.numerics import unit_numerics
from hw.channel_run import ChannelOperation, run_channel
from hw.logic_die_params import LogicDieParams
from hw.logic_die_run import run_behind
from hw.measure import MEASURED_ROWS
from hw.memory.kv_rows import deal
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from tests.helpers.channels import assert_legal, assert_states, make_channel_operation
from tests.helpers.logic_die import GroupStates, assert_root

PAM = DEVICE_PRESETS["pam"].channel


def _alone(operation: ChannelOperation) -> ChannelOperation:
    """Return the operation with the tokens of the first group alone."""
    first = PAM.parts_per_group
    return ChannelOperation(
        query=operation.query,
        keys=operation.keys[:first],
        values=operation.values[:first],
        tokens=operation.tokens,
        scale=operation.scale,
    )


def _equal(one, other) -> None:
    np.testing.assert_array_equal(one.cycles, other.cycles)
    assert one.payloads == other.payloads


@pytest.mark.parametrize("first_refresh", [0, 1500])
def test_a_group_does_the_same_alone_as_beside_another(first_refresh: int) -> None:
    rng = np.random.default_rng(11)
    # As many tokens in both, one more in the first, none in the second; as many again: both runs end together.
    dealt = [deal(2048, 16), deal(1024, 16), deal(65, 16), np.eye(16, dtype=int)[0] * 40, deal(16, 16)]
    operations = [
        make_channel_operation(PAM, rng, head_dim=head_dim, tokens=list(counts), groups=2)
        for head_dim, counts in zip((128, 64, 128, 128, 96), dealt, strict=True)
    ]
    options = {"rows": MEASURED_ROWS, "first_refresh_cycles": first_refresh, "platform": NATIVE}
    pair = run_channel(PAM, operations, groups=2, **options)
    alone = run_channel(PAM, [_alone(operation) for operation in operations], **options)
    assert_states(pair, operations, groups=2)
    assert_legal(pair, refreshing=bool(first_refresh))
    _equal(pair.row_commands, alone.row_commands)
    _equal(pair.column_commands, alone.column_commands)
    _equal(pair.heads[0], alone.heads[0])
    _equal(pair.bodies[0], alone.bodies[0])
    # Where both own as many tokens, whatever their data, both give their states in the same cycles.
    for number in (0, 1, 4):
        assert pair.heads[0].cycles[number] == pair.heads[1].cycles[number]
        assert pair.heads[0].payloads[number] != pair.heads[1].payloads[number]
    beats = sum(8 if len(operation.query) > 64 else 4 for operation in operations[:2])
    np.testing.assert_array_equal(pair.bodies[0].cycles[:beats], pair.bodies[1].cycles[:beats])


def test_the_logic_die_behind_a_recorded_channel() -> None:
    """Its root answers as the golden tree over the recorded states; no group is held up, so the run is exact."""
    rng = np.random.default_rng(12)
    operations = [make_channel_operation(PAM, rng, head_dim=128, tokens=tokens) for tokens in (512, 2048, 1024)]
    run = run_channel(PAM, operations, rows=MEASURED_ROWS, first_refresh_cycles=PAM.timing.n_refi, platform=NATIVE)
    assert_states(run, operations)
    die = LogicDieParams(channel=PAM)
    root = run_behind(die, run, platform=NATIVE)
    states = [[state] * PAM.groups for state in run.states(0, unit_numerics(PAM.processing.exp))]
    assert_root(root, GroupStates(die, states).expected())
    assert root.late_cycles == 0
    assert (root.head.cycles > run.heads[0].cycles).all()
    # Sixteen states of 17 bursts over two buses, and the units behind them: under a third of a thousand cycles.
    exposed = root.body.cycles[7::8] - run.bodies[0].cycles[7::8]
    assert (exposed >= 272).all() and (exposed < 333).all()
