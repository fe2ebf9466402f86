"""``fastrpc bridge URL``: offers a remote server over standard input and output, for clients without HTTP.

It is a proxy of the URL without other features; client and remote server may use different protocol versions.
The token comes from the environment or a file, never from the command line, which other users can read. Exit
code 1 if the remote server could never be used.
"""

from __future__ import annotations

import os
from argparse import Namespace

from fastrpc.cli import WAITS_FOR_CLIENT, configuration, parser
from fastrpc.cli._credentials import add_options, headers_of, token_in
from fastrpc.cli._durations import time_limit, waiting_time
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.proxy import UpstreamServer

TOKEN_VARIABLE = "FASTRPC_BRIDGE_TOKEN"
START_SECONDS = 30.0
DRAIN_SECONDS = 10.0

EXAMPLES = f"""\
  fastrpc bridge https://mcp.example.com/mcp
  {TOKEN_VARIABLE}=… fastrpc bridge https://mcp.example.com/mcp
  fastrpc bridge https://mcp.example.com/mcp --auth oauth
  fastrpc bridge https://mcp.example.com/mcp --header X-Api-Key=EXAMPLE_KEY
"""


def main(arguments: list[str]) -> int:
    """Serve until the client disconnects; return the exit code."""
    options = _parse(arguments)
    os.environ["FASTRPC_LOG_LEVEL"] = options.log_level or configuration()["FASTRPC_LOG_LEVEL"]
    from fastrpc.errors import DefinitionError
    from fastrpc.server import Server

    if not options.url.lower().startswith(("http://", "https://")):
        raise UsageError(f"expected an http or https URL, got {options.url!r:.80}")
    try:
        server = Server.proxy(
            options.url,
            name="fastrpc bridge",
            version=__version__,
            token=token_of(options.token_file),
            auth=options.auth,
            headers=headers_of(options.header),
            tls_ca=options.tls_ca,
            protocol_version=options.protocol,
            start_seconds=options.timeout,
        )
    except DefinitionError as error:
        raise UsageError(str(error).removeprefix("proxy: ")) from None
    source: UpstreamServer = server._upstream
    source.shows_itself = True
    source.limit_hint = " (--timeout sets the limit)"
    source.on_slow = lambda awaited, left: write_line(
        f"fastrpc: {source.target.shown}: waiting for {awaited}, {left:g} s more at most (--timeout)"
    )
    if os.isatty(0):
        write_line(WAITS_FOR_CLIENT)
    server.run(drain_seconds=options.drain_seconds, trace=options.trace)
    if source.failure is not None and not source.starts:
        write_line(f"fastrpc: {source.failure}")
        return 1
    return 0


def _parse(arguments: list[str]) -> Namespace:
    from fastrpc.command_line import described
    from fastrpc.settings import LOG_LEVELS

    options = parser("bridge", "URL [OPTION…]", EXAMPLES)
    token = f"The token of the remote server is taken from {TOKEN_VARIABLE}."
    options.epilog = f"{described('', token)}\n\n{options.epilog}"
    options.add_argument("url", metavar="URL", help="the address of the remote server, http or https")
    add_options(options)
    options.option("--tls-ca FILE", "trust the certificate authorities in FILE instead of the system's")
    options.option("--protocol VERSION", "speak this version with the remote server")
    options.option(
        "--timeout N",
        f"seconds to connect and to list what the server has ({START_SECONDS:g}); calls have no limit",
        type=time_limit,
        default=START_SECONDS,
    )
    options.option(
        "--drain-seconds N",
        f"when the input ends, wait up to N seconds for running calls ({DRAIN_SECONDS:g})",
        type=waiting_time,
        default=DRAIN_SECONDS,
    )
    options.option(
        "--log-level LEVEL", "the lowest level that is logged, to stderr (warning)", choices=LOG_LEVELS
    )
    options.option("--trace FILE", "append every message received and sent to FILE, secrets masked")
    return options.parse(arguments)


def token_of(path: str | None) -> str | None:
    """Return the token, or None. It is removed from the environment, which child processes inherit."""
    given = os.environ.pop(TOKEN_VARIABLE, "").strip()
    if path is None:
        return given or None
    if given:
        raise UsageError(f"--token-file and {TOKEN_VARIABLE} exclude each other")
    return token_in(path)
