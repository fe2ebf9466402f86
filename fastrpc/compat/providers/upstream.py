"""Providers of what is elsewhere: another server (`ProxyProvider`), or an HTTP API (`OpenAPIProvider`)."""

from __future__ import annotations

from fastrpc.compat.client.fastmcp_client import Client
from fastrpc.compat.providers.mounted import FastMCPProvider
from fastrpc.compat.server import FastMCP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class OpenAPIProvider(FastMCPProvider):
    """The operations of an HTTP API as components; options as in `FastMCP.from_openapi`, which says what it
    raises."""

    def __init__(self, openapi_spec: dict[str, Any], client: Any = None, **options: Any) -> None:
        super().__init__(FastMCP.from_openapi(openapi_spec, client, **options))


class ProxyProvider(FastMCPProvider):
    """What the server has that a client of `client_factory` connects to. Raises ValueError and
    DefinitionError."""

    def __init__(self, client_factory: Callable[[], Any], **options: Any) -> None:
        super().__init__(FastMCP.as_proxy(client_factory()))


class FastMCPProxy(FastMCP):
    """A proxy of another server. Raises ValueError and DefinitionError."""

    def __init__(
        self, client: Any = None, *, client_factory: Callable[[], Any] | None = None, **options: Any
    ) -> None:
        super().__init__(options.pop("name", None) or "proxy", **options)
        from fastrpc.compat.highlevel.mounting import proxied

        backend = client if client_factory is None else client_factory()
        self.mount(proxied(backend))


class ProxyClient(Client):
    """A client of the server behind a proxy. The proxy has the handlers."""


class StatefulProxyClient(ProxyClient):
    """A `ProxyClient` that stays connected: a proxy here always does."""
