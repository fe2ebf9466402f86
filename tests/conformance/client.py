"""The client that the conformance suite holds against its servers: `fastrpc.Client` at the URL that the suite
gives, or behind a proxy of that URL.

    conformance client --command "python tests/conformance/client.py" --scenario tools_call
    conformance client --command "python tests/conformance/client.py --proxy" --scenario tools_call

It lists all that the suite's server offers and uses each thing once, or makes the calls that the suite asks
for. A request that the server refuses is said and ends nothing; anything else that fails ends the program
with another code than 0, which fails the scenario. What needs an authorization server is not here.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from fastrpc import Client, RemoteError, Server

if TYPE_CHECKING:
    from collections.abc import Awaitable

    Result = TypeVar("Result")

SECONDS = 25
VALUES = {"integer": 5, "number": 5, "boolean": True, "array": [], "object": {}}

SEEN = "json_schema_2020_12_tool"
"""The tool whose schema the suite wants to be sent as the client has received it."""


def value_of(schema: dict[str, Any]) -> Any:
    return schema["default"] if "default" in schema else VALUES.get(str(schema.get("type")), "x")


def answer(params: dict[str, Any]) -> dict[str, Any]:
    """Fill in a form: with its defaults, where it has some."""
    properties = params["requestedSchema"]["properties"]
    defaults = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
    return defaults or {name: value_of(schema) for name, schema in properties.items()}


async def calls_of(client: Client) -> list[dict[str, Any]]:
    """The calls to make: those that the suite names, else one of each tool."""
    tools = await client.list_tools()
    named = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls")
    if named:
        return list(named)
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    calls = []
    for name, schema in schemas.items():
        arguments = {key: value_of(member) for key, member in schema.get("properties", {}).items()}
        if "schema" in arguments and SEEN in schemas:
            arguments["schema"] = schemas[SEEN]
        calls.append({"name": name, "arguments": arguments})
    return calls


def client_of(url: str, is_proxied: bool) -> Client:
    """Return the client: of a proxy, which speaks every version, in the one that the run is about."""
    target = Server.proxy(url) if is_proxied else url
    version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"] if is_proxied else None
    return Client(target, version=version, on_elicit=answer, on_sample="hi", roots=["file:///work"])


async def use(client: Client) -> None:
    async with client:
        for call in await calls_of(client):
            await attempt(client.call_tool(call["name"], call["arguments"]))
        if "prompts" in client.server_capabilities:
            for prompt in await client.list_prompts():
                arguments = {argument["name"]: "x" for argument in prompt.get("arguments", [])}
                await attempt(client.get_prompt(prompt["name"], arguments))
        if "resources" in client.server_capabilities:
            for resource in await client.list_resources():
                await attempt(client.read_resource(resource["uri"]))


async def attempt(request: Awaitable[Result]) -> Result | None:
    """Make a request; an error of the server is said, and no end of the conversation."""
    try:
        return await request
    except RemoteError as error:
        print(f"refused: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(use(client_of(sys.argv[-1], "--proxy" in sys.argv)), SECONDS))
