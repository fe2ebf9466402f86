"""The client that the conformance suite holds against its servers: a proxy of the URL, used by a client of
ours.

    conformance client --command "python tests/conformance/client.py" --scenario tools_call

It lists all that the suite's server offers and uses each thing once, or makes the calls that the suite asks
for. What needs an authorization server is not here: the proxy is given its token.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from fastrpc import Server
from fastrpc.testing import Client, RemoteError

SECONDS = 25
VALUES = {"integer": 5, "number": 5, "boolean": True, "array": [], "object": {}}


def value_of(schema: dict[str, Any]) -> Any:
    return schema["default"] if "default" in schema else VALUES.get(str(schema.get("type")), "x")


def answer(params: dict[str, Any]) -> dict[str, Any]:
    """Fill in a form: with its defaults, where it has some."""
    properties = params["requestedSchema"]["properties"]
    defaults = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    return defaults or {name: value_of(schema) for name, schema in properties.items()}


async def calls_of(client: Client) -> list[dict[str, Any]]:
    """The calls to make: those that the suite names, else one of each tool."""
    tools = await client.tools()
    named = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls")
    if named:
        return list(named)
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    calls = []
    for name, schema in schemas.items():
        arguments = {key: value_of(member) for key, member in schema.get("properties", {}).items()}
        if "schema" in arguments:  # the suite wants to see a schema as we have seen it
            arguments["schema"] = schemas["json_schema_2020_12_tool"]
        calls.append({"name": name, "arguments": arguments})
    return calls


async def use(url: str) -> None:
    app = Server.proxy(url)
    async with Client(app, on_elicit=answer, on_sample="hi", roots=["file:///work"]) as client:
        for call in await calls_of(client):
            await attempt(client, "tools/call", call)
        for prompt in (await attempt(client, "prompts/list")).get("prompts", []):
            arguments = {argument["name"]: "x" for argument in prompt.get("arguments", [])}
            await attempt(client, "prompts/get", {"name": prompt["name"], "arguments": arguments})
        for resource in (await attempt(client, "resources/list")).get("resources", []):
            await attempt(client, "resources/read", {"uri": resource["uri"]})


async def attempt(client: Client, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Make a request; an error is said, and no end of the conversation."""
    try:
        return await client.request(method, params)
    except RemoteError as error:
        print(f"{method} {params}: {error}", file=sys.stderr)
        return {}


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(use(sys.argv[-1]), SECONDS))
