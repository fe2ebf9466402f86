"""Resources and templates in each version: lists, reading, what is not there, subscriptions."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime
import os
import threading
from pathlib import Path
from typing import Any, Literal

import pytest
from support.in_memory import ask, every_version, read, refusal, with_client

from fastrpc import Context, Image, Server, Text, ToolError
from fastrpc.content import Contents, EmbeddedResource, ResourceLink
from fastrpc.definitions.resource import guessed_type
from fastrpc.errors import DefinitionError, ResourceNotFound
from fastrpc.protocol import uri_template
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS
from fastrpc.testing import Client, RemoteError

_, _, THIRD, FOURTH = SESSION_VERSIONS


def serving(function: Any, uri: str = "docs://thing", **options: Any) -> Server:
    """Return a server whose one resource, or template, is this function."""
    app = Server("t")
    app.resource(uri, **options)(function)
    return app


# --- what clients receive ----------------------------------------------------------------------------

ICONS = [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}]
FULL: dict[str, Any] = {
    "title": "The guide",
    "mime_type": "text/markdown",
    "annotations": {
        "audience": ["user"],
        "priority": 0.5,
        "last_modified": datetime.datetime(2026, 7, 28, tzinfo=datetime.timezone.utc),
    },
    "icons": ICONS,
    "meta": {"example.com/shelf": 3},
}


def expected_entry(version: str, **own: Any) -> dict[str, Any]:
    """What a version's list says of a resource or template with the options in FULL."""
    annotations: dict[str, Any] = {"audience": ["user"], "priority": 0.5}
    entry = {"name": "guide", "description": "How it works.", "mimeType": "text/markdown", **own}
    if version >= THIRD:
        annotations["lastModified"] = "2026-07-28T00:00:00+00:00"
        entry |= {"title": "The guide", "_meta": {"example.com/shelf": 3}}
    if version >= FOURTH:
        entry["icons"] = ICONS
    return entry | {"annotations": annotations}


@every_version
def test_a_resource_is_listed_with_what_the_version_knows(version: str) -> None:
    app = Server("t")

    @app.resource("docs://guide", size=120, **FULL)
    def guide() -> str:
        """How it works."""
        return ""

    result = ask(app, "resources/list", version=version)
    assert result["resources"] == [expected_entry(version, uri="docs://guide", size=120)]
    assert result.get("ttlMs") == (60_000 if version == STATELESS else None)
    assert result.get("cacheScope") == ("private" if version == STATELESS else None)
    assert ask(app, "resources/templates/list", version=version)["resourceTemplates"] == []


@every_version
def test_a_template_is_listed_with_what_the_version_knows(version: str) -> None:
    app = Server("t")

    @app.resource("docs://{id}", **FULL)
    def guide(id: str) -> str:
        """How it works."""
        return ""

    result = ask(app, "resources/templates/list", version=version)
    assert result["resourceTemplates"] == [expected_entry(version, uriTemplate="docs://{id}")]
    assert result.get("ttlMs") == (60_000 if version == STATELESS else None)
    assert ask(app, "resources/list", version=version)["resources"] == []


@every_version
def test_a_server_without_resources_has_no_such_methods(version: str) -> None:
    app = Server("t")
    for method in ("resources/list", "resources/templates/list", "resources/read", "resources/subscribe"):
        assert refusal(app, method, {"uri": "docs://x"}, version).code == -32601

    async def capabilities(client: Client) -> Any:
        return client.info["capabilities"]

    assert "resources" not in with_client(app, capabilities, version)
    told = with_client(serving(lambda: ""), capabilities, version)
    assert told["resources"] == {"subscribe": True, "listChanged": True}


@every_version
def test_lists_go_by_page(version: str) -> None:
    app = Server("t", page_size=2)
    for number in range(5):
        app.add_resource(f"docs://{number}", str(number))
        app.resource(f"docs://{number}/{{id}}")(one_text)

    async def conversation(client: Client) -> None:
        first = await client.request("resources/list")
        assert len(first["resources"]) == 2
        assert [entry["uri"] for entry in await client.resources()] == [f"docs://{at}" for at in range(5)]
        found = [entry["uriTemplate"] for entry in await client.templates()]
        assert found == [f"docs://{at}/{{id}}" for at in range(5)]

    with_client(app, conversation, version)
    for method in ("resources/list", "resources/templates/list"):
        assert refusal(app, method, {"cursor": "?"}, version).code == -32602


def one_text(id: str) -> str:
    return id


# --- what a function may return -----------------------------------------------------------------------


@dataclasses.dataclass
class Book:
    title: str
    pages: int


RETURNED = [
    ("docs://x", "a text", {"mimeType": "text/plain", "text": "a text"}),
    ("docs://x.md", "a text", {"mimeType": "text/markdown", "text": "a text"}),
    ("docs://x.png", "a text", {"mimeType": "text/plain", "text": "a text"}),
    ("docs://x", "", {"mimeType": "text/plain", "text": ""}),
    ("docs://x", b"\0\1", {"mimeType": "application/octet-stream", "blob": "AAE="}),
    ("docs://x.png", bytearray(b"\0\1"), {"mimeType": "image/png", "blob": "AAE="}),
    ("docs://x", {"a": [1]}, {"mimeType": "application/json", "text": '{"a":[1]}'}),
    ("docs://x.md", ["a", "b"], {"mimeType": "application/json", "text": '["a","b"]'}),
    ("docs://x", Book("t", 3), {"mimeType": "application/json", "text": '{"title":"t","pages":3}'}),
    ("docs://x", 5, {"mimeType": "application/json", "text": "5"}),
    ("docs://x", Image(b"\0\1", "image/gif"), {"mimeType": "image/gif", "blob": "AAE="}),
    ("docs://x", Text("a text"), {"mimeType": "text/plain", "text": "a text"}),
    (
        "docs://x",
        EmbeddedResource("docs://x", data=b"\0\1"),
        {"mimeType": "application/octet-stream", "blob": "AAE="},
    ),
    ("docs://x", Contents("<b>", "text/html"), {"mimeType": "text/html", "text": "<b>"}),
    (
        "docs://x",
        Contents({"a": 1}, "application/x+json"),
        {"mimeType": "application/x+json", "text": '{"a":1}'},
    ),
]


@every_version
@pytest.mark.parametrize(("uri", "value", "block"), RETURNED)
def test_what_a_function_returns_becomes_contents(uri: str, value: Any, block: Any, version: str) -> None:
    assert read(serving(lambda: value, uri), uri, version) == [{"uri": uri, **block}]


@every_version
def test_several_contents_have_their_own_uris_and_types(version: str) -> None:
    def several() -> list[Any]:
        meta = {"example.com/part": 1}
        return [Contents("one", uri="docs://thing/1", meta=meta), Contents(b"\0", "image/png"), "three"]

    first = {"uri": "docs://thing/1", "mimeType": "text/plain", "text": "one"}
    if version >= THIRD:
        first["_meta"] = {"example.com/part": 1}
    assert read(serving(several), "docs://thing", version) == [
        first,
        {"uri": "docs://thing", "mimeType": "image/png", "blob": "AA=="},
        {"uri": "docs://thing", "mimeType": "text/plain", "text": "three"},
    ]


def test_the_mime_type_of_the_resource_counts_before_any_guess() -> None:
    app = serving(lambda: "a,b", "docs://x.md", mime_type="text/csv")
    assert read(app, "docs://x.md")[0]["mimeType"] == "text/csv"
    app = serving(lambda: Contents("a,b", "text/x-mine"), "docs://x.md", mime_type="text/csv")
    assert read(app, "docs://x.md")[0]["mimeType"] == "text/x-mine"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("docs://a/b.json", True, "application/json"),
        ("docs://a/b.SVG", True, "image/svg+xml"),
        ("docs://a/b.yaml?x=1.png", True, "application/yaml"),
        ("docs://a.png/b", False, None),
        ("docs://a/b.tar.gz", False, None),
        ("docs://a/b.tgz", False, None),
        ("docs://a/.", True, None),
        ("https://example.md", True, None),
        ("https://example.com/x.md", True, "text/markdown"),
        ("docs://a/b.pdf", True, None),
        ("docs://a/b.pdf", False, "application/pdf"),
    ],
)
def test_a_type_is_guessed_only_where_it_fits(name: str, text: bool, expected: str | None) -> None:
    assert guessed_type(name, text=text) == expected


@every_version
def test_a_path_is_read_where_the_function_runs(tmp_path: Path, version: str) -> None:
    (tmp_path / "a.md").write_text("# Grüße", encoding="utf-8")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    (tmp_path / "c.txt").write_bytes(b"a\0b")
    app = Server("t")

    @app.resource("files://{name}")
    def file(name: str) -> Path:
        return tmp_path / name

    @app.resource("async://{name}")
    async def later(name: str) -> Path:
        return tmp_path / name

    for scheme in ("files", "async"):
        text = {"uri": f"{scheme}://a.md", "mimeType": "text/markdown", "text": "# Grüße"}
        assert read(app, f"{scheme}://a.md", version) == [text]
        blob = {"uri": f"{scheme}://b.bin", "mimeType": "application/octet-stream", "blob": "//4="}
        assert read(app, f"{scheme}://b.bin", version) == [blob]
        assert base64.b64decode(read(app, f"{scheme}://c.txt", version)[0]["blob"]) == b"a\0b"
        gone = refusal(app, "resources/read", {"uri": f"{scheme}://d.md"}, version)
        assert gone.message.startswith("Resource not found")


def test_a_large_file_is_not_read_in_the_loop(tmp_path: Path) -> None:
    seen = []

    class Watched:
        def __fspath__(self) -> str:
            seen.append(threading.current_thread())
            return str(tmp_path / "x")

    (tmp_path / "x").write_text("x")
    read(serving(lambda: Watched(), run="thread"), "docs://thing")
    assert seen
    assert threading.main_thread() not in seen


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), "nan cannot be written as JSON"),
        ("\ud800", "half a surrogate pair"),
        (object(), "object"),
        (Contents("a", meta={"x": object()}), "object"),
        ([Contents("a"), ResourceLink("docs://b", "b")], "ResourceLink has no content"),
    ],
)
def test_content_that_json_does_not_have_is_an_error_that_says_so(value: Any, problem: str) -> None:
    error = refusal(serving(lambda: value), "resources/read", {"uri": "docs://thing"})
    assert error.code == -32603
    assert error.data == {"uri": "docs://thing"}
    assert problem in error.message


# --- templates ----------------------------------------------------------------------------------------


@every_version
def test_variables_are_read_by_the_types_of_the_parameters(version: str) -> None:
    app = Server("t")

    @app.resource("db://{table}/{row}{?full,order}")
    def row(table: str, row: int, order: Literal["up", "down"] = "up", *, full: bool = False) -> list[Any]:
        return [table, row, full, order]

    for uri, text in (
        ("db://a%20b/5", '["a b",5,false,"up"]'),
        ("db://t/5?order=down&full=true", '["t",5,true,"down"]'),
    ):
        assert read(app, uri, version) == [{"uri": uri, "mimeType": "application/json", "text": text}]
    error = refusal(app, "resources/read", {"uri": "db://t/five"}, version)
    assert error.code == -32602
    assert 'row: expected integer, got "five"' in error.message
    assert "order" in refusal(app, "resources/read", {"uri": "db://t/5?order=left"}, version).message


@every_version
def test_what_is_more_specific_serves_a_uri(version: str) -> None:
    app = Server("t")
    app.resource("docs://{path*}")(lambda_of("path", "rest"))
    app.resource("docs://{id}")(lambda_of("id", "id"))
    app.resource("docs://new/{id}")(lambda_of("id", "new"))
    app.add_resource("docs://index", "static")
    found = {uri: read(app, uri, version)[0]["text"] for uri in ("docs://index", "docs://a", "docs://a/b")}
    assert found == {"docs://index": "static", "docs://a": "id a", "docs://a/b": "rest a/b"}
    assert read(app, "docs://new/x", version)[0]["text"] == "new x"


def lambda_of(parameter: str, word: str) -> Any:
    """Make a function of one parameter of this name."""
    scope: dict[str, Any] = {}
    exec(f"def shown({parameter}: str) -> str: return '{word} ' + {parameter}", scope)
    return scope["shown"]


def test_a_template_whose_types_do_not_fit_leaves_the_uri_to_the_next() -> None:
    app = Server("t")

    @app.resource("docs://{id}")
    def by_number(id: int) -> str:
        return f"number {id}"

    @app.resource("docs://{name}")
    def by_name(name: str) -> str:
        return f"name {name}"

    assert read(app, "docs://5")[0]["text"] == "number 5"
    assert read(app, "docs://five")[0]["text"] == "name five"


def test_of_equal_templates_the_one_with_more_values_is_meant() -> None:
    app = Server("t")

    @app.resource("db://t{?x}")
    def by_x(x: int = 0) -> str:
        return f"x {x}"

    @app.resource("db://t{?y}")
    def by_y(y: int = 0) -> str:
        return f"y {y}"

    assert read(app, "db://t?y=1")[0]["text"] == "y 1"
    assert read(app, "db://t?x=1")[0]["text"] == "x 1"


def test_a_left_out_variable_without_a_default_is_no_match() -> None:
    def page(number: int) -> str:
        return str(number)

    app = serving(page, "docs://pages{?number}")
    assert read(app, "docs://pages?number=2")[0]["text"] == "2"
    assert "not found" in refusal(app, "resources/read", {"uri": "docs://pages"}).message


# --- what is not there, what fails --------------------------------------------------------------------


@every_version
def test_what_is_not_there_has_the_versions_code(version: str) -> None:
    def none() -> None:
        return None

    def raises() -> str:
        raise ResourceNotFound("docs://elsewhere")

    async def later() -> str:
        raise ResourceNotFound("docs://elsewhere")

    app = Server("t")
    for uri, function in (("docs://none", none), ("docs://raises", raises), ("docs://later", later)):
        app.resource(uri)(function)
    for uri in ("docs://none", "docs://raises", "docs://later", "docs://nowhere", "no uri at all", ""):
        error = refusal(app, "resources/read", {"uri": uri}, version)
        assert error.code == (-32602 if version == STATELESS else -32002)
        assert error.data == {"uri": uri}


@every_version
@pytest.mark.parametrize(
    ("asked", "uri", "text"),
    [
        ("docs://%C3%BCb%20ung", "docs://%C3%BCb%20ung", "fixed"),
        ("docs://üb ung", "docs://%C3%BCb%20ung", "fixed"),
        ("docs://übung", "docs://%C3%BCbung", "id übung"),
    ],
)
def test_a_client_need_not_escape_what_a_uri_cannot_hold(
    asked: str, uri: str, text: str, version: str
) -> None:
    app = serving(lambda: "fixed", "docs://%C3%BCb%20ung")
    app.resource("docs://{id}")(lambda_of("id", "id"))
    assert read(app, asked, version) == [{"uri": uri, "mimeType": "text/plain", "text": text}]


def test_the_error_points_at_what_was_probably_meant() -> None:
    error = refusal(serving(lambda: "", "docs://guide"), "resources/read", {"uri": "docs://giude"})
    assert error.message == "Resource not found: docs://giude (did you mean docs://guide?)"


@every_version
def test_the_length_of_a_uri_is_looked_at_before_anything_else(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = serving(lambda: "", "docs://guide")
    for number in range(3):
        app.resource(f"docs{number}://{{id}}")(lambda_of("id", "id"))
    normal = uri_template.encoded

    def encoded(text: str, allowed: frozenset[str]) -> str:
        assert len(text) <= uri_template.LONGEST
        return normal(text, allowed)

    monkeypatch.setattr(uri_template, "encoded", encoded)
    methods = ["resources/read"]
    if version != STATELESS:
        methods += ["resources/subscribe", "resources/unsubscribe"]
    for method in methods:
        error = refusal(app, method, {"uri": "docs0://" + "ü" * uri_template.LONGEST}, version)
        assert (error.code, error.message) == (-32602, "uri: expected at most 16384 characters, got 16392")
    template = uri_template.Template("docs://{id}")
    assert template.match("docs://" + "ü" * uri_template.LONGEST) is None


def test_a_uri_is_encoded_once_whatever_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    app = serving(lambda: "", "docs://guide")
    for number in range(20):
        app.resource(f"docs://{number}/{{id}}")(lambda_of("id", "id"))
    encoded: list[str] = []
    normal = uri_template._escaped

    def escaped(text: str, allowed: frozenset[str]) -> str:
        encoded.append(text)
        return normal(text, allowed)

    monkeypatch.setattr(uri_template, "_escaped", escaped)
    uri = "docs://ü/" + "ü" * 300
    error = refusal(app, "resources/read", {"uri": uri})
    assert encoded == [uri]
    assert error.data == {"uri": uri[:199] + "…"}


@every_version
def test_a_failure_is_an_internal_error(version: str, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str:
        raise ValueError("no ink")

    def refuses() -> str:
        raise ToolError("closed on Sundays")

    error = refusal(serving(broken), "resources/read", {"uri": "docs://thing"}, version)
    assert (error.code, error.message) == (-32603, "Error reading docs://thing: ValueError: no ink")
    assert error.data == {"uri": "docs://thing"}
    assert "no ink" in caplog.text
    error = refusal(serving(refuses), "resources/read", {"uri": "docs://thing"}, version)
    assert error.message == "Error reading docs://thing: closed on Sundays"
    assert "Sundays" not in caplog.text


@every_version
@pytest.mark.parametrize("params", [{}, {"uri": None}, {"uri": 5}])
def test_a_request_without_a_uri_is_refused(params: dict[str, Any], version: str) -> None:
    methods = ["resources/read"]
    if version != STATELESS:
        methods += ["resources/subscribe", "resources/unsubscribe"]
    for method in methods:
        error = refusal(serving(lambda: ""), method, params, version)
        assert error.code == -32602
        assert error.message.startswith("uri: ")


# --- how a read runs ----------------------------------------------------------------------------------


@every_version
def test_a_read_reports_progress_and_knows_its_client(version: str) -> None:
    app = Server("t")

    @app.resource("docs://{id}")
    async def slow(id: str, ctx: Context) -> str:
        await ctx.progress(1, total=2)
        return f"{id} in {ctx.protocol_version}"

    async def conversation(client: Client) -> None:
        result = await client.request("resources/read", {"uri": "docs://a", "_meta": {"progressToken": "t"}})
        assert result["contents"][0]["text"] == f"a in {version}"
        told = [note["params"] for note in client.notifications]
        assert told == [{"progressToken": "t", "progress": 1, "total": 2}]

    with_client(app, conversation, version)


@pytest.mark.parametrize("version", [THIRD, FOURTH, STATELESS])
def test_a_read_can_ask_the_person_at_the_client(version: str) -> None:
    app = Server("t")

    @app.resource("docs://letter", ttl=60)
    async def letter(ctx: Context) -> str:
        answer = await ctx.elicit("Who is it for?", str)
        return f"Dear {answer.data}"

    async def run() -> None:
        async with Client(app, version=version, on_elicit={"value": "Ada"}) as client:
            assert (await client.read("docs://letter")).text == "Dear Ada"

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_read_can_be_cancelled_and_has_a_time_limit() -> None:
    app = Server("t")
    stopped = []

    @app.resource("docs://slow")
    async def slow() -> str:
        stopped.append("begun")
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            stopped.append("slow")
            raise
        return ""

    @app.resource("docs://limited", timeout_seconds=0.02)
    async def limited() -> str:
        await asyncio.sleep(20)
        return ""

    async def conversation(client: Client) -> None:
        id, _ = client.begin("resources/read", {"uri": "docs://slow"})
        while not stopped:
            await asyncio.sleep(0.01)
        client.cancel(id)
        with pytest.raises(RemoteError, match="did not end within"):
            await client.request("resources/read", {"uri": "docs://limited"})
        while len(stopped) < 2:
            await asyncio.sleep(0.01)
        assert stopped == ["begun", "slow"]

    with_client(app, conversation, STATELESS)


def test_a_slow_function_delays_no_other_request() -> None:
    release = threading.Event()

    def blocks() -> str:
        release.wait(20)
        return "done"

    app = serving(blocks)
    app.add_resource("docs://quick", "quick")

    async def conversation(client: Client) -> None:
        _, blocked = client.begin("resources/read", {"uri": "docs://thing"})
        assert (await client.read("docs://quick")).text == "quick"
        assert not blocked.done()
        release.set()
        assert (await blocked)["contents"][0]["text"] == "done"

    with_client(app, conversation, STATELESS)


@every_version
def test_how_long_a_content_may_be_kept_is_the_resources_affair(version: str) -> None:
    app = Server("t", cache_scope="public")
    app.add_resource("docs://fresh", "")
    app.add_resource("docs://kept", "", ttl=1.5, cache_scope="private")
    app.resource("db://{id}", ttl=2)(one_text)
    hints = {}
    for uri in ("docs://fresh", "docs://kept", "db://a"):
        result = ask(app, "resources/read", {"uri": uri}, version)
        hints[uri] = result.get("ttlMs"), result.get("cacheScope")
        assert ("resultType" in result) == (version == STATELESS)
    if version == STATELESS:
        expected = {
            "docs://fresh": (0, "public"),
            "docs://kept": (1500, "private"),
            "db://a": (2000, "public"),
        }
    else:
        expected = dict.fromkeys(hints, (None, None))
    assert hints == expected


# --- subscriptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_session_keeps_what_was_subscribed(version: str) -> None:
    app = serving(lambda: "")
    app.resource("db://{id}")(one_text)

    async def conversation(client: Client) -> None:
        [dispatcher] = app.runtime.dispatchers
        for uri in ("docs://thing", "db://5", "db://5", "db://ü"):
            assert await client.request("resources/subscribe", {"uri": uri}) == {}
        assert set(dispatcher.session.subscriptions) == {"docs://thing", "db://5", "db://%C3%BC"}
        for uri in ("db://5", "db://5", "never://was", "db://ü"):
            assert await client.request("resources/unsubscribe", {"uri": uri}) == {}
        assert set(dispatcher.session.subscriptions) == {"docs://thing"}
        with pytest.raises(RemoteError) as caught:
            await client.request("resources/subscribe", {"uri": "docs://nothing"})
        assert caught.value.code == -32002

    with_client(app, conversation, version)


def test_there_is_no_subscribing_since_2026() -> None:
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert refusal(serving(lambda: ""), method, {"uri": "docs://thing"}).code == -32601


# --- changes ---------------------------------------------------------------------------------------


def test_two_resources_at_one_uri_are_refused() -> None:
    app = serving(lambda: "")
    with pytest.raises(DefinitionError, match="docs://thing"):
        app.add_resource("docs://thing", "other")


def test_resources_come_and_go_at_run_time() -> None:
    app = serving(lambda: "")

    async def conversation(client: Client) -> None:
        app.add_resource("docs://new", b"\0")
        app.resource("new://{id}")(one_text)
        assert [entry["uri"] for entry in await client.resources()] == ["docs://thing", "docs://new"]
        assert (await client.request("resources/read", {"uri": "new://a"}))["contents"][0]["text"] == "a"
        app.remove_resource("docs://new")
        app.remove_resource("new://{id}")
        assert [entry["uri"] for entry in await client.resources()] == ["docs://thing"]
        for uri in ("docs://new", "new://a"):
            with pytest.raises(RemoteError, match="not found"):
                await client.request("resources/read", {"uri": uri})

    with_client(app, conversation, STATELESS)


# --- the example --------------------------------------------------------------------------------------

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "resources.py")


@every_version
def test_the_examples_files_are_those_of_its_folder(version: str) -> None:
    from fastrpc.loader import load_target

    app = load_target(EXAMPLE)
    assert "Serve with" in read(app, "source://resources.py", version)[0]["text"]
    for outside in ("source://../README.md", "source://%2e%2e%2fREADME.md", "source://nothing.py"):
        error = refusal(app, "resources/read", {"uri": outside}, version)
        assert error.message.startswith("Resource not found")
