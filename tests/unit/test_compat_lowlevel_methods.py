"""Handlers that a low-level server is given for whole methods: what each version is answered, and lists in
pages."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.lowlevel.own_methods import params_of
from fastrpc.compat.lowlevel.server import Server
from fastrpc.errors import InvalidParams, RemoteError, ToolError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, SERVER_KEY, STATELESS
from fastrpc.testing import Client

VERSIONS = [LATEST_SESSION_VERSION, STATELESS]
QUESTION = {"resultType": "input_required", "inputRequests": {"who": {"method": "roots/list"}}}


def asked(server: Server, version: str, *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the server answers to requests of a client of that version."""

    async def conversation() -> list[dict[str, Any]]:
        async with Client(server, version=version) as client:
            return [await client.request(method, params) for method, params in requests]

    return asyncio.run(asyncio.wait_for(conversation(), 60))


def answering(method: str, result: dict[str, Any]) -> Server:
    async def handler(ctx: Any, params: Any) -> Any:
        return result

    server = Server("whole")
    server.add_request_handler(method, "Params", handler)
    return server


@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_latest_version_receives_the_kind_of_a_result(version: str) -> None:
    (got,) = asked(answering("x/custom", {**QUESTION, "_meta": {"a": 1}}), version, ("x/custom", {}))
    if version == STATELESS:
        assert got["resultType"] == "input_required"
        assert got["_meta"]["a"] == 1
        assert got["_meta"][SERVER_KEY]["name"] == "whole"
    else:
        assert got == {"inputRequests": QUESTION["inputRequests"], "_meta": {"a": 1}}


@pytest.mark.parametrize("kind", [{}, {"resultType": "complete"}])
def test_a_result_that_is_complete_says_so_in_the_latest_version_alone(kind: dict[str, str]) -> None:
    server = answering("x/custom", {"x": 1, **kind})
    (stateless,), (legacy,) = (
        asked(server, version, ("x/custom", {})) for version in (STATELESS, LATEST_SESSION_VERSION)
    )
    assert (stateless["x"], stateless["resultType"]) == (1, "complete")
    assert legacy == {"x": 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_how_long_a_result_may_be_kept_is_for_the_latest_version_alone(version: str) -> None:
    server = answering("x/custom", {"x": 1, "ttlMs": 5, "cacheScope": "private"})
    (got,) = asked(server, version, ("x/custom", {}))
    kept = {name: got[name] for name in ("ttlMs", "cacheScope") if name in got}
    assert kept == ({"ttlMs": 5, "cacheScope": "private"} if version == STATELESS else {})


class Paged:
    """A server whose handler lists one tool a page, and counts how often it is asked."""

    def __init__(self, *pages: str) -> None:
        self.pages = pages
        self.cursors: list[str | None] = []
        self.server = Server("paged")
        self.server.add_request_handler("tools/list", "ListToolsRequestParams", self.listed)
        self.server.add_request_handler("tools/call", "CallToolRequestParams", self.called)

    async def listed(self, ctx: Any, params: Any) -> Any:
        cursor = getattr(params, "cursor", None)
        self.cursors.append(cursor)
        at = int(cursor or 0)
        more = {"nextCursor": str(at + 1)} if at + 1 < len(self.pages) else {}
        return {"tools": [{"name": self.pages[at], "inputSchema": {"type": "object"}}], **more}

    async def called(self, ctx: Any, params: Any) -> Any:
        return {"content": [{"type": "text", "text": params.name}]}

    @property
    def known(self) -> list[str]:
        return [tool.name for tool in self.server._listed()]


def test_the_tools_of_all_pages_are_known_and_called_without_listing_anew() -> None:
    paged = Paged("one", "two", "three")
    pages = [("tools/list", {}), ("tools/list", {"cursor": "1"}), ("tools/list", {"cursor": "2"})]
    calls = [("tools/call", {"name": name, "arguments": {}}) for name in paged.pages]
    *_, one, two, three = asked(paged.server, LATEST_SESSION_VERSION, *pages, *calls)
    assert [each["content"][0]["text"] for each in (one, two, three)] == ["one", "two", "three"]
    assert paged.cursors == [None, "1", "2"]


@pytest.mark.parametrize("then", [[], [("tools/list", {})]], ids=["the last", "the first"])
def test_a_page_is_not_taken_for_the_whole_list(then: list[tuple[str, dict[str, Any]]]) -> None:
    paged = Paged("one", "two")
    asked(paged.server, LATEST_SESSION_VERSION, ("tools/list", {}), ("tools/list", {"cursor": "1"}), *then)
    assert sorted(paged.known) == ["one", "two"]


def test_a_list_without_pages_replaces_what_was_known() -> None:
    paged = Paged("one")
    asked(paged.server, LATEST_SESSION_VERSION, ("tools/list", {}))
    assert paged.known == ["one"]
    paged.pages = ("two",)
    asked(paged.server, LATEST_SESSION_VERSION, ("tools/list", {}))
    assert paged.known == ["two"]


def test_a_handler_of_a_list_may_take_the_request_by_keyword_alone() -> None:
    class ListToolsRequest:
        """Represents the SDK's class: it is known by its name."""

    server, taken = Server("keyword"), []

    @server.list_tools()
    async def list_tools(*, request: ListToolsRequest) -> Any:
        return taken.append(request.method) or []  # type: ignore[attr-defined, func-returns-value]

    assert asked(server, LATEST_SESSION_VERSION, ("tools/list", {})) == [{"tools": []}]
    assert taken == ["tools/list"]


def test_a_handler_of_a_list_whose_parameters_have_defaults_is_called_without_arguments() -> None:
    class ListToolsRequest:
        """Represents the SDK's class: it is known by its name."""

    class ListPromptsRequest(ListToolsRequest):
        """So does this."""

    server, taken = Server("defaults"), []

    @server.list_tools()
    async def list_tools(request: ListToolsRequest | None = None, *, also: ListToolsRequest = None) -> Any:  # type: ignore[assignment]
        taken.append((request, also))
        return []

    @server.list_prompts()
    async def list_prompts(request: ListPromptsRequest = None) -> Any:  # type: ignore[assignment]
        taken.append(request)
        return []

    asked(server, LATEST_SESSION_VERSION, ("tools/list", {}), ("prompts/list", {}))
    assert taken == [(None, None), None]


def test_a_handler_of_a_list_that_wants_something_else_gets_nothing() -> None:
    server = Server("other")

    @server.list_tools()
    async def list_tools(other: dict[str, Any]) -> Any:
        return []

    with pytest.raises(RemoteError):
        asked(server, LATEST_SESSION_VERSION, ("tools/list", {}))


def test_tasks_of_the_sdk_are_refused_where_a_server_enables_them() -> None:
    with pytest.raises(NotOffered, match="has no enable_tasks; tasks are an extension"):
        Server("low").experimental.enable_tasks()


def test_capabilities_have_the_extensions_that_they_are_given() -> None:
    server = Server("low")
    assert getattr(server.get_capabilities(), "extensions", None) is None
    assert server.get_capabilities(extensions={"x/y": {"a": 1}}).model_dump()["extensions"] == {
        "x/y": {"a": 1}
    }


def test_params_that_a_class_refuses_are_reported_in_the_words_of_its_first_problem() -> None:
    class Picky:
        @staticmethod
        def model_validate(params: dict[str, Any]) -> Any:
            raise ValueError("not today")

    class Typed(BaseModel):
        count: int
        name: str = ""

    with pytest.raises(InvalidParams, match="Invalid request parameters: not today"):
        params_of(Picky, {})
    with pytest.raises(InvalidParams, match="Invalid request parameters: count: Input should be"):
        params_of(Typed, {"count": "x", "name": 5})


@pytest.mark.parametrize(("version", "code"), [(LATEST_SESSION_VERSION, -32000), (STATELESS, 403)])
def test_what_a_guard_refuses_has_the_code_of_a_refusal_and_what_a_handler_raises_has_not(
    version: str, code: int
) -> None:
    async def read(ctx: Any, params: Any) -> Any:
        raise ToolError("broken")

    server = Server("guarded")
    server.add_request_handler("resources/read", "ReadResourceRequestParams", read)

    @server.guard
    def decide(call: Any) -> None:
        if call.name.endswith("secret"):
            raise ToolError("not you")

    for uri, expected in (("a://secret", (code, "not you")), ("a://open", None)):
        with pytest.raises(RemoteError) as caught:
            asked(server, version, ("resources/read", {"uri": uri}))
        found = (caught.value.code, caught.value.message)
        assert found == expected or (expected is None and found[0] not in (code, -32602))


ANNOTATIONS = {"audience": ["user"], "lastModified": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("method", "entry", "is_cut"),
    [
        ("resources/list", {"uri": "a://b", "name": "b"}, True),
        ("tools/list", {"name": "t", "inputSchema": {"type": "object"}}, False),
    ],
)
def test_annotations_of_resources_are_those_of_the_version_and_of_tools_as_they_are(
    method: str, entry: dict[str, Any], is_cut: bool
) -> None:
    member = method.partition("/")[0]
    server = answering(method, {member: [{**entry, "annotations": ANNOTATIONS}]})
    ((new,),), ((old,),) = (
        [got[member] for got in asked(server, version, (method, {}))] for version in (STATELESS, "2025-03-26")
    )
    assert new["annotations"] == ANNOTATIONS
    assert old["annotations"] == ({"audience": ["user"]} if is_cut else ANNOTATIONS)
