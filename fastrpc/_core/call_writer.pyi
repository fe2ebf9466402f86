"""Encodes the ``tools/call`` requests of a client into its output buffer."""

from typing import Any

from fastrpc._core.encoder import OutputBuffer

class CallWriter:
    """Writes to the output of a client's stream."""

    def __new__(cls, output: OutputBuffer) -> CallWriter: ...
    def set_envelope(self, meta: dict[str, Any] | None) -> None:
        """Set the ``_meta`` of every call from here on (MCP 2026-07-28)."""
