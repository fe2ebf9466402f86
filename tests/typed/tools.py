"""What a server offers: tools, resources, prompts, completions, hooks."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import assert_type

import fastrpc
from fastrpc import (
    CallInfo,
    CallRecord,
    Completions,
    Contents,
    Context,
    Image,
    ListItem,
    Message,
    Server,
    Text,
    ToolResult,
    tool,
)
from fastrpc import Sever  # error
from fastrpc.definitions.resource import Entry
from fastrpc.definitions.tool import Tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


# --- a server


@asynccontextmanager
async def life(server: Server) -> AsyncGenerator[int]:
    yield 1


async def no_life(server: Server) -> None: ...


app = Server("shop", version="1.0", lifespan=life, page_size=10, icons=[{"src": "https://example.com/i.png"}])
Server("shop", lifespan=no_life)  # error
Server("shop", lifespn=life)  # error
Server("shop", cache_scope="shared")  # error
Server("shop", icons=[{"source": "https://example.com/i.png"}])  # error
Server("shop", extensions={"example.com/x": 1})  # error
Server()  # error
fastrpc.Sever  # error


# --- tools


@app.tool
def plain(text: str) -> int:
    return len(text)


@app.tool(effect="read", timeout_seconds=2, annotations={"idempotentHint": True})
async def slow(text: str, ctx: Context) -> str:
    return text


@tool(effect="exec", max_running=1)
def marked(number: int) -> list[Image]:
    return []


def result(text: str) -> ToolResult:
    return ToolResult(text, structured={"a": 1})


def results(call: bool) -> ToolResult:
    ToolResult(5)  # error
    ToolResult("text", strutured={"a": 1})  # error
    ToolResult("text", meta=["a"])  # error
    return ToolResult(["text", Text("more"), Image(b"")], is_error=call, meta={"a": 1})


assert_type(plain("a"), int)
assert_type(marked(1), list[Image])
plain(1)  # error
app.add_tool(marked, name="other", run="inline")
app.add_tool(result, name="third", structured=False)
app.tool(efect="read")(plain)  # error
app.tool(effect="raed")(plain)  # error
app.tool(timeout_seconds="2")(plain)  # error
app.tool(annotations={"readonlyHint": True})(plain)  # error
app.tool(5)  # error
tool(efect="read")(plain)  # error
tool(run="inlined")(plain)  # error
app.add_tool(marked, nme="other")  # error
app.add_tool(5)  # error
app.add_tool("name", marked)  # error
for each in app.tools:
    assert_type(each, Tool)
    app.remove_tool(each.name)
    each.nme  # error
assert_type(app.tools.get("plain"), "Tool | None")
app.tools.get(plain)  # error
app.remove_tool(marked)  # error


@app.tool(efect="read")  # error
def misspelled(text: str) -> str:
    return text


# --- resources


@app.resource("docs://{page}", mime_type="text/plain", annotations={"audience": "user", "priority": 0.5})
def page(page: str) -> Contents:
    return Contents(page, "text/plain")


@app.resources("db", mime_type="text/plain", ttl=3)
class Pages:
    def list(self, cursor: str | None) -> tuple[list[Entry], None]:
        return [Entry("db://a", size=1)], None

    def read(self, uri: str) -> str:
        return uri


assert_type(page("a"), Contents)
assert_type(page("a").text, str)
assert_type(Pages().read("db://a"), str)
app.add_resource("docs://guide", "text", size=4)
app.add_resource("docs://other", b"bytes", name="other")
app.resource_updated("docs://guide")
app.resource("docs://a", mimetype="text/plain")(page)  # error
app.resource("docs://a", cache_scope="shared")(page)  # error
app.resource("docs://a", annotations={"audience": "model"})(page)  # error
app.resource(page)  # error
app.resources("db", mime="text/plain")  # error
app.add_resource("docs://a")  # error
app.resource_updated(5)  # error
Entry("db://a", size="1")  # error


# --- prompts and completion


@app.prompt(title="Review")
def review(code: str, language: str = "python") -> list[Message]:
    return [Message("user", code), Message("assistant", Text(language))]


@app.complete("review", "language", timeout_seconds=1)
def languages(value: str) -> Completions:
    return Completions(["python"], total=1)


assert_type(review("a"), list[Message])
app.complete(review, "code")
app.prompt(effect="read")(review)  # error
app.complete(5, "code")  # error
app.complete("review", "language", timeout=1)  # error
Message("system", "text")  # error
Completions([1])  # error


# --- hooks


@app.before
def count(call: CallInfo) -> None:
    call.arguments["count"] = call.tool


@app.before(tools="db_*")
async def look(call: CallInfo) -> None: ...


@app.after
def more(call: CallInfo, result: str) -> str:
    return result


@app.on_error(tools="*")
async def mend(call: CallInfo, error: Exception) -> str | None:
    return None


app.remove_hook(count)
more("a", "b")  # error
app.before(mend)  # error
app.before(tools=["db_*"])  # error
app.after(count)  # error
app.on_error(count)  # error
app.before(tool="db_*")  # error


def takes_nothing() -> None: ...


app.before(takes_nothing)  # error


# --- guards, observers


@app.guard
def decide(call: CallInfo) -> None:
    assert_type(call.arguments, "dict[str, Any]")
    assert_type(call.principal, str)
    assert_type(call.name, str)
    assert_type(call.kind, str)
    assert_type(call.effect, "Literal['read', 'write', 'network', 'exec'] | None")
    assert_type(call.context, Context)
    call.caller  # error
    call.name = 5  # error
    call.principal = "ada"  # error


@app.guard
async def decide_later(call: CallInfo) -> None: ...


@app.guard  # error
def says_yes(call: CallInfo) -> bool:
    return True


@app.observe
def note(records: list[CallRecord]) -> None:
    assert_type(records[0].total_us, float)
    assert_type(records[0].outcome, str)
    assert_type(records[0].id, bytes)
    records[0].duration  # error
    records[0].size = 5  # error


@app.observe  # error
def note_one(record: CallRecord) -> None: ...


assert_type(note([]), None)
app.guard(note)  # error
app.guard(tools="db_*")  # error
app.observe(decide)  # error
app.observe()  # error


# --- lists


def level_of(principal: str) -> int:
    return len(principal)


def shows_level(level: int, item: ListItem) -> bool:
    assert_type(item.uri, "str | None")
    return item.kind != "tool" or item.effect == "read" or level > 3


def shows_principal(principal: str, item: ListItem) -> bool:
    return item.name.startswith(principal)


async def shows_later(principal: str, item: ListItem) -> bool:
    return True


def class_without_hash(principal: str) -> list[str]:
    return [principal]


app.filter_lists(shows_level, classify=level_of)
app.filter_lists(shows_principal)
app.filter_lists(lambda level, item: level > 3, classify=level_of)
app.filter_lists(shows_level)  # error
app.filter_lists(shows_principal, classify=level_of)  # error
app.filter_lists(shows_later)  # error
app.filter_lists(lambda team, item: item.nme == team)  # error
app.filter_lists(lambda rows, item: True, classify=class_without_hash)  # error
app.filter_lists(shows_level, clasify=level_of)  # error
app.lists_changed()
ListItem("prompt", "review")
ListItem("promt", "review")  # error


# --- the rest

app.watch(lambda: None, 5.0)
app.watch(5)  # error
app.log({"any": "value"}, "notice")
app.log("text", "warn")  # error
app.set_note(lambda: ["a"])
app.set_note(lambda: "a")  # error
app.mount(Server("other"), "x")
app.mount("other")  # error
app.include("module")  # error
assert_type(app.over_http, bool)
assert_type(app.info, "dict[str, Any]")
