"""The grammar of a liberty file: groups, attributes and lists, without their meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Group", "LibertyError", "parse_groups"]

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\\[ \t]*\n", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}():;,]|[^\s{}():;,"]+|\n', re.DOTALL)
_SKIPPED = frozenset(
    {"internal_power", "leakage_power", "power_lut_template", "dynamic_current", "intrinsic_parasitic"}
)
_SKIPPED_STARTS = ("ccs", "intrinsic_parasitic", "output_current_", "receiver_capacitance", "pg_pin", "test_cell")


class LibertyError(ValueError):
    """A liberty file is missing or can't be used; the message is one line."""


@dataclass
class Group:
    """``kind (labels) { attributes, lists and groups }``.

    Parameters
    ----------
    kind : str
        Such as ``cell``.
    labels : list of str
        What stands in the brackets.
    attributes : dict of str to str
        ``name : value ;``
    lists : dict of str to list of str
        ``name (value, ...) ;``, numbers of quoted lists apart.
    children : list of Group
        In order.
    """

    kind: str
    labels: list[str]
    attributes: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    children: list[Group] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The first label, or nothing."""
        return self.labels[0] if self.labels else ""

    def groups(self, kind: str) -> Iterator[Group]:
        """Yield the groups of a kind that stand directly in this one."""
        return (child for child in self.children if child.kind == kind)


def parse_groups(text: str) -> Group:
    """Return the ``library`` group of a liberty text; power tables and current models are left out.

    Raises
    ------
    LibertyError
        If the text is not one complete library.
    """
    if not re.search(r"\blibrary\s*\(", text[:200_000]):
        raise LibertyError("not a liberty file: it has no library (...) group")
    tokens = _TOKEN.findall(_COMMENT.sub(" ", text))
    root = Group("", [])
    stack = [root]
    at, end = 0, len(tokens)
    try:
        while at < end:
            token = tokens[at]
            at += 1
            if token in ("\n", ";"):
                continue
            if token == "}":
                stack.pop()
                if not stack:
                    raise LibertyError("not a liberty file: it closes a group that was not opened")
                continue
            while tokens[at] == "\n":
                at += 1
            if tokens[at] == ":":
                # A value ends at the semicolon, or at the line's end where a file leaves it out.
                stop = at + 1
                while tokens[stop] not in (";", "\n", "}"):
                    stop += 1
                stack[-1].attributes[token] = " ".join(_bare(word) for word in tokens[at + 1 : stop])
                at = stop
            elif tokens[at] == "(":
                stop = tokens.index(")", at)
                words = [_bare(word) for word in tokens[at + 1 : stop] if word not in (",", "\n")]
                at = stop + 1
                follow = at
                while follow < end and tokens[follow] == "\n":
                    follow += 1
                if follow < end and tokens[follow] == "{":
                    at = follow + 1
                    if token in _SKIPPED or token.startswith(_SKIPPED_STARTS):
                        at = _behind(tokens, at)
                        continue
                    group = Group(token, words)
                    stack[-1].children.append(group)
                    stack.append(group)
                else:
                    stack[-1].lists[token] = [entry for word in words for entry in re.split(r"[\s,]+", word) if entry]
            else:
                raise LibertyError(f"not a liberty file: {token[:40]!r} is followed by {tokens[at][:40]!r}")
    except (IndexError, ValueError) as error:
        if isinstance(error, LibertyError):
            raise
        raise LibertyError("the file ends in the middle") from None
    if len(stack) > 1:
        raise LibertyError("the file ends in the middle")
    library = next(root.groups("library"), None)
    if library is None:
        raise LibertyError("not a liberty file: it has no library (...) group")
    return library


def _bare(word: str) -> str:
    return word[1:-1] if word.startswith('"') else word


def _behind(tokens: list[str], at: int) -> int:
    """Return where a group ends whose opening brace stands before ``at``."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(tokens[at], 0)
        at += 1
    return at
