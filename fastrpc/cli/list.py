"""``fastrpc list``: prints the tools, resources, resource templates and prompts of a server.

No tool is called; no resource is read except the status of a gateway. `--json` prints the descriptors as
received.
"""

from __future__ import annotations

from fastrpc.cli import parser
from fastrpc.cli._catalogue import catalogue_of, print_json, print_lines, shown
from fastrpc.cli._target import converse, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.client.sync import SyncClient

EXAMPLES = """\
  fastrpc list                           the agent's tools
  fastrpc list my_tools.py               yours
  fastrpc list -- npx -y some-server     those of a program
  fastrpc list github                    those of a server in the nearest .mcp.json
  fastrpc list --json my_tools.py        the descriptors as JSON
"""


def main(arguments: list[str]) -> int:
    """Print the features of a server; return the exit code. Raises UsageError."""
    options = parser("list", "[--json] [TARGET… | -- COMMAND…]", EXAMPLES)
    options.option("--json", "print the descriptors as the server sent them")
    chosen, where = parse(options, arguments)

    def work(client: SyncClient) -> int:
        catalogue = catalogue_of(client)
        if chosen.json:
            print_json(catalogue)
        else:
            print_lines(shown(catalogue))
        return 0

    return converse(where, chosen, work, time_limit=chosen.time_limit, lists=True)
