"""What FastMCP gives a form of its own is under the swap what it is there: each is asked the same."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from integration.test_compat_fastmcp_parts import ENVIRONMENT, PYTHON, SECONDS, SERVERS
from support.skips import not_prepared

pytestmark = pytest.mark.timeout(300)  # FastMCP imports for seconds
KINDS = ("value", "key", "file", "permission", "time", "other", "tool", "not found", "invalid")
EVENT = {"name": "x", "at": "2026-01-02T03:04:05Z", "clock": "01:02:03", "when": [], "kind": True}


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


def prompt(name: str, **arguments: str) -> tuple[str, dict[str, Any]]:
    return "prompts/get", {"name": name, "arguments": arguments}


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    *(request for kind in KINDS for request in (call("fail", kind=kind), call("caused", kind=kind))),
    *(prompt("failing", kind=kind) for kind in KINDS),
    prompt("pair", first="1"),
    call("event", given=EVENT),
    call("event", given={"name": "x"}),
    call("row", given={"at": None, "kind": "a"}),
    *(("resources/read", {"uri": f"forms://{name}"}) for name in ("nothing", "several", "list", "whole")),
]


@pytest.fixture(scope="module")
def answers() -> tuple[list[Any], list[Any]]:
    """What FastMCP answers, and the same file on fastrpc: the list of tools first."""
    if not os.path.exists(PYTHON):
        pytest.skip(not_prepared("FastMCP"))
    file = os.path.join(SERVERS, "forms.py")
    original = session([PYTHON, file])
    return original, session([PYTHON, "-m", "fastrpc", "swap", "--run", "--", PYTHON, file])


def session(command: list[str]) -> list[Any]:
    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    requests = [("initialize", told), ("tools/list", {}), *REQUESTS, prompt("pair")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        found = []
        for id, (method, params) in enumerate(requests):
            line = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            server.stdin.write(line.encode() + b"\n")
            if not id:
                server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            found.append(answer.get("result", answer.get("error")))
        server.stdin.close()
        server.wait(SECONDS)
    return found[1:]


@pytest.mark.long
def test_errors_contents_and_messages_are_those_of_the_original(answers: tuple[list[Any], list[Any]]) -> None:
    original, swapped = answers
    different = {
        str(request): (there, here)
        for request, there, here in zip(REQUESTS, original[1:-1], swapped[1:-1], strict=True)
        if there != here
    }
    assert different == {}


def test_a_missing_argument_of_a_prompt_is_named_as_in_the_original(
    answers: tuple[list[Any], list[Any]],
) -> None:
    there, here = (each[-1] for each in answers)
    assert here == there
    assert here["message"].endswith("Missing required arguments: {'first'}")


def test_formats_of_times_and_the_order_of_choices_are_those_of_the_original(
    answers: tuple[list[Any], list[Any]],
) -> None:
    there, here = (described(each[0]["tools"]) for each in answers)
    assert here == there
    assert here["event"]["kind"] == {"enum": ["x", None, True, 1]}
    assert here["event"]["at"] == {"format": "date-time"}


def described(tools: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the formats and choices in the arguments of tools, by member."""
    found: dict[str, dict[str, Any]] = {}

    def note(of: dict[str, Any], schema: Any, name: str) -> None:
        if isinstance(schema, list):
            for each in schema:
                note(of, each, name)
        elif isinstance(schema, dict):
            said = {key: schema[key] for key in ("format", "enum") if key in schema}
            if said:
                of[name] = said
            for key, member in schema.items():
                if key == "properties":
                    for inner, each in member.items():
                        note(of, each, inner)
                else:
                    note(of, member, name)

    for tool in tools:
        note(found.setdefault(tool["name"], {}), tool["inputSchema"], tool["name"])
        note(found.setdefault(f"{tool['name']} out", {}), tool.get("outputSchema"), tool["name"])
    return found
