"""``fastrpc contracts engine``: serves the embedded engine over HTTP, for other programs.

It serves tachyon's wire format at ``/rpc`` (`_engine_endpoint`), so that its clients and bridges work
unchanged, and the tools over MCP at ``/mcp``. One process serves one project, that of its working directory,
and shares its files and its chain with the other servers of the project. Access, options and limits of HTTP
are those of `fastrpc serve --http`, except a guard, which would protect only ``/mcp``.
"""

from __future__ import annotations

import os
import sys

from fastrpc import Server, __version__

from . import _settings

ADDRESS = "127.0.0.1:8645"
PATH = "/rpc"
MOST_BODY = 32 * 1024 * 1024
PROJECT_CONFIG = "--project-config"
DESCRIPTION = f"""\
Serve the contracts engine of this project over HTTP, in JSON-RPC 2.0 at {PATH}, and its tools
over MCP, until a signal arrives. A token is needed: --token-file, --auth-server, or FASTRPC_TOKEN
in the environment. Without --http it serves at {ADDRESS}."""
EXAMPLES = """\
  fastrpc contracts engine --token-file token
  fastrpc contracts engine --http 127.0.0.1:0 --no-auth
"""


def main(arguments: list[str]) -> int:
    """Serve until a signal arrives. Raises UsageError."""
    from fastrpc.cli.http_command import HttpCommand

    flags = {PROJECT_CONFIG: _settings.PROJECT_CONFIG.description}
    command = HttpCommand("contracts engine", DESCRIPTION, EXAMPLES, address=ADDRESS, flags=flags)
    return command.run(arguments, _server, max_body=MOST_BODY)


def _server(flags: list[str]) -> Server:
    if PROJECT_CONFIG in flags:
        os.environ[_settings.PROJECT_CONFIG.name] = "true"
    os.environ.pop(_settings.ENGINE.name, None)  # it may name this server, which would then ask itself

    from ._engine_endpoint import EngineEndpoint

    server = Server("contracts", version=__version__)
    server.include(sys.modules[__package__])
    server.http_endpoints[PATH] = EngineEndpoint()
    return server
