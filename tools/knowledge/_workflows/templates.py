"""Templates: ``{{ $node.n1.output.items[0] }}`` in the texts of a definition.

The text in the braces is an expression in Jinja's syntax, compiled by its sandbox. Nothing else of Jinja is
allowed: no statements, no calls, and only names of the run's own data, which is JSON. A dot is a member of an
object, never an attribute of a Python object. Sizes are bounded, and with them the time, since no expression
can repeat anything. A template that is one expression has the expression's value; in a longer text the values
are inserted as text.
"""

from __future__ import annotations

import json
import re

from fastrpc import FastrpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from jinja2 import nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST_EXPRESSION = 1000
MOST_EXPRESSIONS = 200
LARGEST_VALUE = 256 * 1024
"""Characters of a text, members of a list."""
DEEPEST = 30
NAMES = ("node", "vars", "trigger", "item", "index")
_TEXT = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_TOKEN = re.compile(rf"{_TEXT}|\}}\}}|\}}|[^\"'}}]+", re.DOTALL)
_NAME = re.compile(rf"{_TEXT}|\$([A-Za-z_]\w*)", re.DOTALL)
_PREFIX = "run_"
_NODE = re.compile(r"\$node\s*(?:\.\s*|\[\s*[\"'])([\w-]+)")
ANY_NODE = "*"
OF_TURN = {"$item", "$index"}
"""Names whose values change with each turn of a loop."""


class BadTemplate(FastrpcError):
    """A template is invalid, or has no value."""


def check(template: Any) -> None:
    """Raise BadTemplate for an invalid template; also for one inside of an object or a list."""
    _each(template, lambda text: [_compiled(each) for each in _expressions(text)])


def check_condition(condition: str) -> None:
    """Raise BadTemplate for a condition that is not one expression, with or without braces."""
    _compiled(_condition(condition))


def rendered(template: Any, data: Mapping[str, Any]) -> Any:
    """Return a template with its values inserted; `data` has them by the names in `NAMES`. Raises
    BadTemplate."""
    size = 0

    def put_in(text: str) -> Any:
        nonlocal size
        value = _rendered(text, data)
        size += len(_as_text(value))
        _check_size(size)  # of all texts of the template together
        return value

    return _each(template, put_in)


def holds(condition: str, data: Mapping[str, Any]) -> bool:
    """Return whether a condition holds. Raises BadTemplate."""
    return bool(_value(_condition(condition), data))


def read_by(template: Any) -> set[str]:
    """Return what a valid template reads: ids of nodes, the names in `OF_TURN`, and `ANY_NODE` if the node
    depends on a value."""
    read: set[str] = set()

    def look(text: str) -> None:
        for each in _expressions(text):
            found = _NODE.findall(each)
            read.update(found, (name for name in OF_TURN if name in each))
            if len(found) < each.count("$node"):
                read.add(ANY_NODE)

    _each(template, look)
    return read


def nodes_in(template: Any) -> set[str]:
    """Return the ids of nodes that a valid template reads."""
    found: set[str] = set()
    _each(template, lambda text: found.update(*map(nodes_of, _expressions(text))))
    return found


def _each(template: Any, function: Callable[[str], Any]) -> Any:
    if isinstance(template, str):
        return function(template) if "{{" in template else template
    if isinstance(template, list):
        return [_each(each, function) for each in template]
    if isinstance(template, dict):
        return {name: _each(each, function) for name, each in template.items()}
    return template


def _pieces(text: str) -> list[tuple[str, str | None]]:
    """Return the parts of a template: the text before each expression, with the expression; then the rest.
    Raises BadTemplate."""
    pieces: list[tuple[str, str | None]] = []
    at = 0
    while (begin := text.find("{{", at)) >= 0:
        end = begin + 2
        while (token := _TOKEN.match(text, end)) is not None and token[0] != "}}":
            end = token.end()
        if token is None:
            raise BadTemplate(f"expected }}}} after {text[begin:]!r:.80}")
        pieces.append((text[at:begin], text[begin + 2 : end]))
        at = token.end()
    if len(pieces) > MOST_EXPRESSIONS:
        raise BadTemplate(f"expected at most {MOST_EXPRESSIONS} expressions in a text, got {len(pieces):,}")
    return [*pieces, (text[at:], None)]


def _expressions(text: str) -> list[str]:
    return [expression for _, expression in _pieces(text) if expression is not None]


def _whole(pieces: list[tuple[str, str | None]]) -> str | None:
    """Return the expression if it is the whole template; None otherwise."""
    is_whole = len(pieces) == 2 and not (pieces[0][0] + pieces[1][0]).strip()
    return pieces[0][1] if is_whole else None


def _condition(text: str) -> str:
    whole = _whole(_pieces(text))
    return text if whole is None else whole


def _rendered(text: str, data: Mapping[str, Any]) -> Any:
    pieces = _pieces(text)
    whole = _whole(pieces)
    if whole is not None:
        return _value(whole, data)
    parts, size = [], 0
    for before, expression in pieces:
        value = "" if expression is None else _as_text(_value(expression, data))
        parts += [before, value]
        size += len(value)
        _check_size(size)
    return "".join(parts)


def _value(expression: str, data: Mapping[str, Any]) -> Any:
    compiled = _compiled(expression)
    from jinja2 import TemplateError

    try:
        value = compiled(**{_PREFIX + name: value for name, value in data.items()})
        if isinstance(value, _environment_class()[1]):
            str(value)  # raises if the name does not exist
        text = _as_text(value)
        text.encode()  # raises for a lone surrogate
        _check_size(len(text))
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise BadTemplate(f"{{{{{expression:.80}}}}}: {_message(error)}") from None
    return value


def _check_size(size: int) -> None:
    if size > LARGEST_VALUE:
        raise BadTemplate(f"expected a value of at most {LARGEST_VALUE:,} characters")


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)


_known: dict[str, Any] = {}
MOST_KNOWN = 1000


def _compiled(expression: str) -> Any:
    """Return the expression as a function of the data. Raises BadTemplate."""
    found = _known.get(expression)
    if found is None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        found = _known[expression] = _compile(expression)
    return found


def _compile(expression: str) -> Any:
    shown = f"{{{{{expression:.80}}}}}"
    if len(expression) > LONGEST_EXPRESSION:
        raise BadTemplate(f"{shown}: expected at most {LONGEST_EXPRESSION:,} characters")
    if sum(expression.count(each) for each in "([{") + expression.count("not ") > DEEPEST * 4:
        raise BadTemplate(f"{shown}: expected fewer brackets")
    environment = _environment()
    from jinja2 import TemplateError

    renamed = _NAME.sub(lambda match: match[0] if match[1] is None else _renamed(match[1]), expression)
    try:
        _check(_parsed(environment, renamed), 0)
        return environment.compile_expression(renamed, undefined_to_none=False)
    except (TemplateError, SyntaxError, RecursionError, MemoryError) as error:
        raise BadTemplate(f"{shown}: {_message(error)}") from None


def _renamed(name: str) -> str:
    if name not in NAMES:
        expected = ", ".join(f"${each}" for each in NAMES)
        raise BadTemplate(f"${name:.40}: expected one of {expected}")
    return _PREFIX + name


def _parsed(environment: ImmutableSandboxedEnvironment, expression: str) -> nodes.Node:
    from jinja2 import nodes

    body = environment.parse(f"{{{{ {expression} }}}}").body
    if len(body) != 1 or not isinstance(body[0], nodes.Output) or len(body[0].nodes) != 1:
        raise BadTemplate(f"{{{{{expression:.80}}}}}: expected one expression")
    return body[0].nodes[0]


def nodes_of(expression: str) -> set[str]:
    """Return the ids of nodes that an expression reads."""
    return set(_NODE.findall(expression))


KINDS = (
    "Add", "And", "Compare", "Concat", "CondExpr", "Const", "Dict", "Div", "Filter", "FloorDiv", "Getattr",
    "Getitem", "List", "Mod", "Mul", "Name", "Neg", "Not", "Operand", "Or", "Pair", "Pos", "Sub", "Test",
    "Tuple",
)  # fmt: skip
"""The allowed nodes of an expression's syntax tree. Not Call: nothing in the data can be called; not Slice,
Pow."""


def _check(node: nodes.Node, depth: int) -> None:
    """Raise BadTemplate for anything that an expression may not contain."""
    from jinja2 import nodes

    kind = type(node).__name__
    if kind not in KINDS:
        raise BadTemplate(f"an expression has no {kind.lower()} here")
    if depth > DEEPEST:
        raise BadTemplate(f"expected at most {DEEPEST} levels")
    if isinstance(node, nodes.Name) and not node.name.startswith(_PREFIX):
        raise BadTemplate(f"{node.name:.40}: unknown name")
    if isinstance(node, nodes.Getattr | nodes.Getitem) and (name := _member(node)).startswith("__"):
        raise BadTemplate(f"{name:.40}: no such member")
    for child in node.iter_child_nodes():
        _check(child, depth + 1)


def _member(node: nodes.Getattr | nodes.Getitem) -> str:
    from jinja2 import nodes

    if isinstance(node, nodes.Getattr):
        return node.attr
    return str(node.arg.value) if isinstance(node.arg, nodes.Const) else ""


def _message(error: BaseException) -> str:
    return "too deep" if isinstance(error, RecursionError) else f"{error}"[:200] or type(error).__name__


_made: list[Any] = []


def _environment() -> Any:
    if not _made:
        _made.append(_environment_class()[0]())
    return _made[0]


_classes: list[Any] = []


def _environment_class() -> Any:
    """Return the class of the environment and that of undefined values. Imports Jinja, at the first use."""
    if _classes:
        return _classes[0]
    try:
        from jinja2 import StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise BadTemplate('templates need Jinja: pip install "fastrpc-mcp[workflows]"') from None

    from . import filters

    class Environment(ImmutableSandboxedEnvironment):
        """Objects have members; lists and texts have indices; operators accept numbers, and + also texts and
        lists."""

        intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])

        def __init__(self) -> None:
            super().__init__(undefined=StrictUndefined, autoescape=False, optimized=False, cache_size=0)
            self.filters = dict(filters.FILTERS)
            self.tests = {**{name: self.tests[name] for name in filters.JINJAS_TESTS}, **filters.TESTS}
            self.globals = {}

        def getattr(self, obj: Any, attribute: str) -> Any:
            return self.getitem(obj, attribute)

        def getitem(self, obj: Any, argument: Any) -> Any:
            if isinstance(obj, dict) and isinstance(argument, str) and argument in obj:
                return obj[argument]
            is_place = isinstance(argument, int) and not isinstance(argument, bool)
            if isinstance(obj, list | str) and is_place and -len(obj) <= argument < len(obj):
                return obj[argument]
            return self.undefined(obj=obj, name=argument)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            return filters.operation(operator, left, right)

    _classes.append((Environment, StrictUndefined))
    return _classes[0]
