"""``fastrpc inspect``: prints a description of a server: name, version, protocol, capabilities, instructions,
and its features.

As text, as JSON (`--json`, as received), or as a self-contained HTML page (`--html FILE`,
`fastrpc.cli._inspect_page`). No tool is called; no resource is read except the status of a gateway.
"""

from __future__ import annotations

import os

from fastrpc.cli import parser
from fastrpc.cli._catalogue import capabilities_of, catalogue_of, print_json, print_lines, shown, title_of
from fastrpc.cli._target import converse, parse
from fastrpc.errors import Reworded, UsageError
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fastrpc.client.sync import SyncClient

EXAMPLES = """\
  fastrpc inspect my_tools.py
  fastrpc inspect --json -- npx -y some-server
  fastrpc inspect github --html github.html      a page to read and to pass on
"""


def main(arguments: list[str]) -> int:
    """Describe a server; return the exit code. Raises UsageError."""
    options = parser("inspect", "[--json | --html FILE] [TARGET… | -- COMMAND…]", EXAMPLES)
    options.option("--json", "print everything as the server sent it")
    options.option("--html FILE", "write an HTML page to FILE; -: to stdout")
    chosen, where = parse(options, arguments)
    if chosen.json and chosen.html is not None:
        raise UsageError("give either --json or --html")

    def work(client: SyncClient) -> int:
        report = report_of(client)
        if chosen.html is not None:
            from fastrpc.cli._inspect_page import page_of

            _write(chosen.html, page_of(report))
        elif chosen.json:
            print_json(report)
        else:
            print_lines(_lines(report))
        return 0

    return converse(where, chosen, work, time_limit=chosen.time_limit, lists=True)


def report_of(client: SyncClient) -> dict[str, Any]:
    """Return the description of a server. Raises ClientError."""
    supported = client.info.get("supportedVersions")
    return {
        "protocolVersion": client.version,
        "supportedVersions": supported if isinstance(supported, list) else [client.version],
        "serverInfo": client.server_info,
        "capabilities": client.server_capabilities,
        "instructions": client.instructions,
        **catalogue_of(client),
    }


def _lines(report: dict[str, Any]) -> Iterator[str]:
    server = report["serverInfo"]
    yield plain(f"{title_of(report)} {server.get('version', '')}".rstrip())
    if server.get("description"):
        yield plain(str(server["description"]))
    if server.get("websiteUrl"):
        yield plain(str(server["websiteUrl"]))
    yield f"protocol: {report['protocolVersion']}"
    others = [str(version) for version in report["supportedVersions"] if version != report["protocolVersion"]]
    if others:
        yield plain(f"also speaks: {', '.join(others)}")
    yield plain(f"capabilities: {', '.join(capabilities_of(report)) or 'none'}")
    if report["instructions"]:
        yield "instructions:"
        for line in str(report["instructions"]).strip().splitlines():
            yield f"  {plain(line)}".rstrip()
    yield ""
    yield from shown(report, is_whole=True)


def _write(path: str, text: str) -> None:
    """Write the page atomically: on a full disk the former page is unchanged. Raises UsageError."""
    from fastrpc.regular_files import replace_file

    if path == "-":
        print(text, end="")
        return
    with Reworded(OSError, UsageError, f"--html {path}: "):
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe, a terminal
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            mask = os.umask(0o077)
            os.umask(mask)
            mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o666 & ~mask
            replace_file(os.path.realpath(path), text.encode(), mode)
