"""How values are written into URLs, headers, cookies and forms: each style of OpenAPI, exploded and not."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from fastrpc import ToolError

pytest.importorskip("openapi_pydantic", reason="the extra openapi is not installed")

from fastrpc.openapi.document import operations_of
from fastrpc.openapi.requests import OperationRequest
from fastrpc.openapi.styles import pairs_of, segment_of, simple_of

ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200}


# The table of OpenAPI 3.1.1, 4.8.12.6, for a parameter `color`: style, explode, and what happens to an empty
# text, a text, an array and an object.
@pytest.mark.parametrize(
    ("style", "explode", "expected"),
    [
        ("simple", False, ("", "blue", "blue,black,brown", "R,100,G,200")),
        ("simple", True, ("", "blue", "blue,black,brown", "R=100,G=200")),
        ("label", False, (".", ".blue", ".blue,black,brown", ".R,100,G,200")),
        ("label", True, (".", ".blue", ".blue.black.brown", ".R=100.G=200")),
        ("matrix", False, (";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200")),
        (
            "matrix",
            True,
            (";color=", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200"),
        ),
    ],
)
def test_each_style_of_a_path(style: str, explode: bool, expected: tuple[str, ...]) -> None:
    found = [segment_of("color", value, style, explode) for value in ("", "blue", ARRAY, OBJECT)]
    if style == "matrix" and explode:
        found[0] = found[0].rstrip("=") + "="  # either is an empty value
    assert found == [*expected]
    assert segment_of("color", "a/b,c", style, explode).endswith("a%2Fb%2Cc")
    assert segment_of("color", [], style, explode) == segment_of("color", {}, style, explode) == ""


@pytest.mark.parametrize(
    ("style", "explode", "array", "members"),
    [
        ("form", False, [("c", "blue,black,brown")], [("c", "R,100,G,200")]),
        ("form", True, [("c", "blue"), ("c", "black"), ("c", "brown")], [("R", "100"), ("G", "200")]),
        ("spaceDelimited", False, [("c", "blue black brown")], [("c", "R 100 G 200")]),
        ("pipeDelimited", False, [("c", "blue|black|brown")], [("c", "R|100|G|200")]),
        (
            "deepObject",
            True,
            [("c", "blue"), ("c", "black"), ("c", "brown")],
            [("c[R]", "100"), ("c[G]", "200")],
        ),
        ("deepObject", False, [("c", "blue,black,brown")], [("c[R]", "100"), ("c[G]", "200")]),
    ],
)
def test_each_style_of_a_query(style: str, explode: bool, array: Any, members: Any) -> None:
    assert pairs_of("c", ARRAY, style, explode) == array
    assert pairs_of("c", OBJECT, style, explode) == members
    assert pairs_of("c", "", style, explode) == [("c", "")]
    assert pairs_of("c", False, style, explode) == [("c", "false")]
    for nothing in ([], {}, None, [None], {"R": None}):
        assert pairs_of("c", nothing, style, explode) == []


def test_headers_are_simple() -> None:
    assert simple_of(ARRAY, True) == "blue,black,brown"
    assert (simple_of(OBJECT, False), simple_of(OBJECT, True)) == ("R,100,G,200", "R=100,G=200")
    assert (simple_of(5, False), simple_of("a b", False)) == ("5", "a b")


def request_of(
    operation: dict[str, Any], path: str = "/x", version: str = "3.1.0", client: Any = None
) -> OperationRequest:
    document = {
        "openapi": version,
        "info": {"title": "t", "version": "1"},
        "paths": {path: {"post": {"responses": {"200": {"description": "ok"}}, **operation}}},
    }
    [found] = operations_of(document)
    names = {(each.place, each.name): each.name for each in found.parameters}
    members = (found.body_schema or {}).get("properties")
    return OperationRequest(found, client, dict, names, members and {name: name for name in members})


FORM = {
    "schema": {
        "type": "object",
        "properties": {"tags": {"type": "array"}, "who": {"type": "object"}, "n": {"type": "integer"}},
    }
}


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize(
    ("encoding", "arguments", "data"),
    [
        ({}, {"tags": ["a", "b"], "n": 1}, {"tags": ["a", "b"], "n": "1"}),
        ({}, {"tags": ["a"]}, {"tags": "a"}),
        ({}, {"tags": [], "n": 2}, {"n": "2"}),
        ({}, {"tags": [], "who": {}}, {"who": "{}"}),
        ({}, {"tags": [{"x": 1}, True]}, {"tags": ['{"x":1}', "true"]}),
        ({}, {"who": {"name": "é"}}, {"who": '{"name":"é"}'}),
        ({"tags": {"explode": False}}, {"tags": ["a", "b"]}, {"tags": "a,b"}),
        ({"tags": {"style": "form", "explode": False}}, {"tags": [], "n": 1}, {"n": "1"}),
        ({"tags": {"style": "spaceDelimited"}}, {"tags": ["a", "b"]}, {"tags": "a b"}),
        ({"who": {"style": "deepObject"}}, {"who": {"name": "x"}}, {"who[name]": "x"}),
        ({"who": {"explode": True}}, {"who": {"name": "x", "n": 1}, "n": 2}, {"name": "x", "n": ["1", "2"]}),
        ({"who": {"contentType": "application/json"}}, {"who": {"a": 1}}, {"who": '{"a":1}'}),
    ],
)
def test_each_encoding_of_a_form(encoding: Any, arguments: Any, data: Any, version: str) -> None:
    content = {"application/x-www-form-urlencoded": {**FORM, "encoding": encoding}}
    request = request_of({"requestBody": {"content": content}}, version=version)
    assert request._options(arguments).get("data") == data


def test_parameters_are_written_where_they_belong() -> None:
    def parameter(name: str, place: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "in": place, "required": place == "path", "schema": {}, **more}

    request = request_of(
        {
            "parameters": [
                parameter("p", "path", style="matrix", explode=True),
                parameter("q", "query", explode=False),
                parameter("none", "query", explode=False),
                parameter("h", "header", explode=True),
                parameter("c", "cookie"),
            ]
        },
        "/x/{p}/y",
    )
    arguments = {"p": ["a", "b/c"], "q": ["1", "2"], "none": [], "h": {"a": 1}, "c": ["x", "y z"]}
    assert request._path(arguments) == "x/;p=a;p=b%2Fc/y"
    options = request._options(arguments)
    assert request._query(arguments, str) == [("q", "1,2")]
    assert options["headers"] == {"h": "a=1", "Cookie": "c=x; c=y%20z"}


@pytest.mark.parametrize(
    ("explode", "value", "sent"),
    [
        (False, ["a,b", "c"], "c=a%2Cb,c"),
        (False, {"k": "v;w"}, "c=k,v%3Bw"),
        (True, {"k; admin": "1"}, "k%3B%20admin=1"),
        (True, ["a=b", "ü"], "c=a%3Db; c=%C3%BC"),
    ],
)
def test_what_divides_cookies_and_their_items_is_distinguished_from_what_is_in_them(
    explode: bool, value: Any, sent: str
) -> None:
    """OpenAPI: a comma in an item of a cookie is encoded, one between two is not; no key adds a cookie."""
    cookie = {"name": "c", "in": "cookie", "explode": explode, "schema": {}}
    request = request_of({"parameters": [cookie]}, "/x")
    assert request._options({"c": value})["headers"] == {"Cookie": sent}


def sent(operation: dict[str, Any], arguments: dict[str, Any], **options: Any) -> httpx.Request:
    """Return the request that a call of an operation sends."""
    found: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        found.append(request)
        return httpx.Response(200)

    async def send() -> None:
        transport = httpx.MockTransport(answer)
        async with httpx.AsyncClient(base_url="http://a.example", transport=transport, **options) as client:
            await request_of(operation, client=client).send(arguments)

    asyncio.run(asyncio.wait_for(send(), 60))
    return found[0]


@pytest.mark.parametrize(
    ("more", "value", "query"),
    [
        ({"explode": False}, ["a,b", "c d", "x&y"], "c=a%2Cb,c%20d,x%26y"),
        ({"explode": False}, {"R": "1,2", "G": 3}, "c=R,1%2C2,G,3"),
        ({"style": "spaceDelimited"}, ["a b", "c"], "c=a%20b%20c"),
        ({"style": "pipeDelimited"}, ["a|b", "c,d"], "c=a%7Cb%7Cc%2Cd"),
        ({"style": "deepObject"}, {"k": "a=b"}, "c%5Bk%5D=a%3Db"),
        ({"allowReserved": True}, "a/b:c?d&e=f#g+h%20", "c=a/b:c?d%26e%3Df%23g%2Bh%2520"),
        ({"content": {"application/json; v=1": {"schema": {}}}}, {"a": [1]}, "c=%7B%22a%22%3A%5B1%5D%7D"),
        ({"content": {"application/json": {"schema": {}}}}, "a", "c=%22a%22"),
    ],
)
def test_what_is_between_values_of_a_query_is_distinguished_from_what_is_in_them(
    more: Any, value: Any, query: str
) -> None:
    parameter = {"name": "c", "in": "query", **({} if "content" in more else {"schema": {}}), **more}
    assert sent({"parameters": [parameter]}, {"c": value}).url.query.decode() == query


def test_parameters_of_the_client_and_of_a_call_are_both_sent() -> None:
    parameter = {"name": "c", "in": "query", "schema": {}, "explode": False}
    url = sent({"parameters": [parameter]}, {"c": ["a", "b"]}, params={"key": "k"}).url
    assert dict(url.params) == {"key": "k", "c": "a,b"}


@pytest.mark.parametrize("value", ["é", "a\r\nX-B: 1", "\0"])
def test_a_header_that_cannot_be_sent_is_named(value: str) -> None:
    parameter = {"name": "X-A", "in": "header", "schema": {"type": "string"}}
    with pytest.raises(ToolError, match=r"^X-A: expected printable ASCII, for a header, got "):
        sent({"parameters": [parameter]}, {"X-A": value})


def test_a_form_of_several_parts_says_of_each_what_it_is() -> None:
    members = {
        "text": {"type": "string"},
        "file": {"type": "string", "format": "binary"},
        "picture": {"contentMediaType": "image/png"},
        "who": {"type": "object"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "none": {},
    }
    schema = {"type": "object", "properties": members}
    encoding = {"picture": {"contentType": "image/png, image/gif"}}
    body = {"content": {"multipart/form-data": {"schema": schema, "encoding": encoding}}}
    values = {"text": "é", "file": "data", "picture": "P", "who": {"k": 1}, "tags": ["a", "b"], "none": None}
    request = sent({"requestBody": body}, values)
    kind, _, boundary = request.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = [part.strip("\r\n") for part in request.content.decode().split(f"--{boundary}")[1:-1]]
    assert [part.removeprefix("Content-Disposition: form-data; ") for part in parts] == [
        'name="text"\r\n\r\né',
        'name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\ndata',
        'name="picture"; filename="picture"\r\nContent-Type: image/png\r\n\r\nP',
        'name="who"\r\nContent-Type: application/json\r\n\r\n{"k":1}',
        'name="tags"\r\n\r\na',
        'name="tags"\r\n\r\nb',
    ]


@pytest.mark.parametrize(
    ("kind", "value", "sent_kind", "content"),
    [
        ("application/json; charset=utf-8", "a", "application/json; charset=utf-8", b'"a"'),
        ("application/vnd.x+json;v=1", {"a": 1}, "application/vnd.x+json;v=1", b'{"a":1}'),
        ("*/*", {"a": 1}, "application/json", b'{"a":1}'),
        ("text/*", "é", "text/plain", b"\xc3\xa9"),
    ],
)
def test_a_body_is_written_as_its_type_says(kind: str, value: Any, sent_kind: str, content: bytes) -> None:
    request = sent({"requestBody": {"content": {kind: {"schema": {}}}}}, {"body": value})
    assert (request.headers["content-type"], request.content) == (sent_kind, content)


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_a_schema_holds_nothing_twice(version: str) -> None:
    schema = {"type": "string", "enum": ["a", "b", "a"]}
    mixed = {"enum": [1, True, 1.0, "1", True]}
    body = {
        "type": "object",
        "properties": {"kind": schema, "mixed": mixed, "inner": {"type": "array", "items": schema}},
        "required": ["kind", "kind"],
    }
    found = request_of({"requestBody": {"content": {"application/json": {"schema": body}}}}, version=version)
    read = found.operation.body_schema
    assert read["properties"]["kind"]["enum"] == ["a", "b"]
    assert read["properties"]["inner"]["items"]["enum"] == ["a", "b"]
    assert [repr(each) for each in read["properties"]["mixed"]["enum"]] == ["1", "True", "'1'"]
    assert read["required"] == ["kind"]
