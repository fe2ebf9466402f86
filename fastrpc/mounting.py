"""Mounts the entries of one server in another, as copies that follow the originals.

The names of mounted tools and prompts begin with the prefix and an underscore. Resources and templates keep
their URIs, which clients may have stored, unless `addresses` changes them. A copy refers to the original's
server: that server's hooks and lifespan apply to it, and the limits of the served one. Entries that the
mounted server adds or removes later are added or removed here too. A resource that is the same in every
server (`Resource.is_shared`) is listed once. A call of a mounted tool costs no more than one of an unmounted
tool. `shares_of` returns the call records for the observers of mounted servers; `places_of` returns where
clients see a resource.
"""

from __future__ import annotations

from copy import copy

from fastrpc.definitions.addresses import UNCHANGED
from fastrpc.errors import DefinitionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from fastrpc._core.recorder import CallRecord
    from fastrpc.definitions.addresses import Addresses
    from fastrpc.definitions.registry import Registries, Registry
    from fastrpc.engine.runtime import Runtime
    from fastrpc.telemetry.observers import Observers

    Origin = Sequence[tuple[Any, str]]
    """The servers that a handler was mounted from, each with its name for the handler (`Handler.origin`)."""

PREFIXED = ("tool", "prompt")
"""The kinds whose names get the prefix."""

DESCRIBING = ("annotations", "description", "icons", "meta", "mime_type", "title")


class Mount:
    """A mounted server: the entries of `other` in `registries`, from `follow` on.

    Creating one changes nothing. `addresses` maps the URIs and URI templates of the other server to those
    here. Raises DefinitionError for a prefix that is not a string, and for a name or a URI that is taken.
    """

    def __init__(
        self,
        registries: Registries,
        other: Any,
        prefix: str,
        addresses: Addresses | None = None,
    ) -> None:
        if not isinstance(prefix, str):
            raise DefinitionError(f"mount: prefix={prefix!r:.40} is no text")
        self._other = other
        self._kinds = [_Mounted(kind, other, prefix, addresses) for kind in reversed([*registries])]
        for mounted in self._kinds:
            mounted.check()

    def follow(self) -> None:
        """Add the entries of `other`, and follow its changes from now on."""
        for mounted in self._kinds:
            mounted.follow()

    def load(self) -> tuple[()]:
        """Have `other` run its postponed loaders. Return no tools: mounting adds the new ones by itself."""
        self._other.load_tools()
        return ()


def mount_in(host: Any, other: Any, prefix: str, addresses: Addresses | None) -> Mount:
    """Return the mount of a server in another one, after connecting them. Raises DefinitionError for anything
    but a server, for a server that would contain itself, and as `Mount` does."""
    if not getattr(type(other), "__fastrpc_server__", False):
        raise DefinitionError(f"mount: expected a Server, got {type(other).__name__}")
    if host in other._with_mounts():
        raise DefinitionError(f"mount: {host.name} would be mounted in itself")
    mount = Mount(host.registries, other, prefix, addresses)
    connect(host, other, addresses)
    return mount


class _Mounted:
    """The entries that one registry has of the same registry of another server."""

    def __init__(
        self,
        target: Registry[Any],
        other: Any,
        prefix: str,
        addresses: Addresses | None,
    ) -> None:
        self.target = target
        self.other = other
        self.prefix = prefix
        self.addresses = addresses
        self.source: Registry[Any] = next(kind for kind in other.registries if kind.kind == target.kind)
        self.shown: dict[int, tuple[Any, Any]] = {}  # original and copy, by the original's identity

    def check(self) -> None:
        """Raise DefinitionError if an entry cannot be added."""
        for original in self.source:
            shown = self.copy_of(original)
            present = self.target.get(shown.key)
            if present is not None and not self._is_there(original):
                cure = (
                    "give another prefix" if self.target.kind in PREFIXED else "a prefix does not change it"
                )
                both = f"{self.other.name} and this server both have the {self.target.kind} {shown.key}"
                raise DefinitionError(f"mount: {both}; {cure}")

    def follow(self) -> None:
        """Add the current entries, and follow changes from now on."""
        self.changed(self.source.kind)
        self.source.watchers.append(self.changed)

    def changed(self, kind: str) -> None:
        """The other server has changed: add new entries, update changed ones, remove the others."""
        originals = {id(original): original for original in self.source}
        gone = [key for key in self.shown if key not in originals]
        new = {
            key: (original, self.copy_of(original))
            for key, original in originals.items()
            if key not in self.shown and not self._is_there(original)
        }
        if not gone and not new and not originals:
            return
        for original, shown in self.shown.values():  # a server may change its descriptions in place
            for name in DESCRIBING:
                if hasattr(original, name):
                    setattr(shown, name, getattr(original, name))
        self.target.replace([self.shown[key][1].key for key in gone], [shown for _, shown in new.values()])
        for key in gone:
            del self.shown[key]
        self.shown.update(new)

    def _is_there(self, original: Any) -> bool:
        """Whether an entry that servers share is in this registry, added by another server."""
        return getattr(original, "is_shared", False) and original.key in self.target

    def copy_of(self, original: Any) -> Any:
        """Return the copy of an entry for this server."""
        if self.target.kind == "provider":
            return self._provider_of(original)
        shown = self._from_there(original)
        if self.addresses is not None:
            _move(shown, self.addresses)
        if self.prefix:
            _rename(shown, self.prefix)
        return shown

    def _from_there(self, handler: Any) -> Any:
        shown = copy(handler)
        shown.origin = ((self.other, handler.name), *handler.origin)
        return shown

    def _provider_of(self, provider: Any) -> Any:
        """Return a copy of a provider whose methods refer to the original server."""
        shown = copy(provider)
        for name in ("lister", "reader"):
            method = getattr(provider, name)
            if method is not None:
                method = self._from_there(method)
                method.provider = shown
                setattr(shown, name, method)
        return shown


def _rename(entry: Any, prefix: str) -> None:
    """Put a prefix before the name of a tool, a prompt, or the target of a completion."""
    if entry.kind in PREFIXED:
        entry.name = f"{prefix}_{entry.name}"
        if entry.kind == "tool":
            entry._check_options()
    elif entry.kind == "completion" and "{" not in entry.target:
        from fastrpc.definitions.completion import key_of

        entry.target = f"{prefix}_{entry.target}"
        entry.name = key_of(entry.target, entry.argument)


def _move(entry: Any, addresses: Addresses) -> None:
    """Set the address that a resource, a template, or the template of a completion has here."""
    if entry.kind in ("resource", "template"):
        entry.move(addresses)
    elif entry.kind == "completion" and "{" in entry.target:
        from fastrpc.definitions.completion import key_of

        entry.target = addresses.here(entry.target)
        entry.name = key_of(entry.target, entry.argument)


# --- addresses ----------------------------------------------------------------------------------------------


def connect(host: Any, server: Any, addresses: Addresses | None) -> None:
    """Register in both servers that one is mounted in the other, and which addresses its resources have."""
    host._mounts.append(server)
    server._hosts.append(host)
    if addresses is not None:
        host._addresses.setdefault(server, []).append(addresses)


def places_of(server: Any, uri: str) -> Iterator[tuple[Runtime, str]]:
    """Yield the runtimes in which clients see a resource of a server, each with the URI that it has there."""
    if server._runtime is not None:
        yield server._runtime, uri
    for host in dict.fromkeys(server._hosts):
        for shown in {addresses.here(uri) for addresses in host._addresses_of(server, uri)}:
            yield from places_of(host, shown)


def addresses_of(host: Any, server: Any, uri: str) -> Sequence[Addresses]:
    """Return the addresses of a mounted server's resource, one for each time that the server is mounted.
    `uri` is the resource's URI in either server. URIs of resource providers are the same everywhere."""
    found: Sequence[Addresses] | None = host._addresses.get(server)
    if found is None:
        return (UNCHANGED,)
    if len(server.registries.providers):
        from fastrpc.protocol.uri_template import normal

        meant = normal(uri)
        if any(meant.startswith(provider.prefix) for provider in server.registries.providers):
            return (UNCHANGED,)
    return found


# --- records ------------------------------------------------------------------------------------------------


def shares_of(
    registries: Registries, records: list[CallRecord], observers_of: Callable[[Any], Observers]
) -> list[tuple[Observers, list[CallRecord]]]:
    """Return, for each server from which a called handler was mounted, its observers and the records of those
    calls, with that server's names for the handlers.

    A record has only the name of what was called: the handler is looked up now. A URI that was truncated for
    the record may not be found.
    """
    origins: dict[tuple[str, str], Origin] = {}
    shares: dict[Any, list[CallRecord]] = {}
    for record in records:
        called = record.kind, record.name
        origin = origins.get(called)
        if origin is None:
            found = _origin_of(registries, *called)
            origin = origins[called] = [each for each in found if each[0].runtime.is_observed]
        for server, name in origin:
            own = record if record.kind == "resource" else record.renamed(name)
            shares.setdefault(server, []).append(own)
    return [(observers_of(server), share) for server, share in shares.items()]


def _origin_of(registries: Registries, kind: str, name: str) -> Origin:
    """Return the origin of the handler with this name, () if the handler no longer exists."""
    if kind == "resource":
        from fastrpc.methods.resources import handler_at

        handler: Any = handler_at(registries, name)
    else:
        handler = (registries.tools if kind == "tool" else registries.prompts).get(name)
    return () if handler is None else handler.origin
