"""The ready middleware of files written for FastMCP: timing, logging, rates, errors and retries, caching,
limits, injected tools, ping."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.middleware import call, conversing, server_of_all, server_with
from support.stdio import STATELESS_META, encode, serve

from fastrpc.compat.dialect import follow_release
from fastrpc.compat.fastmcp import (
    CallToolSettings,
    DetailedTimingMiddleware,
    ErrorHandlingMiddleware,
    FastMCP,
    LoggingMiddleware,
    NotOffered,
    PingMiddleware,
    PromptToolMiddleware,
    RateLimitError,
    RateLimitingMiddleware,
    ResourceToolMiddleware,
    ResponseCachingMiddleware,
    ResponseLimitingMiddleware,
    RetryMiddleware,
    SlidingWindowRateLimitingMiddleware,
    StructuredLoggingMiddleware,
    TimingMiddleware,
    ToolInjectionMiddleware,
)
from fastrpc.compat.middleware import rate_limiting
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.testing import Client, RemoteError


def records(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == name]


def test_timing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    call(server_with(TimingMiddleware(), DetailedTimingMiddleware()), "echo", text="a")
    assert re.fullmatch(r"tools/call: [\d.]+ ms", records(caplog, "fastmcp.timing")[-1])
    assert re.fullmatch(r"tool echo: [\d.]+ ms", records(caplog, "fastmcp.timing.detailed")[-1])
    call(server_with(DetailedTimingMiddleware()), "echo")
    assert "failed after" in records(caplog, "fastmcp.timing.detailed")[-1]


def test_logging(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    options = {"methods": ["tools/call"], "include_payloads": True}
    call(
        server_with(
            LoggingMiddleware(max_payload_length=20, **options),
            StructuredLoggingMiddleware(include_payload_length=True, **options),
        ),
        "echo",
        text="a",
    )
    start, success = records(caplog, "fastmcp.middleware.logging")
    assert start.startswith("event=request_start method=tools/call source=client payload=")
    assert "..." in start
    assert success.startswith("event=request_success method=tools/call source=client duration_ms=")
    first, second = map(json.loads, records(caplog, "fastmcp.middleware.structured_logging"))
    assert first["event"] == "request_start"
    assert second["event"] == "request_success"
    payload = json.loads(first["payload"])
    assert payload["name"] == "echo"
    assert payload["arguments"] == {"text": "a"}
    assert first["payload_length"] == len(first["payload"])
    assert first["payload_type"] == "CallToolRequestParams"


def test_records_go_to_standard_error_where_no_one_has_set_up_logging(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "from fastrpc.compat.fastmcp import FastMCP, StructuredLoggingMiddleware\n"
        "mcp = FastMCP('t', middleware=[StructuredLoggingMiddleware()])\n"
        "@mcp.tool\n"
        "def echo(text: str) -> str:\n"
        "    return text\n"
        "mcp.run()\n"
    )
    params = {"name": "echo", "arguments": {"text": "a"}, "_meta": STATELESS_META}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    done = subprocess.run(
        [sys.executable, script],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert '"event": "request_success"' in done.stderr


def test_rates_are_limited() -> None:
    async def talk(client: Client) -> list[Any]:
        answers: list[Any] = []
        for _ in range(3):
            try:
                answers.append((await client.call("echo", text="a")).text)
            except RemoteError as error:
                answers.append(error.code)
        return answers

    def client_of(context: Any) -> str:
        return str(context.method)

    async def client_later(context: Any) -> str:
        return str(context.method)

    slow = 0.0001
    for limit in (
        RateLimitingMiddleware(slow, burst_capacity=2, get_client_id=client_of),
        RateLimitingMiddleware(slow, burst_capacity=3, global_limit=True),  # one is the handshake
        SlidingWindowRateLimitingMiddleware(2, get_client_id=client_later),
    ):
        assert conversing(server_with(limit), talk) == ["a", "a", -32000]
    assert RateLimitError("x").error.code == -32000


def test_limiters_of_clients_are_bounded_and_the_idle_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limiting, "MOST_CLIENTS", 3)
    names = iter(["a", "b", "a", "c", "d", "a", "e"])
    middleware = RateLimitingMiddleware(1, burst_capacity=2, get_client_id=lambda context: next(names))

    async def ask() -> None:
        context: Any = None
        first = (await middleware.limiter_of(context))[1]
        for _ in range(6):
            client, limiter = await middleware.limiter_of(context)
            assert (limiter is first) == (client == "a")

    asyncio.run(ask())
    assert [*middleware.limiters] == ["d", "a", "e"]


def test_errors_get_codes_and_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    handling = ErrorHandlingMiddleware(
        include_traceback=True, error_callback=lambda error, context: told.append(str(context.method))
    )
    mcp = server_of_all(handling)

    @mcp.tool
    def missing() -> str:
        raise KeyError("k")

    @mcp.tool
    def odd() -> str:
        raise ValueError("v")

    def code_of(method: str, params: dict[str, Any]) -> int:
        with pytest.raises(RemoteError) as caught:
            conversing(mcp, lambda client: client.request(method, params))
        return caught.value.code

    assert code_of("tools/call", {"name": "missing"}) == -32001
    assert code_of("tools/call", {"name": "odd"}) == -32602
    assert code_of("tools/call", {"name": "unknown"}) == -32001
    assert code_of("resources/read", {"uri": "data://unknown"}) == -32002
    assert told == ["tools/call", "tools/call", "tools/call", "resources/read"]
    assert handling.get_error_stats()["ToolError:tools/call"] == 2
    assert "Traceback" in records(caplog, "fastmcp.errors")[0]
    kept = server_with(ErrorHandlingMiddleware(transform_errors=False))
    assert call(kept, "echo").is_error


def test_up_to_fastmcp_2_what_middleware_makes_of_a_calls_error_is_its_result() -> None:
    mcp = server_of_all(ErrorHandlingMiddleware())

    @mcp.tool
    def odd() -> str:
        raise UnicodeError("v")  # a ValueError, too

    follow_release("fastmcp", "2.14.7")
    try:
        result = conversing(mcp, lambda client: client.call_tool("odd"))
        with pytest.raises(RemoteError, match="Resource not found: "):
            conversing(mcp, lambda client: client.request("resources/read", {"uri": "data://unknown"}))
    finally:
        follow_release("fastmcp", "4.2.0")
    assert result.is_error
    assert result.text.startswith("Invalid params: ")
    with pytest.raises(RemoteError, match="Invalid params: "):
        conversing(mcp, lambda client: client.call_tool("odd"))


def test_what_fails_by_a_passing_error_is_tried_again() -> None:
    attempts: list[int] = []
    mcp = server_with(RetryMiddleware(max_retries=2, base_delay=0.001))

    @mcp.tool
    def shaky(good: int) -> str:
        attempts.append(good)
        if len(attempts) <= good:
            raise ConnectionError("gone")
        return "there"

    @mcp.tool
    def wrong() -> str:
        attempts.append(0)
        raise ValueError("wrong")

    assert call(mcp, "shaky", good=2).text == "there"
    attempts.clear()
    assert call(mcp, "shaky", good=9).is_error
    assert len(attempts) == 3
    attempts.clear()
    assert call(mcp, "wrong").is_error
    assert len(attempts) == 1


def test_results_are_kept() -> None:
    calls: list[str] = []
    caching = ResponseCachingMiddleware(
        call_tool_settings=CallToolSettings(excluded_tools=["fresh"]), list_tools_settings={"enabled": False}
    )
    mcp = FastMCP("t", middleware=[caching])

    def counted(name: str) -> Any:
        def tool(text: str = "") -> dict[str, Any]:
            calls.append(name)
            return {"name": name, "text": text}

        return tool

    for name in ("kept", "fresh"):
        mcp.tool(counted(name), name=name)
    mcp.resource("data://x")(counted("resource"))
    mcp.prompt(lambda: calls.append("prompt") or "ask", name="ask")

    async def talk(client: Client) -> None:
        for _ in range(3):
            assert (await client.call("kept", text="a")).structured == {"name": "kept", "text": "a"}
            assert (await client.call("fresh")).structured == {"name": "fresh", "text": ""}
            read = await client.request("resources/read", {"uri": "data://x"})
            assert json.loads(read["contents"][0]["text"])["name"] == "resource"
            got = await client.request("prompts/get", {"name": "ask"})
            assert got["messages"][0]["content"]["text"] == "ask"
            assert len((await client.request("tools/list"))["tools"]) == 2
            assert len((await client.request("prompts/list"))["prompts"]) == 1
        assert (await client.call("kept", text="b")).structured == {"name": "kept", "text": "b"}

    conversing(mcp, talk)
    assert sorted(calls) == ["fresh", "fresh", "fresh", "kept", "kept", "prompt", "resource"]
    statistics = caching.statistics()
    assert statistics.call_tool is not None
    assert statistics.list_tools is None
    assert (statistics.call_tool.get.hit, statistics.call_tool.get.miss) == (2, 2)
    assert statistics.list_prompts is not None
    assert statistics.list_prompts.get.hit == 2
    with pytest.raises(NotOffered, match="cache_storage"):
        ResponseCachingMiddleware(cache_storage=object())  # type: ignore[arg-type]


def test_results_are_not_kept_beyond_their_time_or_size() -> None:
    calls: list[int] = []
    for options in ({"call_tool_settings": {"ttl": 0}}, {"max_item_size": 10}):
        mcp = FastMCP("t", middleware=[ResponseCachingMiddleware(**options)])  # type: ignore[arg-type]
        mcp.tool(lambda: calls.append(1) or "a long text", name="tool")

        async def talk(client: Client) -> None:
            for _ in range(2):
                assert (await client.call("tool")).text == "a long text"

        conversing(mcp, talk)
    assert len(calls) == 4


def test_large_results_are_cut() -> None:
    mcp = FastMCP(
        "t", middleware=[ResponseLimitingMiddleware(max_size=200, truncation_suffix="[cut]", tools=["big"])]
    )

    @mcp.tool
    def big(size: int) -> dict[str, str]:
        return {"text": "é" * size}

    @mcp.tool
    def free(size: int) -> dict[str, str]:
        return {"text": "é" * size}

    async def talk(client: Client) -> Any:
        tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
        assert "outputSchema" in tools["free"]
        assert "outputSchema" not in tools["big"]
        small, cut = await client.call("big", size=1), await client.call("big", size=500)
        free = await client.call("free", size=500)
        assert small.structured == {"text": "é"}
        assert len(free.structured["text"]) == 500
        assert cut.structured is None
        assert cut.text.endswith("é[cut]")
        assert len(cut.text.encode()) <= 200

    conversing(mcp, talk)
    with pytest.raises(ValueError, match="max_size"):
        ResponseLimitingMiddleware(max_size=0)


def test_injected_tools_are_tools_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.engine.plans.scope", None)  # another test's file may want the running call

    def added() -> str:
        return "added"

    def echo(text: str) -> str:
        return "another"

    mcp = server_with()
    mcp.add_middleware(ToolInjectionMiddleware([added, echo]))
    assert call(mcp, "added").text == "added"
    assert call(mcp, "echo", text="a").text == "another"
    assert mcp.runtime.plans.tools["added"].around is None


def test_prompts_and_resources_as_tools() -> None:
    mcp = server_of_all(PromptToolMiddleware(), ResourceToolMiddleware())
    assert "ask" in call(mcp, "list_prompts").text
    assert "data://x" in call(mcp, "list_resources").text
    assert '"ask"' in call(mcp, "get_prompt", name="ask").text
    assert '"x"' in call(mcp, "read_resource", uri="data://x").text
    assert call(mcp, "get_prompt", name="unknown").is_error


def test_clients_are_pinged(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "from fastrpc.compat.fastmcp import FastMCP, PingMiddleware\n"
        "mcp = FastMCP('t', middleware=[PingMiddleware(interval_ms=20)])\n"
        "@mcp.tool\n"
        "async def echo(text: str) -> str:\n"
        "    return text\n"
        "mcp.run()\n"
    )
    with serve(str(script)) as server:
        client = {"name": "t", "version": "1"}
        params = {"protocolVersion": LATEST_SESSION_VERSION, "capabilities": {}, "clientInfo": client}
        server.send(encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
        assert json.loads(server.line())["id"] == 1
        server.send(encode({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        server.send(encode({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
        lines = [json.loads(server.line()), json.loads(server.line())]
        ping = next(line for line in lines if line.get("method") == "ping")
        server.send(encode({"jsonrpc": "2.0", "id": ping["id"], "result": {}}))
    with pytest.raises(ValueError, match="interval_ms"):
        PingMiddleware(0)
