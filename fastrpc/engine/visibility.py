"""What clients see of a server: its description (`ServerDescription`), and which entries exist for a caller
(`VisibilityFilters`, made by `Server.filter_lists`).

Without filters nothing is looked up. With filters the class of a caller is looked up for each request, whose
lists and plans are then those of its class (`fastrpc.engine.list_filter`).
"""

from __future__ import annotations

from fastrpc.errors import InternalError, suggestion
from fastrpc.protocol.versions import TASKS_EXTENSION, known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc.definitions.registry import Registry
    from fastrpc.engine.list_filter import CallerLists, CallerView
    from fastrpc.engine.shared_state import SharedState
    from fastrpc.options import ItemKind


class ServerDescription:
    """What a server tells every client of itself (MCP: lifecycle)."""

    def __init__(self, state: SharedState) -> None:
        server = state.server
        self._state = state
        self.info: dict[str, Any] = server.info
        self.instructions: str | None = server.instructions
        self.extensions: dict[str, Any] | None = server.extensions
        self._experimental: dict[str, Any] | None = server.experimental

    def capabilities(self, version: str) -> dict[str, Any]:
        """Return what this server can do, in the form of a version: the same for each client."""
        found: dict[str, Any] = {"logging": {}, "tools": {"listChanged": True}}
        found["experimental"] = self._experimental
        found["extensions"] = self.extensions
        if self.has_resources:
            found["resources"] = {"subscribe": True, "listChanged": True}
        if self.has_prompts:
            found["prompts"] = {"listChanged": True}
        if self.has_completions:
            found["completions"] = {}
        if self._has_task_tools:
            found["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        if self.has_task_list:
            found["tasks"]["list"] = {}
        if self.has_tasks:
            found["extensions"] = {**(self.extensions or {}), TASKS_EXTENSION: {}}
        return known("ServerCapabilities", found, version)

    def info_of(self, version: str) -> dict[str, Any]:
        """Return the `serverInfo` (MCP: Implementation), in the form of a version."""
        return known("Implementation", self.info, version)

    @property
    def has_tasks(self) -> bool:
        """Whether calls may become tasks: those of some tools, or those that wait for an approval."""
        return self._state.makes_tasks_of_approvals or self._has_task_tools

    @property
    def has_task_list(self) -> bool:
        """Whether callers may list their tasks: not where that would list those of others (MCP 2025-11-25:
        tasks, security)."""
        return self._has_task_tools and self._state.knows_callers

    @property
    def _has_task_tools(self) -> bool:
        """Whether the calls of some tool may become tasks, as far as tools have been loaded."""
        if self._state.expects_tasks and self._state.is_unloaded:
            from fastrpc.installed import can_store_tasks

            return can_store_tasks()
        return any(tool.offers_tasks for tool in self._state.registries.tools)

    @property
    def has_resources(self) -> bool:
        registries = self._state.registries
        return self._has(registries.resources, registries.templates, registries.providers)

    @property
    def has_prompts(self) -> bool:
        return self._has(self._state.registries.prompts)

    @property
    def has_completions(self) -> bool:
        """Whether anything completes: prompts and templates complete their enums by themselves."""
        registries = self._state.registries
        return self._has(registries.completions, registries.prompts, registries.templates)

    def _has(self, *registries: Registry[Any]) -> bool:
        """Whether one of these has entries, or may get some later from an upstream server or a wrapper."""
        sources = (self._state.upstream, self._state.wrapper)
        return any(len(each) for each in registries) or any(
            each is not None and bool(each.declares_everything) for each in sources
        )


class VisibilityFilters:
    """The filters of a server and of those that are mounted in it, as requests ask them."""

    def __init__(self, server: Any, mounts: Sequence[Any]) -> None:
        self._server = server
        self._mounts = mounts
        self.caller_lists: CallerLists | None = None
        """What the classes of callers see, in the place of ready lists; None until it is asked for."""

    def forget(self) -> None:
        """Ask the filters anew: entries or filters have changed."""
        self.caller_lists = None

    @property
    def is_filtered(self) -> bool:
        """Whether what a list shows depends on who asks for it (`Server.filter_lists`)."""
        return bool(self._server.list_filters) or any(
            each.runtime.filters.is_filtered for each in self._mounts
        )

    def view_of(self, principal: str) -> CallerView | None:
        """Return what a principal sees in lists; None: everything. Raises InternalError if a filter fails."""
        if not self.is_filtered:
            return None
        lists = self.caller_lists  # which another thread may forget
        if lists is None:
            from fastrpc.engine.list_filter import CallerLists

            lists = self.caller_lists = CallerLists(self._server, self._mounts)
        return lists.view(principal)

    @property
    def enforces_filters(self) -> bool:
        """Whether what exists depends on who calls."""
        own = any(each.is_enforced for each in self._server.list_filters)
        return own or any(each.runtime.filters.enforces_filters for each in self._mounts)

    @property
    def classifies_calls(self) -> bool:
        """Whether what exists for a caller has to be looked up for each call."""
        own = any(each.decides_calls for each in self._server.list_filters)
        return own or any(each.runtime.filters.classifies_calls for each in self._mounts)

    def has_for(self, principal: str, kind: ItemKind, entry: Any) -> bool:
        """Whether an entry exists for a principal. Raises InternalError if a filter fails."""
        view = self.view_of(principal) if self.enforces_filters else None
        return view is None or view.has(kind, entry)

    def entries_for(self, principal: str, registry: Registry[Any]) -> list[Any]:
        """Return the entries that a principal sees. Raises InternalError if a filter fails."""
        view = self.view_of(principal)
        return list(registry) if view is None else view.entries(registry)

    def hint_for(self, principal: str, registry: Registry[Any], key: str) -> str:
        """Return a hint at entries with a similar key that a principal sees, "" if there are none."""
        try:
            return suggestion(key, [entry.key for entry in self.entries_for(principal, registry)])
        except InternalError:  # the log tells of the filter
            return ""
