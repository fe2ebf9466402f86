"""What an upstream server offers, as entries in the proxy's registries.

All lists are read when a connection begins, each again when the server announces a change. Entries that have
not changed stay the same objects. `lists` reads one list, `entries` makes the entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastrpc import diagnostics
from fastrpc.definitions.completion import key_of
from fastrpc.definitions.prompt import Prompt
from fastrpc.errors import DefinitionError, FastrpcError
from fastrpc.proxy.entries import PassedCompletion, PassedPrompt, PassedResource, PassedTemplate, PassedTool
from fastrpc.proxy.lists import read_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Any

    from fastrpc.definitions.registry import Registries, Registry
    from fastrpc.proxy.entries import Upstream
    from fastrpc.proxy.targets import UpstreamTarget
    from fastrpc.proxy.upstream import UpstreamClient

LISTS: dict[str, tuple[str, str, str, Any]] = {
    "tools": ("tools/list", "tools", "name", PassedTool),
    "resources": ("resources/list", "resources", "uri", PassedResource),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate", PassedTemplate),
    "prompts": ("prompts/list", "prompts", "name", PassedPrompt),
}
"""For each registry: its list method, the result member with the entries, the member that is the key, and the
entry class."""
CAPABILITY = {"templates": "resources"}
CHANGES = {
    "notifications/tools/list_changed": ("tools",),
    "notifications/resources/list_changed": ("resources", "templates"),
    "notifications/prompts/list_changed": ("prompts",),
}


@dataclass(eq=False)
class UpstreamFeatures:
    """The features of the server at `target` in `registries`. `upstream` makes the calls of the entries;
    `seconds`: the time limit of a list; `spawn` runs a coroutine as a task."""

    registries: Registries
    upstream: Upstream
    target: UpstreamTarget
    seconds: float
    spawn: Callable[[Any], object]
    is_listed: bool = False
    """Whether the features are in the registries, though the server may have ended since."""

    def __post_init__(self) -> None:
        self._client: UpstreamClient | None = None
        self._raw: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in (*LISTS, "completions")}
        self._listing: dict[str, bool] = {}  # registries being listed again; True: has changed since
        self._changed: set[str] = set()  # registries that have changed while the upstream starts
        self._log = diagnostics.Once("warning")

    def connect(self, client: UpstreamClient | None) -> None:
        """Use another connection, whose lists `list_all` has read; None: there is none."""
        self._client = client
        if client is not None:
            self.is_listed = True
            for name in self._changed:
                self._list_again(name)

    async def list_all(self, client: UpstreamClient, offered: Container[str]) -> None:
        """Read the lists of a new connection whose server has these capabilities. Raises as `read_list`."""
        self._changed.clear()
        for name in LISTS:
            if CAPABILITY.get(name, name) in offered:
                await self.list_one(client, name)
            else:
                self._replace(name, {}, dict)
        self._complete("completions" in offered)

    async def list_one(self, client: UpstreamClient, name: str) -> None:
        """Read all pages of one list, and update its registry. Raises as `read_list`."""
        method, member, key, make = LISTS[name]
        # A server without tools is useless; what was listed before stays, if it cannot be listed again.
        is_needed = name == "tools" or self.is_listed
        self._changed.discard(name)
        listed = await read_list(
            client, method, member, key, self.seconds, is_needed=is_needed, log=self._left_out
        )
        self._replace(name, listed, lambda raw: make(self.upstream, raw))

    def list_all_again(self) -> None:
        """List everything again: notifications may have been missed while the stream was broken."""
        for name in LISTS:
            if self._raw[name]:
                self._list_again(name)

    def list_changed(self, method: str) -> None:
        """List again what a notification of `CHANGES` says has changed."""
        for name in CHANGES[method]:
            self._list_again(name)

    def _list_again(self, name: str) -> None:
        if self._client is None:
            self._changed.add(name)
            return
        is_running = name in self._listing
        self._listing[name] = True
        if not is_running:
            self.spawn(self._follow(name))

    async def _follow(self, name: str) -> None:
        """Update a registry after a change notification, and again if another one arrives meanwhile."""
        try:
            while self._listing[name] and self._client is not None:
                self._listing[name] = False
                try:
                    await self.list_one(self._client, name)
                except (FastrpcError, KeyError, TypeError, ValueError) as error:
                    self._left_out(f"its {name} cannot be listed again: {error}")
            if self._raw["completions"] or name in ("prompts", "templates"):
                self._complete(bool(self._raw["completions"]))
        finally:
            del self._listing[name]

    def _left_out(self, text: str) -> None:
        self._log.write(f"the upstream server ({self.target.shown}): {text}")

    def _complete(self, offered: bool) -> None:
        """Register a completion for each prompt argument and each template variable."""
        wanted: dict[str, dict[str, Any]] = {}
        registries = self.registries
        for entry in (*registries.prompts, *registries.templates) if offered else ():
            kind, member = ("prompt", "name") if isinstance(entry, Prompt) else ("resource", "uri")
            for parameter in entry.signature.parameters:
                reference = {"type": f"ref/{kind}", member: entry.key}
                wanted[key_of(entry.key, parameter.name)] = {"ref": reference, "argument": parameter.name}
        self._replace(
            "completions", wanted, lambda raw: PassedCompletion(self.upstream, raw["ref"], raw["argument"])
        )

    def _replace(
        self, name: str, listed: dict[str, dict[str, Any]], make: Callable[[dict[str, Any]], Any]
    ) -> None:
        """Replace the entries of a registry that have changed."""
        registry: Registry[Any] = getattr(self.registries, name)
        former = self._raw[name]
        gone = [key for key, raw in former.items() if listed.get(key) != raw]
        new = []
        for key, raw in listed.items():
            if former.get(key) != raw:
                try:
                    new.append(make(raw))
                except (FastrpcError, KeyError, TypeError, ValueError) as error:
                    what = f"{registry.kind} {key!r:.80}"
                    diagnostics.write("warning", f"the upstream server: invalid {what} ignored: {error}")
        self._raw[name] = listed
        if gone or new:
            try:
                registry.replace(gone, new)
            except DefinitionError as error:
                diagnostics.write("error", f"the upstream server: its features cannot be mounted: {error}")
