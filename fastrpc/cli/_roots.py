"""Changes the working directory of a server started in ``/``, as by desktop clients, to the only root.

The first tool call waits until the client has sent its roots, if it declares them. If there is exactly one
and it is a folder, the server changes to it and loads the settings there, which may switch tools off
(`fastrpc.settings`). Otherwise the server stays in the home folder. The client is asked once in the life of
the process; later calls run without the hook. Imported only after a start in ``/``.
"""

from __future__ import annotations

import os

from fastrpc.diagnostics import write_line
from fastrpc.errors import FastrpcError, InvalidParams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Lock

    from fastrpc._core.call_info import CallInfo
    from fastrpc.context import Context
    from fastrpc.options import Root
    from fastrpc.server import Server
    from fastrpc.settings import Configuration

ANSWER_SECONDS = 5.0  # seconds; no person is asked, so the client can answer at once
ROUNDS = 64  # attempts: calls may be concurrent, and a client may be unable to answer
KEY = "fastrpc-roots"


def follow_roots(
    server: Server, settings: Configuration, environ: dict[str, str], options: dict[str, str]
) -> None:
    """Make the first tool call ask the client for its roots. The settings are then loaded again in the new
    folder, with the environment and the options of the start."""
    lock: Lock | None = None
    rounds = 0
    server.settled = False

    async def settle(call: CallInfo) -> None:
        nonlocal lock, rounds
        if lock is None:
            from asyncio import Lock

            lock = Lock()
        async with lock:  # a concurrent call must not run in the wrong folder
            if not server.settled:
                rounds += 1
                folder = await _root_of(call.context) if rounds <= ROUNDS else None
                server.remove_hook(settle)
                if folder is not None:
                    _move(server, folder, settings, environ, options)
                server.settled = True
        if server.tools.get(call.tool) is None:
            raise InvalidParams(f"Unknown tool: {call.tool} (switched off in {os.getcwd()})")

    server.before(settle)


async def _root_of(context: Context) -> str | None:
    """Return the client's only root as a folder; None if there is none, or several, or no answer."""
    if context.client_capabilities.get("roots") is None:
        return None
    from asyncio import TimeoutError, wait_for

    try:
        roots = await wait_for(context.roots(key=KEY), ANSWER_SECONDS)
    except (FastrpcError, TimeoutError):
        return None
    paths = [path for path in map(path_of, roots) if path is not None]
    if len(paths) != 1 or paths[0] == "/" or not os.path.isdir(paths[0]):
        return None
    return paths[0]


def path_of(root: Root) -> str | None:
    """Return the path of a root with a local ``file:`` URI (RFC 8089); None for any other."""
    from urllib.parse import unquote_to_bytes, urlsplit

    try:
        parts = urlsplit(root["uri"])
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        return None
    path = unquote_to_bytes(parts.path.encode("utf-8", "surrogatepass"))
    if not path.startswith(b"/") or b"\0" in path:
        return None
    return os.path.normpath(os.fsdecode(path))


def _move(
    server: Server, folder: str, settings: Configuration, environ: dict[str, str], options: dict[str, str]
) -> None:
    from fastrpc.cli._assemble import switched_on, toolset_settings
    from fastrpc.settings import load, settle

    try:
        os.chdir(folder)
    except OSError as error:
        write_line(f"fastrpc: warning: the client's root {folder!r}: {error.strerror}")
        return
    there = load(environ, options=options)
    there.declare(settings.declared)
    settle(there, toolset_settings())
    for warning in there.warnings:
        if warning not in settings.warnings:
            write_line(f"fastrpc: warning: {warning}")
    there.export(os.environ)
    left = {tool.name for tool in switched_on(server.tools, there)}
    for tool in server.tools:
        if tool.name not in left:
            server.remove_tool(tool.name)
