"""The compiler's result for a contract, and which parts of it a caller sees. Data and one function."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARTS = ("abi", "bytecode", "deployedBytecode")
"""The parts that can be left out of an artifact; its name and compiler are always included."""


def chosen(artifact: dict[str, Any], include: list[str] | None) -> dict[str, Any]:
    """Return the artifact with the requested parts; None: all."""
    if include is None:
        return artifact
    return {name: value for name, value in artifact.items() if name not in PARTS or name in include}
