"""The engine that runs the verbs: that of the setting, else the embedded one, for the project in which the
server works. Made at the first call.

It belongs to the event loop of its first caller; the processes that it starts end with the server.
"""

from __future__ import annotations

import hashlib
import os

from fastrpc.settings import STATE_DIR

from .. import _private_folder, _project
from . import _settings
from ._errors import INTERNAL_ERROR, EngineError
from ._per_loop import PerLoop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Engine(Protocol):
        """What runs the verbs."""

        grace_seconds: float
        """Seconds that a call may take beyond its verb's limit."""

        async def request(
            self, verb: str, parameters: dict[str, Any], report: Callable[[str], None]
        ) -> dict[str, Any]:
            """Run a verb and return its data; call `report` with the name of each phase. Raises
            EngineError."""


def current() -> Engine:
    """The engine of the running loop. Raises EngineError if it cannot be used."""
    return _engines.current()


def _make() -> Engine:
    address = _settings.ENGINE.read()
    if address:
        from ._bridge.engine import BridgedEngine

        return BridgedEngine(address, _folder())
    from ._embedded.engine import EmbeddedEngine

    return EmbeddedEngine(_folder())


def _folder() -> str:
    """The folder of this project's files, private to the user."""
    digest = hashlib.sha256(_project.key().encode()).hexdigest()[:16]
    folder = os.path.join(STATE_DIR.read(), "contracts", digest)
    try:
        _private_folder.make(folder)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise EngineError(INTERNAL_ERROR, f"the state folder cannot be used: {reason}") from None
    return folder


_engines = PerLoop(_make)
