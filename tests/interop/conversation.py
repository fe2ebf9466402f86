"""What is done with a server that no one here wrote: steps, each with an answer that is known beforehand.

`ALWAYS` needs to know nothing of the server but its capabilities; the other steps are made by the functions
at the end, and which server takes which is in `roster`. A step raises what is wrong; one for which the
server declares no capability raises `NotOffered`. Each request has 20 seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastrpc import Client
from fastrpc.errors import HttpStatusError, RemoteError

SECONDS = 60.0
UNKNOWN_METHOD = -32601
STATELESS = "2026-07-28"
ROOT = {"uri": "file:///srv/interop", "name": "interop"}
ANSWERS = {
    "name": "Ann",
    "response": "blue",
    "username": "ann",
    "email": "ann@example.org",
    "random": "seven",
    "value": "Ann",
}
"""What is filled in where a server asks for a field of this name."""
SAMPLED = "Paris"


class NotOffered(Exception):
    """The server does not declare that it can do this, in this version."""


@dataclass(frozen=True)
class Step:
    name: str
    take: Callable[[Talk], Awaitable[None]]
    versions: tuple[str, ...] = ()
    """Those in which the server has it, by what it is written for; all if empty."""


class Talk:
    """A client in a session, and what it has heard and been asked."""

    def __init__(self, target: Any, folder: str = "", **options: Any) -> None:
        self.folder = folder
        self.logged: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.client = Client(
            target,
            timeout_seconds=SECONDS,
            start_seconds=SECONDS,
            on_log=self.logged.append,
            on_elicit=self._elicit,
            on_sample=self._sample,
            roots=[ROOT],
            **options,
        )

    def _elicit(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append("elicitation")
        fields = params.get("requestedSchema", {}).get("properties", {})
        return {name: ANSWERS[name] for name in fields if name in ANSWERS}

    def _sample(self, params: dict[str, Any]) -> str:
        self.asked.append("sampling")
        return SAMPLED

    def filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments with {folder} in texts filled in: a folder with a note in it."""
        return {
            name: value.replace("{folder}", self.folder) if isinstance(value, str) else value
            for name, value in arguments.items()
        }

    def needs(self, capability: str) -> None:
        if capability not in self.client.server_capabilities:
            raise NotOffered(capability)


def expect(condition: object, what: str, got: object) -> None:
    if not condition:
        raise AssertionError(f"expected {what}, got {str(got)!r:.200}")


# ----------------------------------------------------------------------------------- of every server


async def ping(talk: Talk) -> None:
    await talk.client.ping()


async def identity(talk: Talk) -> None:
    expect(talk.client.server_info.get("name"), "a server with a name", talk.client.server_info)


async def lists(talk: Talk) -> None:
    """All lists that the capabilities promise; every tool has a schema, every entry a name."""
    client, offered = talk.client, talk.client.server_capabilities
    if "tools" in offered:
        for tool in await client.list_tools():
            expect(isinstance(tool["inputSchema"], dict), "a schema", tool)
    if "resources" in offered:
        for resource in await client.list_resources():
            expect(resource["uri"], "a URI", resource)
        for template in await client.list_resource_templates():
            expect("{" in template["uriTemplate"], "a template", template)
    if "prompts" in offered:
        for prompt in await client.list_prompts():
            expect(prompt["name"], "a name", prompt)


async def unknown_method(talk: Talk) -> None:
    """An error of the protocol is one, or over HTTP a refusal, and the session goes on."""
    try:
        found = await talk.client.request("interop/none")
    except RemoteError as error:
        expect(error.code == UNKNOWN_METHOD, f"{UNKNOWN_METHOD}", f"{error.code} {error.message}")
    except HttpStatusError as error:
        expect(error.status in (400, 404, 405), "a status that refuses the request", error)
    else:
        raise AssertionError(f"expected an error, got {found!r:.200}")
    await talk.client.ping()


async def log_level(talk: Talk) -> None:
    talk.needs("logging")
    await talk.client.set_log_level("debug")


ALWAYS = (
    Step("identity", identity),
    Step("ping", ping),
    Step("lists", lists),
    Step("unknown method", unknown_method),
    Step("log level", log_level),
)

# ------------------------------------------------------------------------------------- of a server


def tool(name: str, arguments: dict[str, Any], text: str, what: str = "tool", **when: Any) -> Step:
    """A call whose text must contain `text`."""

    async def take(talk: Talk) -> None:
        result = await talk.client.call_tool(name, talk.filled(arguments))
        expect(not result.is_error and text in result.text, f"{text!r}", result.raw)

    return Step(what, take, **when)


def together(name: str, member: str, text: str) -> Step:
    """A hundred calls at once: each gets its own answer."""

    async def take(talk: Talk) -> None:
        words = [f"word {number} äöü 語" for number in range(100)]
        results = await asyncio.gather(*(talk.client.call_tool(name, {member: word}) for word in words))
        for word, result in zip(words, results, strict=True):
            expect(text.format(word) in result.text, text.format(word), result.raw)

    return Step("100 calls at once", take)


def structured(name: str, arguments: dict[str, Any], value: Any) -> Step:
    """A structured result, checked against its schema, which `lists` has learned."""

    async def take(talk: Talk) -> None:
        result = await talk.client.call_tool(name, arguments)
        if result.structured is None and talk.client.version < "2025-06-18":
            raise NotOffered("structured content came with 2025-06-18")
        expect(result.structured == value, f"{value}", result.raw)

    return Step("structured result", take)


def image(name: str) -> Step:
    async def take(talk: Talk) -> None:
        result = await talk.client.call_tool(name)
        kinds = [block for block in result.content if block["type"] == "image"]
        expect(kinds and kinds[0]["data"].startswith("iVBOR"), "a PNG", result.raw)

    return Step("image", take)


def block(name: str, arguments: dict[str, Any], kind: str, **when: Any) -> Step:
    """A result with a content block of a kind."""

    async def take(talk: Talk) -> None:
        result = await talk.client.call_tool(name, arguments)
        expect(any(each["type"] == kind for each in result.content), kind, result.raw)

    return Step(kind.replace("_", " "), take, **when)


def tool_error(name: str, arguments: dict[str, Any], text: str) -> Step:
    async def take(talk: Talk) -> None:
        result = await talk.client.call_tool(name, arguments)
        expect(result.is_error and text.lower() in result.text.lower(), f"an error with {text!r}", result.raw)

    return Step("tool that fails", take)


def progress(name: str, arguments: dict[str, Any], least: int) -> Step:
    async def take(talk: Talk) -> None:
        seen: list[float] = []
        result = await talk.client.call_tool(
            name, arguments, on_progress=lambda params: seen.append(params["progress"])
        )
        expect(not result.is_error, "a result", result.raw)
        expect(len(seen) >= least and seen == sorted(seen), f"{least} rising figures of progress", seen)

    return Step("progress", take)


def cancellation(name: str, arguments: dict[str, Any]) -> Step:
    """A call is cancelled once it has shown progress; the session goes on."""

    async def take(talk: Talk) -> None:
        begun = asyncio.Event()
        call = asyncio.ensure_future(
            talk.client.call_tool(name, arguments, on_progress=lambda params: begun.set())
        )
        waiting = asyncio.ensure_future(begun.wait())
        await asyncio.wait({call, waiting}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if call.done():
            expect(False, "progress before the end", call.result().raw)
        call.cancel()
        await asyncio.wait({call}, timeout=SECONDS)
        expect(call.cancelled(), "a cancelled call", call)
        await talk.client.ping()

    return Step("cancellation", take)


def logs(name: str, least: int, **when: Any) -> Step:
    async def take(talk: Talk) -> None:
        talk.needs("logging")
        await talk.client.set_log_level("debug")
        talk.logged.clear()
        await talk.client.call_tool(name)
        expect(len(talk.logged) >= least, f"{least} log messages", talk.logged)

    return Step("log messages", take, **when)


def asks(kind: str, name: str, arguments: dict[str, Any], text: str, **when: Any) -> Step:
    """A call in which the server asks the client for something, and puts the answer into its result."""

    async def take(talk: Talk) -> None:
        talk.asked.clear()
        result = await talk.client.call_tool(name, arguments)
        expect(text in result.text and not result.is_error, f"{text!r}", result.raw)
        if kind in ("elicitation", "sampling"):
            expect(kind in talk.asked, f"to be asked for {kind}", talk.asked)

    return Step(kind, take, **when)


def resource(uri: str, text: str) -> Step:
    async def take(talk: Talk) -> None:
        found = await talk.client.read_resource(uri)
        expect(text in found.text, f"{text!r}", found.raw)

    return Step("resource", take)


def binary(uri: str, begins: bytes) -> Step:
    async def take(talk: Talk) -> None:
        found = await talk.client.read_resource(uri)
        expect(found.data.startswith(begins), f"{begins!r}", found.raw)

    return Step("binary resource", take)


def prompt(name: str, arguments: dict[str, Any], text: str) -> Step:
    async def take(talk: Talk) -> None:
        found = await talk.client.get_prompt(name, arguments)
        expect(text in found.text, f"{text!r}", found.raw)

    return Step("prompt", take)


def completion(
    ref: str,
    argument: str,
    value: str,
    values: list[str],
    context: dict[str, str] | None = None,
    **when: Any,
) -> Step:
    async def take(talk: Talk) -> None:
        if talk.client.version >= "2025-03-26":  # which brought the capability
            talk.needs("completions")
        found = await talk.client.complete(ref, argument, value, context)
        expect(found.values == values, f"{values}", found.raw)

    return Step("completion", take, **when)


def updates(uri: str, trigger: str = "", **when: Any) -> Step:
    """A subscription to a resource, and the notification of a change that a tool makes, or time."""

    async def take(talk: Talk) -> None:
        if not talk.client.server_capabilities.get("resources", {}).get("subscribe"):
            raise NotOffered("resources.subscribe")
        async with talk.client.listen(uris=[uri]) as changes:
            if trigger:
                await talk.client.call_tool(trigger)
            change = await asyncio.wait_for(changes.__anext__(), SECONDS)
            expect(uri in str(change), f"a change of {uri}", change)

    return Step("subscription", take, **when)


def list_change(name: str, **when: Any) -> Step:
    """The notification that the tools have changed, which a tool makes."""

    async def take(talk: Talk) -> None:
        async with talk.client.listen(tools=True) as changes:
            await talk.client.call_tool(name)
            await asyncio.wait_for(changes.__anext__(), SECONDS)

    return Step("changed list", take, **when)
