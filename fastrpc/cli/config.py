"""``fastrpc config``: prints every setting with its value and its origin. Secrets are masked.

Includes the settings of the tools that would be served: those of the toolset, or of all targets, which it
loads. Reads the same sources as `serve` and changes nothing. Warnings go to stderr.
"""

from __future__ import annotations

from fastrpc.cli import configuration, parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastrpc.settings import SettingValue

EXAMPLES = """\
  fastrpc config
  FASTRPC_LOG_LEVEL=info fastrpc config
  fastrpc config my_tools.py        with the settings of your tools
  fastrpc config --json
"""


def main(arguments: list[str]) -> int:
    """Print all settings; return 0."""
    options = parser("config", "[--json] [TARGET…]", EXAMPLES)
    options.add_argument("targets", metavar="TARGET", nargs="*", help="file.py, module or module:attribute")
    options.option("--json", "as JSON, for programs")
    chosen = options.parse(arguments)
    settings = configuration(targets=chosen.targets)
    from fastrpc.cli import _assemble

    if chosen.targets:
        _assemble.assemble(chosen.targets, settings)
    else:
        _assemble.read_toolset_settings(settings, settings["FASTRPC_TOOLSET"])
    if chosen.json:
        from fastrpc.cli._catalogue import print_json

        shown = {
            value.setting.name: {
                "value": value.shown() if value.setting.kind in ("secret", "address") else value.value,
                "origin": value.origin,
                "description": value.setting.description,
            }
            for value in in_order(settings)
        }
        print_json(shown)
    else:
        from fastrpc.cli._catalogue import print_table

        rows = [(value.setting.name, _short(value.shown()), value.origin) for value in in_order(settings)]
        print_table(("setting", "value", "where it came from"), rows)
    return 0


def in_order(values: Iterable[SettingValue]) -> list[SettingValue]:
    """Return settings as declared; one with `after` follows the one that it names, switches are last."""
    shown: list[SettingValue] = []
    switches = []
    place = 0
    for value in values:
        if value.setting.after.endswith("*"):
            switches.append(value)
            continue
        if value.setting.after:
            named = [index for index, other in enumerate(shown) if other.setting.name == value.setting.after]
            place = named[0] + 1 if named else len(shown)
        shown.insert(place, value)
        place += 1
    return [*shown, *switches]


def _short(text: str) -> str:
    if not text.isprintable():
        text = ascii(text)
    return text if len(text) <= 48 else text[:47] + "…"
