"""``fastrpc tools``: prints the tools of a server, as a table or as the exact descriptors.

They come from a real session, so mounted and proxied tools are included; no tool is called. ``fastrpc list``
shows the other features of a server.
"""

from __future__ import annotations

from fastrpc.cli import parser
from fastrpc.cli._catalogue import effect_of, first_line, parameters_of, print_json, print_table
from fastrpc.cli._target import converse, parse
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.client.sync import SyncClient

EXAMPLES = """\
  fastrpc tools                     the agent's tools
  fastrpc tools my_tools.py         yours
  fastrpc tools --json              descriptors as a client of the newest version gets them
"""


def main(arguments: list[str]) -> int:
    """Print the tools of a server; return the exit code. Raises UsageError."""
    options = parser("tools", "[--json] [TARGET… | -- COMMAND…]", EXAMPLES)
    options.option("--json", "print the descriptors as the server sent them")
    chosen, where = parse(options, arguments)

    def work(client: SyncClient) -> int:
        tools = client.list_tools()
        if chosen.json:
            print_json(tools)
        elif tools:
            print_table(("tool", "effect", "arguments", "description"), [_row(tool) for tool in tools])
        else:
            print("No tools.")
        return 0

    return converse(where, chosen, work, time_limit=chosen.time_limit, lists=True)


def _row(tool: dict[str, Any]) -> tuple[str, str, str, str]:
    parameters = parameters_of(tool.get("inputSchema"))
    arguments = " ".join(name if required else f"[{name}]" for name, _, required, _ in parameters)
    name = plain(str(tool.get("name")))
    return name, effect_of(tool) or "-", plain(arguments) or "-", first_line(tool.get("description") or "")
