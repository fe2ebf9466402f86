"""``fastrpc contracts engine``: serves the embedded engine over HTTP, for other bridges and for tests.

The wire is tachyon's, so that its clients work unchanged: ``POST /rpc``, JSON-RPC 2.0 (`wire`); HTTP itself
is `connection`'s. Nobody may use it without a token (`access`). One process serves one project, that of its
working directory, and shares its files and its chain with the other servers of the project. A request costs
some 0.1 ms besides the engine's own work. Standard output stays empty.
"""

from __future__ import annotations

import os
import socket

from fastrpc import UsageError

from .. import _settings
from . import access

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

ADDRESS = "127.0.0.1:8645"
DRAIN_SECONDS = 5.0
"""Seconds that requests may still take after the signal; container systems send SIGKILL after ten."""
BACKLOG = 128
MISSING = 'httptools is not installed; pip install "fastrpc-mcp[contracts,http]"'
EXAMPLES = """\
  fastrpc contracts engine --token-file token
  fastrpc contracts engine --http 127.0.0.1:0 --no-auth
"""


def main(arguments: list[str]) -> int:
    """Serve until a signal arrives. Raises UsageError."""
    from importlib.util import find_spec

    options = _options(arguments)
    if find_spec("httptools") is None:
        raise _mistake(MISSING)
    host, port = _address(options.http)
    try:
        tokens = access.tokens(host, options.token_file, open_to_all=options.no_auth)
    except ValueError as error:
        raise _mistake(str(error)) from None
    os.environ.pop(_settings.ENGINE.name, None)  # it may name this very server, which would then ask itself
    listener = _listen(host, port)

    from fastrpc import Server

    from .server import EngineServer

    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listener.getsockname()[1]}/rpc"
    engine = EngineServer(listener, url, access.Access(tokens, host))
    # Of the server nothing but its event loop is used, its signals and the order of its end.
    Server("contracts-engine").run(transport=engine, drain_seconds=DRAIN_SECONDS)
    return 0


def _options(arguments: list[str]) -> Namespace:
    from fastrpc.command_line import CommandParser

    what = (
        "Serve the contracts engine of this project over HTTP, in JSON-RPC 2.0 at /rpc, until a signal "
        "arrives. A token is needed: --token-file, or FASTRPC_TOKEN in the environment."
    )
    usage = "[--http HOST:PORT] [--token-file FILE | --no-auth]"
    parser = CommandParser("contracts engine", usage, what, EXAMPLES)
    parser.add_argument(
        "--http", metavar="HOST:PORT", default=ADDRESS, help=f"default: {ADDRESS}; port 0: any free one"
    )
    parser.add_argument("--token-file", metavar="FILE", help="the tokens that open it, one a line")
    parser.add_argument("--no-auth", action="store_true", help="no token; for loopback addresses only")
    return parser.parse(arguments)


def _address(text: str) -> tuple[str, int]:
    """Read ``HOST:PORT``. Raises UsageError."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""  # an IPv6 address without its brackets: which colon is the port's?
    if not (host and port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
        raise _mistake(f"--http: expected HOST:PORT or [IPV6]:PORT, got {text!r:.120}")
    return host, int(port)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; a name stands for its IPv4 address. Raises UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except UnicodeError:
        raise _mistake(f"--http: {host:.100}: this is no name of a host") from None
    except OSError as error:
        is_resolver = isinstance(error, socket.gaierror)  # whose numbers are others
        reason = error.strerror if is_resolver else os.strerror(error.errno or 0)
        raise _mistake(f"--http: {host:.100}:{port}: {reason}") from None
    listener.setblocking(False)
    return listener


def _mistake(text: str) -> UsageError:
    return UsageError(f"contracts engine: {text}")
