"""``fastrpc gateway status``: how the servers behind the running gateways are, as a table or as JSON."""

from __future__ import annotations

from time import localtime, strftime

from fastrpc.cli import configuration
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COLUMNS = ("server", "state", "pid", "tools", "calls", "errors", "starts", "since", "reason")
TO_THE_RIGHT = ("pid", "tools", "calls", "errors", "starts")


def show(arguments: list[str]) -> int:
    """Print the status of the gateways, those of one file if one is named. Return 0, or 1 if none runs.
    Raises UsageError."""
    from fastrpc.gateway.status import NoAnswer, running

    files = [each for each in arguments if not each.startswith("-")]
    unknown = [each for each in arguments if each.startswith("-") and each != "--json"]
    if unknown or len(files) > 1:
        wrong = unknown[0] if unknown else files[1]
        raise UsageError(f"gateway status: expected [--json] [FILE], got {wrong!r}")
    path = files[0] if files else None
    try:
        found = running(configuration()["FASTRPC_STATE_DIR"], path)
    except (NoAnswer, OSError) as error:
        write_line(f"fastrpc: {error}")
        return 1
    if "--json" in arguments:
        import json

        print(json.dumps(found, indent=2))
    elif found:
        print("\n\n".join(_text(gateway) for gateway in found))
    if not found:
        write_line("fastrpc: no gateway runs" + (f" for {path}" if path else ""))
    return 0 if found else 1


def _text(gateway: dict[str, Any]) -> str:
    begin = f"{gateway['config']} (process {gateway['pid']}, {gateway['served']}, since {_time(gateway)})"
    rows = [COLUMNS, *(_cells(server) for server in gateway["servers"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [begin]
    for row in rows:
        cells = [
            cell.rjust(width) if name in TO_THE_RIGHT else cell.ljust(width)
            for name, cell, width in zip(COLUMNS, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _cells(server: dict[str, Any]) -> tuple[str, ...]:
    from fastrpc.human_input.screen import plain

    reason = server["reason"] or (f"before: {server['lastEnd']}" if server.get("lastEnd") else "")
    return (
        plain(server["name"]),
        server["state"],
        str(server.get("pid") or "-"),
        str(server["tools"]),
        str(server["calls"]),
        str(server["errors"]),
        str(server.get("starts", 0)),
        _time(server) if server.get("starts") or server["state"] == "failed" else "-",
        plain(" ".join(reason.split())),
    )


def _time(what: dict[str, Any]) -> str:
    return strftime("%Y-%m-%d %H:%M:%S", localtime(what["since"]))
