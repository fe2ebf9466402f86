"""Names on standard error the failed servers behind a gateway, whose features are missing in its lists.

A gateway that this process has started is found by its process id among the running ones. From a server at a
URL, the resource with a gateway's status is read; servers that are not gateways refuse that.
"""

from __future__ import annotations

import json

from fastrpc.cli import configuration
from fastrpc.client.stdio import LAST_WORDS_BEGIN
from fastrpc.diagnostics import write_line
from fastrpc.errors import ClientError
from fastrpc.gateway.status import STATUS_URI, NoAnswer, running
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.client.sync import SyncClient


def name_failures(client: SyncClient) -> None:
    """Write a line for each server of the gateway that has failed, if `client` uses one."""
    try:
        servers = _status(client).get("servers", [])
    except (ClientError, NoAnswer, OSError, ValueError):
        return
    for server in servers if isinstance(servers, list) else []:
        if isinstance(server, dict) and server.get("state") == "failed":
            reason = " ".join(str(server.get("reason") or "").split())
            name = plain(str(server.get("name")))
            said = f"fastrpc: warning: the gateway's server {name!r} has failed: {plain(reason)}"
            lines = last_lines(server)
            write_line("\n".join((f"{said}{LAST_WORDS_BEGIN if lines else ''}", *lines)))


def last_lines(server: dict[str, Any]) -> list[str]:
    """Return, indented, the last lines that a failed or ended server wrote to standard error."""
    lines = server.get("stderr")
    return [f"  {plain(str(line))}" for line in lines] if isinstance(lines, list) else []


def _status(client: SyncClient) -> dict[str, Any]:
    """Return a gateway's status, {} without a gateway. Raises ClientError, NoAnswer, OSError, ValueError."""
    transport = client._client._transport
    pid = 0 if transport is None else transport.pid
    if pid:
        reports = running(configuration()["FASTRPC_STATE_DIR"], on_silent=lambda silent: None)
        return next((report for report in reports if report.get("pid") == pid), {})
    if "resources" not in client.server_capabilities:
        return {}
    found = json.loads(client.read_resource(STATUS_URI).text)
    return found if isinstance(found, dict) else {}
