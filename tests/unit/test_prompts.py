"""Prompts, in each protocol version: what is listed, what arguments are taken, what comes back."""

from __future__ import annotations

import asyncio
import datetime
import enum
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from fastrpc import (
    ArgumentError,
    Context,
    DefinitionError,
    Image,
    Meta,
    ProtocolError,
    Server,
    Text,
    ToolError,
)
from fastrpc.content import Audio, EmbeddedResource, ResourceLink
from fastrpc.definitions.prompt import Message, Prompt
from fastrpc.errors import InvalidParams
from fastrpc.protocol.versions import SERVER_KEY, STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ICONS = [{"src": "https://example.com/a.png"}]


def ask(app: Server, method: str, params: dict[str, Any] | None = None, version: str = STATELESS) -> Any:
    """The result of one request to `app`."""

    async def run() -> Any:
        async with Client(app, version=version) as client:
            return await asyncio.wait_for(client.request(method, params), 30)

    return asyncio.run(run())


def refused(app: Server, params: dict[str, Any], version: str = STATELESS) -> RemoteError:
    """The error with which a prompts/get is answered."""
    with pytest.raises(RemoteError) as caught:
        ask(app, "prompts/get", params, version)
    return caught.value


def returning(value: Any, **options: Any) -> Server:
    """A server whose prompt `p` returns a value."""
    app = Server("unit")

    def p():
        return value

    app.prompt(p, **options)
    return app


def messages(value: Any, version: str = STATELESS) -> Any:
    return ask(returning(value), "prompts/get", {"name": "p"}, version)["messages"]


# --------------------------------------------------------------------------------------------- lists


def full() -> Server:
    app = Server("unit")

    @app.prompt(title="Review", icons=ICONS, meta={"example.com/k": 1})
    def review(
        code: Annotated[str, "What to review"],
        ctx: Context,
        depth: Annotated[int, Meta(title="Depth", description="How deep")] = 1,
    ) -> str:
        """Review code.

        Thoroughly.
        """
        return code

    @app.prompt
    def plain():
        return "plain"

    return app


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_lists_the_members_it_knows(version: str) -> None:
    title = version >= "2025-06-18"
    depth = {"name": "depth", "title": "Depth", "description": "How deep", "required": False}
    review = {
        "name": "review",
        "title": "Review",
        "description": "Review code.\n\nThoroughly.",
        "arguments": [{"name": "code", "description": "What to review", "required": True}, depth],
        "icons": ICONS,
        "_meta": {"example.com/k": 1},
    }
    if not title:
        del review["title"], review["_meta"], depth["title"]
    if version < "2025-11-25":
        del review["icons"]
    result = ask(full(), "prompts/list", version=version)
    assert result["prompts"] == [review, {"name": "plain"}]
    assert ("resultType" in result, "ttlMs" in result) == (
        (True, True) if version == STATELESS else (False,) * 2
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_with_prompts_says_so_and_one_without_has_no_such_method(version: str) -> None:
    async def capabilities(app: Server) -> Any:
        async with Client(app, version=version) as client:
            return client.info["capabilities"]

    assert asyncio.run(capabilities(full()))["prompts"] == {"listChanged": True}
    assert "prompts" not in asyncio.run(capabilities(Server("none")))
    for method in ("prompts/list", "prompts/get"):
        with pytest.raises(RemoteError) as caught:
            ask(Server("none"), method, {"name": "p"}, version)
        assert caught.value.code == -32601


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_list_comes_in_pages(version: str) -> None:
    app = Server("unit", page_size=2)
    for number in range(5):
        app.prompt(lambda: "x", name=f"p{number}")
    names: list[str] = []
    cursor: dict[str, Any] = {}
    for _ in range(3):
        page = ask(app, "prompts/list", cursor, version)
        names += [prompt["name"] for prompt in page["prompts"]]
        cursor = {"cursor": page.get("nextCursor")}
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    assert cursor == {"cursor": None}
    with pytest.raises(RemoteError, match="cursor") as caught:
        ask(app, "prompts/list", {"cursor": "?"}, version)
    assert caught.value.code == -32602


def test_a_prompt_may_come_and_go_while_a_client_listens() -> None:
    app = full()

    async def run() -> None:
        async with Client(app) as client:
            app.remove_prompt("review")
            app.prompt(lambda: "x", name="new")
            result = await client.request("prompts/list")
            assert [prompt["name"] for prompt in result["prompts"]] == ["plain", "new"]
            while not client.notifications:
                await asyncio.sleep(0.01)
            methods = [notice["method"] for notice in client.notifications]
            assert "notifications/prompts/list_changed" in methods

    asyncio.run(asyncio.wait_for(run(), 30))


# ----------------------------------------------------------------------------------------- arguments


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int


@pytest.mark.parametrize("version", VERSIONS)
def test_arguments_are_read_from_their_text(version: str) -> None:
    app = Server("unit")

    @app.prompt
    def show(
        number: int,
        share: float,
        flag: bool,
        kind: Literal["a", "b"],
        level: Literal[1, 2],
        names: list[str],
        colour: Colour,
        point: Point,
        text: str,
        maybe: int | None = None,
        size: int = 7,
    ) -> str:
        return repr((number, share, flag, kind, level, names, colour.name, point.x, text, maybe, size))

    arguments = {
        "number": "5",
        "share": "0.5",
        "flag": "true",
        "kind": "b",
        "level": "2",
        "names": '["x", "y"]',
        "colour": "blue",
        "point": '{"x": 3}',
        "text": "5",
        "unknown": "ignored",
    }
    result = ask(app, "prompts/get", {"name": "show", "arguments": arguments}, version)
    expected = (5, 0.5, True, "b", 2, ["x", "y"], "BLUE", 3, "5", None, 7)
    assert result["messages"][0]["content"]["text"] == repr(expected)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "name: missing, expected a string"),
        ({"name": 5}, "name: expected a string, got 5"),
        ({"name": "revue"}, r"Unknown prompt: revue \(did you mean review\?\)"),
        ({"name": "review"}, "arguments: code: required, missing"),
        ({"name": "review", "arguments": {"cod": "x"}}, 'arguments: code: required, missing .*"cod"'),
        (
            {"name": "review", "arguments": {"code": "x", "depth": "deep"}},
            'arguments: depth: expected integer, got "deep"',
        ),
        (
            {"name": "review", "arguments": {"code": "x", "depth": 5}},
            'arguments: "depth": expected a string, got 5',
        ),
        ({"name": "review", "arguments": {"code": None}}, 'arguments: "code": expected a string, got null'),
        ({"name": "review", "arguments": ["x"]}, "arguments: expected an object of strings, got an array"),
        ({"name": "review", "arguments": None}, "arguments: expected an object of strings, got null"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(version: str, params: Any, message: str) -> None:
    error = refused(full(), params, version)
    assert error.code == -32602
    with pytest.raises(RemoteError, match=f"^{message}"):
        raise error


def test_a_prompt_is_handed_its_context() -> None:
    app = Server("unit")

    @app.prompt
    async def who(ctx: Context) -> str:
        return ctx.protocol_version

    assert ask(app, "prompts/get", {"name": "who"})["messages"][0]["content"]["text"] == STATELESS
    assert ask(app, "prompts/list")["prompts"] == [{"name": "who"}]


# ------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("version", VERSIONS)
def test_a_text_is_a_message_of_the_user(version: str) -> None:
    app = returning("hello é 😀", description="Says hello.")
    result = ask(app, "prompts/get", {"name": "p"}, version)
    ending = {"resultType": "complete", "_meta": {SERVER_KEY: {"name": "unit", "version": "0.0.0"}}}
    assert result == {
        "description": "Says hello.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "hello é 😀"}}],
        **(ending if version == STATELESS else {}),
    }


def test_a_prompt_without_a_description_answers_without_one() -> None:
    assert "description" not in ask(returning("x"), "prompts/get", {"name": "p"})


def text(role: str, what: str) -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": what}}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Message("assistant", "a"), [text("assistant", "a")]),
        (Text("a"), [text("user", "a")]),
        (["a", Message("assistant", Text("b"))], [text("user", "a"), text("assistant", "b")]),
        (("a",), [text("user", "a")]),
        ({"role": "assistant", "content": "a"}, [text("assistant", "a")]),
        ([{"role": "user", "content": {"type": "text", "text": "a"}}], [text("user", "a")]),
        ([], []),
        (
            Message("user", Image(b"\x00\xff", "image/gif")),
            [{"role": "user", "content": {"type": "image", "data": "AP8=", "mimeType": "image/gif"}}],
        ),
    ],
    ids=["message", "text", "list", "tuple", "dict", "list of dicts", "nothing", "image"],
)  # fmt: skip
def test_what_a_prompt_may_return(version: str, value: Any, expected: Any) -> None:
    assert messages(value, version) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_content_that_a_version_does_not_know_is_sent_in_its_nearest_form(version: str) -> None:
    link = {"type": "resource_link", "uri": "docs://a", "name": "a"}
    page = EmbeddedResource("docs://a", text="A", meta={"example.com/k": 1})
    sent = messages([Audio(b"\x00"), ResourceLink("docs://a", "a"), link, page], version)
    kinds = [message["content"]["type"] for message in sent]
    linked = "resource_link" if version >= "2025-06-18" else "text"
    assert kinds == ["resource" if version == VERSIONS[0] else "audio", linked, linked, "resource"]
    assert sent[1] == sent[2]
    assert ("_meta" in sent[3]["content"]) == (version >= "2025-06-18")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (5, "returns str, Message, content or a list of these, this one 5"),
        (None, "this one null"),
        (["a", 5], "this one 5"),
        ({"text": "a"}, "this one an object"),
        ({"role": "system", "content": "a"}, 'role: expected user or assistant, got "system"'),
        ({"role": ["user"], "content": "a"}, "role: expected user or assistant, got an array"),
        ({"role": "user", "content": 5}, "content: expected str, a content helper or a block, got int"),
        ({"role": "user", "content": {"text": "a"}}, "content: expected str, a content helper or a block"),
        ("half \ud800", "half a surrogate pair"),
        ({"role": "user", "content": {"type": "text", "text": float("nan")}}, "nan cannot be written"),
    ],
    ids=repr,
)
def test_what_a_prompt_may_not_return_is_an_error_that_says_so(
    version: str, value: Any, complaint: str
) -> None:
    error = refused(returning(value), {"name": "p"}, version)
    assert error.code == -32603
    assert error.message.startswith("prompt p: ")
    assert complaint in error.message


def test_a_message_has_one_of_two_roles() -> None:
    with pytest.raises(ValueError, match="role: expected user or assistant, got 'system'"):
        Message("system", "x")


# ------------------------------------------------------------------------------------------ failures


def raising(error: BaseException, **options: Any) -> Server:
    app = Server("unit")

    def p() -> str:
        raise error

    app.prompt(p, **options)
    return app


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("run", ["inline", "thread"])
def test_a_refusal_keeps_its_words_and_another_failure_does_not(
    version: str, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    error = refused(raising(ArgumentError("a or b"), run=run), {"name": "p"}, version)
    assert (error.code, error.message) == (-32602, "a or b")
    error = refused(raising(ToolError("no such page"), run=run), {"name": "p"}, version)
    assert (error.code, error.message) == (-32603, "no such page")
    assert not caplog.records
    error = refused(raising(KeyError("password"), run=run), {"name": "p"}, version)
    assert (error.code, error.message) == (-32603, "prompt p failed; see the server's log")
    assert "KeyError: 'password'" in caplog.text


def test_a_protocol_error_of_a_prompt_goes_out_as_it_is() -> None:
    error = refused(raising(InvalidParams("topic: unknown", {"topic": "x"})), {"name": "p"})
    assert (error.code, error.message, error.data) == (-32602, "topic: unknown", {"topic": "x"})
    assert isinstance(InvalidParams("x"), ProtocolError)


def test_a_prompt_that_takes_too_long_is_stopped() -> None:
    app = Server("unit")

    @app.prompt(timeout_seconds=0.05)
    async def slow() -> str:
        await asyncio.sleep(30)
        return "late"

    error = refused(app, {"name": "slow"})
    assert (error.code, error.message) == (-32603, "slow did not end within 0.05 s and was stopped")


def test_a_cancelled_prompt_is_not_answered() -> None:
    app = Server("unit")
    ended: list[str] = []

    @app.prompt
    async def slow() -> str:
        ended.append("begun")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "late"

    async def run() -> None:
        async with Client(app) as client:
            id, future = client.begin("prompts/get", {"name": "slow"})
            while not ended:
                await asyncio.sleep(0.01)
            client.cancel(id)
            while len(ended) < 2:
                await asyncio.sleep(0.01)
            assert ended == ["begun", "cancelled"]
            assert future.cancelled()
            assert not client._session.stream.pending

    asyncio.run(run())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_prompt_may_ask_before_it_answers(version: str) -> None:
    app = Server("unit")

    @app.prompt
    async def where(topic: str, ctx: Context) -> str:
        roots = await ctx.roots()
        return f"{topic} in {roots[0]['uri']}"

    async def run() -> str:
        async with Client(app, version=version, roots=["file:///home"]) as client:
            result = await asyncio.wait_for(client.prompt("where", topic="files"), 30)
            assert len(client.questions) == 1
            return result.text

    assert asyncio.run(run()) == "files in file:///home"


# --------------------------------------------------------------------------------------- definitions


def test_what_cannot_be_a_prompt_is_reported_where_it_is_decorated() -> None:
    app = full()

    def untyped(topic):
        return topic

    def many(*topics: str) -> str:
        return "".join(topics)

    def review() -> str:
        return "x"

    with pytest.raises(DefinitionError, match=r"untyped.*'topic' has no annotation"):
        app.prompt(untyped)
    with pytest.raises(DefinitionError, match=r"many.*\*args"):
        app.prompt(many)
    with pytest.raises(DefinitionError, match="review: there is a prompt of this name already"):
        app.prompt(review)
    with pytest.raises(DefinitionError, match="give name="):
        app.prompt(lambda: "x")
    with pytest.raises(DefinitionError, match="give name="):
        app.prompt(review, name="")
    with pytest.raises(DefinitionError, match="meta: 'a b' is not a valid key"):
        app.prompt(review, name="other", meta={"a b": 1})
    with pytest.raises(DefinitionError, match="has its options already"):
        app.prompt(Prompt(review, name="other"), title="x")
    with pytest.raises(DefinitionError, match="'fast' is not one of auto, inline, thread"):
        app.prompt(review, name="other", run="fast")


def test_the_method_of_an_object_is_a_prompt_and_that_of_a_class_is_not() -> None:
    app = Server("unit")
    with pytest.raises(DefinitionError, match="is a method; decorate the method of an object"):
        app.prompt(Desk.greet)
    app.prompt(Desk().greet)
    result = ask(app, "prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
    assert result["messages"] == [text("user", "Hello, Ada")]


class Desk:
    def greet(self, name: str) -> str:
        return f"Hello, {name}"


def test_an_annotation_may_name_what_is_defined_further_down(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Server("unit")
    app.prompt(uses_later)
    monkeypatch.setitem(globals(), "Later", str)
    listed = ask(app, "prompts/list")["prompts"]
    assert listed == [{"name": "uses_later", "arguments": [{"name": "kind", "required": True}]}]


def uses_later(kind: Later) -> str:  # noqa: F821
    return kind


def test_a_server_of_tools_never_loads_prompts_or_completion() -> None:
    code = (
        "import sys; from fastrpc import Server; app = Server('x')\n"
        "@app.tool\ndef f() -> str: return ''\n"
        "app.connect(); print([name for name in sys.modules if name.endswith(('prompts', 'completion'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "[]\n", done.stderr


# ----------------------------------------------------------------------------------------- the example


def test_the_example_serves_its_prompts_and_completes_their_arguments() -> None:
    import runpy

    app = runpy.run_path(os.path.join(REPOSITORY, "examples", "prompts.py"))["app"]
    arguments = {"language": "c", "file": "main.c", "strict": "true"}
    result = ask(app, "prompts/get", {"name": "review", "arguments": arguments})
    assert result["messages"] == [
        text("user", "Review the c file main.c. Be strict."),
        text("assistant", "I begin with what is hard to undo."),
    ]
    params = {
        "ref": {"type": "ref/prompt", "name": "review"},
        "argument": {"name": "file", "value": "M"},
        "context": {"arguments": {"language": "c"}},
    }
    assert ask(app, "completion/complete", params)["completion"]["values"] == ["main.c", "main.h"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (Colour.BLUE, "blue"),
        ({"a": 1}, '{"a":1}'),
        ((1, True), "[1,true]"),
        ("", ""),
        (5, "5"),
    ],
)
def test_a_client_sends_any_value_with_json_as_the_text_of_an_argument(value: Any, text: str) -> None:
    """Those whose JSON is a text are sent as this text, without quotation marks."""
    assert _said(value) == text


@pytest.mark.parametrize("value", [float("nan"), object(), "\ud800", ["\ud800"]])
def test_a_client_names_an_argument_that_cannot_be_sent(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^arguments\.words: expected a text or a value with JSON, got "):
        _said(value)


def _said(value: Any) -> str:
    app = Server("says")

    @app.prompt
    def say(words: str) -> str:
        return words

    async def run() -> str:
        async with Client(app) as client:
            return str((await client.get_prompt("say", {"words": value})).messages[0]["content"]["text"])

    return asyncio.run(asyncio.wait_for(run(), 60))
