r"""Derived error bounds of attention by partial states, from the exact numbers; nothing is fitted.

Let u be the unit roundoff of the state, rho that of the exponential's operand, eps and alpha the largest
relative and absolute error of the exponential where its result is normal and where it is not.

One weight is a product of k exponentials whose exact operands x_i <= 0 add up to X, since the maxima telescope. An
operand is rounded twice (the difference, then the operand format), which moves it by at most (rho + 2u)|x_i| + tiny;
every factor is at most 1, so absolute errors only add up::

    |W - e^X| <= e^X (exp((rho + 2u)|X| + k tiny + k log(1 + eps)) - 1) + k alpha             (weight_error)

Every term of l or o passes through at most c rounded operations, gamma = (1 + u)^c - 1. With w_t the exact and W_t the
computed weight, D_t >= |W_t - w_t| and r the exact answer, sum_t w_t (v_t - r) = 0 gives::

    |O/L - r| <= (sum_t D_t |v_t - r| + gamma sum_t (w_t + D_t)(|v_t| + |r|)) / ((1 - gamma) (sum_t w_t - sum_t D_t))

An error d_t of a score multiplies its weight by at most e^d_t, and moves X by at most 2 max d; a dot product of n terms
through c additions has |d| <= ((1 + u)^c - 1) sum |q_i k_i|.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np

from golden.formats import FP16

__all__ = ["DOUBLE", "ErrorModel", "attention_bound", "merge_bound", "tree_depth", "unit_error_model"]


@dataclass(frozen=True, kw_only=True)
class ErrorModel:
    """Roundoffs of one numerics, each with the absolute error left below its normal range."""

    u: float
    tiny: float
    operand_u: float
    operand_tiny: float
    exp_relative: float
    exp_absolute: float
    output_u: float
    output_tiny: float


# NumPy's float64 exponential is documented to within 1 ulp; two are allowed here.
DOUBLE = ErrorModel(
    u=2.0**-53,
    tiny=2.0**-1074,
    operand_u=0.0,
    operand_tiny=0.0,
    exp_relative=2.0**-51,
    exp_absolute=2.0**-1022,
    output_u=0.0,
    output_tiny=0.0,
)


def unit_error_model(spec):
    """Error model of the units: the exponential's part is measured over every operand that is not positive."""
    codes = np.arange(FP16.sign_mask, FP16.sign_mask | FP16.inf_code, dtype=np.uint16)
    exact = np.exp(FP16.from_codes(codes).astype(np.float64))
    error = np.abs(FP16.from_codes(spec.evaluate_codes(codes)).astype(np.float64) - exact)
    normal = exact >= FP16.min_normal
    return ErrorModel(
        u=2.0**-24,
        tiny=2.0**-149,
        operand_u=2.0**-11,
        operand_tiny=2.0**-25,
        exp_relative=float((error[normal] / exact[normal]).max()),
        exp_absolute=float(error[~normal].max()),
        output_u=2.0**-11,
        output_tiny=2.0**-25,
    )


def _growth(u, count):
    return np.expm1(count * np.log1p(u))


def weight_error(x, exponentials, model, score_error=0.0, shift_error=0.0):
    """Bound of a weight's error, as above; ``score_error`` is d_t, ``shift_error`` is max d."""
    exponent = (
        (model.operand_u + 2 * model.u) * (np.abs(x) + 2 * shift_error)
        + exponentials * (model.operand_tiny + np.log1p(model.exp_relative))
        + score_error
    )
    # Above 700 the exponent belongs to an x whose e^x is zero in float64.
    return np.exp(x) * np.expm1(np.minimum(exponent, 700.0)) + exponentials * model.exp_absolute * np.exp(shift_error)


def merge_bound(states, depth, model):
    """Merge single states exactly and bound l and o after at most ``depth`` merges each.

    Returns (m, l, o, l_bound, o_bound) in float64; the sums are taken in 50 digits and rounded once, which the bounds
    allow for. The states must not all be empty.
    """
    full = [state for state in states if not state.empty]
    m = np.array([float(s.m) for s in full])
    l = np.array([float(s.l) for s in full])
    o = np.array([s.o.astype(np.float64) for s in full])
    with mpmath.workdps(50):
        exact = [mpmath.exp(mpmath.mpf(x) - mpmath.mpf(m.max())) for x in m]
        l_exact, *o_exact = (float(mpmath.fdot(exact, column)) for column in np.column_stack([l, o]).T)
    weights = np.exp(m - m.max())
    gamma = _growth(model.u, 2 * depth)
    error = (weights + weight_error(m - m.max(), depth, model)) * (1 + gamma) - weights
    tiny = 2 * depth * len(full) * model.tiny

    def bound(terms, total):
        # Last factor: this evaluation in float64 is itself rounded.
        return (error @ np.abs(terms) + tiny) * (1 + 2.0**-40) + 2.0**-53 * np.abs(total)

    return m.max(), l_exact, np.array(o_exact), bound(l, l_exact), bound(o, o_exact)


def attention_bound(q, k, v, scale, *, tiles, depth, model, score_roundings):
    """Bound of the finished output of shape (num_heads, head_dim), elementwise.

    ``tiles`` and ``depth`` are the most tiles any token's unit reads and the most merges any state goes through;
    ``score_roundings`` the rounded operations of one dot product. q, k and v are taken as exact.
    """
    ratio = q.shape[0] // k.shape[1]
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    k, v = np.repeat(k, ratio, axis=1), np.repeat(v, ratio, axis=1)
    scores = scale * np.einsum("hd,thd->th", q, k)
    d = _growth(model.u, score_roundings + 2) * scale * np.einsum("hd,thd->th", np.abs(q), np.abs(k))
    x = scores - scores.max(axis=0)
    w = np.exp(x)
    error = weight_error(x, tiles + depth, model, score_error=d, shift_error=d.max(axis=0))
    exact = np.einsum("th,thd->hd", w, v) / w.sum(axis=0)[:, None]
    roundings = len(k) + tiles + 2 * depth
    gamma = _growth(model.u, roundings)
    spread = np.einsum("th,thd->hd", error, np.abs(v - exact))
    rounding = gamma * np.einsum("th,thd->hd", w + error, np.abs(v) + np.abs(exact)) + roundings * model.tiny
    floor = ((1 - gamma) * (w.sum(axis=0) - error.sum(axis=0)))[:, None]
    assert (floor > 0).all(), "the bound says nothing here"
    bound = (spread + rounding) / floor
    # Reciprocal and product, then the output format.
    bound = bound + (np.abs(exact) + bound) * _growth(model.u, 2)
    return bound + (np.abs(exact) + bound) * model.output_u + model.output_tiny


def tree_depth(tree, count):
    """Most merges that a state goes through in ``tree`` over ``count`` states, at most (0 for one state)."""
    if tree is None:
        return count - 1
    if isinstance(tree, int):
        depth = 0
        while count > 1:
            depth, count = depth + tree - 1, -(-count // tree)
        return depth

    def node(member):
        return 0 if isinstance(member, int) else len(member) - 1 + max(node(m) for m in member)

    return node(tree)
