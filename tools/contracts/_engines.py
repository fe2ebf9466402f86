"""The engine that the verbs are done by: one for the project that the server works in, made at the first
call.

It belongs to the event loop that first asks for it; what it starts ends with the server.
"""

from __future__ import annotations

import hashlib
import os

from fastrpc.settings import STATE_DIR

from .. import _private_folder, _project
from ._embedded.engine import EmbeddedEngine
from ._errors import INTERNAL_ERROR, EngineError
from ._per_loop import PerLoop


def current() -> EmbeddedEngine:
    """The engine of the running loop. Raises EngineError where its folder cannot be used."""
    return _engines.current()


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


_engines = PerLoop(lambda: EmbeddedEngine(_folder()))
