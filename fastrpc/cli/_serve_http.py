"""``fastrpc serve --http``: serves over HTTP according to options and settings.

Only commands that serve over HTTP import it, so a stdio server does not pay for it. Secrets are removed from
the environment before any tool is imported, so that neither tools nor their programs inherit them.
"""

from __future__ import annotations

from functools import partial
from mmap import mmap

from fastrpc.definitions.registry import settle_or_exit
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.server import Server
    from fastrpc.settings import Configuration

EXCLUDING = (
    ("--no-auth", "--token-file"),
    ("--no-auth", "--auth-server"),
)
NEEDING = (
    ("--tls-cert", "--tls-key"),
    ("--tls-key", "--tls-cert"),
    ("--resource", "--auth-server"),
    ("--audience", "--auth-server"),
    ("--scope", "--auth-server"),
    ("--access-log-format", "--access-log"),
    ("--dashboard", "--guard"),
)


def check(options: dict[str, str], given: list[str]) -> None:
    """Raise UsageError for options that exclude or require others. `given`: those for HTTP, at least one."""
    if "--http" not in options:
        raise UsageError(f"{given[0]} is for HTTP: give --http HOST:PORT too")
    for one, other in EXCLUDING:
        if one in options and other in options:
            raise UsageError(f"{one} and {other} exclude each other")
    for one, other in NEEDING:
        if one in options and other not in options:
            raise UsageError(f"{one} needs {other} too")


def serve(
    options: dict[str, str],
    settings: Configuration,
    make: Callable[[], Server],
    *,
    max_body: int | None = None,
) -> None:
    """Serve what `make` returns until a signal. `max_body`: bytes, not the setting. Raises UsageError."""
    from fastrpc.transports.http.auth import take
    from fastrpc.transports.http.run import run
    from fastrpc.transports.http.settings import SECRETS, HttpSettings

    token = _token(options, settings)
    secret = settings["FASTRPC_SECRET"]
    for name in SECRETS:
        take(name)
    drained = settings.origin("FASTRPC_DRAIN_SECONDS") != "default"
    application: dict[str, Any] = {
        "token": token,
        "token_file": options.get("--token-file"),
        "auth_servers": _several(options, "--auth-server"),
        "resource": options.get("--resource"),
        "audience": options.get("--audience"),
        "scopes": _several(options, "--scope"),
        "hosts": _several(options, "--allow-host"),
        "origins": _several(options, "--allow-origin"),
        "max_body": max_body or settings["FASTRPC_HTTP_BODY_BYTES"],
        "max_bodies": settings["FASTRPC_HTTP_BODIES_BYTES"],
        "max_sessions": settings["FASTRPC_HTTP_SESSIONS"],
        "session_idle_seconds": settings["FASTRPC_HTTP_SESSION_SECONDS"],
        "health": settings["FASTRPC_HTTP_HEALTH"],
    }
    if "--no-auth" in options:
        application["auth"] = None
    serving = None
    if "--guard" in options:
        from fastrpc.guard.guarded_server import serving_over_http

        has_pages = "--dashboard" in options
        serving = serving_over_http(options["--guard"], application, makes_tokens=has_pages)
    http = HttpSettings(
        options["--http"],
        workers=settings["FASTRPC_WORKERS"],
        tls_cert=options.get("--tls-cert"),
        tls_key=options.get("--tls-key"),
        drain_seconds=settings["FASTRPC_DRAIN_SECONDS"] if drained else None,
        notice_seconds=settings["FASTRPC_NOTICE_SECONDS"],
        secret=secret,
        secret_file=settings["FASTRPC_SECRET_FILE"],
        trace=options.get("--trace"),
        stats="--stats" in options,
        access_log=options.get("--access-log"),
        access_log_format=options.get("--access-log-format", "text"),
        **application,
    )
    is_checked = mmap(-1, 1)  # shared by the workers, so that only one of them warns

    def made() -> Server:
        server = make()
        server.warns = False  # `settle_or_exit` warns, in one of the workers
        if not is_checked[0]:
            is_checked[0] = 1
            settle_or_exit(each.registries for each in server._with_mounts())
        if serving is not None:
            serving.guarded(server)
            if "--dashboard" in options:
                from fastrpc.dashboard.front import sources_of, with_dashboard

                workers = settings["FASTRPC_WORKERS"]
                server.http_fronts.append(with_dashboard(sources_of(server, serving, workers)))
        return server

    if serving is not None and "--dashboard" in options:
        from fastrpc.cli.dashboard import announce_link_at

        file = serving.path if serving.config.database else ""
        http.on_listening = partial(announce_link_at, serving.database_url, file)
    run(made, http)


def _token(options: dict[str, str], settings: Configuration) -> str | None:
    """Return the token of the settings, validated like one from a file. Raises UsageError."""
    if settings["FASTRPC_TOKEN"] == "":
        return None
    where = settings.origin("FASTRPC_TOKEN")
    if "--no-auth" in options:
        raise UsageError(f"--no-auth, but FASTRPC_TOKEN is set ({where}): give one of them")
    if "--token-file" in options and where != "environment":
        write_line(
            f"fastrpc: warning: {where}: FASTRPC_TOKEN is valid, too, besides the tokens of --token-file"
        )
    from fastrpc.transports.http.auth import token_from_environment

    return token_from_environment({"FASTRPC_TOKEN": settings["FASTRPC_TOKEN"]})


def _several(options: dict[str, str], name: str) -> list[str] | None:
    """Return the values of an option that may be repeated."""
    from fastrpc.settings import parse_names

    return list(parse_names(options[name])) if name in options else None
