"""``fastrpc gateway FILE``: serves all servers of a configuration file as one, and reports their states.

It serves as `fastrpc serve` does, with its options; `fastrpc.gateway` is the server. A variable passes the
files that are being served to child processes, so that a gateway does not start itself. ``gateway status`` is
in `_gateway_status`.
"""

from __future__ import annotations

import os

from fastrpc.cli import WAITS_FOR_CLIENT, configuration, serve
from fastrpc.diagnostics import write, write_line
from fastrpc.errors import InvalidConfig, Reworded, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.gateway.status import StatusReporter
    from fastrpc.gateway.watched_file import WatchedFile
    from fastrpc.server import Server
    from fastrpc.settings import Configuration

HELP = f"""\
usage: fastrpc gateway [OPTION…] [FILE]
       fastrpc gateway status [--json] [FILE]
       fastrpc gateway status [--json] --http URL [--token-file FILE]

Serve all servers of a configuration file as one server, or show the state of each.

FILE is a configuration of an MCP client, with mcpServers; by default the nearest .mcp.json, in the
working directory or above. The gateway starts a server when a client needs it, and again if the
server has ended. It follows changes of FILE. 'fastrpc serve --help' explains what both have in
common.

options:
  --allow GLOBS         show only these tools: GLOB,… or SERVER:GLOB,…; may be repeated (MCP_ALLOW)
  --deny GLOBS          do not show these tools, whatever is allowed; may be repeated (MCP_DENY)
  --names STYLE         prefix: SERVER_TOOL (the default); mcp: mcp__SERVER__TOOL
  --start-seconds N     seconds in which a server must start and list what it has (30)
  --cwd DIR             change to the folder DIR first
{serve.GUARD_HELP}  --name NAME           the gateway's name, as clients see it
{serve.CALLS_HELP}  --stats               print each tool's calls, errors, p50 and p99 to stderr
  --json                for status: print JSON
  -h, --help            show this

{serve.HTTP_HELP}{serve.TLS_HELP}
examples:
  fastrpc gateway
  fastrpc gateway ~/.config/mcp.json --deny '*delete*'
  fastrpc gateway --allow 'github:get_*,list_*' --allow 'files:*'
  fastrpc gateway mcp.json --http 127.0.0.1:8000 --token-file token
  fastrpc gateway status
"""
OWN_OPTIONS = {"--allow": ";", "--deny": ";", "--names": "", "--start-seconds": ""}
AROUND = "FASTRPC_GATEWAYS"
"""The variable with the files that a process and its ancestors serve, separated as in PATH."""


def main(arguments: list[str]) -> int:
    """Serve until the session ends; return the exit code. Raises UsageError."""
    if arguments[:1] == ["status"]:
        from fastrpc.cli._gateway_status import show

        return show(arguments[1:])
    if "--help" in arguments or "-h" in arguments:
        from fastrpc.command_line import write_help

        write_help(HELP)
        return 0
    options, files = serve.split_arguments(arguments, "gateway", OWN_OPTIONS)
    for_http = serve.is_for_http(options)
    serve.enter(options.get("--cwd"))
    settings = configuration(serve.setting_texts(options))
    serve.apply(settings)
    if settings["FASTRPC_WORKERS"] > 1:
        raise UsageError("gateway: one process serves, since servers keep state; leave --workers out")
    file = _file_of(files)
    reports: list[StatusReporter] = []

    def make() -> Server:
        return _server(file, options, settings, reports)

    try:
        if for_http:
            from fastrpc.cli import _serve_http

            _serve_http.serve(options, settings, make)
        else:
            serve.serve_over_stdio(options, settings, make, lambda: write_line(WAITS_FOR_CLIENT))
    finally:
        for report in reports:
            report.close()
    return 0


def _file_of(files: list[str]) -> WatchedFile:
    """Return the file to serve. Raises UsageError if there is none, or if an ancestor process serves it."""
    from fastrpc.client.config import FILE_NAME, find_config
    from fastrpc.gateway.watched_file import WatchedFile

    if len(files) > 1:
        raise UsageError(f"gateway: expected one file, got {files[0]!r} and {files[1]!r}")
    path = files[0] if files else find_config()
    if path is None:
        raise UsageError(f"gateway: there is no {FILE_NAME} here or above; name a file")
    place = os.path.realpath(path)
    around = [each for each in os.environ.get(AROUND, "").split(os.pathsep) if each]
    if place in around:
        raise UsageError(f"gateway: {path} has this gateway as one of its servers, so it would start itself")
    os.environ[AROUND] = os.pathsep.join([*around, place])
    with Reworded(InvalidConfig, UsageError, "gateway: "):
        return WatchedFile(os.path.abspath(path), None if files else os.path.dirname(place))


def _server(
    file: WatchedFile, options: dict[str, str], settings: Configuration, reports: list[StatusReporter]
) -> Server:
    """Return the gateway's server, and add its report to `reports`. Raises UsageError."""
    from fastrpc.gateway import START_SECONDS, gateway_of
    from fastrpc.gateway.names import STYLES
    from fastrpc.gateway.rules import Rules
    from fastrpc.gateway.status import Health, StatusReporter
    from fastrpc.gateway.watched_file import CHECK_SECONDS
    from fastrpc.settings import parse_seconds

    style = options.get("--names", "prefix")
    if style not in STYLES:
        raise UsageError(f"--names: expected one of {', '.join(STYLES)}, got {style!r}")
    with Reworded(ValueError, UsageError, "--start-seconds: ", f", got {options.get('--start-seconds')!r}"):
        seconds = parse_seconds(options["--start-seconds"]) if "--start-seconds" in options else START_SECONDS
    with Reworded(InvalidConfig, UsageError, "gateway: "):
        rules = Rules(
            [options.get("--allow", settings["MCP_ALLOW"])], [options.get("--deny", ""), settings["MCP_DENY"]]
        )
    for name in ("MCP_ALLOW", "MCP_DENY"):  # a gateway behind this one has different servers
        os.environ.pop(name, None)
    server, file.gateway = gateway_of(
        file.servers,
        name=options.get("--name", "fastrpc gateway"),
        rules=rules,
        style=style,
        start_seconds=seconds,
        folder=file.folder,
    )
    if settings["FASTRPC_MAX_IN_FLIGHT"] is not None:
        server.max_in_flight = settings["FASTRPC_MAX_IN_FLIGHT"]
    server.watch(file.poll, CHECK_SECONDS)
    health = Health(file.path, options.get("--http", "stdio"), server, file.gateway)
    if "--http" in options:
        health.offer()
    try:
        reports.append(StatusReporter(settings["FASTRPC_STATE_DIR"], health))
    except OSError as error:
        write("warning", f"'fastrpc gateway status' will not find this gateway: {error}")
    return server
