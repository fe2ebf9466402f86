"""What can be a resource or a template, and what is refused where it is decorated, with the cure."""

from __future__ import annotations

from typing import Any

import pytest
from support.in_memory import read

from fastrpc import Server
from fastrpc.errors import DefinitionError


class Shelf:
    def __init__(self) -> None:
        self.books = {"a": 1}

    def book(self, id: str) -> int:
        return self.books[id]


def no_parameters() -> str:
    return ""


def two(id: int, page: int = 1) -> str:
    return ""


def bare(id) -> str:  # type: ignore[no-untyped-def]
    return ""


@pytest.mark.parametrize(
    ("uri", "function", "options", "problem"),
    [
        ("guide", no_parameters, {}, "is not a URI; write for example docs://no_parameters"),
        ("docs:", no_parameters, {}, "is not a URI"),
        ("docs://a b", no_parameters, {}, "write docs://a%20b"),
        ("docs://übung", no_parameters, {}, "write docs://%C3%BCbung"),
        ("docs://a", two, {}, r"takes 'id', but docs://a has no variables; .* docs://a/\{id\}"),
        ("docs://{name}", two, {}, r"docs://\{name\} has the variables 'name', the function .* 'id', 'page'"),
        ("docs://x{?page}", two, {}, "has the variables 'page', the function the parameters 'id', 'page'"),
        ("docs://{id}", no_parameters, {}, "has the variables 'id', the function the parameters none"),
        ("docs://{id}", bare, {}, "parameter 'id' has no annotation"),
        ("docs://{id", two, {}, "without its '}'"),
        ("docs://a", no_parameters, {"size": -1}, "size=-1"),
        ("docs://a", no_parameters, {"ttl": -1}, "ttl=-1"),
        ("docs://a", no_parameters, {"cache_scope": "all"}, "is not one of public, private"),
        ("docs://a", no_parameters, {"annotations": {"priority": 2}}, "priority"),
        ("docs://a", no_parameters, {"annotations": {"audience": ["model"]}}, "audience"),
        ("docs://a", no_parameters, {"annotations": {"colour": 1}}, "colour"),
        ("docs://a", no_parameters, {"meta": {"not a key": 1}}, "meta"),
        ("docs://a", Shelf.book, {}, "add the method of an object"),
        ("docs://a", 5, {}, "is not callable"),
    ],
)
def test_what_cannot_be_a_resource_is_said_at_once(
    uri: str, function: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DefinitionError, match=problem):
        Server("t").resource(uri, **options)(function)


def test_methods_of_objects_and_late_types_are_resources_too() -> None:
    app = Server("t")
    app.add_resource("books://{id}", Shelf().book)
    app.add_resource("late://{id}", late)
    assert read(app, "books://a")[0]["text"] == "1"
    assert read(app, "late://5")[0]["text"] == "5"


def late(id: Later) -> str:
    return str(id)


Later = int
