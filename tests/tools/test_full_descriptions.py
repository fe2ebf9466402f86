"""FASTRPC_DESCRIPTIONS=full: texts for models, and nothing else differs from what was published.

A tool that is not in the published contract has one description, and needs no entry in the texts.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.agent._contract import CONTRACT
from support.command_line import run

from fastrpc import Client

PAGE = Path(__file__).parents[2] / "docs" / "agent-tools.md"


def served(**environ: str) -> tuple[list[dict[str, Any]], str | None]:
    command = [sys.executable, "-m", "fastrpc", "serve"]
    with Client.sync(command, env={**os.environ, **environ}) as client:
        tools = [dict(tool) for tool in client.list_tools() if tool["name"] in CONTRACT]
        return tools, client.instructions


@pytest.fixture
def both(place: Any) -> Any:
    """The published tools and instructions as published, and in full."""
    return served(), served(FASTRPC_DESCRIPTIONS="full")


def without_texts(schema: dict[str, Any]) -> dict[str, Any]:
    members = {
        name: {key: value for key, value in member.items() if key != "description"}
        for name, member in schema["properties"].items()
    }
    return {**schema, "properties": members}


def test_names_types_and_required_parameters_are_the_published_ones(both: Any) -> None:
    (published, no_instructions), (full, instructions) = both
    assert no_instructions is None
    assert len(instructions.splitlines()) == 10
    assert [tool["name"] for tool in full] == [tool["name"] for tool in published]
    for one, other in zip(published, full, strict=True):
        assert without_texts(other["inputSchema"]) == without_texts(one["inputSchema"])
        assert other["annotations"] == one["annotations"]
        assert len(other["description"]) > len(one["description"])
        members = one["inputSchema"]["properties"]
        for name, member in other["inputSchema"]["properties"].items():
            assert member["description"] not in ("", members[name]["description"])


def test_what_models_have_to_know_is_there(both: Any) -> None:
    tools = {tool["name"]: tool for tool in both[1][0]}
    parameters = {name: tool["inputSchema"]["properties"] for name, tool in tools.items()}
    assert "ignored" in parameters["TaskManager"]["query"]["description"]
    (form,) = re.findall(r"\{.*\}", parameters["AskUserQuestion"]["questions_json"]["description"])
    (question,) = json.loads(form)["questions"]
    assert {"text", "options", "multiSelect"} <= set(question)
    assert "- create-skill: " in tools["InvokeSkill"]["description"]
    for name in tools:
        assert name in both[1][1] or name == "ListBgTasks", f"{name} is in the instructions"


def test_the_page_has_the_sizes_that_are_served(both: Any) -> None:
    def size(tools: list[dict[str, Any]], instructions: str | None) -> int:
        members = ("name", "description", "inputSchema")
        texts = [{member: tool[member] for member in members} for tool in tools]
        written = [json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode() for text in texts]
        return sum(map(len, written)) + len((instructions or "").encode())

    table = (
        PAGE.read_text(encoding="utf-8").partition("## Descriptions for models")[2].partition("## Bash")[0]
    )
    assert f"| bytes of all | {size(*both[0]):,} | {size(*both[1]):,} |" in table
    rows = re.findall(r"\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \|", table)
    assert [row[0] for row in rows] == [*(tool["name"] for tool in both[0][0]), "instructions"]
    sums = [sum(int(row[column].replace(",", "")) for row in rows) for column in (1, 2)]
    assert f"| all | {sums[0]:,} | {sums[1]:,} |" in table


def test_an_unknown_wording_is_reported_and_the_published_one_holds(place: Any) -> None:
    done = run(place, "tools", FASTRPC_DESCRIPTIONS="loud")
    assert "expected published or full" in done.stderr
    assert "Execute a bash command" in done.stdout


def test_the_self_test_holds_the_published_texts_whatever_is_set(place: Any) -> None:
    done = run(place, "selftest", FASTRPC_DESCRIPTIONS="full")
    assert done.returncode == 0, done.stdout
