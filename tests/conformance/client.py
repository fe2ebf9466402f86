"""The client that the conformance suite holds against its servers: `fastrpc.Client` at the URL that the suite
gives, or behind a proxy of that URL.

    conformance client --command "python tests/conformance/client.py" --scenario tools_call
    conformance client --command "python tests/conformance/client.py --proxy" --scenario tools_call

It lists all that the suite's server offers and uses each thing once, or makes the calls that the suite asks
for. A request that the server refuses is said and ends nothing; anything else that fails ends the program
with another code than 0, which fails the scenario. Where there is an authorization server, it logs in: its
browser is a request that follows redirects, since the suite's pages ask no one.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from typing import TYPE_CHECKING, Any, TypeVar

from fastrpc import Client, RemoteError, Server
from fastrpc.client import ClientCredentials, OAuth
from fastrpc.client.oauth.token_store import MemoryStore
from fastrpc.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    Result = TypeVar("Result")

SECONDS = 50
VALUES = {"integer": 5, "number": 5, "boolean": True, "array": [], "object": {}}

METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The client ID metadata document of the suite."""

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
    named = context().get("toolCalls")
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


def context() -> dict[str, Any]:
    """What the suite tells besides the URL."""
    return dict(json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"))


def follow(url: str) -> None:
    """Be the browser: the page of the login redirects at once."""
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        answer.read()


def auth_of(scenario: str) -> dict[str, Any]:
    """Return the option for a scenario of authorization; nothing for any other."""
    if not scenario.startswith("auth/"):
        return {}
    known = context()
    if "client-credentials" in scenario:
        key = known.get("private_key_pem")
        algorithm = known.get("signing_algorithm", "RS256")
        secret = known.get("client_secret")
        return {"auth": ClientCredentials(known["client_id"], secret, private_key=key, algorithm=algorithm)}
    names = ("client_id", "client_secret", "issuer")
    client = {name: known[name] for name in names if name in known} or {"client_metadata_url": METADATA_URL}
    return {"auth": OAuth(open_browser=follow, store=MemoryStore(), **client)}


def client_of(url: str, is_proxied: bool) -> Client:
    """Return the client: of a proxy, which speaks every version, in the one that the run is about."""
    auth = auth_of(os.environ.get("MCP_CONFORMANCE_SCENARIO", ""))
    handlers: dict[str, Any] = {"on_elicit": answer, "on_sample": "hi", "roots": ["file:///work"]}
    if not is_proxied:
        return Client(url, **auth, **handlers)
    version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    return Client(Server.proxy(url, **auth), version=version, **handlers)


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
    try:
        asyncio.run(asyncio.wait_for(use(client_of(sys.argv[-1], "--proxy" in sys.argv)), SECONDS))
    except ClientError as error:
        sys.exit(f"failed: {error}")  # as some scenarios want it: the suite knows which
