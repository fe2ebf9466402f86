"""What callers see of a server, and what exists for them (`Server.filter_lists`): one half of `Runtime`.

Without filters nothing is looked up. With filters the class of a caller is looked up for each request, whose
lists and plans are then those of its class (`fastrpc.engine.list_filter`).
"""

from __future__ import annotations

from fastrpc.engine.request import NO_PLANS
from fastrpc.errors import InternalError, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc._core.plan import Plan
    from fastrpc.definitions.registry import Registry
    from fastrpc.engine.list_filter import CallerLists, CallerView
    from fastrpc.options import ItemKind


class VisibilityFilters:
    """The filters of a server and of those that are mounted in it, as requests ask them."""

    if TYPE_CHECKING:
        server: Any
        mounts: list[Any]
        registries: Any
        dispatchers: set[Any]

        @property
        def plans(self) -> dict[str, Plan]: ...

    def __init__(self) -> None:
        self._caller_lists: CallerLists | None = None  # in the place of ready lists, where there are filters

    @property
    def is_filtered(self) -> bool:
        """Whether what a list shows depends on who asks for it (`Server.filter_lists`)."""
        return bool(self.server.list_filters) or any(each.runtime.is_filtered for each in self.mounts)

    def view_of(self, principal: str) -> CallerView | None:
        """Return what a principal sees in lists; None: everything. Raises InternalError if a filter fails."""
        if not self.is_filtered:
            return None
        lists = self._caller_lists  # which another thread may forget
        if lists is None:
            from fastrpc.engine.list_filter import CallerLists

            runtime: Any = self  # whose other half has the registries
            lists = self._caller_lists = CallerLists(runtime)
        return lists.view(principal)

    @property
    def enforces_filters(self) -> bool:
        """Whether what exists depends on who calls."""
        own = any(each.is_enforced for each in self.server.list_filters)
        return own or any(each.runtime.enforces_filters for each in self.mounts)

    @property
    def classifies_calls(self) -> bool:
        """Whether what exists for a caller has to be looked up for each call."""
        own = any(each.decides_calls for each in self.server.list_filters)
        return own or any(each.runtime.classifies_calls for each in self.mounts)

    def plans_for(self, principal: str | None) -> dict[str, Plan]:
        """Return the call plans of the tools that exist for a principal, or, if it is None, for all; none if
        a filter fails, of which the log tells."""
        if not self.enforces_filters:
            return self.plans
        try:
            view = None if principal is None else self.view_of(principal)
            return NO_PLANS if view is None else view.plans(self.plans)
        except InternalError:
            return NO_PLANS

    def are_plans_of(self, principal: str, plans: dict[str, Plan]) -> bool:
        """Whether these are the plans of what exists for a principal now; asked before each call where
        `classifies_calls`."""
        lists = self._caller_lists
        if lists is None:
            return self.plans_for(principal) is plans
        try:
            return lists.view(principal).plans(self.plans) is plans
        except InternalError:
            return False

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

    def notify_lists_changed(self, concerns: Callable[[str], bool] | None = None) -> None:
        """Forget what filters have shown, and notify the clients of this process. Thread-safe."""
        self._caller_lists, enforced = None, self.enforces_filters
        for dispatcher in list(self.dispatchers):
            if enforced:
                dispatcher.changes.forget_plans()
            if concerns is None or concerns(dispatcher.principal):
                for kind in ("tool", "resource", "prompt"):
                    dispatcher.changes.list_changed(kind)
