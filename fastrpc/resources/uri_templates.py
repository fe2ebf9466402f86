"""URI templates (RFC 6570, levels 1 to 3): addresses with variables, made from values and read back.

Expansion is the RFC's. Matching, of which the RFC says little, follows from it: what a template makes of
values gives these values again. Reading takes time that grows with the length of the URI times that of the
template, whatever they hold: there are no regular expressions, and nothing is tried twice. Of level 4 there
is ``{path*}`` and ``{/path*}``, the rest of the path, whose slashes stay. Imports nothing but the errors.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LONGEST = 16_384
"""Characters of a URI; a longer one matches no template."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_UNRESERVED = frozenset(_LETTERS + _DIGITS + "-._~")
_RESERVED = frozenset(":/?#[]@!$&'()*+,;=")
_ALLOWED = _UNRESERVED | _RESERVED
_IN_URIS = _ALLOWED | {"%"}
_NAME = frozenset(_LETTERS + _DIGITS + "_.")
_HEX = frozenset("0123456789ABCDEFabcdef")

_OPERATORS = "+#./;?&"
_WIDE = ("+", "#")
"""Operators whose values keep reserved characters."""

_STOPS = {
    "": frozenset("/?#"),
    "+": frozenset(),
    "#": frozenset(),
    ".": frozenset("/?#"),
    "/": frozenset("/?#"),
    ";": frozenset("/?#;"),
    "?": frozenset("#"),
    "&": frozenset("#"),
}
"""By operator, the characters at which a value ends."""

_PATH_STOPS = frozenset("?#")


class _Literal:
    """A text that stands in the template as it is."""

    __slots__ = ("text",)

    optional = False

    def __init__(self, text: str) -> None:
        self.text = text

    def starts(self, uri: str, after: list[bool]) -> list[bool]:
        """Return where in `uri` the part may begin, if the rest may begin at the places in `after`."""
        found = [False] * (len(uri) + 1)
        at = uri.find(self.text)
        while at >= 0:
            found[at] = after[at + len(self.text)]
            at = uri.find(self.text, at + 1)
        return found


class _Span:
    """Variables that one stretch of the URI holds: an expression, or one variable of it.

    `lead` begins the stretch; a span with a lead may be left out as a whole.
    """

    __slots__ = ("lead", "least", "names", "operator", "optional", "path", "stops")

    def __init__(self, operator: str, names: tuple[str, ...], path: bool) -> None:
        self.operator = operator
        self.names = names
        self.path = path
        self.lead = f";{names[0]}" if operator == ";" else operator.replace("+", "")
        self.optional = bool(self.lead)
        self.least = 0 if self.lead else 1
        self.stops = _PATH_STOPS if path else _STOPS[operator]

    def value_at(self, uri: str, start: int) -> int:
        """Return where the stretch that begins at `start` has its value; -1 if there is no such stretch."""
        if not uri.startswith(self.lead, start):
            return -1
        at = start + len(self.lead)
        return at + 1 if self.operator == ";" and uri[at : at + 1] == "=" else at

    def starts(self, uri: str, after: list[bool]) -> list[bool]:
        size = len(uri)
        furthest = [-1] * (size + 1)  # by the place of a value's beginning, its last possible end
        reached = -1
        for at in range(size, -1, -1):
            if at == size or uri[at] in self.stops:
                reached = -1
            if reached < 0 and after[at]:
                reached = at
            furthest[at] = reached
        if not self.lead:
            return [end > at for at, end in enumerate(furthest)]
        found = [False] * (size + 1)
        start = uri.find(self.lead)
        while start >= 0:
            at = self.value_at(uri, start)
            bare = self.operator == ";" and at == start + len(self.lead)
            found[start] = after[at] if bare else furthest[at] >= 0
            start = uri.find(self.lead, start + 1)
        return found

    def ends(self, uri: str, start: int) -> range:
        """Return where the stretch that begins at `start` may end, the last place first."""
        at = self.value_at(uri, start)
        if self.operator == ";" and at == start + len(self.lead):
            return range(at, at - 1, -1)
        end = at
        while end < len(uri) and uri[end] not in self.stops:
            end += 1
        return range(end, at + self.least - 1, -1)

    def read(self, uri: str, start: int, end: int, values: dict[str, str]) -> None:
        """Put the variables' values into `values`. Raises UnicodeDecodeError for bytes that are no text."""
        text = uri[self.value_at(uri, start) : end]
        if self.operator in ("?", "&"):
            for pair in text.split("&"):
                name, _, value = pair.partition("=")
                if name in self.names:
                    values.setdefault(name, _decoded(value))
            return
        pieces = text.split(",", len(self.names) - 1) if len(self.names) > 1 else [text]
        for name, piece in zip(self.names, pieces, strict=False):
            values[name] = _decoded(piece)


class Template:
    """A URI template. Raises `DefinitionError` for what is none, or is beyond level 3.

    `variables` are the names in their order; `optional` those that a URI may leave out.
    """

    __slots__ = ("_expressions", "_parts", "optional", "rank", "text", "variables")

    def __init__(self, text: str) -> None:
        self.text = text
        self._expressions: list[str | tuple[str, list[tuple[str, bool]]]] = []
        self._parts: list[_Literal | _Span] = []
        self._parse(text)
        spans = [part for part in self._parts if isinstance(part, _Span)]
        names = [name for span in spans for name in span.names]
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            raise DefinitionError(f"{text}: the variable {twice!r} stands there twice")
        self.variables = tuple(names)
        self.optional = frozenset(
            name for span in spans for at, name in enumerate(span.names) if span.optional or at
        )
        literal = sum(len(part.text) for part in self._parts if isinstance(part, _Literal))
        wide = sum(span.path or span.operator in _WIDE for span in spans)
        self.rank = (literal, -wide, -sum(span.optional for span in spans))
        """How specific the template is: of those that match a URI the one with the highest rank is meant."""

    # --- parsing --------------------------------------------------------------------------------------

    def _parse(self, text: str) -> None:
        rest = text
        while rest:
            literal, brace, rest = rest.partition("{")
            if "}" in literal:
                raise DefinitionError(f"{text}: a '}}' without its '{{'")
            if literal:
                literal = encoded(literal, _ALLOWED)
                self._expressions.append(literal)
                self._parts.append(_Literal(literal))
            if brace:
                expression, closing, rest = rest.partition("}")
                if not closing:
                    raise DefinitionError(f"{text}: a '{{' without its '}}'")
                self._expression(expression)

    def _expression(self, expression: str) -> None:
        operator = expression[:1] if expression[:1] in _OPERATORS else ""
        variables: list[tuple[str, bool]] = []
        for name in expression[len(operator) :].split(","):
            path = name.endswith("*")
            name = name.removesuffix("*")
            if not name or not _NAME.issuperset(name):
                raise self._error(expression, "no expression of RFC 6570, level 1 to 3, such as {name}")
            if path and operator not in ("", "/"):
                raise self._error(expression, "not how the rest of a path is written: {name*} or {/name*}")
            variables.append((name, path))
        if operator == "" and len(variables) > 1 and any(path for _, path in variables):
            raise self._error(expression, "more than the rest of a path; {name*} stands by itself")
        self._expressions.append((operator, variables))
        if operator in (".", "/", ";"):  # {/a,b} is {/a}{/b}
            self._parts += [_Span(operator, (name,), path) for name, path in variables]
        else:
            self._parts.append(_Span(operator, tuple(name for name, _ in variables), variables[0][1]))

    def _error(self, expression: str, problem: str) -> DefinitionError:
        return DefinitionError(f"{self.text}: {{{expression}}} is {problem}")

    # --- there and back -------------------------------------------------------------------------------

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI that the values make (RFC 6570, section 3). A missing or None value is left out."""
        pieces = []
        for expression in self._expressions:
            if isinstance(expression, str):
                pieces.append(expression)
                continue
            operator, variables = expression
            found = [
                _expanded(operator, name, path, str(values[name]))
                for name, path in variables
                if values.get(name) is not None
            ]
            if found:
                joint = {"": ",", "+": ",", "#": ",", "?": "&"}.get(operator, operator)
                pieces.append(operator.replace("+", "") + joint.join(found))
        return "".join(pieces)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables' values in a URI, without those that it leaves out; None if it does not fit.

        Where there is a choice the first variable takes most, but nothing of what a later expression that
        may be left out could have. Values are percent-decoded.
        """
        return None if len(uri) > LONGEST else self.match_normal(normal(uri))

    def match_normal(self, uri: str) -> dict[str, str] | None:
        """`match` for a URI that `normal` has returned, of one that is not too long."""
        first = self._parts[0] if self._parts else None
        if len(uri) > LONGEST or (isinstance(first, _Literal) and not uri.startswith(first.text)):
            return None
        present, fits = self._places(uri)
        if not fits[0][0]:
            return None
        values: dict[str, str] = {}
        at = 0
        try:
            for number, part in enumerate(self._parts):
                if isinstance(part, _Literal):
                    at += len(part.text)
                elif present[number][at]:
                    end = self._end(number, part.ends(uri, at), present, fits)
                    part.read(uri, at, end, values)
                    at = end
        except UnicodeDecodeError:
            return None
        return values

    def _places(self, uri: str) -> tuple[list[list[bool]], list[list[bool]]]:
        """Return for each part where it may begin, and where it and what follows may (it may be left out)."""
        after = [False] * len(uri) + [True]
        present: list[list[bool]] = []
        fits = [after]
        for part in reversed(self._parts):
            starts = part.starts(uri, after)
            present.append(starts)
            if part.optional:
                after = [one or other for one, other in zip(starts, after, strict=True)]
            else:
                after = starts
            fits.append(after)
        return present[::-1], fits[::-1]

    def _end(self, number: int, ends: range, present: list[list[bool]], fits: list[list[bool]]) -> int:
        """Return where a span ends: before the next optional one that can be there, else at the last."""
        following = number + 1
        while following < len(self._parts) and self._parts[following].optional:
            for end in ends:
                if present[following][end]:
                    return end
            following += 1
        return next(end for end in ends if fits[number + 1][end])

    def __repr__(self) -> str:
        return f"<Template {self.text}>"


# ----------------------------------------------------------------------------------- percent-encoding


def normal(uri: str) -> str:
    """Return a URI in one spelling: what must be percent-encoded is, escapes that are there stay."""
    return encoded(uri, _IN_URIS)


def encoded(text: str, allowed: frozenset[str]) -> str:
    """Return a text with all but the allowed characters percent-encoded; escapes that are there stay."""
    if "%" in text and "%" not in allowed:
        first, *others = text.split("%")
        pieces = [encoded(first, allowed)]
        for piece in others:
            sign = "%" if len(piece) >= 2 and _HEX.issuperset(piece[:2]) else "%25"
            pieces.append(sign + encoded(piece, allowed))
        return "".join(pieces)
    if allowed.issuperset(text):
        return text
    return _escaped(text, allowed)


def _escaped(text: str, allowed: frozenset[str]) -> str:
    """Return a text with each byte of its UTF-8 percent-encoded that is none of the allowed characters."""
    table = _TABLES.get(allowed)
    if table is None:
        table = _TABLES[allowed] = [
            chr(byte) if chr(byte) in allowed else f"%{byte:02X}" for byte in range(256)
        ]
    return "".join([table[byte] for byte in text.encode("utf-8", "surrogatepass")])


_TABLES: dict[frozenset[str], list[str]] = {}
"""What each byte becomes, by the characters that are allowed, which are ASCII."""


def _expanded(operator: str, name: str, path: bool, value: str) -> str:
    """Return one variable's part of an expression."""
    if operator in _WIDE:
        return encoded(value, _ALLOWED)
    kept = _UNRESERVED | {"/"} if path else _UNRESERVED
    text = _escaped(value, kept)
    if operator in ("?", "&"):
        return f"{name}={text}"
    if operator == ";":
        return f"{name}={text}" if text else name
    return text


def _decoded(text: str) -> str:
    """Return a text with its escapes read. Raises UnicodeDecodeError for bytes that are not UTF-8."""
    if "%" not in text:
        return text
    first, *others = text.split("%")
    data = [first.encode()]
    for piece in others:
        if len(piece) >= 2 and _HEX.issuperset(piece[:2]):
            data += (bytes((int(piece[:2], 16),)), piece[2:].encode())
        else:
            data.append(b"%" + piece.encode())
    return b"".join(data).decode()
