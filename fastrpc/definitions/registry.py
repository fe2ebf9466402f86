"""The registries of a server: its tools, resources, templates, prompts and completions, in the order added.

A `Registry` holds the entries of one kind, a `Registries` the five registries. Watchers are called on each
change, so that they can rebuild lists and plans. This module knows only the key of an entry; each kind of
entry has its own module.

An entry may be added before its annotations are defined. `settle`, when serving begins, reads the signatures
that are still unread; from then on an entry that cannot be read is not added.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Generic, TypeVar

    from fastrpc.definitions.completion import Completion
    from fastrpc.definitions.handler import Handler
    from fastrpc.definitions.prompt import Prompt
    from fastrpc.definitions.resource import Provider, Resource, ResourceTemplate
    from fastrpc.definitions.tool import Tool

    Entry = TypeVar("Entry", bound=Handler | Provider)
else:  # a class that is generic for type checkers alone: `typing` takes 10 ms to import
    Entry = "Entry"
    Generic = {Entry: object}


class Registry(Generic[Entry]):
    """The entries of one kind, with unique keys, in the order they were added.

    `home` names a module of this package and a class: its method `of` makes an entry of what is added with
    its options. It is imported for the first one. An entry has a `key`.
    """

    def __init__(self, kind: str, home: str) -> None:
        self.kind = kind
        self.watchers: list[Callable[[str], object]] = []
        """Functions that are called with the kind after each change."""
        self.settled = False
        """Whether entries that are added have to be complete."""
        self._home = home
        self._entries: dict[str, Entry] = {}
        self._vacant: tuple[str, int] | None = None  # a key that was vacated, and its place

    def add(self, thing: object, **options: Any) -> Entry:
        """Add an entry, a marked function, or a function with options; return the entry.

        Raises `DefinitionError` for invalid definitions, and for a key that is taken.
        """
        module, _, name = self._home.partition(".")
        definition = getattr(__import__(f"fastrpc.definitions.{module}", fromlist=[name]), name)
        added: Entry = definition.of(thing, options)
        if self.settled:
            added.settle()
        present = self.get(added.key)
        if present is not None:
            place = _place_of(present)
            cure = "; give name=" if self.kind in ("tool", "prompt") else ""
            raise DefinitionError(f"{added.key}: there is a {self.kind} of this name already ({place}){cure}")
        self._entries[added.key] = added
        if self._vacant is not None:
            self._take_vacant(added.key)
        try:
            self.changed(added)
        except DefinitionError:  # the name is taken in a server where this one is mounted
            del self._entries[added.key]
            self.changed()
            raise
        return added

    def replace(self, gone: Iterable[str], new: Iterable[Entry]) -> None:
        """Remove the entries with the keys `gone`, if they exist, and add the entries `new`. Watchers are
        called once.

        Raises DefinitionError for a key that is taken, before anything changes.
        """
        gone, new = set(gone), list(new)
        for entry in new:
            present = self.get(entry.key)
            if present is not None and present.key not in gone:
                place = _place_of(present)
                raise DefinitionError(f"{entry.key}: there is a {self.kind} of this name already ({place})")
            if self.settled:
                entry.settle()
        for key in gone:
            self._entries.pop(key, None)
        self._entries.update((entry.key, entry) for entry in new)
        self.changed()

    def settle(self) -> list[str]:
        """Read the signatures of all entries; return what is wrong with those that cannot be read."""
        problems = []
        for entry in self:
            try:
                entry.settle()
            except DefinitionError as error:
                problems.append(str(error))
        self.settled = not problems
        return problems

    def remove(self, key: str) -> None:
        """Remove an entry. Raises KeyError if the key does not exist."""
        present = self.get(key)
        if present is None:
            raise KeyError(key)
        del self._entries[present.key]
        self.changed()

    def vacate(self, key: str) -> None:
        """Remove an entry; the next one with its key takes its place in the order. Raises KeyError."""
        place = list(self._entries).index(present.key) if (present := self.get(key)) is not None else 0
        self.remove(key)
        self._vacant = key, place

    def _take_vacant(self, key: str) -> None:
        vacated, place = self._vacant or ("", 0)
        self._vacant = None
        if vacated == key:
            others = list(self._entries.items())
            others.insert(place, others.pop())
            self._entries = dict(others)

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def changed(self, added: Entry | None = None) -> None:
        """Call the watchers. `added`: an entry, if nothing else has changed."""
        for watcher in self.watchers:
            watcher(self.kind)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))  # another thread may add an entry meanwhile

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries


if TYPE_CHECKING:
    OfUris = Registry
    OfTools = Registry["Tool"]
else:
    OfUris = {Entry: Registry}
    OfTools = Registry


class UriRegistry(OfUris[Entry]):
    """Resources at fixed URIs, or templates: one is found by each spelling of its URI, as `normal` of
    `fastrpc.protocol.uri_template` has one for all."""

    _normal: dict[str, Entry] | None = None  # by the normal form, once one is asked for

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key) or self._by_normal().get(_normal(key))

    def changed(self, added: Entry | None = None) -> None:
        if added is None:
            self._normal = None
        elif self._normal is not None:
            self._normal[_normal(added.key)] = added
        super().changed(added)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def _by_normal(self) -> dict[str, Entry]:
        if self._normal is None:
            self._normal = {_normal(entry.key): entry for entry in list(self._entries.values())}
        return self._normal


class ToolRegistry(OfTools):
    """Tools, which may be published under other names. Policies, logs and counts use a tool's own name."""

    _underscores = False
    _published: dict[str, Tool] | None = None

    def use_underscores(self) -> None:
        """Publish each tool with an underscore for each dot of its name, for clients that take no dots. One
        keeps its name where another tool has that name already."""
        self._underscores = True
        self.changed()

    @property
    def published(self) -> dict[str, Tool]:
        """The tools that are published by another name, by that name."""
        found = self._published
        if found is None:
            found = {}
            for tool in self if self._underscores else ():
                if "." in tool.name and (name := tool.name.replace(".", "_")) not in self._entries:
                    found.setdefault(name, tool)
            self._published = found
        return found

    def get(self, key: str) -> Tool | None:
        return self._entries.get(key) or self.published.get(key)

    def changed(self, added: Tool | None = None) -> None:
        self._published = None
        super().changed(added)


def _normal(uri: str) -> str:
    from fastrpc.protocol.uri_template import LONGEST, normal

    return normal(uri) if len(uri) <= LONGEST else uri


def _place_of(entry: Any) -> str:
    from fastrpc.definitions.handler import place_of

    return place_of(entry.function)


class Registries:
    """The five registries of one server."""

    __slots__ = ("completions", "prompts", "providers", "resources", "templates", "tools")

    def __init__(self) -> None:
        self.tools = ToolRegistry("tool", "tool.Tool")
        self.resources: Registry[Resource] = UriRegistry("resource", "resource.Resource")
        self.templates: Registry[ResourceTemplate] = UriRegistry("template", "resource.ResourceTemplate")
        self.providers: Registry[Provider] = Registry("provider", "resource.Provider")
        self.prompts: Registry[Prompt] = Registry("prompt", "prompt.Prompt")
        self.completions: Registry[Completion] = Registry("completion", "completion.Completion")

    def __iter__(self) -> Iterator[Registry[Any]]:
        return (getattr(self, name) for name in self.__slots__)

    def settle(self) -> None:
        """Serving begins: have each entry read what could not be read where it was added. Raises
        DefinitionError, which names every entry that still cannot be."""
        problems = [problem for registry in self for problem in registry.settle()]
        if problems:
            raise DefinitionError("; ".join(problems))

    def warn_of_missing_descriptions(self) -> None:
        """Serving begins: warn of each tool that has no description."""
        if any(tool.description is None for tool in self.tools):
            from fastrpc.definitions.missing_descriptions import warn_of_missing_descriptions

            warn_of_missing_descriptions(self.tools)


def decorator(registry: Registry[Any], options: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds to a registry."""

    def decorate(thing: Any) -> Any:
        registry.add(thing, **options)
        return thing

    return decorate


def check_options(where: str, options: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Raise what `option_types.check` raises, which is imported only if the author gave an option."""
    if not isinstance(options["name"], str) or any(
        options[option] is not default for option, default in defaults.items()
    ):
        from fastrpc.definitions.option_types import check

        check(where, options)


def settle_or_exit(found: Iterable[Registries]) -> None:
    """Settle registries, for a program that does nothing but serve: what is wrong is one line on standard
    error, and the exit code is 2. Tools without a description are named there."""
    for each in found:
        try:
            each.settle()
        except DefinitionError as error:
            from fastrpc.diagnostics import write_line

            write_line("fastrpc: " + " ".join(str(error).split()))
            raise SystemExit(2) from None
        each.warn_of_missing_descriptions()
