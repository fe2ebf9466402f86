"""The engine that the verbs are done by: one for the project that the server works in, made at the first
call.

It belongs to the event loop that first asks for it; what it starts ends with the server.
"""

from __future__ import annotations

import asyncio
import hashlib
import os

from fastrpc.settings import STATE_DIR

from .. import _private_folder, _project
from ._embedded.engine import EmbeddedEngine
from ._errors import INTERNAL_ERROR, EngineError

_engines: dict[asyncio.AbstractEventLoop, EmbeddedEngine] = {}


def current() -> EmbeddedEngine:
    """The engine of the running loop. Raises EngineError where its folder cannot be used."""
    loop = asyncio.get_running_loop()
    engine = _engines.get(loop)
    if engine is None:
        for closed in [each for each in _engines if each.is_closed()]:
            del _engines[closed]
        engine = _engines[loop] = EmbeddedEngine(_folder())
    return engine


async def close() -> None:
    """End what the running loop's engine has started."""
    engine = _engines.pop(asyncio.get_running_loop(), None)
    if engine is not None:
        await engine.close()


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
