"""The attributes of a package whose modules are imported when a name is first used. Imports nothing itself.

`fastrpc` does the same in its `__init__`, which must not import anything.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def load(namespace: dict[str, Any], homes: Mapping[str, Sequence[str]], name: str, member: str = "") -> Any:
    """Return `name` of the package with the globals `namespace`, and store it there: ``__getattr__`` is not
    called for it again.

    `homes`: the names of each module; `member`: the name there, by default the same. Raises AttributeError.
    """
    member = member or name
    home = next((home for home, names in homes.items() if member in names), None)
    if home is None:
        raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
    namespace[name] = value = getattr(__import__(home, fromlist=[member]), member)
    return value
