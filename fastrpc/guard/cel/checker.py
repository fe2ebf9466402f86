"""Checks the tree of a rule against the declared types, and fills in each node's type.

Runs once, when the policy is loaded. An unknown variable, member or function, and an operation that no values
of the types allow, is a `RuleTypeError` with its position. If a type is unknown (`DYN`), nothing is refused.
It also records what the rule reads (`Reads`), numbers the slots of macros and has patterns compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fastrpc.errors import excerpt, suggestion
from fastrpc.guard.cel import syntax
from fastrpc.guard.cel.errors import RuleError, RuleTypeError
from fastrpc.guard.cel.functions import (
    FUNCTIONS,
    METHODS,
    NOT_THERE,
    SHELL_NEEDS,
    Function,
    compiled_pattern,
)
from fastrpc.guard.cel.parser import MACROS
from fastrpc.guard.cel.types import (
    BOOL,
    DYN,
    NUMBERS,
    OF_PYTHON,
    STRING,
    Type,
    join,
    list_of,
    map_of,
    may_equal,
)
from fastrpc.guard.cel.values import SLOTS

MAPS = ("map", "struct")


class Reads(NamedTuple):
    """What a rule reads: the members of each variable, and which variables as a whole."""

    members: dict[str, set[str]]
    whole: set[str]
    slots: int
    """The number of names that its macros bind."""


def check(source: str, tree: syntax.Node, variables: Mapping[str, Type]) -> Reads:
    """Fill in the types of a tree; raise `RuleTypeError`."""
    checker = _Checker(source, variables)
    checker.check(tree)
    return Reads(checker.members, checker.whole, checker.slots)


class _Checker:
    def __init__(self, source: str, variables: Mapping[str, Type]) -> None:
        self.source = source
        self.variables = variables
        self.bound: dict[str, tuple[int, Type]] = {}
        self.members: dict[str, set[str]] = {}
        self.whole: set[str] = set()
        self.slots = 0

    def check(self, node: syntax.Node) -> Type:
        node.type = getattr(self, f"visit_{type(node).__name__}")(node)
        return node.type

    def text(self, node: syntax.Node) -> str:
        return excerpt(self.source[node.start : node.end])

    def error(self, at: int, message: str) -> RuleError:
        return RuleTypeError.at(self.source, at, message)

    # --- names and members ---

    def visit_LiteralNode(self, node: syntax.LiteralNode) -> Type:
        return OF_PYTHON[type(node.value)]

    def visit_NameNode(self, node: syntax.NameNode) -> Type:
        if node.name not in self.bound:
            self.whole.add(node.name)
        return self.resolved(node)

    def resolved(self, node: syntax.NameNode) -> Type:
        if node.name in self.bound:
            node.slot, found = self.bound[node.name]
            return found
        if node.name not in self.variables:
            hint = suggestion(node.name, [*self.variables, *self.bound], 1)
            raise self.error(node.at, f"{excerpt(node.name)}: there is no such variable{hint}")
        self.members.setdefault(node.name, set())
        return self.variables[node.name]

    def visit_Select(self, node: syntax.Select) -> Type:
        found = self.member_of(node.operand, node.member, node.at)
        return BOOL if node.is_test else found

    def member_of(self, operand: syntax.Node, member: str, at: int) -> Type:
        """Return the type of a named member; record it as read, if it is a member of a variable."""
        if isinstance(operand, syntax.NameNode):
            of = operand.type = self.resolved(operand)
            if operand.slot is None:
                self.members[operand.name].add(member)
        else:
            of = self.check(operand)
        if of.kind == "map":
            return of.element or DYN
        if of.kind == "struct":
            return self.declared(operand, of, member, at)
        if of.kind != "dyn":
            raise self.error(at, f"{self.text(operand)}.{member}: {of.words} has no members")
        return DYN

    def declared(self, operand: syntax.Node, of: Type, member: str, at: int) -> Type:
        if member in of.members or of.is_open:
            return of.members.get(member, DYN)
        owner = f"{of.label} has" if of.label else "there is"
        hint = suggestion(member, of.members, 1)
        message = f"{self.text(operand)}.{excerpt(member)}: {owner} no such {of.noun}{hint}"
        raise self.error(at, message)

    def visit_IndexNode(self, node: syntax.IndexNode) -> Type:
        key = node.index
        if isinstance(key, syntax.LiteralNode) and isinstance(key.value, str):
            key.type = STRING
            return self.member_of(node.operand, key.value, node.at)
        of, by = self.check(node.operand), self.check(key)
        if of.kind in MAPS:
            self.expect(key, ("string", *NUMBERS), "the key of a map")
            return (of.element or DYN) if of.kind == "map" else DYN
        if of.kind == "list":
            self.expect(key, ("int",), "the index of a list")
            return of.element or DYN
        if of.kind != "dyn":
            raise self.error(node.at, f"{self.text(node.operand)}[{by.kind}]: {of.words} has no elements")
        return DYN

    # --- operators ---

    def expect(self, node: syntax.Node, kinds: Iterable[str], what: str) -> None:
        if node.type.kind not in ("dyn", *kinds):
            wanted = " or ".join(dict.fromkeys(Type(kind).words for kind in kinds))
            raise self.error(node.start, f"{what}: expected {wanted}, not {node.type.words}")

    def visit_Unary(self, node: syntax.Unary) -> Type:
        found = self.check(node.operand)
        self.expect(node.operand, ("bool",) if node.operator == "!" else NUMBERS, node.operator)
        return BOOL if node.operator == "!" else found._replace(is_nullable=False)

    def visit_Logical(self, node: syntax.Logical) -> Type:
        for part in node.parts:
            self.check(part)
            self.expect(part, ("bool",), node.operator)
        return BOOL

    def visit_Conditional(self, node: syntax.Conditional) -> Type:
        self.check(node.condition)
        self.expect(node.condition, ("bool",), "the condition before ?")
        return join((self.check(node.yes), self.check(node.no)))

    def visit_Binary(self, node: syntax.Binary) -> Type:
        if node.operator == "in":
            return self.membership(node)
        left, right = self.check(node.left), self.check(node.right)
        if node.operator in ("==", "!="):
            self.comparable(node, left, right)
            return BOOL
        if node.operator in ("<", "<=", ">", ">="):
            self.ordered(node, left, right)
            return BOOL
        return self.arithmetic(node, left, right)

    def comparable(self, node: syntax.Binary, left: Type, right: Type) -> None:
        if not may_equal(left, right):
            hint = ""
            if "null" in (left.kind, right.kind):
                hint = "; has(a.b) tests whether it exists"
            message = f"{left.words} {node.operator} {right.words}: they are never equal{hint}"
            raise self.error(node.at, message)
        self.chosen(left, node.left, node.right)
        self.chosen(right, node.right, node.left)

    def chosen(self, of: Type, compared: syntax.Node, other: syntax.Node) -> None:
        """Refuse a comparison with a literal that is not one of a string's possible values."""
        value = other.value if isinstance(other, syntax.LiteralNode) else None
        if of.choices and isinstance(value, str) and value not in of.choices:
            hint = suggestion(value, of.choices, 1)
            raise self.error(other.start, f"{self.text(other)}: {self.text(compared)} is never that{hint}")

    def ordered(self, node: syntax.Binary, left: Type, right: Type) -> None:
        kinds = {left.kind, right.kind} - {"dyn"}
        if not (kinds <= set(NUMBERS) or kinds in ({"string"}, {"bool"})):
            raise self.error(node.at, f"{left.words} {node.operator} {right.words}: they have no order")

    def arithmetic(self, node: syntax.Binary, left: Type, right: Type) -> Type:
        allowed = {"+": ("string", "list", *NUMBERS), "%": ("int",)}.get(node.operator, NUMBERS)
        kinds = {left.kind, right.kind} - {"dyn"}
        if len(kinds) > 1 or not kinds <= set(allowed):
            hint = "; double() makes a double of an int" if kinds == set(NUMBERS) and len(allowed) > 1 else ""
            words = f"{left.words} {node.operator} {right.words}"
            raise self.error(node.at, f"{words}: there is no such operation{hint}")
        if kinds == {"list"}:
            return list_of(join((left.element or DYN, right.element or DYN)))
        return Type(kinds.pop()) if "dyn" not in (left.kind, right.kind) else DYN

    def membership(self, node: syntax.Binary) -> Type:
        left, right = self.check(node.left), node.right
        if self.is_member_test(node.left, right):
            return BOOL
        of = self.check(right)
        if of.kind == "list":
            self.in_list(node, left, of)
        elif of.kind in MAPS:
            self.expect(node.left, ("string", *NUMBERS), "the key of a map")
        elif of.kind != "dyn":
            hint = f"; write {self.text(right)}.contains(…)" if of.kind == "string" else ""
            raise self.error(node.at, f"in: expected a list or a map, not {of.words}{hint}")
        return BOOL

    def is_member_test(self, key: syntax.Node, of: syntax.Node) -> bool:
        """Whether it is ``"name" in struct``, which reads that member as ``has(struct.name)`` does."""
        if not (
            isinstance(key, syntax.LiteralNode)
            and isinstance(key.value, str)
            and isinstance(of, syntax.NameNode)
        ):
            return False
        if self.resolved(of).kind != "struct":
            return False
        self.member_of(of, key.value, key.start)
        return True

    def in_list(self, node: syntax.Binary, left: Type, of: Type) -> None:
        element = of.element or DYN
        if not may_equal(left, element):
            message = f"{left.words} in a list whose elements are never that"
            raise self.error(node.at, message)
        self.chosen(element, node.right, node.left)
        if isinstance(node.right, syntax.ListLiteral):
            for item in node.right.items:
                self.chosen(left, node.left, item)

    # --- literals of lists and maps ---

    def visit_ListLiteral(self, node: syntax.ListLiteral) -> Type:
        return list_of(join([self.check(item) for item in node.items]))

    def visit_MapLiteral(self, node: syntax.MapLiteral) -> Type:
        seen = set()
        for key, _ in node.entries:
            self.check(key)
            self.expect(key, ("string", "int"), "the key of a map")
            if isinstance(key, syntax.LiteralNode):
                if key.value in seen:
                    raise self.error(key.start, f"{self.text(key)}: the map has this key already")
                seen.add(key.value)
        return map_of(join([self.check(value) for _, value in node.entries]))

    # --- calls ---

    def visit_CallNode(self, node: syntax.CallNode) -> Type:
        function = self.function(node)
        arguments = [*node.children()]
        if len(arguments) != len(function.parameters):
            before = 0 if node.target is None else 1
            raise self.error(
                node.at, _count(node.name, len(function.parameters) - before, len(node.arguments))
            )
        for argument, kinds in zip(arguments, function.parameters, strict=True):
            self.check(argument)
            self.expect(argument, kinds, f"{node.name}()")
        if node.name == "matches":
            node.pattern = self.pattern(arguments[1])
        if function.load is not None:
            self.load(node, function.load)
        return function.result

    def function(self, node: syntax.CallNode) -> Function:
        known = FUNCTIONS if node.target is None else METHODS
        if node.name in known:
            return known[node.name]
        if node.target is None and node.name in NOT_THERE:
            raise self.error(node.at, f"{node.name}() is a part of CEL that rules do not have")
        if node.target is None and (node.name in METHODS or node.name in MACROS):
            raise self.error(node.at, f"{node.name}() is a method: write value.{node.name}(…)")
        if node.target is not None and node.name in FUNCTIONS:
            raise self.error(node.at, f"{node.name}() is a function: write {node.name}(value)")
        names = [*known, "has"] if node.target is None else [*known, *MACROS]
        kind = "function" if node.target is None else "method"
        hint = suggestion(node.name, names, 1)
        raise self.error(node.at, f"{excerpt(node.name)}(): there is no such {kind}{hint}")

    def load(self, node: syntax.CallNode, load: Callable[[], object]) -> None:
        try:
            load()
        except (ImportError, ValueError):
            raise self.error(node.at, f"{node.name}() needs {SHELL_NEEDS}") from None

    def pattern(self, node: syntax.Node) -> Any:
        if not isinstance(node, syntax.LiteralNode):
            raise self.error(
                node.start, "matches() takes its pattern as a literal, which is compiled at load"
            )
        try:
            return compiled_pattern(node.value)
        except ImportError:
            raise self.error(node.start, "matches() needs google-re2: pip install google-re2") from None
        except UnicodeEncodeError:
            raise self.error(node.start, "the pattern has half of a surrogate pair") from None
        except ValueError as error:
            raise self.error(node.start, f"the pattern is not valid RE2: {excerpt(str(error))}") from None

    def visit_Macro(self, node: syntax.Macro) -> Type:
        of = self.check(node.range)
        if of.kind not in ("list", "dyn", *MAPS):
            raise self.error(node.at, f"{node.name}(): expected a list or a map, not {of.words}")
        element = STRING if of.kind == "struct" else (of.kind == "list" and of.element) or DYN
        hidden = self.bound.get(node.variable)
        node.slot = SLOTS + self.slots
        self.slots += 1
        self.bound[node.variable] = node.slot, element
        for part, what in zip(node.parts, MACROS[node.name][-len(node.parts) :], strict=True):
            self.check(part)
            if what == "condition":
                self.expect(part, ("bool",), f"the condition of {node.name}()")
        del self.bound[node.variable]
        if hidden is not None:
            self.bound[node.variable] = hidden
        if node.name == "map":
            return list_of(node.parts[-1].type)
        return list_of(element) if node.name == "filter" else BOOL


def _count(name: str, wanted: int, given: int) -> str:
    takes = f"{wanted} argument{'' if wanted == 1 else 's'}" if wanted else "no arguments"
    return f"{name}() takes {takes}, {given} {'is' if given == 1 else 'are'} given"
