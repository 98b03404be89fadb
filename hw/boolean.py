"""Boolean functions as liberty files write them: ``!(A&B)``, ``(A*B)'``, ``(!A) | (!B)``."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Function", "parse_function"]

_TOKEN = re.compile(r"\s*([A-Za-z_][\w.\[\]]*|[01]|[!'()&*|+^])")
_OPERATORS = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


@dataclass(frozen=True)
class Function:
    """One function.

    Parameters
    ----------
    tree : tuple
        ``("pin", name)``, ``("0",)``, ``("1",)``, ``("!", a)`` or ``(operator, a, b)`` with ``&``, ``|`` or ``^``.
    """

    tree: tuple[Any, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names it depends on in writing, in order of appearance."""
        return tuple(dict.fromkeys(_names(self.tree)))

    def evaluate(self, values: Mapping[str, Any], ones: Any) -> Any:
        """Return its value for ``values`` by name: integers or integer arrays, one case a bit.

        Parameters
        ----------
        values : mapping of str to int or ndarray of uint64
            Of every input.
        ones : int or ndarray of uint64
            True in every case.
        """
        return _evaluate(self.tree, values, ones)

    def truth_table(self, inputs: Sequence[str]) -> int:
        """Return the function's 2^n values as bits; bit i is the value where input j has bit j of i."""
        cases = 1 << len(inputs)
        values = {name: sum(1 << i for i in range(cases) if i >> j & 1) for j, name in enumerate(inputs)}
        return int(self.evaluate(values, (1 << cases) - 1))


def parse_function(text: str) -> Function:
    """Return the function that ``text`` writes.

    Inversion (``!`` before, ``'`` behind) binds strongest, then ``^``, then and (``&``, ``*`` or nothing), then
    or (``|`` or ``+``).

    Raises
    ------
    ValueError
        If the text is no function.
    """
    tokens: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"function must be an expression of pins, not {text!r}")
        tokens.append(match[1])
        at = match.end()
    parser = _Parser(tokens)
    tree = parser.either() if tokens else None
    if tree is None or parser.tokens:
        raise ValueError(f"function must be an expression of pins, not {text!r}")
    return Function(tree)


class _Parser:
    """Recursive descent over a list of tokens; each method returns None where its part is not there."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def either(self) -> tuple[Any, ...] | None:
        tree = self.both()
        while tree and self.tokens and self.tokens[0] in "|+":
            self.tokens.pop(0)
            right = self.both()
            tree = right and ("|", tree, right)
        return tree

    def both(self) -> tuple[Any, ...] | None:
        tree = self.different()
        while tree and self.tokens and self.tokens[0] not in "|+)":
            if self.tokens[0] in "&*":
                self.tokens.pop(0)
            right = self.different()
            tree = right and ("&", tree, right)
        return tree

    def different(self) -> tuple[Any, ...] | None:
        tree = self.single()
        while tree and self.tokens and self.tokens[0] == "^":
            self.tokens.pop(0)
            right = self.single()
            tree = right and ("^", tree, right)
        return tree

    def single(self) -> tuple[Any, ...] | None:
        token = self.tokens.pop(0) if self.tokens else ")"
        tree: tuple[Any, ...] | None
        if token == "!":
            operand = self.single()
            tree = operand and ("!", operand)
        elif token == "(":
            tree = self.either()
            if not self.tokens or self.tokens.pop(0) != ")":
                return None
        elif token in "01":
            tree = (token,)
        elif token[0].isalpha() or token[0] == "_":
            tree = ("pin", token)
        else:
            return None
        while tree and self.tokens and self.tokens[0] == "'":
            self.tokens.pop(0)
            tree = ("!", tree)
        return tree


def _names(tree: tuple[Any, ...]) -> list[str]:
    if tree[0] == "pin":
        return [tree[1]]
    return [name for part in tree[1:] for name in _names(part)]


def _evaluate(tree: tuple[Any, ...], values: Mapping[str, Any], ones: Any) -> Any:
    match tree[0]:
        case "pin":
            return values[tree[1]]
        case "0":
            return ones ^ ones
        case "1":
            return ones
        case "!":
            return _evaluate(tree[1], values, ones) ^ ones
        case kind:
            return _OPERATORS[kind](_evaluate(tree[1], values, ones), _evaluate(tree[2], values, ones))
