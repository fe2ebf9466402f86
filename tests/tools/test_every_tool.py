"""What holds for each of the agent's tools: annotations, bad arguments, unknown names."""

from __future__ import annotations

import asyncio
from typing import Any

import fastrpc.tools.agent as toolset
import pytest
from fastrpc.tools.agent._contract import CONTRACT
from support.agent_tools import EFFECTS

from fastrpc import Server, processes
from fastrpc.testing import Client, RemoteError

ANNOTATIONS = {
    "read": {"readOnlyHint": True},
    "network": {"readOnlyHint": True, "openWorldHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "exec": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}
ACCEPTED_WITHOUT = {("TaskManager", "query")}
"""Published as required, and not needed by every action."""

REQUIRED = [
    (tool, name)
    for tool, published in CONTRACT.items()
    for name, parameter in published["parameters"].items()
    if parameter["required"] and (tool, name) not in ACCEPTED_WITHOUT
]


@pytest.fixture(autouse=True)
def sheltered(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def with_client(conversation: Any) -> Any:
    async def run() -> Any:
        app = Server("agent")
        app.include(toolset)
        try:
            async with Client(app, version="2025-11-25") as client:
                return await conversation(client)
        finally:
            await processes.close()

    return asyncio.run(asyncio.wait_for(run(), 60))


def call(tool: str, arguments: dict[str, Any]) -> Any:
    asked = {"name": tool, "arguments": arguments}
    return with_client(lambda client: client.request("tools/call", asked))


def test_each_effect_has_its_annotations() -> None:
    """Every tool: `annotations` follow from the effect: read, network, write or exec."""
    listed = with_client(lambda client: client.tools())
    assert [tool["name"] for tool in listed] == list(EFFECTS)
    for tool in listed:
        shown = {name: hint for name, hint in tool["annotations"].items() if name.endswith("Hint")}
        wanted = ANNOTATIONS[EFFECTS[tool["name"]]]
        assert {**wanted, **shown} == {**shown, **wanted}, tool["name"]


def test_an_unknown_tool_is_a_protocol_error() -> None:
    """Every tool: a call of an unknown tool is the protocol error -32602."""
    with pytest.raises(RemoteError) as caught:
        call("Bush", {"command": "true"})
    assert caught.value.code == -32602
    assert "Bash" in str(caught.value)  # the one that was meant, most likely


@pytest.mark.parametrize(("tool", "name"), REQUIRED)
def test_a_missing_argument_is_a_result_that_names_it(tool: str, name: str) -> None:
    """Every tool: bad arguments are a result with `isError` that names the parameter."""
    result = call(tool, {})
    assert result["isError"] is True
    (block,) = result["content"]
    assert name in block["text"]
    assert len(block["text"]) < 400


@pytest.mark.parametrize(
    ("tool", "name", "kind"),
    [
        (tool, name, parameter["type"])
        for tool, published in CONTRACT.items()
        for name, parameter in published["parameters"].items()
    ],
)
def test_an_argument_of_another_kind_is_a_result_that_names_it(tool: str, name: str, kind: str) -> None:
    samples = {"string": "x", "integer": 1}
    arguments: dict[str, Any] = {
        other: samples[parameter["type"]]
        for other, parameter in CONTRACT[tool]["parameters"].items()
        if parameter["required"]
    }
    arguments[name] = {"an": ["object"]}
    result = call(tool, arguments)
    assert result["isError"] is True
    assert name in result["content"][0]["text"]


def test_a_good_result_has_its_mark_and_its_facts() -> None:
    result = call("ListBgTasks", {})
    assert result["isError"] is False
    assert "fastrpc/facts" in result["_meta"]


HUGE = ["x" * 20_000, "/" + "é\n" * 2_000, 10**4200, -(10**4200), ["x" * 20_000], {"y" * 20_000: 1}]
ANSWERED_BY_OTHERS = {("Bash", "command"), ("BackgroundBash", "command"), ("WebSearch", "query")}
"""What the answer is about is then what a program or a search engine says."""


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (tool, name)
        for tool, published in CONTRACT.items()
        for name in published["parameters"]
        if (tool, name) not in ANSWERED_BY_OTHERS and tool != "BackgroundBash"
    ],
)
def test_no_refusal_is_larger_than_some_words(tool: str, name: str) -> None:
    parameters = CONTRACT[tool]["parameters"]
    simple = {"string": "a", "integer": 1, "number": 1, "boolean": False}
    given = {
        other: parameter.get("enum", [simple.get(parameter.get("type"))])[0]
        for other, parameter in parameters.items()
        if parameter["required"]
    }

    async def conversation(client: Client) -> None:
        for huge in HUGE:
            arguments = {**given, name: huge}
            result = await client.request("tools/call", {"name": tool, "arguments": arguments})
            if result.get("isError"):
                assert len(str(result)) <= 2_000, str(result)[:400]

    with_client(conversation)
