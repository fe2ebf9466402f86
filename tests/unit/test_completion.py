"""completion/complete in each protocol version: by functions, by types, and what is refused."""

from __future__ import annotations

import asyncio
import enum
from typing import Annotated, Any, Literal

import pytest

from fastrpc import Context, DefinitionError, Server, ToolError
from fastrpc.definitions.completion import Completion, Completions, choices_of, matching
from fastrpc.protocol.versions import SERVER_KEY, SESSION_VERSIONS, STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError


class Colour(enum.Enum):
    DARK_RED = "dark red"
    RED = "red"
    Reddish = "Reddish"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


def asks(params: dict[str, Any], app: Server, version: str = STATELESS) -> Any:
    """The whole result of one completion/complete."""

    async def run() -> Any:
        async with Client(app, version=version) as client:
            return await asyncio.wait_for(client.request("completion/complete", params), 30)

    return asyncio.run(run())


def completes(
    app: Server, name: str, value: str, version: str = STATELESS, prompt: str = "paint", **others: str
) -> Any:
    """What an argument of a prompt is completed by."""
    params: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": prompt},
        "argument": {"name": name, "value": value},
    }
    if others:
        params["context"] = {"arguments": others}
    return asks(params, app, version)["completion"]


def refused(app: Server, params: dict[str, Any], version: str = STATELESS) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        asks(params, app, version)
    return caught.value


def painter() -> Server:
    app = Server("unit")

    @app.prompt
    def paint(
        ctx: Context,
        colour: Colour = Colour.RED,
        size: Literal["small", "medium", "large"] | None = None,
        level: Annotated[Level, "How much"] = Level.LOW,
        wet: bool = False,
        either: Literal["auto", 1] | bool = "auto",
        what: str = "wall",
    ) -> str:
        return "x"

    return app


def completed(function: Any, **options: Any) -> Server:
    """A server whose prompt argument `what` is completed by a function."""
    app = painter()
    app.complete("paint", "what", **options)(function)
    return app


# -------------------------------------------------------------------------------------- by themselves


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("colour", "", ["dark red", "red", "Reddish", "blue"]),
        ("colour", "red", ["red", "Reddish", "dark red"]),
        ("colour", "RED", ["red", "Reddish", "dark red"]),
        ("colour", "x", []),
        ("size", "M", ["medium", "small"]),
        ("level", "1", ["1", "10"]),
        ("wet", "", ["true", "false"]),
        ("wet", "f", ["false"]),
        ("either", "", ["auto", "1", "true", "false"]),
        ("what", "w", []),
    ],
)
def test_closed_types_complete_by_themselves(
    version: str, argument: str, value: str, expected: list[str]
) -> None:
    assert completes(painter(), argument, value, version) == {
        "values": expected,
        "total": len(expected),
        "hasMore": False,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_gets_the_result_it_knows(version: str) -> None:
    params = {"ref": {"type": "ref/prompt", "name": "paint"}, "argument": {"name": "wet", "value": "t"}}
    ending = {"resultType": "complete", "_meta": {SERVER_KEY: {"name": "unit", "version": "0.0.0"}}}
    completion = {"values": ["true"], "total": 1, "hasMore": False}
    assert asks(params, painter(), version) == {
        "completion": completion,
        **(ending if version == STATELESS else {}),
    }


def test_choices_are_read_from_a_schema() -> None:
    assert choices_of({"const": 1.5}) == ["1.5"]
    assert choices_of({"enum": [1, "1", True, None]}) == ["1", "true"]
    assert choices_of({"type": "string"}) == []


def test_what_begins_with_the_text_comes_before_what_contains_it() -> None:
    assert matching("an", ["Japan", "Andorra", "Oman", "Cuba", "angola"]) == [
        "Andorra",
        "angola",
        "Japan",
        "Oman",
    ]


# ---------------------------------------------------------------------------------------- by functions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("run", ["inline", "thread", "async"])
def test_a_function_is_handed_the_text_and_answers_with_a_list(version: str, run: Any) -> None:
    def words(value: str) -> list[str]:
        return [value + "a", value + "b"]

    async def later(value: str) -> list[str]:
        await asyncio.sleep(0)
        return words(value)

    app = completed(later) if run == "async" else completed(words, run=run)
    assert completes(app, "what", "x", version) == {"values": ["xa", "xb"], "total": 2, "hasMore": False}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_other_arguments_come_along_from_2025_06_18_on(version: str) -> None:
    def words(value: str, ctx: Context, arguments: dict[str, str]) -> list[str]:
        return [value, ctx.protocol_version, *arguments.values()]

    values = completes(completed(words), "what", "x", version, colour="red")["values"]
    assert values == ["x", version, *(["red"] if version >= "2025-06-18" else [])]
    assert completes(completed(words), "what", "x", version)["values"] == ["x", version]


def test_a_function_comes_before_the_choices_of_a_type() -> None:
    app = painter()
    app.complete("paint", "colour")(free_words)
    assert completes(app, "colour", "r")["values"] == ["free r"]


def free_words(value: str) -> list[str]:
    return [f"free {value}"]


MANY = [f"v{number}" for number in range(250)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (MANY[:100], {"values": MANY[:100], "total": 100, "hasMore": False}),
        (MANY[:101], {"values": MANY[:100], "total": 101, "hasMore": True}),
        (tuple(MANY), {"values": MANY[:100], "total": 250, "hasMore": True}),
        ([], {"values": [], "total": 0, "hasMore": False}),
        (None, {"values": [], "total": 0, "hasMore": False}),
        (Completions(["a"]), {"values": ["a"], "total": 1, "hasMore": False}),
        (Completions(["a"], 40), {"values": ["a"], "total": 40, "hasMore": True}),
        (Completions(["a"], has_more=True), {"values": ["a"], "hasMore": True}),
        (Completions(["a"], 40, False), {"values": ["a"], "total": 40, "hasMore": False}),
        (Completions(MANY, 300), {"values": MANY[:100], "total": 300, "hasMore": True}),
        (Completions(MANY, 7, False), {"values": MANY[:100], "total": 250, "hasMore": True}),
        (Completions(iter(MANY), has_more=True), {"values": MANY[:100], "hasMore": True}),
    ],
    ids=range(12),
)
def test_at_most_100_values_are_sent_and_the_rest_is_counted(
    version: str, returned: Any, expected: Any
) -> None:
    if isinstance(returned, Completions):
        returned = Completions(list(returned.values), returned.total, returned.has_more)

    def words(value: str) -> Any:
        return returned

    assert completes(completed(words), "what", "", version) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("run", ["inline", "thread"])
def test_a_refusal_keeps_its_words_and_another_failure_does_not(
    version: str, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def words(value: str) -> Any:
        if value == "refuse":
            raise ToolError("no words today")
        if value == "fail":
            raise KeyError("password")
        return ["a", 5] if value == "list" else 5

    def says(value: str) -> tuple[int, str]:
        app = completed(words, run=run)
        params = {
            "ref": {"type": "ref/prompt", "name": "paint"},
            "argument": {"name": "what", "value": value},
        }
        error = refused(app, params, version)
        return error.code, error.message

    assert says("refuse") == (-32603, "no words today")
    key = "completion prompt:paint/what"
    assert says("list") == (-32603, f"{key}: [1]: expected str, got 5")
    assert says("number") == (-32603, f"{key}: expected a list of str or Completions, got 5")
    assert not caplog.records
    assert says("fail") == (-32603, f"{key} failed; see the server's log")
    assert "KeyError: 'password'" in caplog.text


def test_a_completion_cannot_ask_the_client_from_2026_07_28_on() -> None:
    async def words(value: str, ctx: Context) -> list[str]:
        return [root["uri"] for root in await ctx.roots()]

    async def run(version: str) -> list[str]:
        async with Client(completed(words), version=version, roots=["file:///home"]) as client:
            params = {"ref": {"type": "ref/prompt", "name": "paint"}, "argument": WHAT}
            result = await asyncio.wait_for(client.request("completion/complete", params), 30)
            values: list[str] = result["completion"]["values"]
            return values

    for version in SESSION_VERSIONS:
        assert asyncio.run(run(version)) == ["file:///home"]
    with pytest.raises(RemoteError, match="completion/complete cannot ask the client") as caught:
        asyncio.run(run(STATELESS))
    assert caught.value.code == -32603


# -------------------------------------------------------------------------------------------- refusals

PAINT = {"type": "ref/prompt", "name": "paint"}
WHAT = {"name": "what", "value": ""}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"argument": WHAT}, "ref: missing, expected an object"),
        ({"ref": "paint", "argument": WHAT}, 'ref: expected an object, got "paint"'),
        ({"ref": {}, "argument": WHAT}, "ref.type: expected ref/prompt or ref/resource, got null"),
        ({"ref": {"type": "ref/tool", "name": "x"}, "argument": WHAT}, 'ref.type: .* got "ref/tool"'),
        ({"ref": {"type": "ref/prompt"}, "argument": WHAT}, "ref.name: missing, expected a string"),
        ({"ref": {"type": "ref/resource", "name": "x"}, "argument": WHAT}, "ref.uri: missing"),
        (
            {"ref": {"type": "ref/prompt", "name": "point"}, "argument": WHAT},
            r"ref: unknown prompt: point \(did you mean paint\?\)",
        ),
        ({"ref": {"type": "ref/resource", "uri": "a://{x}"}, "argument": WHAT}, "ref: unknown template: a"),
        ({"ref": PAINT}, "argument: missing, expected an object"),
        ({"ref": PAINT, "argument": {"value": ""}}, "argument.name: missing, expected a string"),
        ({"ref": PAINT, "argument": {"name": "what"}}, "argument.value: missing, expected a string"),
        ({"ref": PAINT, "argument": {"name": "what", "value": 5}}, "argument.value: .* got 5"),
        (
            {"ref": PAINT, "argument": {"name": "ctx", "value": ""}},
            "argument.name: paint has no argument ctx; it has colour, size",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_completed_is_refused_by_name(version: str, params: Any, message: str) -> None:
    error = refused(painter(), params, version)
    assert error.code == -32602
    with pytest.raises(RemoteError, match=f"^{message}"):
        raise error


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("x", 'context: expected an object, got "x"'),
        ({"arguments": ["x"]}, "context.arguments: expected an object of strings, got an array"),
        ({"arguments": {"size": 5}}, 'context.arguments: "size": expected a string, got 5'),
    ],
)
def test_a_context_is_judged_where_it_is_known_and_ignored_where_not(
    version: str, context: Any, message: str
) -> None:
    params = {"ref": PAINT, "argument": {"name": "wet", "value": "t"}, "context": context}
    if version < "2025-06-18":
        assert asks(params, painter(), version)["completion"]["values"] == ["true"]
    else:
        error = refused(painter(), params, version)
        assert (error.code, error.message) == (-32602, message)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_with_nothing_to_complete_has_no_such_method(version: str) -> None:
    async def capabilities(app: Server) -> Any:
        async with Client(app, version=version) as client:
            return client.info["capabilities"]

    assert "completions" not in asyncio.run(capabilities(Server("none")))
    assert refused(Server("none"), {"ref": PAINT, "argument": WHAT}, version).code == -32601
    said = asyncio.run(capabilities(painter())).get("completions")
    assert said == (None if version == SESSION_VERSIONS[0] else {})


# ------------------------------------------------------------------------------------------- templates


@pytest.mark.parametrize("version", VERSIONS)
def test_the_variables_of_a_template_complete_too(version: str) -> None:
    pytest.importorskip("fastrpc.definitions.resource")
    app = Server("unit")
    address = "docs://{language}/{path*}"

    @app.resource(address)
    def page(language: Literal["en", "de"], path: list[str]) -> str:
        return "x"

    @app.complete(page, "path")
    def paths(value: str, arguments: dict[str, str]) -> list[str]:
        return [f"{value}1", *arguments]

    def values(variable: str, value: str) -> Any:
        params = {
            "ref": {"type": "ref/resource", "uri": address},
            "argument": {"name": variable, "value": value},
            "context": {"arguments": {"language": "en"}},
        }
        return asks(params, app, version)["completion"]["values"]

    assert values("language", "D") == ["de"]
    assert values("path", "p") == ["p1", *(["language"] if version >= "2025-06-18" else [])]
    params = {"ref": {"type": "ref/resource", "uri": address}, "argument": WHAT}
    assert refused(app, params, version).message.startswith(
        "argument.name: docs://{language}/{path*} has no argument what; it has language, path"
    )


# ----------------------------------------------------------------------------------------- definitions


def test_what_cannot_complete_is_reported_where_it_is_decorated() -> None:
    app = painter()

    def words(value: str) -> list[str]:
        return []

    def nothing() -> list[str]:
        return []

    def number(value: int) -> list[str]:
        return []

    def three(value: str, arguments: dict[str, str], more: str) -> list[str]:
        return []

    def texts(value: str, other: str) -> list[str]:
        return []

    for function in (nothing, number, three, texts):
        with pytest.raises(DefinitionError, match=r"prompt:paint/what .* takes other parameters"):
            app.complete("paint", "what")(function)
    with pytest.raises(DefinitionError, match="paint has no argument 'who'; it has colour, size"):
        app.complete("paint", "who")
    with pytest.raises(DefinitionError, match="words is not a prompt or template of this server"):
        app.complete(words, "what")
    with pytest.raises(DefinitionError, match="is a method"):
        app.complete("paint", "what")(Desk.suggest)
    app.complete("paint", "what")(words)
    with pytest.raises(DefinitionError, match="prompt:paint/what: there is a completion of this name"):
        app.complete("paint", "what")(words)
    with pytest.raises(DefinitionError, match="has its options already"):
        app.complete("paint", "size")(Completion(words, target="paint", argument="size"))


class Desk:
    def suggest(self, value: str) -> list[str]:
        return [value]

    def greet(self, name: str) -> str:
        return name


def test_a_prompt_is_named_by_its_function_whatever_its_name() -> None:
    app, desk = Server("unit"), Desk()
    app.prompt(desk.greet, name="hello")
    app.complete(desk.greet, "name")(desk.suggest)
    assert completes(app, "name", "Ada", prompt="hello")["values"] == ["Ada"]


def test_a_completion_may_be_there_before_its_prompt() -> None:
    app = Server("unit")
    app.complete("hello", "name")(free_words)
    assert refused(app, {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": WHAT}).code == -32602
    app.prompt(Desk().greet, name="hello")
    assert completes(app, "name", "x", prompt="hello")["values"] == ["free x"]
