"""A server half of whose entries are secret, the rule that says to whom, and callers who want its lists."""

from __future__ import annotations

import asyncio
from typing import Any

from fastrpc import ListItem, Server
from fastrpc.protocol.versions import STATELESS
from support.in_memory import ENVELOPE, RawConversation

METHODS = {
    "tools/list": ("tools", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
TEAMS = {"ada": "staff", "grace": "staff", "bob": "guest"}
ALL = {
    "tools/list": ["open_0", "secret_0", "open_1", "secret_1", "open_2"],
    "resources/list": [
        "docs://open/0",
        "docs://secret/0",
        "docs://open/1",
        "docs://secret/1",
        "docs://open/2",
    ],
    "resources/templates/list": ["open://{x}", "secret://{x}"],
    "prompts/list": ["open_prompt", "secret_prompt"],
}
OPEN = {method: [key for key in keys if "secret" not in key] for method, keys in ALL.items()}


def team_of(principal: str) -> str:
    return TEAMS.get(principal, "guest")


def shows(team: str, item: ListItem) -> bool:
    return team == "staff" or "secret" not in (item.uri or item.name)


def shop(**options: Any) -> Server:
    """A server with some of each kind, half of it secret."""
    app = Server("shop", **options)

    def act() -> str:
        return "called"

    def read(x: str) -> str:
        return "read"

    def make(word: str) -> str:
        return "made"

    for name in ALL["tools/list"]:
        app.tool(name=name, effect="read", run="inline")(act)
    for uri in ALL["resources/list"]:
        app.add_resource(uri, "read")
    for uri in ALL["resources/templates/list"]:
        app.resource(uri)(read)
    for name in ALL["prompts/list"]:
        app.prompt(name=name)(make)

    @app.complete("secret_prompt", "word")
    def secret_words(value: str) -> list[str]:
        return ["hush"]

    return app


class Caller:
    """Speaks one version over one connection, for one principal or several in turn."""

    def __init__(self, app: Server, version: str, principal: str = "") -> None:
        self.peer = RawConversation(app, version)
        self.peer.dispatcher.loop_runs(asyncio.get_running_loop())
        self.version = version
        self.principal = principal
        self._id = 0

    async def ask(self, method: str, **params: Any) -> Any:
        """Return the whole answer."""
        self._id += 1
        if self.version == STATELESS:
            params["_meta"] = ENVELOPE
        self.peer.dispatcher.principal = self.principal
        self.peer.say({"id": self._id, "method": method, "params": params})
        return await self.peer.answer(self._id)

    async def page(self, method: str, cursor: str | None = None) -> tuple[list[str], str | None]:
        """Return the keys of one page, and the next cursor."""
        result = (await self.ask(method, **({} if cursor is None else {"cursor": cursor})))["result"]
        member, key = METHODS[method]
        return [entry[key] for entry in result[member]], result.get("nextCursor")

    async def list(self, method: str) -> list[str]:
        """Return the keys of all pages."""
        found, cursor = await self.page(method)
        while cursor is not None:
            more, cursor = await self.page(method, cursor)
            found += more
        return found

    async def error(self, method: str, **params: Any) -> Any:
        return (await self.ask(method, **params))["error"]
