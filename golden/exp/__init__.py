"""Exponential units: each is described once, for its float model, its bit-exact model and its hardware.

:class:`~golden.exp.spec.ExpSpec` is what all families share; each family is a subclass in a module of its own.
"""

from golden.exp.polynomial import POLY6, POLY6_SERIAL, PolynomialSpec, horner
from golden.exp.spec import Domain, Evaluation, ExpSpec, Subnormals

__all__ = ["POLY6", "POLY6_SERIAL", "Domain", "Evaluation", "ExpSpec", "PolynomialSpec", "Subnormals", "horner"]
