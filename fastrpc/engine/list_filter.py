"""What callers see in lists: the filters of a server (`Server.filter_lists`), and the lists of each class.

A filter puts each principal into a class, and says for each class and entry whether the list shows it. The
class of a principal is looked up for each list, and, where the filter is enforced, for each call. What a
class sees, and the first page of each of its lists, is made once and cached, for the `MOST_CLASSES` classes
and within the `MOST_BYTES` that were used last. What an enforced filter hides does not exist for its caller:
a call of it is one of an unknown name.

Whatever a filter raises, its request is answered with an error: no list is ever shown unfiltered. Calls are
left to guards (`fastrpc.engine.guards`). Imported by the first list of a server that has a filter.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import OrderedDict
from dataclasses import dataclass

from fastrpc import tracebacks
from fastrpc.errors import FAILURES, DefinitionError, InternalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator
    from typing import Any

    from fastrpc._core.plan import Plan
    from fastrpc.definitions.registry import Registry
    from fastrpc.options import Effect, ItemKind, Risk

MOST_CLASSES = 256
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of ready pages, and of the references to entries, that are cached for all classes together."""
REFERENCE_BYTES = 8

KINDS: dict[str, ItemKind] = {
    "tool": "tool",
    "resource": "resource",
    "template": "resource_template",
    "prompt": "prompt",
}
"""The kind of an entry that a filter receives, by the entry's registry."""


@dataclass(slots=True, eq=False, repr=False)
class ListItem:
    """One entry of a list, as a filter sees it.

    `kind` is ``tool``, ``resource``, ``resource_template`` or ``prompt``; `uri` the URI of a resource or the
    URI template of a template, else None; `effect` and `risk` are a tool's, None where it states none.
    """

    kind: ItemKind
    name: str
    uri: str | None = None
    effect: Effect | None = None
    risk: Risk | None = None

    def __repr__(self) -> str:
        return f"ListItem({self.kind!r}, {self.name!r}, uri={self.uri!r}, effect={self.effect!r})"


class ListFilter:
    """One filter: what the class that `classify` gives a principal sees, as `shows` says.

    Without `classify` each principal is a separate class. `is_enforced`: what it hides cannot be called.
    Raises DefinitionError for what is no function.
    """

    __slots__ = ("_classify", "_shows", "announces_changes", "is_enforced", "refusal")

    def __init__(
        self,
        shows: Callable[[Any, ListItem], bool],
        classify: Callable[[str], Any] | None,
        is_enforced: bool = False,
    ) -> None:
        for name, function in (("shows", shows), ("classify", classify)):
            if not callable(function) and (name == "shows" or function is not None):
                raise DefinitionError(f"filter_lists: {name}: expected a function, got {function!r:.60}")
        self._shows = shows
        self._classify = classify
        self.is_enforced = is_enforced
        self.refusal: Callable[[Any, str, str], BaseException | None] | None = None
        """Of a guard: what refuses to notify a class of changes of a resource; None: nothing does."""
        self.announces_changes = False
        """Whether `Server.lists_changed` is called when a principal gets another class: no call looks."""

    @property
    def decides_calls(self) -> bool:
        """Whether the class of a caller has to be looked up for each call."""
        return self.is_enforced and self._classify is not None and not self.announces_changes

    def class_of(self, principal: str) -> Hashable:
        """Return the class of a principal. Raises InternalError if `classify` fails or returns no class."""
        if self._classify is None:
            return principal
        try:
            found: Hashable = self._classify(principal)
            hash(found)
            if hasattr(found, "__await__"):
                raise TypeError(f"classify: expected a class, got {found!r:.60}")
        except FAILURES as error:
            raise self._failure(error) from None
        return found

    def allows(self, caller_class: Hashable, item: ListItem) -> bool:
        """Whether a class sees an entry. Raises InternalError if `shows` fails or returns no bool."""
        try:
            shown = self._shows(caller_class, item)
            if shown is not True and shown is not False:
                raise TypeError(f"shows: expected True or False, got {shown!r:.60}")
        except FAILURES as error:
            raise self._failure(error) from None
        return shown

    def _failure(self, error: BaseException) -> InternalError:
        """Log that the filter has failed, and return the error for the client."""
        name = getattr(self._shows, "__qualname__", type(self._shows).__name__)
        tracebacks.report(f"filter_lists: {name} failed", error)
        return InternalError("Internal error; see the server's log")


def filters_of(server: Any, mounts: Iterable[Any]) -> Iterator[tuple[Any, ListFilter]]:
    """The filters of a server and of those that are mounted in it, each with its server."""
    for each in server.list_filters:
        yield server, each
    for mounted in mounts:
        yield from filters_of(mounted, mounted.runtime.mounts)


class CallerLists:
    """What the classes of callers see of one server, until its registries or its filters change."""

    def __init__(self, server: Any, mounts: Iterable[Any]) -> None:
        self.server = server
        self._views: OrderedDict[tuple[Hashable, ...], CallerView] = OrderedDict()
        self._size = 0
        self._filters = list(dict.fromkeys(filters_of(server, mounts)))  # of a server mounted twice, once
        self._latest: CallerView | None = None
        self._lock = allocate_lock()
        """Protects these; not held while a filter runs."""

    def view(self, principal: str) -> CallerView:
        """Return what a principal sees. Raises InternalError if its class cannot be found out."""
        key = tuple([each.class_of(principal) for _, each in self._filters])
        latest = self._latest
        if latest is not None and latest.key == key:
            return latest
        with self._lock:
            found = self._views.get(key)
            if found is None:
                found = self._views[key] = CallerView(self, key, self._filters)
            self._views.move_to_end(key)
            self._drop()
            self._latest = found
        return found

    def keep(self, view: CallerView, size: int) -> None:
        """Count so many bytes more that a view keeps."""
        with self._lock:
            if not view.dropped:
                view.size += size
                self._size += size
                self._drop()

    def _drop(self) -> None:
        """Drop what was not used the longest while it is too much; what was used last stays."""
        views = self._views
        while len(views) > 1 and (len(views) > MOST_CLASSES or self._size > MOST_BYTES):
            view = views.popitem(last=False)[1]
            view.dropped = True
            self._size -= view.size


class CallerView:
    """What one class of callers sees. With filters of several servers, a class is one for each of them."""

    __slots__ = ("_entries", "_lists", "_plans", "_plans_of", "_rules", "dropped", "key", "pages", "size")

    def __init__(
        self, lists: CallerLists, key: tuple[Hashable, ...], filters: Iterable[tuple[Any, ListFilter]]
    ) -> None:
        self._lists = lists
        self.key = key
        """The class by each filter."""
        self._rules: dict[Any, list[tuple[ListFilter, Hashable]]] = {}
        for (server, each), caller_class in zip(filters, key, strict=True):
            self._rules.setdefault(server, []).append((each, caller_class))
        self._entries: dict[str, list[Any]] = {}
        self._plans: dict[str, Plan] = {}
        self._plans_of: dict[str, Plan] | None = None
        self.pages: dict[str, bytes] = {}
        """First pages that are ready, by result member and version."""
        self.size = 0
        """Bytes that it keeps, as `CallerLists` counts them."""
        self.dropped = False

    def entries(self, registry: Registry[Any]) -> list[Any]:
        """Return the entries of a registry that the class sees. Raises InternalError if a filter fails."""
        found = self._entries.get(registry.kind)
        if found is None:
            kind = KINDS[registry.kind]
            found = [entry for entry in registry if self._shows(kind, entry, entry.origin)]
            self._entries[registry.kind] = found
            self._lists.keep(self, REFERENCE_BYTES * len(found))
        return found

    def plans(self, plans: dict[str, Plan]) -> dict[str, Plan]:
        """Return a server's plans without those of tools that an enforced filter hides from the class: the
        same dict until the plans change. Raises InternalError if a filter fails."""
        if self._plans_of is not plans:
            self._plans = {name: plan for name, plan in plans.items() if self.has("tool", plan.tool)}
            self._plans_of = plans
            self._lists.keep(self, REFERENCE_BYTES * len(self._plans))
        return self._plans

    def has(self, kind: ItemKind, entry: Any) -> bool:
        """Whether no enforced filter hides an entry from the class. Raises InternalError as `entries`."""
        return self._shows(kind, entry, entry.origin, enforced=True)

    def has_at(self, reader: Any, uri: str) -> bool:
        """Whether what a resource, a template or a provider has at a URI exists for the class. Raises
        InternalError if a filter fails. A filter sees the URI of a resource as it is listed."""
        uri = getattr(reader, "uri", uri)
        return self._shows("resource", reader, reader.origin, enforced=True, uri=uri)

    def refusal_at(self, reader: Any, uri: str, version: str) -> BaseException | None:
        """Return what refuses to notify the class of changes of what a reader has at a URI."""
        for server in (self._lists.server, *(each for each, _ in reader.origin)):
            for each, caller_class in self._rules.get(server, ()):
                found = None if each.refusal is None else each.refusal(caller_class, uri, version)
                if found is not None:
                    return found
        return None

    def listed(self, entries: list[Any], origin: Iterable[tuple[Any, str]]) -> list[Any]:
        """Return the resources that the class sees, of those that a provider has listed, which comes from the
        servers of `origin`. Nothing is kept. Raises InternalError if a filter fails."""
        servers = [server for server, _ in origin]
        return [
            entry
            for entry in entries
            if self._shows("resource", entry, [(server, entry.name) for server in servers])
        ]

    def keep_page(self, name: str, page: bytes) -> None:
        """Keep the first page of a list."""
        self.pages[name] = page
        self._lists.keep(self, len(page))

    def _shows(
        self,
        kind: ItemKind,
        entry: Any,
        origin: Iterable[tuple[Any, str]],
        enforced: bool = False,
        uri: str | None = None,
    ) -> bool:
        """Ask the filters, or only those that are enforced, of each server through which the entry came, by
        the name that it has there. `uri`: that of a resource, if not the entry's own."""
        if uri is None and kind != "tool" and kind != "prompt":
            uri = entry.uri_template if kind == "resource_template" else entry.uri
        effect, risk = (entry.effect, entry.risk) if kind == "tool" else (None, None)
        for server, name in ((self._lists.server, entry.name), *origin):
            for each, caller_class in self._rules.get(server, ()):
                if (each.is_enforced or not enforced) and not each.allows(
                    caller_class, ListItem(kind, name, uri, effect, risk)
                ):
                    return False
        return True
