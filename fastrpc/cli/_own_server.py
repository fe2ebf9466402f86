"""The command lines by which this program starts itself as a server: `fastrpc serve`, same interpreter.

No I/O. Imports only what every command has imported already.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastrpc.settings import Setting

# ``python -m`` would look for modules in the working directory first, which may be untrusted.
START = """\
import sys
sys.path[:] = filter(None, sys.path)
from fastrpc.__main__ import main
sys.exit(main())"""


def own_command(command: str, arguments: list[str]) -> list[str]:
    """Return the command line of a command of this program with this interpreter."""
    return [sys.executable, "-c", START, command, *arguments]


def sheltered_variables(
    names: Iterable[str], folder: str, settings: Iterable[Setting] = ()
) -> dict[str, str]:
    """Return the variables that switch all tools on and set the state folder to `folder`. They make a session
    independent of the user's switches and state. `settings` are those of the toolset: flags that are on by
    default are set to on."""
    from fastrpc.settings import switch

    switches = {switch("TOOL_", name): "1" for name in names}
    for setting in settings:
        if setting.kind == "flag" and setting.default is True and not setting.name.endswith("*"):
            switches[setting.name] = "1"
    return {**switches, "TOOLS": "1", "FASTRPC_DESCRIPTIONS": "published", "FASTRPC_STATE_DIR": folder}
