"""`Client`: the public class, which leads to both forms of the client.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("word_count", {"text": "two words"})
        print(result.text)

Its methods are in `fastrpc.client.asynchronous`, those of the form without an event loop in
`fastrpc.client.sync`.
"""

from __future__ import annotations

from fastrpc.client.asynchronous import AsyncClient
from fastrpc.client.sync import SyncClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fastrpc.client.options import ClientOptions
    from fastrpc.client.targets import Target


class Client(AsyncClient):
    """A client of one MCP server, in one event loop. Use it with ``async with``, or `connect` and `close`.

    `target`: a command (a list of str) that is started and ended with the client; the http or https URL of a
    server, whose transport is found out; or a `fastrpc.Server`, which is served in memory. Options of a
    command: `cwd`; `env`, variables besides this process's own; `stderr`, False to keep what the server
    writes there to itself. Options of a URL: `token`, the bearer token, a str or a function that returns one
    for each request; `headers`, additional headers; `tls_ca`, a file of CA certificates to trust instead of
    the default ones.

    `version` pins the protocol version; by default it is the latest that both sides speak. `timeout_seconds`
    is the time limit of a request (0: none), which progress begins anew; `start_seconds` that of the
    handshake. With `restart` a request to a server that has ended starts it again, and one for which the
    server does not know the session any more is sent in a new one; what was in flight fails in any case.

    `on_elicit`, `on_sample` and `roots` answer the server's requests in any version: each is a value, or a
    function of the request's params, synchronous or not. `on_elicit` returns the filled-in form as a dict,
    True to accept a form without fields, False to decline, None to cancel; `on_sample` a text, a content
    block or a whole CreateMessageResult; `roots` a list of URIs or of ``{"uri", "name"}``. An exception of a
    handler is raised by the pending requests; a RemoteError is sent to the server as an error response.
    `on_log`, `on_progress` and `on_notification` are called with the params of each log message, of each
    progress notification, and with ``{"method", "params"}`` of every notification. `log_level` is the minimum
    level of log messages. `capabilities` replaces the capabilities that follow from the handlers.

    Methods raise ClientError: RemoteError for an error of the server, ConnectionLost, RequestTimeout,
    InvalidAnswer.
    """

    @staticmethod
    def sync(target: Target, **options: Unpack[ClientOptions]) -> SyncClient:
        """Return a client with the same methods that needs no event loop::

        with Client.sync(["python", "server.py"]) as client:
            print(client.call_tool("word_count", {"text": "two words"}).text)
        """
        return SyncClient(target, **options)
