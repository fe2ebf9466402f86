"""The tables of what each version knows, held against the published schemas: none is right by itself."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from support import published
from support.in_memory import refusal

from fastrpc import DefinitionError, Server
from fastrpc.methods import METHODS, NOTIFICATIONS
from fastrpc.protocol.versions import (
    CONTENT_SINCE,
    SERVER_KEY,
    SINCE,
    STATELESS,
    STRUCTURED,
    VERSIONS,
    known,
    knows_content,
)
from fastrpc.testing import Client

# Members that exist and are never sent, with the reason.
UNSERVED = {
    ("Tool", "execution"): "says whether a tool runs as a task: tasks are not served",
    ("ServerCapabilities", "tasks"): "tasks are not served",
}
# Requests and notifications that a client may send and that are answered with -32601, or silently taken.
EXTENSION_REQUESTS = {STATELESS: {"tasks/get", "tasks/cancel", "tasks/update"}}
"""Those of the extension io.modelcontextprotocol/tasks, which no schema of a version has."""
UNSERVED_NOTIFICATIONS = {
    "notifications/progress": "nothing that a server asks a client carries a progress token here",
    "notifications/tasks/status": "the server starts no tasks at a client",
}
# An object of ours that the schemas have as two.
MEMBERS_OF = {"ResourceContents": ("TextResourceContents", "BlobResourceContents")}


@pytest.fixture(scope="module")
def schemas(data_folder: str) -> dict[str, Any]:
    found = {}
    for version in published.versions():
        with open(os.path.join(data_folder, "mcp-schema", f"{version}.json"), encoding="utf-8") as file:
            document = json.load(file)
        found[version] = document.get("definitions") or document["$defs"]
    return found


@pytest.fixture(scope="module")
def methods(data_folder: str) -> dict[str, Any]:
    with open(os.path.join(data_folder, "mcp-schema", "methods.json"), encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def members(types: dict[str, Any], kind: str) -> set[str] | None:
    """The members of an object in a version; None where the version has no such object."""
    if kind == "Annotations" and "Annotated" in types:  # as the first version calls it
        return set(types["Annotated"]["properties"]["annotations"]["properties"])
    found = [set(types[name]["properties"]) for name in MEMBERS_OF.get(kind, (kind,)) if name in types]
    return set().union(*found) if found else None


def content_types(types: dict[str, Any]) -> set[str]:
    """The types of content that a tool's result may hold."""
    items = types["CallToolResult"]["properties"]["content"]["items"]
    choices = items.get("anyOf") or types["ContentBlock"]["anyOf"]
    names = [choice["$ref"].rpartition("/")[2] for choice in choices]
    return {types[name]["properties"]["type"]["const"] for name in names}


@pytest.mark.parametrize("kind", SINCE)
def test_each_member_comes_with_the_version_that_the_table_says(kind: str, schemas: dict[str, Any]) -> None:
    everything = set().union(*(members(schemas[version], kind) or () for version in schemas))
    assert set(SINCE[kind]) <= everything, "the table names members that no version has"
    for version in schemas:
        here = members(schemas[version], kind)
        if here is None:
            continue  # no such object yet: CONTENT_SINCE is asked before
        sent = known(kind, dict.fromkeys(everything, 1), version)
        unserved = {name for owner, name in UNSERVED if owner == kind}
        assert set(sent) - unserved == here - unserved, version


def test_objects_that_the_table_tells_of_are_in_every_version_or_a_content_type(
    schemas: dict[str, Any],
) -> None:
    contents = {"AudioContent": "audio", "ResourceLink": "resource_link"}
    for kind in SINCE:
        for version in schemas:
            has = members(schemas[version], kind) is not None
            assert has == (kind not in contents or knows_content(contents[kind], version)), (kind, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_content_types_come_with_the_version_that_the_table_says(
    version: str, schemas: dict[str, Any]
) -> None:
    kinds = content_types(schemas[VERSIONS[-1]])
    assert set(CONTENT_SINCE) <= kinds
    assert {kind for kind in kinds if knows_content(kind, version)} == content_types(schemas[version])


@pytest.mark.parametrize("version", VERSIONS)
def test_structured_content_and_result_types_come_when_they_should(
    version: str, schemas: dict[str, Any]
) -> None:
    result = schemas[version]["CallToolResult"]["properties"]
    assert ("structuredContent" in result) == (version in STRUCTURED)
    assert ("outputSchema" in schemas[version]["Tool"]["properties"]) == (version in STRUCTURED)
    assert ("resultType" in result) == (version == STATELESS)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_request_is_served_in_the_versions_that_have_it(version: str, methods: dict[str, Any]) -> None:
    asked = set(methods[version]["ClientRequest"])
    served = {name for name, method in METHODS.items() if version in method.versions}
    assert served == asked | EXTENSION_REQUESTS.get(version, set())


def test_what_is_not_served_exists_and_has_its_reason(methods: dict[str, Any], schemas: Any) -> None:
    notifications = set().union(*(methods[version]["ClientNotification"] for version in methods))
    assert set(UNSERVED_NOTIFICATIONS) <= notifications
    for kind, name in UNSERVED:
        assert any(name in (members(schemas[version], kind) or ()) for version in schemas)
    for reason in (*UNSERVED.values(), *UNSERVED_NOTIFICATIONS.values()):
        assert reason


def test_each_notification_is_heard_or_left_alone_for_a_reason(methods: dict[str, Any]) -> None:
    sent = set().union(*(methods[version]["ClientNotification"] for version in methods))
    assert set(NOTIFICATIONS) == sent - set(UNSERVED_NOTIFICATIONS)


# ----------------------------------------------------------------------- what a server says of itself

ICONS = [{"src": "https://example.org/i.png", "mimeType": "image/png", "sizes": ["48x48"]}]
ABOUT = {
    "name": "about",
    "version": "1.2",
    "title": "About",
    "description": "Tells of itself.",
    "websiteUrl": "https://example.org",
    "icons": ICONS,
}
EXTENSIONS = {"example.org/extra": {"on": True}}
EXPERIMENTAL: dict[str, Any] = {"fast": {}}


def about() -> Server:
    app = Server(
        "about",
        version="1.2",
        title="About",
        description="Tells of itself.",
        website_url="https://example.org",
        icons=ICONS,
        instructions="Ask it.",
        extensions=EXTENSIONS,
        experimental=EXPERIMENTAL,
    )

    @app.tool(
        effect="read",
        title="Find",
        icons=ICONS,
        annotations={"idempotentHint": True},
        meta={"example.org/cost": 1},
    )
    def find(word: str) -> dict[str, int]:
        """Find a word."""
        return {word: 1}

    return app


def ask(version: str, scenario: Any) -> Any:
    async def run() -> Any:
        async with Client(about(), version=version) as client:
            return await scenario(client)

    return asyncio.run(run())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_says_of_itself_what_each_version_knows(version: str) -> None:
    async def scenario(client: Client) -> Any:
        return client.info

    info = ask(version, scenario)
    assert info["instructions"] == "Ask it."
    shown = info["_meta"][SERVER_KEY] if version == STATELESS else info["serverInfo"]
    assert shown == known("Implementation", ABOUT, version)
    assert set(shown) == {
        VERSIONS[0]: {"name", "version"},
        VERSIONS[1]: {"name", "version"},
        VERSIONS[2]: {"name", "version", "title"},
    }.get(version, set(ABOUT))
    capabilities = info["capabilities"]
    assert capabilities["experimental"] == EXPERIMENTAL
    assert capabilities.get("extensions") == (EXTENSIONS if version == STATELESS else None)
    assert "completions" not in capabilities


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tool_says_of_itself_what_each_version_knows(version: str) -> None:
    async def scenario(client: Client) -> Any:
        return await client.tools()

    (tool,) = ask(version, scenario)
    first, second, third, _, _ = VERSIONS
    hints = {"readOnlyHint": True, "idempotentHint": True}
    newer = version not in (first, second)
    assert tool["name"] == "find"
    assert tool["description"] == "Find a word."
    assert tool.get("title") == ("Find" if newer else None)
    assert tool.get("annotations") == {
        first: None,
        second: {"title": "Find", **hints},
    }.get(version, hints)
    assert tool.get("_meta") == ({"example.org/cost": 1} if newer else None)
    assert ("outputSchema" in tool) == newer
    assert tool.get("icons") == (ICONS if version not in (first, second, third) else None)
    assert "execution" not in tool


def test_discover_says_all_and_other_results_the_name() -> None:
    async def scenario(client: Client) -> Any:
        return client.info, await client.request("tools/list"), await client.call("find", word="a")

    info, listed, called = ask(STATELESS, scenario)
    named = {"name": "about", "version": "1.2", "title": "About"}
    assert info["_meta"] == {SERVER_KEY: ABOUT}
    assert info["resultType"] == "complete"
    assert listed["_meta"] == {SERVER_KEY: named}
    assert called.meta == {SERVER_KEY: named}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"annotations": {"readOnlyHint": "yes"}}, "annotations: readOnlyHint='yes' is no bool"),
        ({"annotations": {"title": 5}}, "annotations: title=5 is no str"),
        ({"icons": ["https://example.org/i.png"]}, "icons: expected objects like"),
        ({"icons": [{"mimeType": "image/png"}]}, "icons: expected objects like"),
        ({"meta": {"a b": 1}}, "meta: 'a b' is not a valid key"),
    ],
)
def test_what_no_client_could_read_is_refused_when_the_tool_is_made(
    options: dict[str, Any], words: str
) -> None:
    def find() -> str:
        return ""

    with pytest.raises(DefinitionError, match=words):
        Server("t").add_tool(find, **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_method_that_is_refused_says_why_and_suggests_no_other_refused_one(version: str) -> None:
    app = Server("t")
    what = {"prompts": "prompts", "resources": "resources", "completion": "completions", "tasks": "tasks"}
    for name, method in METHODS.items():
        if version not in method.versions:
            why = f"(protocol version {version} has no {name})"
        elif method.needs:
            kind = "task list" if name == "tasks/list" else what[name.partition("/")[0]]
            why = f"(this server has no {kind})"
        else:
            continue
        error = refusal(app, name, {}, version)
        if name in ("server/discover", "initialize"):  # each says by itself which version it is of
            continue
        assert (error.code, error.message) == (-32601, f"Method not found: {name} {why}")
    assert refusal(app, "prompts/lst", {}, version).message == "Method not found: prompts/lst"
    assert refusal(app, "tools/lst", {}, version).message == (
        "Method not found: tools/lst (did you mean tools/list, tools/call?)"
    )
