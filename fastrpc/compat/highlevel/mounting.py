"""How a compat server is made of others: mounts, imports, proxies, providers and transforms.

Costs nothing in a call of a server that is not composed.
"""

from __future__ import annotations

from fastrpc.compat.errors import NotOffered
from fastrpc.definitions.addresses import AddressesInTurn
from fastrpc.errors import DefinitionError
from fastrpc.mounting import connect
from fastrpc.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from typing_extensions import Self

    from fastrpc.compat.composition.chain import Composed
    from fastrpc.compat.dialect import Dialect
    from fastrpc.compat.providers.base import Provider
    from fastrpc.definitions.addresses import Addresses
    from fastrpc.tool_style import ToolStyle

IGNORED = ("resource_separator", "tool_separator", "prompt_separator", "tags", "keep_alive")
"""Options of `mount` in early versions that have no effect here."""


class Composition(Server):
    """The methods of a compat server that add other servers, providers and transforms."""

    dialect: Dialect
    refuses_conversions: bool
    """Whether arguments of tools have to fit their schema as they are (``strict_input_validation``)."""
    _style: ToolStyle
    _composed: Composed | None = None
    """The providers and transforms, if there are any."""

    if TYPE_CHECKING:  # `Interception` has it

        def _rewrap(self) -> None: ...

        def _is_composed(self) -> bool: ...

    def mount(  # type: ignore[override]
        self,
        server: Server | str,
        prefix: str | Server | None = None,
        as_proxy: bool | None = None,
        *,
        namespace: str | None = None,
        tool_names: Mapping[str, str] | None = None,
        **options: None,
    ) -> None:
        """Mount another server: its names have ``prefix_`` before them, its resources ``prefix`` as the first
        part of the path. `tool_names` has other names for some tools.

        ``mcp.mount(server, "prefix")``, or in the order of early versions ``mcp.mount("prefix", server)``.
        Raises DefinitionError, and NotOffered for an unsupported option.
        """
        other: Any = server
        if isinstance(server, str):
            other, prefix = prefix, server
        for name, value in options.items():
            if value is not None and name not in IGNORED:
                raise NotOffered(f"fastrpc.compat: mount has no {name}; a mount is live, names have a prefix")
        start: Any = namespace or prefix or ""
        if tool_names:
            self._mount_renamed(other, start, tool_names)
            return
        self._mount(other, start, _addresses_in(start))
        self.__dict__.setdefault("_namespaces", {})[id(other)] = start
        if isinstance(other, Composition) and other._is_composed():
            self._rewrap()

    def _mount_renamed(self, other: Any, start: str, tool_names: Mapping[str, str]) -> None:
        from fastrpc.compat.components.tools import ToolTransformConfig
        from fastrpc.compat.providers.base import TransformedProvider, provider_of
        from fastrpc.compat.transforms.tool_transform import ToolTransform

        before = f"{start}_" if start else ""
        changes = {
            f"{before}{name}": ToolTransformConfig(name=renamed) for name, renamed in tool_names.items()
        }
        self.add_provider(TransformedProvider(provider_of(other, start), ToolTransform(changes)))

    async def import_server(self, server: Any, prefix: str | None = None, **options: Any) -> None:
        """Mount another server. Raises as `mount` does."""
        self.mount(server, prefix, **options)

    def _mounted_provider(self, server: Server, prefix: str) -> Provider:
        """Return what asks a mounted server for its components."""
        from fastrpc.compat.providers.mounted import mounted

        return mounted(server, prefix)

    def _addresses_of(self, other: Server, uri: str) -> Sequence[Addresses]:
        found = super()._addresses_of(other, uri)
        if not self.transforms:
            return found
        from fastrpc.compat.transforms.base import AddressesThrough

        own = AddressesThrough((self,))
        return [AddressesInTurn((each, own)) for each in found]

    def _as_provider(self) -> Provider:
        """Return what asks this server for its components."""
        return self._mounted_provider(self, "")

    def _add_session_rule(self, context: Any, is_offered: bool, criteria: dict[str, Any]) -> None:
        from fastrpc.compat.composition.session_visibility import add_rule

        add_rule(context, is_offered, criteria)

    def _reset_session_rules(self, context: Any) -> None:
        from fastrpc.compat.composition.session_visibility import reset

        reset(context)

    # --- providers and transforms -------------------------------------------------------------------------

    def _compose(self) -> Composed:
        """Return what the server is made of besides its registries, from now on."""
        if self._composed is None:
            from fastrpc.compat.composition.chain import Composed

            self._composed = Composed()
            self._rewrap()
        return self._composed

    def _own_addresses(self, uri: str) -> Iterator[str]:
        """Yield what a URI may be of this server's own resources: itself, or as a host addresses it."""
        from fastrpc.compat.transforms.namespace import address_outside

        yield uri
        for host in self._hosts:
            namespace = host.__dict__.get("_namespaces", {}).get(id(self))
            if namespace and isinstance(host, Composition):
                for outer in host._own_addresses(uri):
                    own = address_outside(namespace, outer)
                    if own is not None:
                        yield own

    def _take_composition(
        self, providers: Iterable[Any] | None, transforms: Iterable[Any] | None, changes: Any
    ) -> None:
        """Take the options of the constructor."""
        for provider in providers or ():
            self.add_provider(provider)
        for transform in transforms or ():
            self.add_transform(transform)
        for name, change in (changes or {}).items():
            self.add_tool_transformation(name, change)

    def add_provider(self, provider: Any, *, namespace: str = "") -> None:
        """Add a `Provider`, or a server, its names in a namespace. Raises TypeError for anything else."""
        from fastrpc.compat.highlevel.lifespans import with_provider
        from fastrpc.compat.providers.base import Provider, provider_of

        if isinstance(provider, Server) and not isinstance(provider, Composition):
            provider = self._mounted_provider(provider, "")
        found = provider_of(provider, namespace)
        self._compose().providers.append(found)
        self._offer_extensions(getattr(found, "extensions", None))
        if type(found).lifespan is not Provider.lifespan:
            self.lifespan = with_provider(self.lifespan, found)
        for server, addresses in _servers_of(found):
            connect(self, server, addresses)
        self._rewrap()

    def _offer_extensions(self, extensions: Mapping[str, Any] | None) -> None:
        """Declare extensions of the protocol (MCP 2026-07-28)."""
        if extensions:
            self.extensions = {**extensions, **(self.extensions or {})}

    @property
    def providers(self) -> list[Any]:
        """This server, as the source of what was added to it, and its providers."""
        return [self, *(self._composed.providers if self._composed is not None else ())]

    @property
    def local_provider(self) -> Self:
        """What has the components that were added to this server: itself."""
        return self

    def add_transform(self, transform: Any) -> None:
        """Add a `Transform` around those that were added before."""
        self._compose().transforms.append(transform)
        self._rewrap()

    @property
    def transforms(self) -> list[Any]:
        """The transforms, the innermost first."""
        return [] if self._composed is None else [*self._composed.transforms]

    def add_tool_transformation(self, tool_name: str, transformation: Any) -> None:
        """Change a tool by a `ToolTransformConfig`, wherever it comes from."""
        from fastrpc.compat.transforms.tool_transform import ToolTransform

        self.add_transform(ToolTransform({tool_name: transformation}))

    def remove_tool_transformation(self, tool_name: str) -> None:
        """Take back what `add_tool_transformation` has changed of a tool."""
        from fastrpc.compat.transforms.tool_transform import ToolTransform

        if self._composed is not None:
            self._composed.transforms[:] = [
                each
                for each in self._composed.transforms
                if not isinstance(each, ToolTransform) or [*each._transforms] != [tool_name]
            ]
            self._rewrap()

    @classmethod
    def as_proxy(cls, backend: Any, name: str | None = None, **options: Any) -> Self:
        """Return a proxy of another server: a URL, the path of a script, a dict with ``mcpServers``, a
        client, or a server object. Raises ValueError and DefinitionError."""
        inner = proxied(backend)
        server = cls(name or getattr(inner, "name", None) or "proxy", **options)
        server.mount(inner)
        return server

    @classmethod
    def from_openapi(
        cls,
        openapi_spec: dict[str, Any],
        client: Any = None,
        name: str = "OpenAPI Server",
        route_maps: Any = None,
        route_map_fn: Any = None,
        mcp_component_fn: Any = None,
        mcp_names: dict[str, str] | None = None,
        tags: Any = None,
        **settings: Any,
    ) -> Self:
        """Return a server whose tools are the operations of an HTTP API: see `fastrpc.openapi`.

        `client` sends the requests, an ``httpx.AsyncClient``; without one, they go to the document's first
        server. Raises DefinitionError, and ImportError without openapi-pydantic or httpx.
        """
        from fastrpc.compat.dialect import installed_release
        from fastrpc.compat.registered.order import stay_last
        from fastrpc.openapi import add_operations

        if client is None:
            client = _client_for(openapi_spec)
        for unused in ("timeout", "validate_output"):
            settings.pop(unused, None)
        server = cls(name, **settings)
        add_operations(
            server,
            openapi_spec,
            client,
            route_maps=route_maps or (),
            route_of_operation=route_map_fn,
            adjust=mcp_component_fn,
            names=mcp_names,
            tags=tags or (),
            style=server._style,
        )
        if server.refuses_conversions:
            from fastrpc.compat.functions.strict_arguments import refuse_conversions

            for tool in server.registries.tools:
                refuse_conversions(tool)
        if installed_release("fastmcp") >= (3, 0):  # where they are a provider's, after the server's own
            for registry in (
                server.registries.tools,
                server.registries.resources,
                server.registries.templates,
            ):
                stay_last(server, registry.kind, [entry.key for entry in registry])
        return server

    @classmethod
    def from_fastapi(
        cls, app: Any, name: str | None = None, httpx_client_kwargs: Any = None, **options: Any
    ) -> Self:
        """Return a server whose tools are the operations of a FastAPI application, called in this process.

        The options are those of `from_openapi`. Raises as that does.
        """
        import httpx

        given = {"base_url": "http://fastapi", **(httpx_client_kwargs or {})}
        given.setdefault("transport", httpx.ASGITransport(app=app))
        client = httpx.AsyncClient(**given)
        return cls.from_openapi(
            app.openapi(), client, name or getattr(app, "title", None) or "FastAPI", **options
        )


def _addresses_in(namespace: Any) -> Addresses | None:
    """Return where the resources of a server are that is mounted in a namespace; None without one."""
    if not namespace or not isinstance(namespace, str):
        return None
    from fastrpc.compat.transforms.namespace import AddressesIn

    return AddressesIn(namespace)


def _client_for(document: dict[str, Any]) -> Any:
    """Return a client for the first server of an OpenAPI document."""
    import httpx

    servers = document.get("servers") or ()
    url = servers[0].get("url", "") if servers else ""
    if not url.startswith(("http://", "https://")):
        raise DefinitionError("openapi: no server of the document has an http URL; give a client")
    return httpx.AsyncClient(base_url=url)


def proxied(backend: Any) -> Any:
    """Return a proxy of another server, or that one itself if it is in this process. Raises
    ValueError and DefinitionError."""
    from fastrpc.compat.client.endpoints import endpoint_of

    endpoint = endpoint_of(getattr(backend, "_endpoint", backend))
    return endpoint.target if hasattr(endpoint.target, "connect") else endpoint.proxy()


def _servers_of(provider: Any, outer: tuple[Any, ...] = ()) -> Iterator[tuple[Server, Addresses]]:
    """Yield the servers whose components a provider has, and whose lifespans and upstream servers are used
    here, and where their resources are. `outer`: the providers around it, the innermost first."""
    from fastrpc.compat.transforms.base import AddressesThrough

    stages = (provider, *outer)
    server = getattr(provider, "server", None)
    if server is not None and getattr(type(server), "__fastrpc_server__", False):
        yield server, AddressesThrough(stages)
    for inner in getattr(provider, "providers", ()):
        yield from _servers_of(inner, stages)
