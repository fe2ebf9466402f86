"""`GuardedServer`: a server of a program, with the guard that a file describes.

    from fastrpc.guard import GuardedServer

    GuardedServer(app, "guard.toml").run()

It does for a program what `fastrpc serve --guard` does for a file: `run` and `asgi` are those of `Server`,
with the guard applied. Imports what a guarded server needs.
"""

from __future__ import annotations

import os

from fastrpc.definitions.registry import settle_or_exit
from fastrpc.guard.serving import GuardedServing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc.options import AsgiOptions, HttpOptions
    from fastrpc.server import Server
    from fastrpc.transports.http.asgi import Application


class GuardedServer:
    """A server, and the guard of a file: ``guard.toml``, or the table ``[guard]`` of ``fastrpc.toml``.

    The file is read when serving begins, and polled for changes from then on (docs/guard.md). Serve it once.
    """

    def __init__(self, server: Server, path: str | PathLike[str]) -> None:
        self._server = server
        self._path = os.fspath(path)

    def run(
        self,
        *,
        http: str | None = None,
        drain_seconds: float | None = None,
        trace: str | None = None,
        stats: bool = False,
        **options: Unpack[HttpOptions],
    ) -> None:
        """Serve as `Server.run` does. Over HTTP, the guard's tokens and those of the options are valid;
        without either, the tokens of the guard's database are, which ``fastrpc token create`` makes. Raises
        UsageError, also for an unusable file."""
        settle_or_exit([self._server.registries])
        if http is None:
            guarded = GuardedServing(self._path, "stdio").guarded(self._server)
            guarded.run(drain_seconds=drain_seconds, trace=trace, stats=stats, **options)  # type: ignore[call-overload]
            return
        from fastrpc.transports.http.run import run
        from fastrpc.transports.http.settings import SECRETS, HttpSettings

        given: dict[str, Any] = {**options}
        serving = serving_over_http(self._path, given, has_token=bool(os.environ.get(SECRETS[0])))
        settings = HttpSettings.from_environment(
            http, drain_seconds=drain_seconds, trace=trace, stats=stats, **given
        )
        run(lambda: serving.guarded(self._server), settings)

    def asgi(self, **options: Unpack[AsgiOptions]) -> Application:
        """Return an ASGI application, as `Server.asgi` does. Rates are counted in each process separately, if
        the ASGI server has several. Raises UsageError."""
        given: dict[str, Any] = {**options}
        serving_over_http(self._path, given).guarded(self._server)
        return self._server.asgi(**given)


def serving_over_http(
    path: str, options: dict[str, Any], *, has_token: bool = False, makes_tokens: bool = False
) -> GuardedServing:
    """Read the file of a guard over HTTP, and add its settings about callers to `options`, those of
    `Server.asgi`. `has_token`: there is a token besides these options; `makes_tokens`: there are pages that
    make tokens. Raises UsageError."""
    from fastrpc.transports.http.auth import CALLER_OPTIONS

    is_open = options.get("auth", "needed") is None
    others = has_token or any(options.get(name) is not None for name in CALLER_OPTIONS)
    needs_tokens = not others and not is_open
    serving = GuardedServing(path, "http", needs_tokens=needs_tokens, makes_tokens=makes_tokens)
    if serving.has_tokens and not is_open:
        serving.token_sources += options.get("token_sources") or ()
        options["token_sources"] = serving.token_sources
    principal_of = serving.principal_of(options.get("auth_servers") or ())
    if principal_of is not None:
        options["principal_of"] = principal_of
    return serving
