"""The options of `run` and of the ASGI applications, and the options of fastrpc's own server for them.

An option that was given precedes the server's settings. An unknown one is an error that names the nearest
known. Imported when a server is served over HTTP; no I/O.
"""

from __future__ import annotations

import os
import sys

from fastrpc.compat.http.apps import Layout
from fastrpc.compat.http.guard import Places
from fastrpc.errors import UsageError, suggestion
from fastrpc.transports.http.asgi import APPLICATION, PLACES
from fastrpc.transports.http.settings import HttpSettings
from fastrpc.transports.http.sockets import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fastrpc.compat.http.interfaces import Served

TOKENS = ("token", "token_file", "auth_servers", "resource", "audience", "scopes", "auth")
"""Options of `Server.asgi` that say who may call."""

OWN = (
    *TOKENS,
    *APPLICATION,
    *PLACES,
    "workers",
    "tls_cert",
    "tls_key",
    "secret",
    "secret_file",
    "access_log",
    "access_log_format",
    "drain_seconds",
    "trace",
    "stats",
)
"""Options of `fastrpc.Server.run`, which are taken too."""

APP_OPTIONS = (
    "path",
    "host",
    "middleware",
    "json_response",
    "stateless_http",
    "mount_path",
    "sse_path",
    "message_path",
    "streamable_http_path",
    "event_store",
    "retry_interval",
    "transport_security",
    "max_request_body_size",
    "session_idle_timeout",
    "max_sessions",
    "host_origin_protection",
    "allowed_hosts",
    "allowed_origins",
    "debug",
)
RUN_OPTIONS = (*APP_OPTIONS, "port", "stateless", "log_level", "show_banner", "uvicorn_config", "sockets")

ANONYMOUS_VARIABLE = "FASTRPC_ALLOW_ANONYMOUS"
NO_TOKEN = (
    "run: {host} can be reached from other machines, and this server asks for no token: whoever reaches it "
    "could call every tool. Set FASTRPC_TOKEN in the environment (clients send Authorization: Bearer …), "
    f"give the server auth= or token_verifier=, or listen on 127.0.0.1. {ANONYMOUS_VARIABLE}=1 in the "
    "environment serves without a token"
)
LOCAL_WITHOUT_TOKEN = (
    "fastrpc: no token is needed: every program on this machine can call these tools; FASTRPC_TOKEN sets one"
)
ANYBODY = f"fastrpc: {ANONYMOUS_VARIABLE}: whoever reaches this address can call every tool, without a token"

WITHOUT_EFFECT = ("app", "factory", "http", "interface", "lifespan", "loop", "reload", "workers", "ws")
"""Options of uvicorn that fastrpc's server decides itself."""


class UnknownOption(UsageError, TypeError):
    """There is no option of this name; Python's own error for that is a TypeError."""


def check_names(what: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise UnknownOption, which names the nearest known one."""
    names = tuple(known)
    for name in options:
        if name not in names:
            raise UnknownOption(f"{what}: there is no option {name}{suggestion(name, names)}")


class Given:
    """Options as they were given, before the settings of the server."""

    def __init__(self, server: Served, options: dict[str, Any]) -> None:
        self._options = options
        self._settings = server.settings

    def __call__(self, name: str, setting: str | None = None) -> Any:
        """Return an option, or the setting of that name."""
        value = self._options.get(name)
        return getattr(self._settings, setting or name) if value is None else value

    def only(self, name: str) -> Any:
        """Return an option; None if it was not given, whatever the settings are."""
        return self._options.get(name)

    def set_explicitly(self, name: str) -> Any:
        """Return an option, or its setting if that is not the default; else None."""
        value = self._options.get(name)
        if value is None and self._settings.is_set(name):
            value = getattr(self._settings, name)
        return value


def layout_of(server: Served, transport: str, options: dict[str, Any], *, address: str | None) -> Layout:
    """Return what is served where, and by which rules. `address` is where `run` listens; None if the program
    mounts the application.

    Raises UsageError, and ValueError for sessions that the transport needs.
    """
    given = Given(server, options)
    is_sse = transport == "sse"
    middleware = list(given.only("middleware") or ())
    stateless = given.only("stateless")
    stateless = bool(given("stateless_http") if stateless is None else stateless)
    if stateless and is_sse:
        if given.only("stateless_http") or given.only("stateless"):
            raise UsageError("stateless_http: the transport sse has sessions; use streamable-http")
        stateless = False
    path = given.only("path")
    return Layout(
        "sse" if is_sse else "streamable-http",
        places=_places(server, given, middleware, address),
        mcp_path=_path("streamable_http_path", path or given("streamable_http_path")),
        sse_path=_path("sse_path", (path if is_sse else None) or given("sse_path")),
        message_path=_path("message_path", given("message_path")),
        mount_path=str(given("mount_path")),
        json_response=bool(given("json_response")),
        stateless=stateless,
        retry_ms=_retry(server, given),
        middleware=middleware,
        debug=bool(given("debug")),
        limits=_limits(given),
    )


def run_settings(server: Served, transport: str, options: dict[str, Any]) -> HttpSettings:
    """Return the settings with which `run` serves. Raises UsageError and TypeError."""
    check_names("run", options, ("http", *RUN_OPTIONS, *OWN))
    given = Given(server, options)
    uvicorn = dict(given.only("uvicorn_config") or {})
    own = {name: options[name] for name in OWN if name not in RUN_OPTIONS and options.get(name) is not None}
    if options.get("auth", 0) is None:
        own["auth"] = None
    own |= _taken_from(uvicorn)
    host, port = uvicorn.pop("host", None) or given("host"), uvicorn.pop("port", None)
    address = own.pop("address", None) or _address(host, given("port") if port is None else port)
    is_local = _is_local(address)
    layout = layout_of(server, transport, options, address=address)
    tokens = _tokens(server, own, host, layout.path, is_local=is_local)
    settings = _RunSettings.from_environment(address, layout=layout, **{**own, **tokens})
    settings.path = layout.path
    settings.uvicorn = _checked_uvicorn(uvicorn)
    return settings


class _RunSettings(HttpSettings):
    """The settings of a server that may be open to everybody, if its operator has said so."""

    @property
    def allows_anonymous(self) -> bool:  # type: ignore[override]
        return allows_anonymous()


def allows_anonymous() -> bool:
    """Return whether the environment allows a server without tokens at any address."""
    return os.environ.get(ANONYMOUS_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


# ---------------------------------------------------------------------------------------- internal


def _tokens(server: Served, own: dict[str, Any], host: Any, path: str, *, is_local: bool) -> dict[str, Any]:
    """Return the options that say who may call. Writes a line if that is anybody; raises UsageError if it
    must not be."""
    from fastrpc.diagnostics import write_line

    if any(name in own for name in TOKENS):
        return {}
    check = server._token_check(path)
    if check is not None:
        return {"token": check}
    if os.environ.get("FASTRPC_TOKEN", "").strip():
        return {}
    if is_local:
        write_line(LOCAL_WITHOUT_TOKEN)
    elif allows_anonymous():
        write_line(ANYBODY)
    else:
        raise UsageError(NO_TOKEN.format(host=host))
    return {"auth": None}


def _is_local(address: str) -> bool:
    return Address.read(address).is_local


def _address(host: Any, port: Any) -> str:
    """Return the address as `HttpSettings` reads it. Raises UsageError."""
    host = str(host).strip() or "0.0.0.0"
    try:
        number = int(port)
    except (TypeError, ValueError):
        raise UsageError(f"port: expected a number, got {port!r:.80}") from None
    return f"[{host}]:{number}" if ":" in host and not host.startswith("[") else f"{host}:{number}"


def _taken_from(uvicorn: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of uvicorn that have another name here, and return them by that."""
    names = {
        "ssl_certfile": "tls_cert",
        "ssl_keyfile": "tls_key",
        "timeout_graceful_shutdown": "drain_seconds",
    }
    taken = {names[name]: uvicorn.pop(name) for name in names if name in uvicorn}
    if uvicorn.pop("access_log", False):
        taken["access_log"] = "-"
    if uvicorn.get("uds"):
        taken["address"] = f"unix:{uvicorn.pop('uds')}"
    for name in WITHOUT_EFFECT:
        uvicorn.pop(name, None)
    return {name: value for name, value in taken.items() if value is not None}


def _checked_uvicorn(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of uvicorn. Raises TypeError for one that it does not have."""
    if options:
        import inspect

        import uvicorn

        check_names("uvicorn_config", options, inspect.signature(uvicorn.Config).parameters)
    return options


def _path(name: str, path: Any) -> str:
    """Return a path. Raises UsageError."""
    if not isinstance(path, str) or not path.startswith("/"):
        raise UsageError(f"{name}: expected a path that begins with /, got {path!r:.80}")
    return path


def _retry(server: Served, given: Given) -> int | None:
    interval = given.only("retry_interval")
    found = server._retry_interval if interval is None else interval
    return None if found is None else int(found)


def _limits(given: Given) -> dict[str, Any]:
    """Return the limits of the application that were given, by their own names."""
    limits: dict[str, Any] = {}
    body = given.set_explicitly("max_request_body_size")
    if body is not None:
        limits["max_body"] = int(body)
    idle = given.only("session_idle_timeout")
    for name in ("session_idle_timeout", "http_session_idle_timeout"):
        if idle is None and given._settings.is_set(name):
            found = getattr(given._settings, name)
            idle = float("inf") if found is None else found
    if idle is not None and idle != "auto":
        limits["session_idle_seconds"] = float(idle)
    if given._settings.is_set("max_sessions") or given.only("max_sessions") is not None:
        most = given("max_sessions")
        limits["max_sessions"] = limits["sessions_per_caller"] = sys.maxsize if most is None else int(most)
    return limits


def _places(server: Served, given: Given, middleware: list[Any], address: str | None) -> Places:
    """Return which hosts and origins requests may have."""
    security = given("transport_security")
    hosts, origins = _named(given, "allowed_hosts"), _named(given, "allowed_origins")
    checked = given("host_origin_protection", "http_host_origin_protection")
    loopback = True if address is None else _is_local(address)
    if security is not None:
        checked = bool(security.enable_dns_rebinding_protection)
        hosts += security.allowed_hosts
        origins += security.allowed_origins
    elif checked is None and address is None:
        # An application that the program mounts is as open as in the original.
        checked = server.dialect.original.startswith("mcp.") and _is_local(_address(given("host"), 0))
    cors = [each for each in middleware if getattr(each.cls, "__name__", "") == "CORSMiddleware"]
    for each in cors:
        origins += each.kwargs.get("allow_origins", ()) if "allow_origin_regex" not in each.kwargs else ["*"]
    return Places(
        True if checked is None else checked,
        loopback=loopback,
        hosts=hosts,
        origins=origins,
        answers_cors=address is not None and not cors,
    )


def _named(given: Given, name: str) -> list[str]:
    found = given(name, f"http_{name}")
    return [found] if isinstance(found, str) else list(found or ())
