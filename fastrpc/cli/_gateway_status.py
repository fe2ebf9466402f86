"""``fastrpc gateway status``: the states of the servers behind the running gateways, as a table or as JSON.

Gateways of this user on this machine are found by their sockets. For a gateway at a URL, a resource is read,
with the same sources of the token as in `fastrpc bridge`. After two seconds a message states what is awaited;
every wait is limited in time.
"""

from __future__ import annotations

from time import localtime, strftime
from typing import Any

from fastrpc.cli import configuration
from fastrpc.command_line import CommandParser
from fastrpc.diagnostics import write_line
from fastrpc.errors import ClientError, Reworded, UsageError
from fastrpc.terminal.text import plain

COLUMNS = ("server", "state", "pid", "tools", "calls", "errors", "starts", "since", "reason")
NUMBERS = ("pid", "tools", "calls", "errors", "starts")
URL_SECONDS = 30.0
"""The time limit of each request to a gateway at a URL."""
EXAMPLES = """\
  fastrpc gateway status
  fastrpc gateway status mcp.json --json
  fastrpc gateway status --http https://mcp.example.com/mcp --token-file token
"""


def show(arguments: list[str]) -> int:
    """Print the status of the gateways, or of those for one file. Return 0, or 1 if no gateway runs or one
    does not answer. Raises UsageError."""
    from fastrpc.gateway.status import ANSWER_SECONDS, NoAnswer, running

    sentence = "Show the state of each server of the running gateways."
    options = CommandParser("gateway status", "[OPTION…] [FILE]", sentence, EXAMPLES)
    options.add_argument("file", metavar="FILE", nargs="?", help="only gateways that serve this file")
    options.option("--json", "print everything as JSON")
    options.option("--http URL", "ask the gateway at this URL")
    options.option("--token-file FILE", "send the token in the first line of FILE")
    chosen = options.parse(arguments)
    if chosen.http is not None and chosen.file is not None:
        raise UsageError("gateway status: give a file or --http, not both")
    if chosen.http is None and chosen.token_file is not None:
        raise UsageError("gateway status: --token-file is for --http")
    silent: list[NoAnswer] = []
    try:
        if chosen.http is not None:
            found = [_at_url(chosen.http, chosen.token_file)]
        else:
            found = running(
                configuration()["FASTRPC_STATE_DIR"],
                chosen.file,
                on_slow=lambda count: write_line(
                    f"fastrpc: waiting for {count} gateway(s), {ANSWER_SECONDS:g} s in all at most"
                ),
                on_silent=silent.append,
            )
    except (ClientError, NoAnswer, OSError) as error:
        write_line(f"fastrpc: {error}")
        return 1
    if chosen.json:
        import json

        print(json.dumps(found, indent=2))
    for at, gateway in enumerate(() if chosen.json else found):
        if at:
            print()
        _print(gateway)
    for each in silent:
        write_line(f"fastrpc: {each}")
    if not found and not silent:
        write_line("fastrpc: no gateway runs" + (f" for {chosen.file}" if chosen.file else ""))
    return 0 if found and not silent else 1


def _at_url(url: str, token_file: str | None) -> dict[str, Any]:
    """Return the status of the gateway at a URL. Raises UsageError, ClientError and NoAnswer."""
    import json

    from fastrpc.cli._patient_client import PatientClient
    from fastrpc.cli.bridge import token_of
    from fastrpc.gateway.status import STATUS_URI, NoAnswer

    if not url.lower().startswith(("http://", "https://")):
        raise UsageError(f"--http: expected an http or https URL, got {url!r:.80}")
    with Reworded((TypeError, ValueError, ImportError), UsageError, "--http: "):
        client = PatientClient(
            url,
            url,
            f"{URL_SECONDS:g} s at most",
            token=token_of(token_file),
            timeout_seconds=URL_SECONDS,
            start_seconds=URL_SECONDS,
        )
    with client:
        text = client.read_resource(STATUS_URI).text
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        raise NoAnswer(f"{url}: this server is not a gateway") from None
    return found


def _print(gateway: dict[str, Any]) -> None:
    from fastrpc.cli._catalogue import print_lines, print_table
    from fastrpc.cli._gateway_failures import last_lines

    served = f"process {gateway['pid']}, {gateway['served']}, since {_time(gateway)}"
    print_lines([f"{gateway['config']} ({served})"])
    print_table(COLUMNS, [_cells(server) for server in gateway["servers"]], NUMBERS)
    for server in gateway["servers"]:
        if lines := last_lines(server):
            print_lines([f"{plain(server['name'])}: its last output on standard error:", *lines])


def _cells(server: dict[str, Any]) -> tuple[str, ...]:
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
