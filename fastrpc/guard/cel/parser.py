"""Makes the syntax tree of a rule, by CEL's grammar without messages, bytes and unsigned ints.

Recursive descent, with one loop for all binary operators; `MOST_LEVELS` bounds the recursion and the tree.
The checker checks names and types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastrpc.errors import excerpt
from fastrpc.guard.cel import syntax
from fastrpc.guard.cel.errors import RuleError, RuleSyntaxError
from fastrpc.guard.cel.lexer import Token, tokens_of
from fastrpc.guard.cel.values import LARGEST_INT, SMALLEST_INT

MOST_LEVELS = 64
RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")
PRECEDENCE = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(RELATIONS, 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
CONSTANTS = {"true": True, "false": False, "null": None}
KEYWORDS = (*CONSTANTS, "in")
RESERVED = frozenset(
    """as break const continue else for function if import let loop package namespace return var void
    while""".split()  # noqa: SIM905
)
"""Names that CEL reserves: a variable cannot have one, a member may."""
MACROS = {
    "all": ("condition",),
    "exists": ("condition",),
    "exists_one": ("condition",),
    "filter": ("condition",),
    "map": ("condition", "value"),
}
"""The parameters of each macro after the name that it binds; the condition of `map` is optional."""

Made = TypeVar("Made", bound=syntax.Node)
Item = TypeVar("Item")


def parse(source: str) -> syntax.Node:
    """Return the tree of a rule; raise `RuleSyntaxError`."""
    return _Parser(source).whole()


def _too_deep(source: str, at: int) -> RuleError:
    return RuleSyntaxError.at(source, at, f"a rule has at most {MOST_LEVELS} levels, one in another")


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens_of(source)
        self.at = 0
        self.levels = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def whole(self) -> syntax.Node:
        tree = self.expression()
        if self.token.kind != "end":
            raise self.unexpected("an operator or the end")
        return tree

    def expression(self) -> syntax.Node:
        self.levels += 1
        if self.levels > MOST_LEVELS:
            raise _too_deep(self.source, self.token.start)
        node = self.binary(1)
        if self.token.text == "?":
            at = self.next().start
            yes = self.binary(1)
            self.expect(":")
            no = self.expression()
            node = self.made(syntax.Conditional(node.start, no.end, at, node, yes, no))
        self.levels -= 1
        return node

    def binary(self, least: int) -> syntax.Node:
        """Parse operands and operators of at least this precedence, from left to right."""
        left = self.unary()
        while (level := PRECEDENCE.get(self.token.text, 0)) >= least:
            operator = self.next()
            left = self.joined(operator, left, self.binary(level + 1))
        return left

    def joined(self, operator: Token, left: syntax.Node, right: syntax.Node) -> syntax.Node:
        if isinstance(left, syntax.Logical) and left.operator == operator.text:
            left.end, left.at = right.end, operator.start
            left.parts.append(right)
            return self.made(left, max(left.height, 1 + right.height))
        span = left.start, right.end, operator.start
        if operator.text in ("&&", "||"):
            return self.made(syntax.Logical(*span, operator.text, [left, right]))
        return self.made(syntax.Binary(*span, operator.text, left, right))

    def unary(self) -> syntax.Node:
        operators = []
        while self.token.text in ("!", "-"):
            operators.append(self.next())
        is_negative = bool(operators) and operators[-1].text == "-" and self.token.kind in ("int", "double")
        node = self.postfix(self.number(operators.pop()) if is_negative else self.primary())
        for operator in reversed(operators):
            node = self.made(syntax.Unary(operator.start, node.end, operator.start, operator.text, node))
        return node

    def primary(self) -> syntax.Node:
        token = self.token
        if token.kind in ("int", "double"):
            return self.number(None)
        if token.kind == "string":
            return syntax.LiteralNode(*self.span(self.next()), token.value)
        if token.kind == "name":
            return self.named()
        if token.text == "[":
            items, end = self.separated("]", self.expression)
            return self.made(syntax.ListLiteral(token.start, end, token.start, items))
        if token.text == "{":
            entries, end = self.separated("}", self.entry)
            return self.made(syntax.MapLiteral(token.start, end, token.start, entries))
        if token.text == "(":
            self.next()
            inner = self.expression()
            inner.start, inner.end = token.start, self.expect(")").end
            return inner
        raise self.unexpected("a value")

    def number(self, minus: Token | None) -> syntax.Node:
        token = self.next()
        value = -token.value if minus else token.value
        start = minus.start if minus else token.start
        if token.kind == "int" and not SMALLEST_INT <= value <= LARGEST_INT:
            raise RuleSyntaxError.at(self.source, start, "this int has more than 64 bits")
        return syntax.LiteralNode(start, token.end, start, value)

    def named(self) -> syntax.Node:
        token = self.next()
        if token.text in CONSTANTS:
            return syntax.LiteralNode(*self.span(token), CONSTANTS[token.text])
        if token.text == "in" or token.text in RESERVED:
            raise RuleSyntaxError.at(self.source, token.start, f"{token.text}: no variable has this name")
        if self.token.text == "(":
            arguments, end = self.arguments()
            if token.text == "has":
                return self.test(token, arguments, end)
            return self.made(syntax.CallNode(token.start, end, token.start, token.text, None, arguments))
        return syntax.NameNode(*self.span(token), token.text)

    def test(self, token: Token, arguments: list[syntax.Node], end: int) -> syntax.Node:
        if len(arguments) != 1 or not isinstance(arguments[0], syntax.Select) or arguments[0].is_test:
            raise RuleSyntaxError.at(self.source, token.start, "has() asks for one member: has(a.b)")
        selected = arguments[0]
        node = syntax.Select(token.start, end, selected.at, selected.operand, selected.member)
        node.is_test = True
        return self.made(node)

    def postfix(self, node: syntax.Node) -> syntax.Node:
        while self.token.text in (".", "["):
            if self.next().text == ".":
                node = self.member(node)
            else:
                at = self.token.start
                index = self.expression()
                node = self.made(syntax.IndexNode(node.start, self.expect("]").end, at, node, index))
        return node

    def member(self, operand: syntax.Node) -> syntax.Node:
        token = self.token
        if token.text in KEYWORDS:
            message = f'{token.text} is a reserved word: write ["{token.text}"] instead of .{token.text}'
            raise RuleSyntaxError.at(self.source, token.start, message)
        if token.kind != "name":
            raise self.unexpected("the name of a member")
        self.next()
        if self.token.text != "(":
            return self.made(syntax.Select(operand.start, token.end, token.start, operand, token.text))
        arguments, end = self.arguments()
        if token.text in MACROS:
            return self.macro(operand, token, arguments, end)
        return self.made(syntax.CallNode(operand.start, end, token.start, token.text, operand, arguments))

    def macro(
        self, operand: syntax.Node, token: Token, arguments: list[syntax.Node], end: int
    ) -> syntax.Node:
        name, parts = token.text, MACROS[token.text]
        least = 2 if name == "map" else 1 + len(parts)
        if not least <= len(arguments) <= 1 + len(parts):
            form = ", ".join(("name", *parts[-1:]))
            raise RuleSyntaxError.at(self.source, token.start, f"{name}() is written {name}({form})")
        bound, *rest = arguments
        if not isinstance(bound, syntax.NameNode):
            message = f"the first argument of {name}() is the name of a variable, such as {name}(x, …)"
            raise RuleSyntaxError.at(self.source, bound.start, message)
        return self.made(syntax.Macro(operand.start, end, token.start, name, operand, bound.name, rest))

    def arguments(self) -> tuple[list[syntax.Node], int]:
        return self.separated(")", self.expression)

    def separated(self, closing: str, parse: Callable[[], Item]) -> tuple[list[Item], int]:
        """Parse items with commas between them, and their brackets; return them and their end."""
        self.next()
        found: list[Item] = []
        while self.token.text != closing:
            if found:
                self.expect(",", f"a comma or {closing}")
                if closing != ")" and self.token.text == closing:
                    break  # CEL allows a comma after the last element, not after the last argument
            found.append(parse())
        return found, self.next().end

    def entry(self) -> tuple[syntax.Node, syntax.Node]:
        key = self.expression()
        self.expect(":")
        return key, self.expression()

    def made(self, node: Made, height: int = 0) -> Made:
        node.height = height or 1 + max((child.height for child in node.children()), default=0)
        if node.height > MOST_LEVELS:
            raise _too_deep(self.source, node.at)
        return node

    def next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.at += 1
        return token

    def expect(self, text: str, wanted: str = "") -> Token:
        if self.token.text != text:
            raise self.unexpected(wanted or text)
        return self.next()

    def unexpected(self, wanted: str) -> RuleError:
        found = excerpt(self.token.text) if self.token.kind != "end" else "the end"
        return RuleSyntaxError.at(self.source, self.token.start, f"expected {wanted}, not {found}")

    @staticmethod
    def span(token: Token) -> tuple[int, int, int]:
        return token.start, token.end, token.start
