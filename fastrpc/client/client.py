"""`Client`: the public class, for use with and without an event loop.

async with Client(["python", "server.py"]) as client:
    result = await client.call_tool("word_count", {"text": "two words"})
    print(result.text)
"""

from __future__ import annotations

from fastrpc.client.asynchronous import AsyncClient
from fastrpc.client.sync import SyncClient
from fastrpc.client.targets import SCHEMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Literal

    from typing_extensions import Unpack

    from fastrpc.client.options import ClientOptions
    from fastrpc.client.targets import Target

    Names = Literal["prefix", "mcp"]
    Config = os.PathLike[str] | dict[str, Any]
    """A file with servers, or its content."""


class Client(AsyncClient):
    """A client of one MCP server, in one event loop. Use it with ``async with``, or `connect` and `close`.

    `target`: a command (a list of str), which the client starts and ends; the http or https URL of a server,
    whose transport is detected; a `fastrpc.Server`, which is called in memory; or the path of a configuration
    file (``.mcp.json``), or a dict with ``mcpServers``: a single server there is connected directly, several
    are combined, and their tools and prompts are named ``SERVER_NAME``, with ``names="mcp"``
    ``mcp__SERVER__NAME`` (see docs/gateway.md). Options of a command: `cwd`; `env`, variables to add to this
    process's environment; `stderr`, False to not forward the server's standard error. Options of a URL:
    `token`, the bearer token, a str or a function that returns one for each request; `auth`, ``"oauth"``,
    `OAuth` or `ClientCredentials` (`fastrpc.client`) for tokens by OAuth; `headers`, additional headers;
    `tls_ca`, a file of CA certificates to trust instead of the default ones.

    `version` sets the protocol version; by default it is the latest that both sides support.
    `timeout_seconds`: the time limit of a request, 600 by default (0: none), which each progress notification
    restarts; `max_seconds`: the most that it may take with them, 3600 by default (0: no bound). Calls, reads
    and prompts ask for progress if a limit or `on_progress` is given. `start_seconds`: the time limit of the
    handshake. With `restart`, a request to a server that has exited starts it again, and a request in an
    expired HTTP session is sent in a new one; requests in flight fail in any case.

    `on_elicit`, `on_sample` and `roots` answer the server's requests in any version: each is a value, or a
    function of the request's params, synchronous or asynchronous. `on_elicit` returns the filled-in form as a
    dict, True to accept a form without fields, False to decline, None to cancel; `on_sample` a text, a
    content block or a whole CreateMessageResult; `roots` a list of URIs or of ``{"uri", "name"}``. The
    pending requests raise the exception of a handler; a RemoteError is sent to the server as an error
    response. `on_log`, `on_progress` and `on_notification` are called with the params of each log message, of
    each progress notification, and with ``{"method", "params"}`` of every notification. `log_level` is the
    minimum level of log messages. `capabilities` replaces the capabilities that the handlers provide.

    Methods raise ClientError: RemoteError for an error of the server, ConnectionLost, RequestTimeout,
    InvalidAnswer, AuthorizationFailed. Raises TypeError and ValueError for an invalid target, InvalidConfig
    (a ValueError) for a file that cannot be read.
    """

    def __init__(
        self, target: Target | Config, *, names: Names = "prefix", **options: Unpack[ClientOptions]
    ) -> None:
        resolved, options = _resolved(target, options, names)
        super().__init__(resolved, **options)

    @staticmethod
    def sync(
        target: Target | Config, *, names: Names = "prefix", **options: Unpack[ClientOptions]
    ) -> SyncClient:
        """Return a client with the same methods that needs no event loop::

        with Client.sync(["python", "server.py"]) as client:
            print(client.call_tool("word_count", {"text": "two words"}).text)
        """
        resolved, options = _resolved(target, options, names)
        return SyncClient(resolved, **options)


def _resolved(target: Any, options: ClientOptions, names: Names) -> tuple[Any, ClientOptions]:
    """Return the target and options for the path of a file with servers, or its content; any other as is."""
    if isinstance(target, str):
        is_config = target.endswith(".json") and not target.lower().startswith(SCHEMES)
    else:
        is_config = isinstance(target, dict) or hasattr(target, "__fspath__")
    if not is_config:
        return target, options
    from fastrpc.gateway.client_targets import resolved

    return resolved(target, options, names)
