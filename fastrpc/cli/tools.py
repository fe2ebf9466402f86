"""``fastrpc tools``: prints what would be served, as a table or as the exact descriptors.

Loads the tools as `serve` does, in this process; there is no session, and no tool is called.
"""

from __future__ import annotations

from fastrpc.cli import configuration, parser
from fastrpc.cli._assemble import assemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastrpc.definitions.tool import Tool

EXAMPLES = """\
  fastrpc tools                     the agent's tools
  fastrpc tools my_tools.py         yours
  fastrpc tools --json              descriptors as a client of the newest version gets them
"""
TEXT_WIDTH = 60


def main(arguments: list[str]) -> int:
    """Print the tools of all targets; return 0. Raises UsageError."""
    options = parser("tools", "[--json] [TARGET…]", EXAMPLES)
    options.add_argument("targets", metavar="TARGET", nargs="*", help="file.py, module or module:attribute")
    options.add_argument("--json", action="store_true", help="the exact descriptors, as JSON")
    chosen = options.parse(arguments)
    server = assemble(chosen.targets, configuration(targets=chosen.targets))
    tools = list(server.tools)
    if chosen.json:
        import json

        from fastrpc.protocol.versions import VERSIONS

        descriptors = [tool.descriptor(VERSIONS[-1]) for tool in tools]
        print(json.dumps(descriptors, ensure_ascii=False, indent=2))
    elif tools:
        print_table(("tool", "effect", "arguments", "description"), [_row(tool) for tool in tools])
    else:
        print("No tools.")
    return 0


def _row(tool: Tool) -> tuple[str, str, str, str]:
    from fastrpc.protocol.versions import VERSIONS

    schema = tool.descriptor(VERSIONS[-1]).get("inputSchema", {})
    required = schema.get("required", ())
    arguments = " ".join(name if name in required else f"[{name}]" for name in schema.get("properties", {}))
    first_line = (tool.description or "").strip().partition("\n")[0]
    if len(first_line) > TEXT_WIDTH:
        first_line = first_line[: TEXT_WIDTH - 1] + "…"
    return tool.name, tool.effect or "-", arguments or "-", first_line


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows in aligned columns; the last column is not padded."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head) - 1)]
    for row in [head, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[-1]]).rstrip())
