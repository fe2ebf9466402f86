"""User interfaces of FastMCP: tools that return one of prefab-ui, and `FastMCPApp`.

The expected addresses and hashes are those of FastMCP 4.2.3.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import pytest
from support.compat_client import talk

pytest.importorskip("prefab_ui", reason="prefab-ui is not installed")

from prefab_ui.actions.mcp import CallTool
from prefab_ui.app import PrefabApp
from prefab_ui.components import Button, Column, Text

from fastrpc.compat.apps.addresses import address_of, hash_in, hash_of
from fastrpc.compat.apps.payload import addresses_in, rename_tools
from fastrpc.compat.fastmcp import (
    AppConfig,
    FastMCP,
    FastMCPApp,
    FastMCPProvider,
    LocalProvider,
    NotOffered,
    PrefabAppConfig,
    RegexSearchTransform,
    ResourceCSP,
    Tool,
    ToolResult,
)
from fastrpc.errors import RemoteError

PAGE = "ui://prefab/renderer/"
OWN = ["https://tiles.test"]


def listed(server: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the tools by name, and the URIs of the resources."""
    tools = talk(server, lambda client: client.list_tools())
    resources = talk(server, lambda client: client.list_resources())
    return {tool.name: tool for tool in tools}, [str(each.uri) for each in resources]


def member(thing: Any, name: str) -> Any:
    """Return a member by its name on the wire: what a client gets may be of the SDK's classes, or not."""
    return thing.model_dump(by_alias=True, exclude_none=True).get(name)


def page_of(tool: Any) -> str:
    return str(tool.meta["ui"]["resourceUri"])


def call(server: Any, name: str, /, **arguments: Any) -> Any:
    return talk(server, lambda client: client.call_tool(name, arguments))


def greeting(name: str = "Ann") -> PrefabApp:
    with Column() as view:
        Text(f"Hello {name}")
    return PrefabApp(view=view, state={"name": name})


def calls_in(node: Any) -> list[str]:
    """Return the tools that the JSON of an interface calls."""
    if isinstance(node, dict):
        own = [node["tool"]] if node.get("action") == "toolCall" else []
        return own + [name for value in node.values() for name in calls_in(value)]
    return [name for each in node for name in calls_in(each)] if isinstance(node, list) else []


# --- tools with an interface --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "options"),
    [
        (PrefabApp, {}),
        (Text, {}),
        (PrefabApp | None, {}),
        (Annotated[PrefabApp, "an interface"], {}),
        ("PrefabApp", {}),
        (str, {"app": True}),
        (PrefabApp, {"app": PrefabAppConfig()}),
    ],
)
def test_a_tool_that_returns_an_interface_names_the_page_that_renders_it(
    annotation: Any, options: Any
) -> None:
    mcp = FastMCP("x")

    def show():
        return greeting()

    show.__annotations__ = {"return": annotation}
    mcp.tool(show, **options)
    mcp.resource("docs://guide")(lambda: "text")
    tools, resources = listed(mcp)
    assert page_of(tools["show"]).startswith(PAGE)
    assert member(tools["show"], "outputSchema") is None or options == {"app": True}
    assert set(tools["show"].meta["ui"]) == {"resourceUri"}
    assert resources == ["docs://guide", page_of(tools["show"])]


def test_its_result_is_the_interface_as_structured_content_and_a_text_for_others() -> None:
    mcp = FastMCP("x")
    mcp.tool(greeting)
    mcp.tool(lambda: Text("alone"), name="component")
    mcp.tool(lambda: ToolResult("told", structured_content=greeting("Bo")), name="both")
    found = call(mcp, "greeting", name="Cy")
    assert found.content[0].text == "[Rendered Prefab UI]"
    assert found.structured_content["state"] == {"name": "Cy"}
    assert found.structured_content["$prefab"]
    assert call(mcp, "component").structured_content["view"]
    both = call(mcp, "both")
    assert (both.content[0].text, both.structured_content["state"]) == ("told", {"name": "Bo"})


def test_the_page_is_read_with_the_origins_that_it_needs() -> None:
    mcp = FastMCP("x")
    mcp.tool(greeting, app=PrefabAppConfig(csp=ResourceCSP(frame_domains=OWN), prefers_border=True))
    tools, (uri,) = listed(mcp)
    assert uri == page_of(tools["greeting"])
    (part,) = talk(mcp, lambda client: client.read_resource(uri))
    assert member(part, "mimeType") == "text/html;profile=mcp-app"
    assert "<html" in part.text.lower()
    (resource,) = talk(mcp, lambda client: client.list_resources())
    assert resource.name == "Prefab Renderer"
    assert resource.meta["ui"]["csp"]["frameDomains"] == OWN
    assert resource.meta["ui"]["csp"]["resourceDomains"]  # prefab-ui's own
    assert resource.meta["ui"]["prefersBorder"] is True


def test_tools_with_the_same_needs_share_a_page_and_others_have_separate_ones() -> None:
    mcp = FastMCP("x")
    for name, options in (
        ("first", {}),
        ("second", {"app": True}),
        ("third", {"app": PrefabAppConfig(csp=ResourceCSP(connect_domains=OWN))}),
    ):
        mcp.tool(greeting, name=name, **options)
    tools, resources = listed(mcp)
    assert page_of(tools["first"]) == page_of(tools["second"]) != page_of(tools["third"])
    assert resources == [page_of(tools["first"]), page_of(tools["third"])]


def test_without_prefab_ui_the_option_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prefab_ui", None)
    with pytest.raises(NotOffered, match="pip install prefab-ui"):
        FastMCP("x").tool(lambda: "a", name="show", app=True)


def test_an_app_of_another_kind_is_described_as_given() -> None:
    mcp = FastMCP("x")
    mcp.tool(lambda: "a", name="show", app=AppConfig(resourceUri="ui://own", later={"a": 1}))
    (tool,) = talk(mcp, lambda client: client.list_tools())
    assert tool.meta["ui"] == {"resourceUri": "ui://own", "later": {"a": 1}}
    assert not mcp.registries.resources


# --- mounts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", [None, "a"])
@pytest.mark.parametrize("before", [True, False])
def test_a_mounted_servers_page_is_there_once_at_its_own_address(prefix: str | None, before: bool) -> None:
    host, first, second = FastMCP("host"), FastMCP("first"), FastMCP("second")
    host.tool(greeting, name="own")
    if not before:
        host.mount(first, prefix)
        host.mount(second, "b")
    first.tool(greeting, name="one")
    second.tool(greeting, name="two")
    if before:
        host.mount(first, prefix)
        host.mount(second, "b")
    tools, resources = listed(host)
    assert len(tools) == 3
    assert {page_of(tool) for tool in tools.values()} == set(resources)
    assert len(resources) == 1
    assert "<html" in talk(host, lambda client: client.read_resource(resources[0]))[0].text.lower()


# --- apps --------------------------------------------------------------------------------------------------


def contacts() -> FastMCPApp:
    app = FastMCPApp("contacts")
    kept: list[str] = []

    @app.tool
    def save(name: str) -> list[str]:
        kept.append(name)
        return kept

    @app.tool("all_names", model=True)
    def names() -> list[str]:
        return kept

    @app.ui(title="Contacts")
    def manager() -> PrefabApp:
        with Column() as view:
            Button("Save", on_click=CallTool(save, arguments={"name": "Ann"}))
            Button("All", on_click=CallTool("all_names"))
        return PrefabApp(view=view)

    return app


def test_an_app_is_a_provider_whose_tools_say_who_they_are_for() -> None:
    mcp = FastMCP("x")
    mcp.add_provider(contacts())
    tools, resources = listed(mcp)
    assert {name: tool.meta["ui"]["visibility"] for name, tool in tools.items()} == {
        "save": ["app"],
        "all_names": ["app", "model"],
        "manager": ["model"],
    }
    assert tools["save"].meta["fastmcp"] == {"app": "contacts", "tool_hash": hash_of("contacts", "save")}
    assert tools["manager"].title == "Contacts"
    assert resources == [page_of(tools["manager"])]


@pytest.mark.parametrize("namespace", ["", "crm"])
def test_an_interface_calls_its_tools_by_the_names_of_the_server_that_sends_it(namespace: str) -> None:
    mcp = FastMCP("x")
    mcp.add_provider(contacts(), namespace=namespace)
    before = f"{namespace}_" if namespace else ""
    payload = call(mcp, f"{before}manager").structured_content
    save, names = f"{before}save", f"{before}all_names"
    assert sorted(calls_in(payload["view"])) == sorted([save, names])
    assert addresses_in(payload) == {
        save: address_of("contacts", "save"),
        names: address_of("contacts", "all_names"),
    }
    assert call(mcp, save, name="Ann").data == ["Ann"]


def test_a_server_with_user_interfaces_declares_the_extension() -> None:
    with_tool, with_app, without = FastMCP("x"), FastMCP("x"), FastMCP("x")
    with_tool.tool(greeting)
    with_app.add_provider(contacts())
    without.add_provider(FastMCPProvider(with_tool))
    apps = {"io.modelcontextprotocol/ui": {}}
    assert [each.extensions for each in (with_tool, with_app)] == [apps, apps]
    assert without.extensions is None


def test_a_namespace_leaves_the_page_where_it_is() -> None:
    mcp = FastMCP("x")
    mcp.add_provider(contacts(), namespace="crm")
    tools, resources = listed(mcp)
    assert resources == [page_of(tools["crm_manager"])]
    assert "<html" in talk(mcp, lambda client: client.read_resource(resources[0]))[0].text.lower()


def test_pages_are_listed_after_the_resources_of_providers() -> None:
    mcp, more = FastMCP("x"), LocalProvider()
    mcp.tool(greeting)
    more.resource("docs://guide")(lambda: "text")
    mcp.add_provider(more)
    tools, resources = listed(mcp)
    assert resources == ["docs://guide", page_of(tools["greeting"])]


def test_a_server_around_the_server_of_an_app_puts_in_its_own_names() -> None:
    inner, outer = FastMCP("inner"), FastMCP("outer")
    inner.add_provider(contacts(), namespace="crm")
    outer.mount(inner, "team")
    payload = call(outer, "team_crm_manager").structured_content
    assert sorted(calls_in(payload["view"])) == ["team_crm_all_names", "team_crm_save"]
    assert call(outer, "team_crm_save", name="Bo").data == ["Bo"]


def test_an_apps_tool_is_reached_by_its_address_too_and_no_other_is() -> None:
    mcp = FastMCP("x")
    mcp.add_provider(contacts(), namespace="crm")
    mcp.tool(lambda: "here", name="plain")
    assert call(mcp, address_of("contacts", "save"), name="Cy").data == ["Cy"]
    for address in (
        address_of("contacts", "manager"),  # for models
        address_of("contacts", "nothing"),
        address_of("others", "save"),
        "__plain",
    ):
        with pytest.raises(RemoteError, match="Unknown tool"):
            call(mcp, address)


def test_a_name_that_is_an_address_is_refused() -> None:
    app = FastMCPApp("x")
    with pytest.raises(ValueError, match="the address of an app's tool"):
        app.tool(greeting, name="__0123456789ab_save")
    with pytest.raises(ValueError, match="already"):
        app.tool(app.tool(greeting))
    with pytest.raises(TypeError, match="expected one name, got two"):
        app.ui("a", name="b")
    with pytest.raises(TypeError, match="expected a function or a name, got int"):
        app.ui(5)


def test_a_tool_object_becomes_one_that_the_interface_calls() -> None:
    app, mcp = FastMCPApp("x"), FastMCP("x")
    app.add_tool(Tool.from_function(greeting, name="shown", meta={"own": 1}))
    mcp.add_provider(app)
    meta = listed(mcp)[0]["shown"].meta
    assert meta["own"] == 1
    assert meta["ui"]["visibility"] == ["app"]
    assert meta["fastmcp"]["app"] == "x"


def test_a_search_does_not_tell_a_model_of_tools_for_the_interface() -> None:
    mcp = FastMCP("x", transforms=[RegexSearchTransform()])
    mcp.add_provider(contacts())
    found = call(mcp, "search_tools", pattern=".*").structured_content["result"]
    assert sorted(each["name"] for each in found) == ["all_names", "manager"]


# --- addresses ---------------------------------------------------------------------------------------------


def test_addresses_are_those_of_fastmcp() -> None:
    assert address_of("contacts", "save") == "__" + hash_of("contacts", "save") + "_save"
    assert hash_of("contacts", "save") == "10c0803009ff"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("__0123456789ab_save", "0123456789ab"),
        ("__0123456789ab_a_b", "0123456789ab"),
        ("0123456789ab_save", None),
        ("__0123456789AB_save", None),
        ("__0123456789ab_", None),
        ("__0123456789absave", None),
        ("__0123456789a_save", None),
        ("", None),
    ],
)
def test_an_address_is_distinguished_from_a_name(name: str, found: str | None) -> None:
    assert hash_in(name) == found


def test_a_tool_that_a_server_does_not_have_keeps_or_gets_back_its_address() -> None:
    address, older = address_of("a", "save"), address_of("a", "load")[2:]
    payload = {
        "view": [{"action": "toolCall", "tool": "inner_save"}, {"action": "toolCall", "tool": "load"}],
        "_meta": {"fastmcp": {"toolNames": {"inner_save": address, "load": older}}},
    }
    rename_tools(payload, {hash_of("a", "load"): "outer_load"}.get)
    assert calls_in(payload["view"]) == [address, "outer_load"]
    assert addresses_in(payload) == {address: address, "outer_load": older}
