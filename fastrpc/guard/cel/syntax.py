"""The syntax tree of a rule: the parser creates it, the checker adds types, the compiler reads it.

Each node has its part of the source, which errors and explanations quote. Macros are nodes, not expanded. A
tree is at most 64 levels high; a chain of ``&&`` or of ``||`` is one level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fastrpc.guard.cel.types import DYN, Type


@dataclass(slots=True, eq=False)
class Node:
    start: int
    end: int
    at: int
    """The position for errors: that of an operation's operator, or of a member's name."""
    type: Type = field(default=DYN, init=False)
    """The type, which the checker sets."""
    height: int = field(default=1, init=False)

    def children(self) -> Iterator[Node]:
        """Yield the nodes in the fields, in the order of the source."""
        waiting = [getattr(self, name) for name in reversed(self.__dataclass_fields__)]
        while waiting:
            each = waiting.pop()
            if isinstance(each, Node):
                yield each
            elif type(each) in (list, tuple):
                waiting += reversed(each)


@dataclass(slots=True, eq=False)
class LiteralNode(Node):
    value: Any


@dataclass(slots=True, eq=False)
class NameNode(Node):
    """A variable, or the name that a macro binds: then the checker gives it the number of its `slot`."""

    name: str
    slot: int | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Select(Node):
    """``operand.member``; with `is_test`, ``has(operand.member)``."""

    operand: Node
    member: str
    is_test: bool = field(default=False, init=False)


@dataclass(slots=True, eq=False)
class IndexNode(Node):
    operand: Node
    index: Node


@dataclass(slots=True, eq=False)
class Unary(Node):
    operator: str
    operand: Node


@dataclass(slots=True, eq=False)
class Binary(Node):
    operator: str
    left: Node
    right: Node


@dataclass(slots=True, eq=False)
class Logical(Node):
    """``a && b && c`` or ``a || b || c``."""

    operator: str
    parts: list[Node]


@dataclass(slots=True, eq=False)
class Conditional(Node):
    condition: Node
    yes: Node
    no: Node


@dataclass(slots=True, eq=False)
class ListLiteral(Node):
    items: list[Node]


@dataclass(slots=True, eq=False)
class MapLiteral(Node):
    entries: list[tuple[Node, Node]]


@dataclass(slots=True, eq=False)
class CallNode(Node):
    """``name(arguments)`` or ``target.name(arguments)``. `pattern`: that of ``matches``, which the checker
    compiles."""

    name: str
    target: Node | None
    arguments: list[Node]
    pattern: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Macro(Node):
    """``range.name(variable, …parts)``: the parts are evaluated for each element, which is in `slot`."""

    name: str
    range: Node
    variable: str
    parts: list[Node]
    slot: int = field(default=0, init=False)


def size_of(node: Node) -> int:
    return 1 + sum(size_of(child) for child in node.children())
