"""``fastrpc config``: every setting with its value and where it came from. Secrets are masked.

Reads the same sources as `serve` and changes nothing. Warnings go to stderr.
"""

from __future__ import annotations

from fastrpc.cli import configuration, parser

EXAMPLES = """\
  fastrpc config
  FASTRPC_PATIENCE_SECONDS=0 fastrpc config
  fastrpc config --json
"""


def main(arguments: list[str]) -> int:
    """Print all settings; return 0."""
    options = parser("config", "[--json]", EXAMPLES)
    options.add_argument("--json", action="store_true", help="as JSON, for programs")
    chosen = options.parse(arguments)
    settings = configuration()
    if chosen.json:
        import json

        shown = {
            value.setting.name: {
                "value": value.shown() if value.setting.kind in ("secret", "address") else value.value,
                "origin": value.origin,
                "description": value.setting.description,
            }
            for value in settings
        }
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        from fastrpc.cli.tools import print_table

        rows = [(value.setting.name, _short(value.shown()), value.origin) for value in settings]
        print_table(("setting", "value", "where it came from"), rows)
    return 0


def _short(text: str) -> str:
    if not text.isprintable():
        text = ascii(text)
    return text if len(text) <= 48 else text[:47] + "…"
