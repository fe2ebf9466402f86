"""``fastrpc dev --http``: the file over HTTP, with reloads that clients do not notice.

`fastrpc dev FILE` runs as a child process; this process is a proxy of it that serves HTTP, so sessions last
while servers are replaced. In a terminal, where textual is installed, it shows the calls as a table
(`_dev_view`); elsewhere the child writes each message to standard error, as without HTTP.
"""

from __future__ import annotations

import os
import sys

from fastrpc.cli import configuration
from fastrpc.cli._own_server import own_command
from fastrpc.errors import UsageError
from fastrpc.transports.http.settings import HttpSettings
from fastrpc.transports.http.sockets import Address
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def serve(target: str, address: str, *, plain: bool) -> int:
    """Serve until a signal or the view's end. Return the exit code. `plain`: no view. Raises UsageError."""
    os.environ["FASTRPC_LOG_LEVEL"] = configuration()["FASTRPC_LOG_LEVEL"]
    from fastrpc.server import Server

    server = Server.proxy(own_command("dev", [target]), name=os.path.basename(target), version=__version__)
    server._upstream.shows_itself = True
    options: dict[str, Any] = {}
    if not os.environ.get("FASTRPC_TOKEN"):
        options["auth"] = None
        if not Address.read(address).is_local:
            raise UsageError(
                f"--http {address}: without FASTRPC_TOKEN in the environment dev serves loopback addresses "
                "only, such as 127.0.0.1:8000"
            )
    if plain or not _has_view():
        server.run(http=address, drain_seconds=1.0, **options)
        return 0
    from fastrpc.cli._dev_view import show

    return show(server, target, address, HttpSettings.from_environment(address, drain_seconds=1.0, **options))


def _has_view() -> bool:
    """Whether the calls can be shown as a table: at a terminal, if textual is installed."""
    from importlib.util import find_spec

    streams = (sys.stdin, sys.stdout, sys.stderr)
    at_terminal = all(stream is not None and stream.isatty() for stream in streams)
    return at_terminal and os.environ.get("TERM", "dumb") != "dumb" and find_spec("textual") is not None
