"""Idioms that readers of English as a second language stumble over are in no page and no text that users see.

Pages are read without their code. Texts are the literals of three words and more in the sources of the
package and of its toolsets, without docstrings: errors, records of the log, help, descriptions. Names of
tests have none either, and neither have the comments and docstrings of the tests and of the package, but for
the folders in `UNREAD`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest
from meta.test_house import sources, text_of

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "benchmarks/README.md")
IDIOMS = {
    r"\bstands?\b(?!-)": "is, occurs, means, replaces",
    r"\b(?:is|are) told\b": "is notified, receives",
    r"(?<!`)\bnobody\b": "no one, no client; or name who does it",
    r"\bsuch (?:a )?ones?\b": "name the thing",
    r"\bbecomes? of\b": "what happens to",
    r"\b(?:came|comes?) of\b": "the result",
    r"\bof (?:its|their|his) own(?=[.,;:)]| by\b|$)": "separate, own",
    r"\bthat there (?:is|are) not\b": "that does not exist",
    r"\b(?:this|it|that) is no (?!longer\b)[a-z]": "is not a",
    r"\bis none of\b": "is not one of",
    r"\bno use\b": "cannot be used",
    r"\bbehind (?:--|its name\b|the (?:name|call|last|line)\b)": "after",
    r"\b(?:is|are) there already\b": "exists already",
    r"\bin whatever way\b": "always",
}
"""The idiom, and what to write instead."""
UNREAD = ("compat",)
"""The folders of the package whose comments and docstrings have not been read for idioms yet."""


def prose_of(page: str) -> str:
    """The text of a page, with blanks for its code: blocks in fences, indented lines and spans."""
    lines = []
    is_fenced = False
    for line in page.splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        lines.append("" if is_fenced or line.startswith(("```", "    ")) else line)
    return re.sub(r"`[^`\n]*`", "`…`", "\n".join(lines))


def literals_of(source: str) -> Iterator[tuple[int, str]]:
    """Each literal that may be a sentence, with its line: a text of three words at least, no docstring."""

    def walk(node: ast.AST) -> Iterator[tuple[int, str]]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        text = _text_of(node)
        if text is None:
            for child in ast.iter_child_nodes(node):
                yield from walk(child)
        elif text.count(" ") >= 2:
            yield node.lineno, text  # type: ignore[attr-defined]

    return walk(ast.parse(source))


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) or "{}" for part in node.values)
    return None


def remarks_of(source: str) -> Iterator[tuple[int, str]]:
    """Each comment and each docstring of a source, with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """The words of the name of each test in a source, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")


def found_in(text: str) -> list[str]:
    """The idioms in a text, each with what to write instead."""
    joined = " ".join(text.split())
    return [
        f"{match[0]!r} (write: {IDIOMS[idiom]})"
        for idiom in IDIOMS
        for match in re.finditer(idiom, joined, re.IGNORECASE)
    ]


@pytest.mark.parametrize("path", [*PAGES, *sources("docs", endings=(".md",))])
def test_a_page_has_no_idioms(path: str) -> None:
    prose = prose_of(text_of(path))
    faults = [fault for paragraph in prose.split("\n\n") for fault in found_in(paragraph)]
    assert not faults, f"{path}: {'; '.join(faults)}"


def test_texts_that_users_see_have_no_idioms() -> None:
    faults = [
        f"{path}:{line}: {fault}"
        for path in sources("fastrpc", "tools")
        for line, text in literals_of(text_of(path))
        for fault in found_in(text)
    ]
    assert not faults, "\n".join(faults)


def test_tests_comments_and_docstrings_have_no_idioms() -> None:
    unread = tuple(f"fastrpc/{folder}/" for folder in UNREAD)
    read = [path for path in sources("fastrpc") if not path.startswith(unread)]
    tests = sources("tests")
    assert len(read) > 200
    assert len(tests) > 500
    faults = [
        f"{path}:{line}: {fault}"
        for path in [*read, *tests]
        for line, text in [*remarks_of(text_of(path)), *(names_in(text_of(path)) if path in tests else ())]
        for fault in found_in(text)
    ]
    assert not faults, "\n".join(faults)


def test_idioms_are_found_in_prose_and_in_literals_and_not_in_code() -> None:
    page = "A header stands\nthere.\n\n    x stands y\n\n```\nnobody\n```\nThe user `nobody` runs it."
    assert found_in(prose_of(page)) == ["'stands' (write: is, occurs, means, replaces)"]
    source = (
        '"""It is told."""\ndef f(x):\n    """Nobody knows."""\n'
        '    raise X(f"{x} is no\\n use here" if x else "is told of it")\n'
    )
    assert list(literals_of(source)) == [(4, "{} is no\n use here"), (4, "is told of it")]
    assert [bool(found_in(text)) for _, text in literals_of(source)] == [True, True]
    assert not found_in("it is no longer used, and can be called")


def test_idioms_are_found_in_comments_docstrings_and_names_of_tests() -> None:
    source = (
        '"""It is told."""\nasync def test_nobody_waits():  # it stands\n    "no idiom"\n    x = "stands"\n'
    )
    assert [bool(found_in(text)) for _, text in remarks_of(source)] == [True, True, False]
    assert [(line, bool(found_in(text))) for line, text in names_in(source)] == [(2, True)]
