"""The interfaces of an engine and of transports to it (`http_engine`, `stdio_engine`), errors, the breaker.

A transport sends one request and returns the envelope. If the engine cannot be reached it raises
`Unreachable`; its `was_sent` tells whether the engine may have received the request.
"""

from __future__ import annotations

import time

from fastrpc.errors import InvalidParams

from .._errors import ENGINE_PROTOCOL, ENGINE_UNAVAILABLE, INVALID_REQUEST, EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    Report = Callable[[str], None]
    """A function that is called with the name of each phase of a request."""

    class Transport(Protocol):
        """The connections to one engine."""

        is_local: bool
        """Whether it runs on this machine."""

        async def ask(self, verb: str, parameters: dict[str, Any], seconds: float) -> Any:
            """Return the envelope. Raises EngineError, and TimeoutError after `seconds`."""

        async def verbs(self) -> set[str]:
            """The names of the tools that the engine has. Raises EngineError."""

        async def close(self) -> None:
            """Close the connections."""

    class Engine(Protocol):
        """The methods of an engine that transactions use."""

        async def ask(self, verb: str, wire: dict[str, Any], *, reads: bool = False) -> dict[str, Any]:
            """Return the data of its answer. Raises EngineError."""

        async def chains(self) -> dict[str, Any]:
            """Return the data of chain_list, with the URLs unmasked. Raises EngineError."""

        async def artifact(self, name: str, project: str | None) -> tuple[dict[str, Any], dict[str, str]]:
            """An artifact, and the parameters that identify it to the engine. Raises EngineError."""


LONGEST_MESSAGE = 20_000  # characters; some pages of a compiler's output
MOST_FAILURES = 5
OPEN_SECONDS = 5.0


class Unreachable(EngineError):
    """The engine cannot be reached, or its answer was lost. `was_sent`: it may have received the request."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(ENGINE_UNAVAILABLE, message, retry=True)
        self.was_sent = was_sent


class Refused(EngineError):
    """The engine, or a server at its address, has refused the request and done nothing."""

    @classmethod
    def of_parameters(cls, code: Any, message: str) -> Refused:
        """Return the error for a JSON-RPC error: INVALID_REQUEST for -32602, else ENGINE_PROTOCOL."""
        message = message[:LONGEST_MESSAGE]
        if code == InvalidParams.code:
            return cls(INVALID_REQUEST, f"the engine cannot read the parameters: {message}")
        return cls(ENGINE_PROTOCOL, f"the engine refused the request: {message}")


class Breaker:
    """Refuses requests for `OPEN_SECONDS` after `MOST_FAILURES` transport failures in a row.

    Then it admits one request, and all others after that one has succeeded.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._open_until = 0.0

    def check(self) -> None:
        """Raise Unreachable while it is open."""
        if self._failures < MOST_FAILURES:
            return
        left = self._open_until - time.monotonic()
        if left > 0:
            raise Unreachable(
                f"the engine has failed {self._failures} times in a row; it is asked again in {left:.1f} s",
                was_sent=False,
            )
        self._open_until = time.monotonic() + OPEN_SECONDS

    def failed(self) -> None:
        self._failures += 1
        self._open_until = time.monotonic() + OPEN_SECONDS

    def succeeded(self) -> None:
        self._failures = 0
