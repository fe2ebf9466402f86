"""Each original's way to write the members of models, and which names of tools and hints it takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from support.dialects import ALL, FASTMCP, SDK_1, SDK_2, tool_and_result
from support.in_memory import read, texts_of, with_client

from fastrpc import Server
from fastrpc.compat import fastmcp
from fastrpc.compat.dialect import LATEST_KNOWN, follow_release
from fastrpc.errors import DefinitionError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION


class Part(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    id: str = Field(alias="_id")
    count: int = Field(2, alias="num")


class Whole(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    id: str = Field("b", alias="_id")
    part: Part = Field(default_factory=lambda: Part(id="a"), alias="in")


PART = Part(id="a")
NAMED, ALIASED = {"id": "a", "count": 2}, {"_id": "a", "num": 2}
MODELS = [
    (Part, PART, NAMED, ALIASED),
    (dict[str, Part], {"k": PART}, {"k": NAMED}, {"k": ALIASED}),
    (Whole, Whole(), {"_id": "b", "in": NAMED}, {"_id": "b", "in": ALIASED}),
    (Any, PART, NAMED, ALIASED),
    (Any, {"k": [PART, 1]}, {"k": [NAMED, 1]}, {"k": [ALIASED, 1]}),
]


def members_of(schema: Any) -> set[str]:
    """Return the names of all members that a schema describes."""
    inner = [schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    below = (members_of(each) for each in inner if isinstance(each, dict))
    return {*schema.get("properties", ()), *(name for names in below for name in names)}


@pytest.mark.parametrize(("annotation", "value", "named", "aliased"), MODELS)
@pytest.mark.parametrize(
    ("kind", "release"),
    [
        (FASTMCP, "4.2.3"),
        (FASTMCP, "4.0.1"),
        (FASTMCP, "3.4.11"),
        (FASTMCP, "2.14.7"),
        (SDK_1, ""),
        (SDK_2, ""),
    ],
    ids=["4.2", "4.0", "3.4", "2.14", "sdk1", "sdk2"],
)
def test_members_of_models_have_their_aliases_in_results_where_the_original_has_them(
    kind: Any, release: str, annotation: Any, value: Any, named: Any, aliased: Any
) -> None:
    def give():
        return value

    give.__annotations__ = {"return": annotation}
    follow_release("fastmcp", release or "4.2.0")
    try:
        tool, result = tool_and_result(kind, give)
    finally:
        follow_release("fastmcp", "4.2.0")
    expected = named if release.startswith("4") else aliased
    assert json.loads(texts_of(result)[0]) == expected
    if annotation is not Any:
        assert result["structuredContent"] == expected
        kept = members_of(tool["outputSchema"])
        assert {"id", "count"} <= kept or {"_id", "num"} <= kept or annotation is Whole
        assert ("num" in kept) is ("num" in str(expected))


@ALL
@pytest.mark.parametrize("name", ["strava://auth/url", "two words", 'ä"\\\t', "n" * 200])
def test_a_name_that_the_protocol_advises_against_is_served_with_one_warning(
    kind: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: set[str] = set()
    monkeypatch.setattr("fastrpc.definitions.tool._warned_of", warned)
    server, host = kind("demo"), Server("host")
    server.add_tool(lambda a=1: f"{a}", name=name)
    host.mount(server, "")

    async def conversation(client: Any) -> Any:
        (tool,) = (await client.request("tools/list", {}))["tools"]
        call = {"name": tool["name"], "arguments": {"a": 5}}
        return tool["name"], [texts_of(await client.request("tools/call", call)) for _ in range(2)]

    for each in (server, host):
        assert with_client(each, conversation, LATEST_SESSION_VERSION) == (name, [["5"], ["5"]])
    assert warned == {name}
    with pytest.raises(DefinitionError, match="cannot be a tool's name"):
        Server("own").add_tool(lambda: "a", name=name)


@ALL
def test_hints_may_have_the_names_of_the_sdks_model(kind: Any) -> None:
    server = kind("demo")
    hints = {"title": "T", "read_only_hint": True, "openWorldHint": False}
    server.add_tool(lambda: "a", name="give", annotations=hints)
    (tool,) = server.registries.tools
    assert tool.annotations == {"title": "T", "readOnlyHint": True, "openWorldHint": False}


@pytest.mark.parametrize(
    ("release", "resource", "template", "own"),
    [
        ("2.14.7", None, None, {"q": 2}),
        ("3.4.11", {"x": 1}, None, {"q": 2}),
        ("4.2.3", {"x": 1}, {"x": 1}, {"x": 1, "q": 2}),
    ],
)
@pytest.mark.parametrize("way", ["decorated", "object"])
def test_contents_have_the_meta_of_their_resource_as_in_the_installed_release(
    release: str, resource: Any, template: Any, own: Any, way: str
) -> None:
    def page(name: str) -> str:
        return name

    def parts() -> Any:
        return [fastmcp.ResourceContent("t", meta={"q": 2})]

    follow_release("fastmcp", release)
    try:
        mcp = fastmcp.FastMCP("x")
        for uri, function in (("a://text", lambda: "t"), ("a://{name}/x", page), ("a://parts", parts)):
            options: Any = {"meta": {"x": 1}, "tags": {"t"}}
            if way == "decorated":
                mcp.resource(uri, **options)(function)
            elif "{" in uri:
                mcp.add_template(fastmcp.ResourceTemplate.from_function(function, uri, **options))
            else:
                mcp.add_resource(fastmcp.Resource.from_function(function, uri, **options))
        found = [
            read(mcp, uri, LATEST_SESSION_VERSION)[0].get("_meta")
            for uri in ("a://text", "a://b/x", "a://parts")
        ]
    finally:
        follow_release("fastmcp", LATEST_KNOWN["fastmcp"])
    assert found == [resource, template, own]
