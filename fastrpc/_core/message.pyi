"""Reads one line as a JSON-RPC message. The compiled methods are for the connection."""

from typing import Any

class Message:
    """What one line is. Reused from line to line: take what you need before the next `read`."""

    def read(self, line: bytes) -> None:
        """Read a line (without its newline) and fill the fields. Never raises for bad input."""
    @property
    def kind(self) -> str:
        """``request``, ``notification``, ``response``, ``batch``, ``ignored``, ``invalid`` or ``broken``."""
    @property
    def id(self) -> bytes | None:
        """The id's exact JSON text, of a ``broken`` line too; None where there is none that is a string or an
        integer, and for an ``invalid`` or ``broken`` answer, to which an error must not have it."""
    @property
    def answered_id(self) -> bytes | None:
        """The id of the request that an ``invalid`` or ``broken`` answer is for; None for other messages."""
    @property
    def method(self) -> str | None: ...
    @property
    def params(self) -> dict[str, Any] | None: ...
    @property
    def meta(self) -> Any:
        """The ``_meta`` of the params, of whatever type; None where there is none."""
    @property
    def envelope(self) -> Any:
        """What the ``_meta`` names as its protocol version (MCP 2026-07-28); None where it names none."""
    def param(self, name: str) -> Any:
        """Return one member of the params alone, of whatever type; None where there is none."""
    @property
    def value(self) -> dict[str, Any]:
        """The whole message."""
    @property
    def error_code(self) -> int:
        """-32700 for ``broken``, -32600 or -32602 for ``invalid``, else 0."""
    @property
    def error(self) -> str | None:
        """What is wrong; for a broken line also at which byte."""
    @property
    def batch_size(self) -> int:
        """How many elements a ``batch`` has; 16,777,215 means that or more. Makes none of them."""
    def elements(self) -> list[bytes]:
        """Return the exact text of each element of a ``batch``."""
