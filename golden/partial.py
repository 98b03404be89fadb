"""Partial attention states ``(m, l, o)`` and how they are merged.

A state stands for the attention of a query over some of the tokens, not yet divided::

    m = max_t s_t      l = sum_t base**(s_t - m)      o = sum_t base**(s_t - m) * v_t

This is the plain form: ``l`` is a sum, at every level of a tree, and ``o / l`` is taken once, at the
root. PAM's Algorithm 1 as printed [1]_ returns the log-sum-exp ``m + log(l)`` in the place of ``l``,
while the level above sums it as if it were plain; only one of the two forms can be used, and here it
is the plain one.

References
----------
.. [1] PAM, arXiv:2602.11521, Algorithm 1 and Eq. (5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from golden.numerics import REFERENCE, Array, Base, Numerics

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Finished", "PartialState", "Tree", "convert_base", "empty_state", "finish"]
__all__ += ["merge", "merge_chain", "merge_tree"]

Tree: TypeAlias = "int | Sequence[int | Tree]"

_quiet = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


class Finished(NamedTuple):
    """An attention output and where it is empty.

    Attributes
    ----------
    output : ndarray, shape (..., head_dim)
        ``o / l``; zeros where ``empty``.
    empty : ndarray of bool, shape (...)
        True where no token contributed, or ``l`` is zero.
    """

    output: Array
    empty: npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class PartialState:
    """Attention over part of the tokens, one state for each index of the leading axes (often: heads).

    The arrays are copied and made read-only.

    Parameters
    ----------
    m : array_like of float, shape (...)
        Largest score, in units of the base's logarithm.
    l : array_like of float, shape (...)
        Sum of weights; at least 1 in every state made by attention, since the largest score weighs 1.
    o : array_like of float, shape (..., head_dim)
        Weighted sum of values, not divided by ``l``.
    empty : array_like of bool, shape (...) or ()
        True where no token contributed. There m, l and o must be -inf, 0 and 0.
    base : {"e", "2"}
        Base of the exponential behind ``l`` and ``o``. States of different bases never merge.

    Raises
    ------
    TypeError, ValueError
        If shapes or dtypes disagree, the base is unknown, or an empty state carries numbers.
    """

    m: Array
    l: Array
    o: Array
    empty: npt.NDArray[np.bool_] = np.False_  # pyright: ignore[reportAssignmentType]
    base: Base = "e"

    def __post_init__(self) -> None:
        m, l, o = (np.array(value) for value in (self.m, self.l, self.o))
        if m.dtype.name not in ("float32", "float64"):
            raise TypeError(f"m must be of dtype float32 or float64, not {m.dtype}")
        for name, value in (("l", l), ("o", o)):
            if value.dtype != m.dtype:
                raise TypeError(f"{name} must be of the dtype of m ({m.dtype}), not {value.dtype}")
        if l.shape != m.shape:
            raise ValueError(f"l must have the shape of m {m.shape}, not {l.shape}")
        if o.ndim != m.ndim + 1 or o.shape[:-1] != m.shape or o.shape[-1] < 1:
            raise ValueError(f"o must have the shape of m {m.shape} and one more axis, not {o.shape}")
        if np.asarray(self.empty).dtype != np.bool_:
            raise TypeError(f"empty must be of dtype bool, not {np.asarray(self.empty).dtype}")
        if np.shape(self.empty) not in ((), m.shape):
            raise ValueError(f"empty must have the shape of m {m.shape}, not {np.shape(self.empty)}")
        empty = np.array(np.broadcast_to(self.empty, m.shape))
        if self.base not in get_args(Base):
            raise ValueError(f'base must be "e" or "2", not {self.base!r}')
        if not ((m[empty] == -np.inf).all() and (l[empty] == 0).all() and (o[empty] == 0).all()):
            raise ValueError("an empty state must have m = -inf, l = 0 and o = 0")
        for name, value in (("m", m), ("l", l), ("o", o), ("empty", empty)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def head_dim(self) -> int:
        """Elements of one output vector."""
        return int(self.o.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the leading axes; () for a single state."""
        return self.m.shape

    def __getitem__(self, index: Any) -> PartialState:
        """Return the states at ``index`` of the leading axes."""
        return PartialState(m=self.m[index], l=self.l[index], o=self.o[index], empty=self.empty[index], base=self.base)


def empty_state(head_dim: int, numerics: Numerics = REFERENCE, shape: tuple[int, ...] = ()) -> PartialState:
    """Return the identity of the merge: ``m = -inf``, ``l = 0``, ``o = 0``, flagged empty.

    Parameters
    ----------
    head_dim : int
        Elements of ``o``.
    numerics : Numerics
        Gives dtype and base.
    shape : tuple of int
        Leading axes.

    Returns
    -------
    PartialState
    """
    return PartialState(
        m=np.full(shape, -np.inf, numerics.dtype),
        l=np.zeros(shape, numerics.dtype),
        o=np.zeros((*shape, head_dim), numerics.dtype),
        empty=np.ones(shape, np.bool_),
        base=numerics.base,
    )


def convert_base(state: PartialState, base: Base) -> PartialState:
    """Return ``state`` with its maximum in units of another base's logarithm.

    Parameters
    ----------
    state : PartialState
    base : {"e", "2"}
        Base of the result.

    Returns
    -------
    PartialState
        The same ``l`` and ``o``: ``e**(s - m) = 2**(s*log2(e) - m*log2(e))``. Only ``m`` is rounded.
    """
    if base == state.base:
        return state
    factor = np.log2(np.e) if base == "2" else np.log(2.0)
    m = (state.m.astype(np.float64) * factor).astype(state.m.dtype)
    return PartialState(m=m, l=state.l, o=state.o, empty=state.empty, base=base)


def _check_mergeable(states: Sequence[PartialState], numerics: Numerics) -> None:
    """Raise unless all states share base, dtype and shape, and the numerics are theirs."""
    if not states:
        raise ValueError("states must hold at least one state, not none")
    first = states[0]
    for state in states:
        if state.base != first.base:
            raise ValueError(
                f"states must share one base, not {first.base!r} and {state.base!r}: convert one with convert_base"
            )
        if state.o.shape != first.o.shape:
            raise ValueError(f"states must share one shape, not {first.o.shape} and {state.o.shape}")
    _check_numerics(states, numerics)


def _check_numerics(states: Sequence[PartialState], numerics: Numerics) -> None:
    """Raise unless every state has the base and the dtype of the numerics."""
    for state in states:
        if state.base != numerics.base:
            raise ValueError(f"state must have the base of the numerics ({numerics.base!r}), not {state.base!r}")
        if state.m.dtype != numerics.dtype:
            raise TypeError(f"state must have the dtype of the numerics ({numerics.dtype}), not {state.m.dtype}")


@_quiet
def merge(accumulator: PartialState, incoming: PartialState, numerics: Numerics = REFERENCE) -> PartialState:
    """Merge two states of disjoint tokens into the state of their union.

    Parameters
    ----------
    accumulator, incoming : PartialState
        Same shape, dtype and base.
    numerics : Numerics
        How the merge is rounded.

    Returns
    -------
    PartialState

    Raises
    ------
    TypeError, ValueError
        If bases, shapes or dtypes differ.

    Notes
    -----
    An empty side leaves the other untouched, bit for bit. Otherwise, with *large* the side of the larger m
    (the accumulator if they are equal or either is NaN) and *small* the other::

        m = incoming.m > accumulator.m ? incoming.m : accumulator.m, NaN if either is NaN
        w = exponential(small.m - large.m)
        l = large.l + w * small.l      o = large.o + w * small.o

    The larger side has weight exactly 1 and is not multiplied. Each product and each sum is rounded.
    Two non-empty states whose maxima are the same infinity give NaN, as the subtraction does.

    In any tree, a state that is merged D times and whose maximum lies x below the largest ends with a weight off
    by at most ``e**x * ((1 + eps)**D * exp((rho + 2*u) * |x|) - 1) + D * alpha``: u is the unit roundoff of the
    state, rho that of the exponential's operand, eps and alpha the exponential's largest relative error where its
    result is normal, and absolute error where it is not. Products and sums add ``(1 + u)**(2*D)``.
    """
    _check_mergeable((accumulator, incoming), numerics)
    swap = incoming.m > accumulator.m
    small_m, large_m = np.where(swap, accumulator.m, incoming.m), np.where(swap, incoming.m, accumulator.m)
    small_l, large_l = np.where(swap, accumulator.l, incoming.l), np.where(swap, incoming.l, accumulator.l)
    swap_o = swap[..., np.newaxis]
    small_o, large_o = np.where(swap_o, accumulator.o, incoming.o), np.where(swap_o, incoming.o, accumulator.o)
    weight = numerics.exponential(small_m - large_m)

    keep, take = incoming.empty, accumulator.empty & ~incoming.empty

    def select(merged: Array, old: Array, new: Array) -> Array:
        axes = (...,) if merged.ndim == keep.ndim else (..., np.newaxis)
        return np.where(keep[axes], old, np.where(take[axes], new, numerics.canonical(merged)))

    return PartialState(
        m=select(numerics.maximum(incoming.m, accumulator.m), accumulator.m, incoming.m),
        l=select(large_l + weight * small_l, accumulator.l, incoming.l),
        o=select(large_o + weight[..., np.newaxis] * small_o, accumulator.o, incoming.o),
        empty=accumulator.empty & incoming.empty,
        base=numerics.base,
    )


def merge_chain(states: Sequence[PartialState], numerics: Numerics = REFERENCE) -> PartialState:
    """Merge states in the order given, as a reduction unit does with its sources 0 to N-1.

    Parameters
    ----------
    states : sequence of PartialState
        At least one; empty states are skipped.
    numerics : Numerics
        How each merge is rounded.

    Returns
    -------
    PartialState
        ``merge(... merge(merge(states[0], states[1]), states[2]) ...)``.

    Raises
    ------
    TypeError, ValueError
        If there is no state, or bases, shapes or dtypes differ.
    """
    _check_mergeable(states, numerics)
    total = states[0]
    for state in states[1:]:
        total = merge(total, state, numerics)
    return total


def merge_tree(states: Sequence[PartialState], tree: Tree, numerics: Numerics = REFERENCE) -> PartialState:
    """Merge states in a tree of reduction units.

    Parameters
    ----------
    states : sequence of PartialState
        At least one.
    tree : int or nested sequence of int
        An int, at least 2, is a fan-in: neighbours are merged in groups of that size, level by level, down
        to one; the last group of a level may be smaller. A nested sequence gives the tree itself: an int is
        the index of a state, a sequence is a unit that merges its members in order, such as
        ``[[0, 1], [2], 3]``. Every state occurs exactly once.
    numerics : Numerics
        How each merge is rounded.

    Returns
    -------
    PartialState

    Raises
    ------
    TypeError, ValueError
        If the tree is malformed, or the states do not merge.
    """
    _check_mergeable(states, numerics)
    if isinstance(tree, int):
        if isinstance(tree, bool) or tree < 2:
            raise ValueError(f"fan-in must be at least 2, not {tree!r}")
        level = list(states)
        while len(level) > 1:
            level = [merge_chain(level[i : i + tree], numerics) for i in range(0, len(level), tree)]
        return level[0]
    leaves = _leaves(tree)
    if sorted(leaves) != list(range(len(states))):
        raise ValueError(f"tree must name each state from 0 to {len(states) - 1} once, not {leaves!r}")
    return _merge_node(states, tree, numerics)


def _leaves(node: Any) -> list[int]:
    """Return the indices under ``node``, left to right."""
    if isinstance(node, int) and not isinstance(node, bool):
        return [node]
    if not isinstance(node, list | tuple):
        raise TypeError(f"tree must be made of integers and lists, not {node!r}")
    if not node:
        raise ValueError("tree must have no unit without members, not []")
    return [leaf for member in cast("Sequence[Any]", node) for leaf in _leaves(member)]


def _merge_node(states: Sequence[PartialState], node: int | Sequence[Any], numerics: Numerics) -> PartialState:
    """Return the state of one node of a checked tree."""
    if isinstance(node, int):
        return states[node]
    return merge_chain([_merge_node(states, member, numerics) for member in node], numerics)


@_quiet
def finish(state: PartialState, numerics: Numerics = REFERENCE) -> Finished:
    """Divide by the sum of weights, at the root of the tree.

    Parameters
    ----------
    state : PartialState
    numerics : Numerics
        How the division is rounded.

    Returns
    -------
    Finished
        ``output`` of shape (..., head_dim) in the output format, and the ``empty`` flags.

    Raises
    ------
    TypeError, ValueError
        If the state is not of these numerics.

    Notes
    -----
    ``r = 1 / l`` correctly rounded, then ``o * r`` rounded, then rounded to the output format. Where the
    state is empty or l is zero of either sign, the output is +0 and flagged.
    """
    _check_numerics((state,), numerics)
    empty = state.empty | (state.l == 0)
    reciprocal = numerics.dtype.type(1) / np.where(empty, numerics.dtype.type(1), state.l)
    output = numerics.output(state.o * reciprocal[..., np.newaxis])
    return Finished(np.where(empty[..., np.newaxis], numerics.output_dtype.type(0), output), empty)
