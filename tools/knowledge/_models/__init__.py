"""Models at endpoints with OpenAI's API, or in a folder (`folder_model`). One makes vectors for search by
meaning (`embedding`), one finds what entries name (`naming`). Only a question waits for a model, for some
seconds. Models read texts after they were written (`background`).

Importing this imports no library. If the settings name no model, no module of this package is imported.
"""

from __future__ import annotations

from .. import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server

    from .._store.meaning import Meaning


def attach(server: Server) -> None:
    """Start the models of the settings, which read new texts. Raises UsageError."""
    if _settings.embeds() or _settings.ENTITIES.read():
        from . import background

        background.attach(server)


def wrote() -> None:
    """Note that a text was written, which a model may have to read."""
    if _settings.embeds() or _settings.ENTITIES.read():
        from . import background

        background.wake()


def meaning_of(question: str) -> tuple[Meaning | None, str]:
    """Return the meaning of a question, None if the settings name no model or the model is unavailable; and a
    message for the caller if it is."""
    if not question or not _settings.embeds():
        return None, ""
    from . import embedding

    return embedding.meaning_of(question)
