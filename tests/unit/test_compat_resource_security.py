"""The variables of a template are no paths out of a folder, as FastMCP 4 and the official SDK 2 have it:
whatever the parameter's type, however the template has come to the server, unless its rules, or the server's,
say something else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastrpc.compat import mcp
from fastrpc.compat.dialect import follow_release
from fastrpc.compat.fastmcp import (
    INHERIT_SECURITY,
    FastMCP,
    FastMCPProvider,
    LocalProvider,
    Middleware,
    Namespace,
    ResourceSecurity,
    ResourceTemplate,
)
from fastrpc.errors import RemoteError
from fastrpc.testing import Client

ANYTHING = ResourceSecurity(exempt_params={"a-path"})
OUTSIDE = "x://../../etc/hostname"


def text(path: str) -> str:
    return f"read {path}"


def typed(path: Path) -> str:
    return f"read {path}"


def steps(path: list[str]) -> str:
    return f"read {path}"


def read(server: Any, uri: str, version: str | None = None) -> Any:
    """Return the text at a URI, or the error's code."""

    async def reading() -> Any:
        async with Client(server, **({} if version is None else {"version": version})) as client:
            try:
                return (await client.read(uri)).raw["contents"][0]["text"]
            except RemoteError as error:
                return error.code

    return asyncio.run(reading())


def offering(server: Any, function: Any = text, uri: str = "x://{path*}", **options: Any) -> Any:
    server.resource(uri, **options)(function)
    return server


PATHS = (
    *("../../etc/hostname", "a/../../b", "%2e%2e%2F%2e%2e/etc", "..%5C..%5Cetc", "/etc/hostname"),
    *("%2Fetc/hostname", "C:%5Cx", "C:x", "a%00b"),
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("function", [text, typed])
def test_no_path_leads_out_of_a_folder(path: str, function: Any) -> None:
    assert read(offering(FastMCP("x"), function), f"x://{path}") == -32002


@pytest.mark.parametrize("path", ["../../etc", "a/../../b", "a/..%2F..%2Fb", "a/C:%5Cx", "a%00b"])
def test_the_steps_of_a_path_are_looked_at_one_by_one(path: str) -> None:
    assert read(offering(FastMCP("x"), steps), f"x://{path}") == -32002


def test_a_variable_of_the_query_is_looked_at() -> None:
    server = offering(FastMCP("x"), uri="x://docs{?path}")
    assert read(server, "x://docs?path=a") == "read a"
    assert read(server, "x://docs?path=../a") == -32002


@pytest.mark.parametrize("path", ["a/../b", "HEAD~3..HEAD", "v1..v2", "a/b.tar.gz", "...", "docs/a:b"])
def test_what_stays_inside_is_read(path: str) -> None:
    assert read(offering(FastMCP("x")), f"x://{path}") == f"read {path}"


def test_the_error_is_that_of_the_version() -> None:
    server = offering(FastMCP("x"))
    assert read(server, OUTSIDE, "2025-11-25") == -32002
    assert read(server, OUTSIDE, "2026-07-28") == -32602


def test_no_other_template_is_tried() -> None:
    server = offering(FastMCP("x"), uri="x://{path}/{+rest}", function=lambda path, rest: "read both")
    offering(server, security=None)
    assert read(server, "x://a/%2Fetc") == -32002
    assert read(server, OUTSIDE) == -32002


def provided(**options: Any) -> FastMCP:
    return FastMCP("x", providers=[offering(LocalProvider())], **options)


def mounting(inner: Any, **options: Any) -> FastMCP:
    host = FastMCP("host", **options)
    host.mount(inner)
    return host


def with_object(**options: Any) -> FastMCP:
    server = FastMCP("x")
    server.add_template(ResourceTemplate.from_function(text, uri_template="x://{path*}", **options))
    return server


WAYS: dict[str, Callable[[], Any]] = {
    "object": with_object,
    "provider": provided,
    "server as a provider": lambda: FastMCP("x", providers=[FastMCPProvider(offering(FastMCP("y")))]),
    "mounted": lambda: mounting(offering(FastMCP("y"))),
    "mounted provider": lambda: mounting(provided()),
    "behind middleware": lambda: offering(FastMCP("x", middleware=[Middleware()])),
    "composed": lambda: offering(FastMCP("x", transforms=[Namespace("docs")])),
    "the official SDK": lambda: offering(mcp.MCPServer("x"), uri="x://{+path}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_rules_hold_however_the_template_was_added(way: str) -> None:
    server = WAYS[way]()
    inside, outside = ("x://a", OUTSIDE) if way != "composed" else ("x://docs/a", "x://docs/../../etc")
    assert str(read(server, inside)).startswith("read")
    assert read(server, outside) == -32002


def test_a_server_or_a_template_may_have_other_rules() -> None:
    found = "read ../../etc/hostname"
    lax = FastMCP("x", resource_security=None)
    assert read(offering(lax), OUTSIDE) == found
    offering(lax, uri="y://{path*}", security=ResourceSecurity())
    assert read(lax, "y://../../etc/hostname") == -32002
    assert read(provided(resource_security=None), OUTSIDE) == found
    assert read(offering(FastMCP("x", resource_security=ANYTHING), uri="x://{path*}"), OUTSIDE) == -32002
    for exempt in ({"path"}, frozenset({"path"})):
        rules = ResourceSecurity(exempt_params=exempt)
        assert read(offering(FastMCP("x"), security=rules), OUTSIDE) == found
    assert read(offering(FastMCP("x"), security=None), OUTSIDE) == found
    assert read(with_object(security=None), OUTSIDE) == found
    assert read(offering(FastMCP("x"), security=INHERIT_SECURITY), OUTSIDE) == -32002
    absolute = ResourceSecurity(reject_absolute_paths=False)
    assert read(offering(FastMCP("x"), security=absolute), "x:///etc/hostname") == "read /etc/hostname"
    assert read(offering(FastMCP("x"), security=absolute), OUTSIDE) == -32002


def test_a_resource_object_that_is_disabled_is_not_offered() -> None:
    assert read(with_object(enabled=False), "x://a") == -32601


def test_a_name_with_a_hyphen_is_exempt_in_either_form() -> None:
    assert ANYTHING.validate({"a_path": ".."}) is None
    assert ANYTHING.validate({"a-path": ".."}) is None
    assert ANYTHING.validate({"path": ".."}) == "path"


def test_the_originals_without_rules_have_none() -> None:
    assert read(offering(mcp.FastMCP("x")), OUTSIDE) == "read ../../etc/hostname"
    follow_release("fastmcp", "3.2.0")
    try:
        assert read(offering(FastMCP("x")), OUTSIDE) == "read ../../etc/hostname"
    finally:
        follow_release("fastmcp", "4.2.0")
