"""URI templates against what must hold for all of them: values come back, and nothing raises.

Templates are generated, with separators between expressions that no value holds unescaped; where a template
is ambiguous, what a URI gives back still makes that URI.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc.errors import DefinitionError
from fastrpc.protocol.uri_template import Template, encoded

NAMES = ["a", "b", "c", "d", "e"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SOME = TEXTS.filter(bool)
WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=".,%/;?#&=[]"), min_size=1, max_size=8
)


@st.composite
def templates_with_values(draw: Any) -> tuple[str, dict[str, str]]:
    """A template in which each value ends where something begins that it cannot hold."""
    names = iter(NAMES)
    text = draw(st.sampled_from(["docs://", "a:", "https://host/x/", "ü:"]))
    values: dict[str, str] = {}
    for name in names:
        kind = draw(st.sampled_from(["one", "two", "segment", "path", "stop"]))
        if kind == "stop":
            break
        if kind == "two":
            other = next(names, None)
            if other is None:
                break
            text += "{" + f"{name},{other}" + "}/"
            values[name], values[other] = draw(WORDS), draw(WORDS)
        elif kind == "path":
            text += "{" + name + "*}"
            values[name] = draw(SOME)
            break
        elif kind == "segment":
            text += "%7C{/" + name + "}/"
            values[name] = draw(TEXTS)
        else:
            text += "{" + name + "}/"
            values[name] = draw(SOME)
    rest = [name for name in NAMES if name not in values]
    if rest and draw(st.booleans()):
        text += "{?" + ",".join(rest) + "}"
        values |= {name: draw(TEXTS) for name in rest if draw(st.booleans())}
    return text, values


@settings(max_examples=500)
@given(templates_with_values())
def test_what_a_template_makes_of_values_gives_them_back(case: tuple[str, dict[str, str]]) -> None:
    text, values = case
    template = Template(text)
    assert template.match(template.expand(values)) == values


OPERATORS = ["", "+", "#", ".", "/", ";", "?", "&"]
EXPRESSIONS = st.tuples(st.sampled_from(OPERATORS), st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
LITERALS = st.text("ab/.?&;=-%", max_size=3)


@st.composite
def any_templates(draw: Any) -> str:
    text, used = "x:", set()
    for literal, (operator, names) in draw(st.lists(st.tuples(LITERALS, EXPRESSIONS), max_size=4)):
        fresh = [name for at, name in enumerate(names) if name not in used and name not in names[:at]]
        used.update(fresh)
        text += literal
        if fresh:
            text += "{" + operator + ",".join(fresh) + "}"
    return text


@settings(max_examples=500)
@given(
    any_templates(),
    st.lists(
        st.sampled_from(["a", "b", "/", ".", "?", "&", ";", "=", "-", ",", "%20", "a=b", ";b"]), max_size=12
    ),
)
def test_a_match_agrees_with_a_plain_regular_expression(text: str, pieces: list[str]) -> None:
    """The twin: each expression as the regular expression that says the same, which may take its time."""
    template = Template(text)
    for uri in (
        "x:" + "".join(pieces),
        template.expand(dict.fromkeys(NAMES, pieces[0] if pieces else "")),
    ):
        assert (template.match(uri) is not None) == (
            re.fullmatch(pattern_of(text), uri, re.DOTALL) is not None
        )


def pattern_of(text: str) -> str:
    bodies = {
        "": "[^/?#]+",
        "+": ".+",
        "#": "(?:#.*)?",
        "?": r"(?:\?[^#]*)?",
        "&": "(?:&[^#]*)?",
    }
    found = ""
    for literal, operator, names in re.findall(r"([^{]*)(?:\{([+#./;?&]?)([^}]*)\})?", text):
        found += re.escape(encoded(literal, frozenset("ab/.?&;=-x:")))
        if names and operator in bodies:
            found += bodies[operator]
        elif operator in (".", "/"):
            found += rf"(?:{re.escape(operator)}[^/?#]*)?" * len(names.split(","))
        elif operator == ";":
            found += "".join(f"(?:;{name}(?:=[^/?#;]*|(?!=)))?" for name in names.split(","))
    return found


@settings(max_examples=500)
@given(any_templates(), TEXTS, TEXTS)
def test_no_text_makes_a_template_raise(text: str, one: str, other: str) -> None:
    template = Template(text)
    for uri in (one, "x:" + one, f"x:{one}/{other}", text):
        values = template.match(uri)
        assert values is None or set(values) <= set(template.variables)


@settings(max_examples=300)
@given(TEXTS)
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        template = Template(text)
    except DefinitionError:
        return
    template.match(text)


@settings(max_examples=300)
@given(TEXTS)
def test_escapes_are_those_of_the_standard_library(text: str) -> None:
    uri = Template("a:{x}").expand({"x": text})
    assert uri == "a:" + quote(text, safe="")
    assert unquote(uri[2:]) == text
