"""`Depends` and its siblings, `get_context`, and the SDK's `Resolve`, in swapped servers.

The expected values are those that the same functions gave on FastMCP 2.14 and 4.1, and on the SDK 2.3.
"""

# ruff: noqa: B008 - a dependency is the default of its parameter

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import pytest
from support.in_memory import ask, with_client

from fastrpc import running_call
from fastrpc.compat import mcp as sdk
from fastrpc.compat.fastmcp import (
    Context,
    CurrentAccessToken,
    CurrentContext,
    CurrentFastMCP,
    CurrentHeaders,
    CurrentRequest,
    Dependency,
    Depends,
    FastMCP,
    Progress,
    TokenClaim,
    ToolError,
    get_context,
    get_http_headers,
    get_http_request,
    get_server,
)
from fastrpc.compat.mcp import AcceptedElicitation, Elicit, ListRoots, MCPServer, Resolve, Sample
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

log: list[str] = []


@pytest.fixture(autouse=True)
def _running_calls_are_kept() -> None:
    """What importing the module does, once in a process."""
    running_call.keep("fastrpc.compat.functions.dependencies")


@pytest.fixture(autouse=True)
def _no_log() -> None:
    log.clear()


def text_value() -> str:
    log.append("text")
    return "T"


async def awaited_value() -> str:
    log.append("awaited")
    return "A"


@asynccontextmanager
async def connection() -> Any:
    log.append("open")
    try:
        yield "C"
    finally:
        log.append("close")


@contextmanager
def lock() -> Any:
    log.append("lock")
    try:
        yield "L"
    finally:
        log.append("unlock")


def nested(value: str = Depends(text_value), opened: str = Depends(connection)) -> str:
    return value + opened


def failing() -> str:
    raise ValueError("boom")


def refusing() -> str:
    raise ToolError("refused")


def added(function: Any, kind: Any = FastMCP) -> Any:
    app = kind("demo")
    app.add_tool(function, name="tool")
    return app


def called(function: Any, kind: Any = FastMCP, /, **arguments: Any) -> Any:
    return with_client(added(function, kind), lambda client: client.call("tool", **arguments))


def text_of(function: Any, /, **arguments: Any) -> str:
    result = called(function, **arguments)
    assert not result.is_error, result.text
    return str(result.text)


# ------------------------------------------------------------------------------------ Depends


def test_each_kind_of_factory() -> None:
    async def tool(
        x: int,
        text: str = Depends(text_value),
        awaited: str = Depends(awaited_value),
        opened: str = Depends(connection),
        locked: str = Depends(lock),
        both: str = Depends(nested),
    ) -> str:
        log.append("body")
        return repr((x, text, awaited, opened, locked, both))

    assert text_of(tool, x=1) == "(1, 'T', 'A', 'C', 'L', 'TC')"
    assert log == ["text", "awaited", "open", "lock", "body", "unlock", "close"]


def test_dependencies_are_not_in_the_schema() -> None:
    def tool(x: int = 3, text: str = Depends(text_value), *, y: int, both: str = Depends(nested)) -> str:
        return repr((x, text, y, both))

    (described,) = ask(added(tool), "tools/list")["tools"]
    assert list(described["inputSchema"]["properties"]) == ["x", "y"]
    assert described["inputSchema"]["required"] == ["y"]
    assert text_of(tool, y=4) == "(3, 'T', 4, 'TC')"


def test_a_synchronous_function_runs_on_a_worker_thread() -> None:
    import threading

    def tool(text: str = Depends(text_value)) -> str:
        return f"{threading.current_thread() is threading.main_thread()} {get_server().name}"

    assert text_of(tool) == "False demo"


def test_a_client_cannot_set_a_dependency() -> None:
    def tool(x: str, text: str = Depends(text_value)) -> str:
        return x + text

    assert text_of(tool, x="a", text="mine") == "aT"


def test_one_factory_is_called_once_in_a_call() -> None:
    async def tool(first: str = Depends(awaited_value), second: str = Depends(awaited_value)) -> str:
        return first + second

    assert text_of(tool) == "AA"
    assert log == ["awaited"]


def test_bindings_are_arguments_of_the_factory() -> None:
    def greeting(name: str, mark: str = "!") -> str:
        return f"hi {name}{mark}"

    async def tool(
        first: str = Depends(greeting, name="Ann"),
        second: str = Depends(greeting, name=Depends(text_value), mark="?"),
    ) -> str:
        return f"{first} {second}"

    assert text_of(tool) == "hi Ann! hi T?"


def test_a_dependency_in_annotated() -> None:
    async def tool(x: int, text: Annotated[str, Depends(text_value)]) -> str:
        return f"{x}{text}"

    tool.__annotations__ = {"x": int, "text": Annotated[str, Depends(text_value)], "return": str}
    assert text_of(tool, x=1) == "1T"


def test_a_dependency_of_ones_own() -> None:
    class Clock(Dependency[str]):
        async def __aenter__(self) -> str:
            log.append("started")
            return "12:00"

        async def __aexit__(self, *exception: Any) -> None:
            log.append("stopped")

    async def tool(now: Any = Clock()) -> str:
        return str(now)

    assert text_of(tool) == "12:00"
    assert log == ["started", "stopped"]


def test_a_failing_dependency_fails_the_call_and_a_tool_error_says_why() -> None:
    async def fails(value: str = Depends(failing)) -> str:
        return value

    async def refuses(value: str = Depends(refusing)) -> str:
        return value

    failed = called(fails)
    assert failed.is_error
    assert "Failed to resolve dependency 'value' for fails" in failed.text
    assert "boom" not in failed.text
    assert called(refuses).text == "refused"


def test_context_managers_are_left_when_the_function_raises() -> None:
    async def tool(opened: str = Depends(connection)) -> str:
        raise ToolError("no")

    assert called(tool).text == "no"
    assert log == ["open", "close"]


def test_dependencies_of_methods_partials_resources_and_prompts() -> None:
    app = FastMCP("demo")

    class Shop:
        def price(self, item: str, text: str = Depends(text_value)) -> str:
            return item + text

    app.add_tool(Shop().price)

    @app.resource("r://{name}")
    async def page(name: str, text: str = Depends(text_value)) -> str:
        return name + text

    @app.prompt
    async def review(name: str, awaited: str = Depends(awaited_value)) -> str:
        return name + awaited

    assert with_client(app, lambda client: client.call("price", item="nut")).text == "nutT"
    assert ask(app, "resources/read", {"uri": "r://ann"})["contents"][0]["text"] == "annT"
    shown = ask(app, "prompts/get", {"name": "review", "arguments": {"name": "bo"}})
    assert shown["messages"][0]["content"]["text"] == "boA"


# ------------------------------------------------------------------------------------ the running call


def test_the_context_and_the_server_as_dependencies() -> None:
    async def inner(ctx: Context = CurrentContext()) -> str:
        return str(ctx.request_id)

    async def tool(
        ctx: Context = CurrentContext(), server: Any = CurrentFastMCP(), identity: str = Depends(inner)
    ) -> str:
        return f"{ctx.fastmcp is server} {server.name} {ctx.request_id == identity}"

    assert text_of(tool) == "True demo True"


@pytest.mark.parametrize("is_async", [False, True])
def test_get_context_anywhere_in_a_call(is_async: bool) -> None:
    def helper() -> str:
        return f"{get_context().fastmcp.name} {get_server().name}"

    async def later() -> str:
        return helper()

    def now() -> str:
        return helper()

    def returns_coroutine() -> Any:
        return later()

    assert text_of(later if is_async else now) == "demo demo"
    assert text_of(returns_coroutine) == "demo demo"
    app = added(now)

    async def converse(client: Any) -> set[str]:
        return {(await client.call("tool")).text for _ in range(40)}  # on a thread at first, then inline

    assert with_client(app, converse) == {"demo demo"}


def test_there_is_no_context_outside_of_calls() -> None:
    with pytest.raises(RuntimeError, match="No active context"):
        get_context()
    assert running_call.current() is None


def test_the_context_of_a_server_object() -> None:
    app = MCPServer("demo")

    @app.tool()
    async def tool() -> str:
        await app.get_context().info("hello")
        return str(app.get_context().mcp_server is app)

    assert with_client(app, lambda client: client.call("tool")).text == "True"
    assert app.get_context().fastmcp is app


def test_a_server_that_reads_no_running_call_does_not_store_it(tmp_path: Any) -> None:
    source = """
import sys
from fastrpc.compat.fastmcp import Context, FastMCP
app = FastMCP("x")
@app.tool
def plain(a: int, ctx: Context) -> str:
    return "x"
assert app.runtime.plans.tools["plain"].around is None
assert "fastrpc.running_call" not in sys.modules
@app.tool
def reads() -> str:
    from fastrpc.compat.fastmcp import get_context
    return get_context().request_id
assert app.runtime.plans.tools["reads"].around is not None
"""
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)


def test_a_function_that_imports_get_context_in_a_call_is_found_through_its_caller() -> None:
    source = """
from fastrpc.compat.fastmcp import FastMCP
app = FastMCP("x")
def helper() -> str:
    from fastrpc.compat.fastmcp import get_context
    return get_context().fastmcp.name
@app.tool
def reads() -> str:
    return helper()
assert app.runtime.plans.tools["reads"].around is not None
"""
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)


def test_there_is_no_request_over_stdio() -> None:
    async def reads() -> str:
        return repr(get_http_headers(include_all=True))

    async def needs(headers: dict[str, str] = CurrentHeaders(), request: Any = CurrentRequest()) -> str:
        return "unreached"

    with pytest.raises(RuntimeError, match="No active HTTP request"):
        get_http_request()
    assert text_of(reads) == "{}"
    assert "Failed to resolve dependency 'request'" in called(needs).text


def test_headers_that_are_for_one_recipient_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrpc.compat.http import headers as http_headers

    headers = [(b"host", b"a"), (b"Authorization", b"Bearer t"), (b"cookie", b"c"), (b"x-tenant", b"7")]
    monkeypatch.setattr(http_headers, "current_http_request", lambda: {"type": "http", "headers": headers})
    assert get_http_headers() == {"x-tenant": "7"}
    assert get_http_headers(include={"Authorization"}) == {"authorization": "Bearer t", "x-tenant": "7"}
    assert set(get_http_headers(include_all=True)) == {"host", "authorization", "cookie", "x-tenant"}


def test_the_request_is_starlettes_where_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("starlette")
    from fastrpc.compat.http import headers as http_headers

    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"a=1", "headers": []}
    monkeypatch.setattr(http_headers, "current_http_request", lambda: scope)
    assert get_http_request().query_params["a"] == "1"


def test_claims_of_the_access_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    async def tool(token: Any = CurrentAccessToken(), user: str = TokenClaim("sub")) -> str:
        return f"{token.client_id} {user}"

    assert "Failed to resolve dependency 'token'" in called(tool).text
    token = SimpleNamespace(client_id="app", claims={"sub": "ann"})
    access = SimpleNamespace(get_access_token=lambda: token)
    monkeypatch.setitem(sys.modules, "fastrpc.compat.auth.access", access)  # type: ignore[arg-type]
    assert text_of(tool) == "app ann"


def test_progress_counts_and_reports() -> None:
    async def tool(progress: Progress = Progress()) -> str:
        await progress.set_total(3)
        await progress.increment()
        await progress.set_message("nearly")
        await progress.increment(2)
        return repr((progress.current, progress.total, progress.message))

    seen: list[tuple[float, float | None, str | None]] = []

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def converse(client: Any) -> Any:
        return await client.call("tool", on_progress=on_progress)

    app = added(tool)
    assert with_client(app, converse).text == "(3, 3, 'nearly')"
    assert with_client(app, lambda client: client.call("tool")).text == "(3, 3, 'nearly')"  # begun anew


# ------------------------------------------------------------------------------------ the SDK's Resolve


def sdk_tool(annotation: Any, function: Any = None) -> Any:
    async def tool(x: int, value: Any) -> str:
        return f"{x} {value!r}" if function is None else str(function(value))

    tool.__annotations__ = {"x": int, "value": annotation, "return": str}
    return added(tool, MCPServer)


ERAS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])


def test_resolvers_get_arguments_the_context_and_other_resolvers() -> None:
    async def base(ctx: sdk.Context) -> str:
        log.append("base")
        return str(ctx.mcp_server.name)

    def doubled(x: int, named: Annotated[str, Resolve(base)]) -> str:
        return f"{named}{x * 2}"

    base.__annotations__["ctx"] = sdk.Context
    doubled.__annotations__["named"] = Annotated[str, Resolve(base)]
    app = sdk_tool(Annotated[str, Resolve(doubled)])
    (described,) = ask(app, "tools/list")["tools"]
    assert list(described["inputSchema"]["properties"]) == ["x"]
    assert with_client(app, lambda client: client.call("tool", x=4)).text == "4 'demo8'"
    assert log == ["base"]


class Address:
    street: str

    def __init__(self, street: str) -> None:
        self.street = street


def asks(x: int) -> Any:
    from dataclasses import make_dataclass

    return Elicit("Where to?", make_dataclass("Where", [("street", str)]))


@ERAS
def test_a_resolver_asks_the_person(version: str) -> None:
    app = sdk_tool(Annotated[Address, Resolve(asks)], lambda value: value.street)

    def converse(client: Any) -> Any:
        return client.call("tool", x=1)

    accepted = with_client(app, converse, version, on_elicit=lambda params: {"street": "Elm"})
    assert accepted.text == "Elm"
    refused = with_client(app, converse, version, on_elicit=lambda params: "decline")
    assert refused.is_error
    assert "decline" in refused.text


def test_a_parameter_that_wants_the_answer_itself() -> None:
    app = sdk_tool(Annotated[AcceptedElicitation[Address], Resolve(asks)], lambda value: value.action)

    def converse(client: Any) -> Any:
        return client.call("tool", x=1)

    assert with_client(app, converse, on_elicit=lambda params: "decline").text == "decline"


@ERAS
def test_resolvers_that_sample_and_list_roots(version: str) -> None:
    async def sampled() -> Any:
        return Sample([{"role": "user", "content": {"type": "text", "text": "hi"}}], max_tokens=5)

    async def roots() -> Any:
        return ListRoots()

    answer = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}
    app = sdk_tool(Annotated[Any, Resolve(sampled)], lambda value: value.content.text)
    found = with_client(
        app, lambda client: client.call("tool", x=1), version, on_sample=lambda params: answer
    )
    assert found.text == "yes"
    app = sdk_tool(Annotated[Any, Resolve(roots)], lambda value: value.roots[0].uri)
    found = with_client(app, lambda client: client.call("tool", x=1), version, roots=["file:///a"])
    assert found.text == "file:///a"


def test_a_parameter_of_a_resolver_that_nothing_gives() -> None:
    def needs(unknown: int) -> int:
        return unknown

    app = sdk_tool(Annotated[int, Resolve(needs)])
    result = with_client(app, lambda client: client.call("tool", x=1))
    assert result.is_error
