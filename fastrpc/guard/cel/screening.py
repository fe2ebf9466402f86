"""Makes a `Screen` from a condition: a test in compiled code that is either certain or gives no result.

It supports comparisons of an argument, or its ``size``, with a literal, ``in`` a list of texts or numbers,
``startsWith``, ``endsWith``, ``contains``, an argument that is a bool, parts that read no arguments, and
``&& || !`` of these. For anything else, and for a value whose type is not exactly the literal's, a screen has
no result; then the condition is evaluated as usual (`compiler`). So a screen never changes a decision; it
only makes most calls faster to which no rule applies.
"""

from __future__ import annotations

from collections.abc import Callable

from fastrpc._core.call_gate import Screen
from fastrpc.guard.cel import syntax
from fastrpc.guard.cel.values import LARGEST_EXACT

ARGUMENTS = "args"
TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
TEXT_METHODS = ("startsWith", "endsWith", "contains")


def screen_of(node: syntax.Node, value_of: Callable[[syntax.Node], object]) -> Screen | None:
    """Return the screen of a condition, None if it could never have a result. `value_of` returns the value of
    a part that reads no arguments."""
    if isinstance(node, syntax.Logical):
        parts = tuple(screen_of(part, value_of) for part in node.parts)
        return Screen(node.operator, parts=parts) if any(each is not None for each in parts) else None
    if isinstance(node, syntax.Unary) and node.operator == "!":
        part = screen_of(node.operand, value_of)
        return None if part is None else Screen("!", parts=(part,))
    if not _reads_arguments(node):
        value = value_of(node)
        if not isinstance(value, bool):
            return None
        return Screen("&&" if value else "||")  # all of no parts, any of no parts
    if isinstance(node, syntax.Binary):
        return _of_comparison(node)
    if isinstance(node, syntax.CallNode) and node.name in TEXT_METHODS and node.target is not None:
        name, (text,) = _argument(node.target), node.arguments
        if name is not None and isinstance(text, syntax.LiteralNode) and type(text.value) is str:
            return Screen(node.name, name, text.value)
    name = _argument(node)
    return None if name is None else Screen("==", name, True)


def _reads_arguments(node: syntax.Node) -> bool:
    """Whether a node reads the arguments, directly or through the variable of an enclosing macro."""
    if isinstance(node, syntax.NameNode):
        return node.slot is not None or node.name == ARGUMENTS
    return any(map(_reads_arguments, node.children()))


def _of_comparison(node: syntax.Binary) -> Screen | None:
    name, operator, other = _argument(node.left), node.operator, node.right
    measured = _measured(node.left)
    if (
        measured is not None
        and operator in TURNED
        and isinstance(other, syntax.LiteralNode)
        and type(other.value) is int
    ):
        return Screen(operator, measured, other.value, measured=True)
    if operator == "in" and name is not None and isinstance(other, syntax.ListLiteral):
        return _of_list(
            name, [each.value for each in other.items if isinstance(each, syntax.LiteralNode)], other
        )
    if name is None:
        name, operator, other = _argument(node.right), TURNED.get(operator, ""), node.left
    if name is None or operator not in TURNED or not isinstance(other, syntax.LiteralNode):
        return None
    return Screen(operator, name, other.value) if type(other.value) in (str, int, float, bool) else None


def _of_list(name: str, values: list[object], whole: syntax.ListLiteral) -> Screen | None:
    """Return the screen for an argument ``in`` a list of literals: only texts, or only numbers that are the
    same as ints and as doubles."""
    numbers = [each for each in values if isinstance(each, int | float)]
    kinds = {str} if not numbers else {int, float}
    is_known = len(values) == len(whole.items) and set(map(type, values)) <= kinds
    is_known = is_known and all(-LARGEST_EXACT <= each <= LARGEST_EXACT for each in numbers)
    return Screen("in", name, frozenset(values)) if is_known else None


def _measured(node: syntax.Node) -> str | None:
    """Return the name of the argument whose size a node is, as ``size(args.x)`` or ``args.x.size()``."""
    if not isinstance(node, syntax.CallNode) or node.name != "size":
        return None
    (operand,) = node.children()
    return _argument(operand)


def _argument(node: syntax.Node) -> str | None:
    """Return the name of the argument that a node reads; None for another node."""
    if isinstance(node, syntax.Select) and not node.is_test and _is_arguments(node.operand):
        return node.member
    if (
        isinstance(node, syntax.IndexNode)
        and _is_arguments(node.operand)
        and isinstance(node.index, syntax.LiteralNode)
    ):
        return node.index.value if isinstance(node.index.value, str) else None
    return None


def _is_arguments(node: syntax.Node) -> bool:
    return isinstance(node, syntax.NameNode) and node.slot is None and node.name == ARGUMENTS
