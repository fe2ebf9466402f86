"""Models at endpoints that speak OpenAI's API, or in a folder (`folder_model`): one makes vectors for search
by meaning (`embedding`), one finds what entries name (`naming`). Nothing waits for them but a question, for
some seconds: what is written is read behind its writing (`background`).

Importing this imports no library. Where the settings name no model, nothing below is imported.
"""

from __future__ import annotations

from .. import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server

    from .._store.meaning import Meaning


def attach(server: Server) -> None:
    """Have the models that the settings name read what is written. Raises UsageError."""
    if _settings.embeds() or _settings.ENTITIES.read():
        from . import background

        background.attach(server)


def wrote() -> None:
    """Something was written that a model may have to read."""
    if _settings.embeds() or _settings.ENTITIES.read():
        from . import background

        background.wake()


def meaning_of(question: str) -> tuple[Meaning | None, str]:
    """Return what a question means, None where the settings name no model or the model is away; and words for
    the caller if it is."""
    if not question or not _settings.embeds():
        return None, ""
    from . import embedding

    return embedding.meaning_of(question)
