"""Names the servers behind a gateway that have failed, on standard error: what it lists lacks them.

A gateway over HTTP offers its status as a resource; one that this process has started is found by its process
id, among those that run. Of any other server nothing is said.
"""

from __future__ import annotations

import json

from fastrpc.cli import configuration
from fastrpc.diagnostics import write_line
from fastrpc.errors import ClientError
from fastrpc.gateway.status import STATUS_URI, NoAnswer, running
from fastrpc.human_input.screen import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.cli._catalogue import Catalogue
    from fastrpc.client.sync import SyncClient


def name_failures(client: SyncClient, catalogue: Catalogue) -> None:
    """Write a line for each server of the gateway that has failed, if `client` uses one."""
    try:
        servers = _status(client, catalogue).get("servers", [])
    except (ClientError, NoAnswer, OSError, ValueError):
        return
    for server in servers if isinstance(servers, list) else []:
        if isinstance(server, dict) and server.get("state") == "failed":
            reason = " ".join(str(server.get("reason") or "").split())
            name = plain(str(server.get("name")))
            write_line(f"fastrpc: warning: the gateway's server {name!r} has failed: {plain(reason)}")


def _status(client: SyncClient, catalogue: Catalogue) -> dict[str, Any]:
    """Return what a gateway tells, {} if there is none. Raises ClientError, NoAnswer, OSError, ValueError."""
    if any(entry.get("uri") == STATUS_URI for entry in catalogue["resources"]):
        found = json.loads(client.read_resource(STATUS_URI).text)
        return found if isinstance(found, dict) else {}
    pid = _pid(client)
    if not pid:
        return {}
    reports = running(configuration()["FASTRPC_STATE_DIR"], on_silent=lambda silent: None)
    return next((report for report in reports if report.get("pid") == pid), {})


def _pid(client: SyncClient) -> int:
    transport = client._client._transport
    return 0 if transport is None else transport.pid
