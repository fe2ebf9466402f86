"""URI templates (RFC 6570, levels 1 to 3): expansion, and matching of URIs.

Expansion follows the RFC. Matching, which the RFC leaves open, is its inverse: a URI made by expansion yields
the same values. Matching takes time proportional to the length of the URI times that of the template, for any
input: there are no regular expressions and no backtracking. Of level 4, ``{path*}`` and ``{/path*}`` are
supported: the rest of the path, with its slashes. The first escape imports `urllib.parse`.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LONGEST = 16_384
"""Characters of a URI, and of a template; a longer URI matches no template."""
MOST_VARIABLES = 64
"""Variables of a template, which may be an upstream server's: each costs a walk over a URI."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_UNRESERVED = frozenset(_LETTERS + _DIGITS + "-._~")
_RESERVED = frozenset(":/?#[]@!$&'()*+,;=")
_ALLOWED = _UNRESERVED | _RESERVED
_IN_URIS = _ALLOWED | {"%"}
_NAME = frozenset(_LETTERS + _DIGITS + "_.")
_NAME_OF_SCHEME = frozenset(_LETTERS + _DIGITS + "+-.")
_WITH_HOSTS = ("http", "https", "ws", "wss", "ftp")
_HEX = frozenset("0123456789ABCDEFabcdef")

_OPERATORS = "+#./;?&"
_WIDE = ("+", "#")
"""Operators whose values may contain reserved characters."""

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
"""For each operator, the characters that end a value."""

_PATH_STOPS = frozenset("?#")


class _Literal:
    """Literal text in a template."""

    __slots__ = ("text",)

    optional = False

    def __init__(self, text: str, is_first: bool) -> None:
        self.text = normal(text) if is_first else normal(f"x:{text}")[2:]

    def starts(self, uri: str, after: list[bool]) -> list[bool]:
        """Return where in `uri` the part may begin, if the rest may begin at the places in `after`."""
        found = [False] * (len(uri) + 1)
        at = uri.find(self.text)
        while at >= 0:
            found[at] = after[at + len(self.text)]
            at = uri.find(self.text, at + 1)
        return found


class _Span:
    """Variables that share one section of the URI: an expression, or one variable of it.

    `lead` begins the section; a span with a lead is optional as a whole.
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
        """Return where the value begins in a section that begins at `start`; -1 if none begins there."""
        if not uri.startswith(self.lead, start):
            return -1
        at = start + len(self.lead)
        return at + 1 if self.operator == ";" and uri[at : at + 1] == "=" else at

    def starts(self, uri: str, after: list[bool]) -> list[bool]:
        size = len(uri)
        furthest: list[int] = []  # for each start of a value, its last possible end
        for at in range(size, -1, -1):
            if at == size or uri[at] in self.stops:
                reached = -1
            if reached < 0 and after[at]:
                reached = at
            furthest.append(reached)
        furthest.reverse()
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
        """Return where a section that begins at `start` may end, the last place first."""
        at = self.value_at(uri, start)
        if self.operator == ";" and at == start + len(self.lead):
            return range(at, at - 1, -1)
        end = at
        while end < len(uri) and uri[end] not in self.stops:
            end += 1
        return range(end, at + self.least - 1, -1)

    def read(self, uri: str, start: int, end: int, values: dict[str, str]) -> None:
        """Store the values of the variables. Raises UnicodeDecodeError for bytes that are not UTF-8."""
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
    """A URI template. Raises `DefinitionError` for invalid syntax and for unsupported parts of level 4.

    `variables` are the names in order; `optional` are those that a URI may omit.
    """

    __slots__ = ("_expressions", "_parts", "optional", "rank", "text", "variables")

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise DefinitionError(f"{text:.60}…: expected at most {LONGEST} characters, got {len(text)}")
        self.text = text
        self._expressions: list[str | tuple[str, list[tuple[str, bool]]]] = []
        self._parts: list[_Literal | _Span] = []
        self._parse(text)
        spans = [part for part in self._parts if isinstance(part, _Span)]
        names = [name for span in spans for name in span.names]
        if len(names) > MOST_VARIABLES:
            raise DefinitionError(
                f"{text:.60}…: expected at most {MOST_VARIABLES} variables, got {len(names)}"
            )
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            raise DefinitionError(f"{text}: the variable {twice!r} occurs twice")
        self.variables = tuple(names)
        self.optional = frozenset(
            name for span in spans for at, name in enumerate(span.names) if span.optional or at
        )
        literal = sum(len(part.text) for part in self._parts if isinstance(part, _Literal))
        wide = sum(span.path or span.operator in _WIDE for span in spans)
        self.rank = (literal, -wide, -sum(span.optional for span in spans))
        """How specific the template is: if several match a URI, the one with the highest rank is used."""

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
                self._parts.append(_Literal(literal, not self._parts))
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
            raise self._error(expression, "more than the rest of a path; {name*} must be alone")
        self._expressions.append((operator, variables))
        if operator in (".", "/", ";"):  # {/a,b} is {/a}{/b}
            self._parts += [_Span(operator, (name,), path) for name, path in variables]
        else:
            self._parts.append(_Span(operator, tuple(name for name, _ in variables), variables[0][1]))

    def _error(self, expression: str, problem: str) -> DefinitionError:
        return DefinitionError(f"{self.text}: {{{expression}}} is {problem}")

    # --- expansion and matching -----------------------------------------------------------------------

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI for the values (RFC 6570, section 3). A missing or None value is omitted."""
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
        """Return the values of the variables in a URI, without omitted ones; None if it does not match.

        If a URI can be split in several ways, earlier variables take as much as possible, except what a later
        optional expression can match. Values are percent-decoded.
        """
        return None if len(uri) > LONGEST else self.match_normal(normal(uri))

    def match_normal(self, uri: str) -> dict[str, str] | None:
        """`match` for a URI that `normal` has returned, and that is not too long."""
        if len(uri) > LONGEST or not self._has_literals(uri):
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

    def _has_literals(self, uri: str) -> bool:
        """Whether a URI contains the literals, in order: of many templates, few remain for a closer look."""
        first, last = (self._parts[0], self._parts[-1]) if self._parts else (None, None)
        if isinstance(first, _Literal) and not uri.startswith(first.text):
            return False
        if isinstance(last, _Literal) and not uri.endswith(last.text):
            return False
        at = 0
        for part in self._parts:
            if isinstance(part, _Literal):
                at = uri.find(part.text, at) + len(part.text)
                if at < len(part.text):
                    return False
        return True

    def _places(self, uri: str) -> tuple[list[list[bool]], list[list[bool]]]:
        """Return for each part where it may begin, and where it or, if it is optional, what follows may."""
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
        """Return where a span ends: before the next optional span that can match, else at the last place."""
        following = number + 1
        while following < len(self._parts) and self._parts[following].optional:
            for end in ends:
                if present[following][end]:
                    return end
            following += 1
        return next(end for end in ends if fits[number + 1][end])

    def __repr__(self) -> str:
        return f"<Template {self.text}>"


# -------------------------------------------------------------------------------- percent-encoding


def valid(uri: str) -> str:
    """Return a URI with its characters percent-encoded where necessary, and otherwise as it is written."""
    return encoded(uri, _IN_URIS)


def normal(uri: str) -> str:
    """Return the one spelling of all URIs that are the same by RFC 3986, 6.2.2.1 and 6.2.2.2.

    Characters are percent-encoded where necessary and only there, in upper case; a ``%`` that begins no
    escape is one itself. Schemes are lower case, and hosts where they are names of DNS: in any other
    scheme the host may be a name that the server defines, whose case matters.
    """
    scheme, colon, rest = uri.partition(":")
    if colon and not scheme.islower() and _NAME_OF_SCHEME.issuperset(scheme):
        scheme = scheme.lower()
        uri = f"{scheme}:{rest}"
    if "%" in uri or not _ALLOWED.issuperset(uri):
        uri = _with_normal_escapes(uri)
    return _with_normal_host(uri) if scheme in _WITH_HOSTS else uri


def _with_normal_escapes(uri: str) -> str:
    first, *others = uri.split("%")
    pieces = [encoded(first, _ALLOWED)]
    for piece in others:
        if len(piece) < 2 or not _HEX.issuperset(piece[:2]):
            pieces += ("%25", encoded(piece, _ALLOWED))
            continue
        character = chr(int(piece[:2], 16))
        pieces.append(character if character in _UNRESERVED else f"%{piece[:2].upper()}")
        pieces.append(encoded(piece[2:], _ALLOWED))
    return "".join(pieces)


def _with_normal_host(uri: str) -> str:
    """Return a URI whose escapes are normal with its host in lower case."""
    scheme, slashes, rest = uri.partition("://")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    user, sign, host = rest[:end].rpartition("@")
    first, *escapes = host.split("%")
    lower = "%".join([first.lower(), *(piece[:2] + piece[2:].lower() for piece in escapes)])
    return f"{scheme}{slashes}{user}{sign}{lower}{rest[end:]}" if slashes else uri


def without_dots(uri: str) -> str:
    """Return a URI in normal form without the segments ``.`` and ``..`` of its path (RFC 3986, 5.2.4)."""
    scheme, slashes, rest = uri.partition("://")
    if not slashes or "/." not in rest:
        return uri
    end = min((at for at in map(rest.find, "?#") if at >= 0), default=len(rest))
    host, *segments = rest[:end].split("/")
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1:] in (["."], [".."]):
        kept.append("")
    return f"{scheme}://{'/'.join([host, *kept])}{rest[end:]}"


def encoded(text: str, allowed: frozenset[str]) -> str:
    """Return a text with all but the allowed characters percent-encoded; existing escapes are kept."""
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
    """Return a text with each byte of its UTF-8 percent-encoded, except the allowed characters."""
    from urllib.parse import quote

    return quote(text, "".join(allowed), errors="surrogatepass")


def _expanded(operator: str, name: str, path: bool, value: str) -> str:
    """Return the expansion of one variable in an expression."""
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
    """Return a percent-decoded text. Raises UnicodeDecodeError for bytes that are not UTF-8."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text, errors="strict")
