"""States of every head dimension come through their payloads unchanged; what fits no stream is refused."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp import POLY6
from golden.formats import FP32
from golden.numerics import unit_numerics
from golden.partial import PartialState, empty_state
from hw.layouts import body_layout, head_layout
from hw.params import StateParams
from hw.payloads import pack_state, unpack, unpack_state
from tests.helpers.partials import make_state

_PARAMS = StateParams(head_dim=128, lanes=16)
_NUMERICS = unit_numerics(POLY6)


def _codes(state: PartialState) -> list[list[int]]:
    return [np.ravel(FP32.to_codes(field)).tolist() for field in (state.m, state.l, state.o)]


@pytest.mark.parametrize("head_dim", range(16, 129, 16))
@pytest.mark.parametrize("kind", ["plain", "special"])
def test_a_state_comes_back(head_dim, kind):
    state = make_state(head_dim, _NUMERICS, np.random.default_rng(head_dim), kind)
    head, bodies = pack_state(_PARAMS, state, op_id=7, fault=True)
    fields = unpack(head_layout(_PARAMS), head)
    assert (fields["op_id"], fields["empty"], fields["fault"]) == (7, 0, 1)
    assert len(bodies) == head_dim // 16
    assert [unpack(body_layout(_PARAMS), beat)["last"] for beat in bodies] == [0] * (len(bodies) - 1) + [1]
    for found in (
        unpack_state(_PARAMS, head, bodies, _NUMERICS),
        unpack_state(_PARAMS, head, bodies, _NUMERICS, head_dim=head_dim),
    ):
        assert found.head_dim == head_dim
        assert not found.empty
        assert _codes(found) == _codes(state)


def test_an_empty_state_has_no_body_and_the_head_dim_it_is_given():
    head, bodies = pack_state(_PARAMS, empty_state(48, _NUMERICS), op_id=3)
    assert bodies == []
    assert unpack(head_layout(_PARAMS), head)["empty"] == 1
    assert unpack_state(_PARAMS, head, [], _NUMERICS).head_dim == 128
    found = unpack_state(_PARAMS, head, [], _NUMERICS, head_dim=48)
    assert found.head_dim == 48
    assert found.empty


@pytest.mark.parametrize(
    ("head_dim", "message"),
    [
        (8, "head_dim must be from 16 to 128, not 8"),
        (144, "head_dim must be from 16 to 128, not 144"),
        (40, "head_dim must be a multiple of lanes \\(16\\), not 40"),
    ],
)
def test_a_head_dim_that_fits_no_stream_is_refused(head_dim, message):
    state = make_state(head_dim, _NUMERICS, np.random.default_rng(1))
    with pytest.raises(ValueError, match=message):
        pack_state(_PARAMS, state, op_id=0)
    head, bodies = pack_state(_PARAMS, make_state(32, _NUMERICS, np.random.default_rng(1)), op_id=0)
    with pytest.raises(ValueError, match=message):
        unpack_state(_PARAMS, head, bodies, _NUMERICS, head_dim=head_dim)


def test_beats_that_are_no_state_are_refused():
    head, bodies = pack_state(_PARAMS, make_state(64, _NUMERICS, np.random.default_rng(1)), op_id=0)
    empty, _ = pack_state(_PARAMS, empty_state(64, _NUMERICS), op_id=0)
    cases = [
        (head, bodies[:-1], None, "3 body beats, the final one marked, not 3"),
        (head, [], None, "1 body beats, the final one marked, not 0"),
        (head, [bodies[3], *bodies[1:]], None, "4 body beats, the final one marked, not 4"),
        (head, bodies, 80, "5 body beats, the final one marked, not 4"),
        (empty, bodies, None, "0 body beats, the final one marked, not 4"),
    ]
    for given, beats, head_dim, message in cases:
        with pytest.raises(ValueError, match=f"a state must have {message} beats"):
            unpack_state(_PARAMS, given, beats, _NUMERICS, head_dim=head_dim)
    two = PartialState(m=np.zeros(2, np.float32), l=np.ones(2, np.float32), o=np.ones((2, 64), np.float32))
    with pytest.raises(ValueError, match=r"state must be a single one, not of shape \(2,\)"):
        pack_state(_PARAMS, two, op_id=0)
