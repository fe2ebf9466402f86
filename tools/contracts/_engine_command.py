"""``fastrpc contracts engine``: serves the embedded engine over HTTP, for other programs.

Tachyon's wire at ``/rpc`` (`_engine_endpoint`), so that its clients and bridges work unchanged; the tools
over MCP at ``/mcp``, too. One process serves one project, that of its working directory, and shares its files
and its chain with the other servers of the project. Who may use it, and all limits of HTTP, are those of
`fastrpc serve --http`.
"""

from __future__ import annotations

import os
import sys

from fastrpc import Server, UsageError, __version__
from fastrpc.settings import PARSERS

from . import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.command_line import CommandParser

ADDRESS = "127.0.0.1:8645"
PATH = "/rpc"
MOST_BODY = 32 * 1024 * 1024
EXAMPLES = """\
  fastrpc contracts engine --token-file token
  fastrpc contracts engine --http 127.0.0.1:0 --no-auth
"""


def main(arguments: list[str]) -> int:
    """Serve until a signal arrives. Raises UsageError."""
    given = vars(_parser().parse(arguments))
    _enter(given.pop("cwd"))
    if given.pop("project_config"):
        os.environ[_settings.PROJECT_CONFIG.name] = "true"
    if given["drain_seconds"] is not None:
        given["drain_seconds"] = _seconds(given["drain_seconds"])
    if given.pop("no_auth"):
        if given["token_file"] or os.environ.get("FASTRPC_TOKEN"):
            raise UsageError("--no-auth excludes --token-file and FASTRPC_TOKEN")
        given["auth"] = None
    hosts = given.pop("allow_host")
    options = {name: value for name, value in given.items() if value is not None or name == "auth"}
    os.environ.pop(_settings.ENGINE.name, None)  # it may name this very server, which would then ask itself

    from ._engine_endpoint import EngineEndpoint

    server = Server("contracts", version=__version__)
    server.include(sys.modules[__package__])
    server.http_endpoints[PATH] = EngineEndpoint()
    options["max_body"] = MOST_BODY
    server.run(**options, **({"hosts": hosts} if hosts else {}))
    return 0


def _parser() -> CommandParser:
    from fastrpc.command_line import CommandParser

    what = (
        f"Serve the contracts engine of this project over HTTP, in JSON-RPC 2.0 at {PATH}, until a signal "
        "arrives. A token is needed: --token-file, or FASTRPC_TOKEN in the environment."
    )
    usage = "[--http HOST:PORT] [--token-file FILE | --no-auth] [OPTION…]"
    parser = CommandParser("contracts engine", usage, what, EXAMPLES)
    parser.add_argument(
        "--http", metavar="HOST:PORT", default=ADDRESS, help=f"default: {ADDRESS}; port 0: any free one"
    )
    parser.add_argument("--token-file", metavar="FILE", help="the tokens that open it, one a line")
    parser.add_argument("--no-auth", action="store_true", help="no token; for loopback addresses only")
    parser.add_argument("--allow-host", metavar="HOST", action="append", help="answer to this name too")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate, for https")
    parser.add_argument("--tls-key", metavar="FILE", help="and its key")
    parser.add_argument("--cwd", metavar="DIR", help="serve the project of DIR; files are looked up there")
    parser.add_argument("--project-config", action="store_true", help=_settings.PROJECT_CONFIG.description)
    parser.add_argument("--drain-seconds", metavar="N", help="at the end, requests may still take N s (5)")
    parser.add_argument("--access-log", metavar="FILE", help="append a line a request; -: to stderr")
    parser.add_argument("--access-log-format", metavar="FORMAT", help="text (the default) or json")
    return parser


def _enter(folder: str | None) -> None:
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            raise UsageError(f"--cwd {folder}: {error.strerror}") from None


def _seconds(text: str) -> float:
    try:
        seconds: float = PARSERS["seconds"](text)
    except ValueError as error:
        raise UsageError(f"--drain-seconds: {error}, got {text!r}") from None
    return seconds
