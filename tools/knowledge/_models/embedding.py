"""Vectors of texts and of questions, from the endpoint of ``--embeddings`` or the model in the folder of
``--embeddings-folder``.

A question waits `QUESTION_SECONDS` for its vector, and not at all for a while after the model was
unavailable. The most recent questions are cached. Every answer is validated completely before any of it is
used.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic

from fastrpc import UsageError

from .. import _settings, _store
from .._store import vectors
from .._store.meaning import Meaning
from . import endpoint, folder_model
from .endpoint import Endpoint, ModelUnavailable, TextRefused
from .folder_model import FolderModel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Model: TypeAlias = Endpoint | FolderModel

QUESTION_SECONDS = 5.0
LOT_SECONDS = 60.0
AWAY_SECONDS = 10.0
"""For so long, a model that was unavailable is not asked for a question's vector."""
LONGEST_TEXT = 8_000
"""Characters of a text that are sent; models read some hundred to some thousand words."""
MOST_DIMENSIONS = 16_384
REMEMBERED = 256

_lock = Lock()
_known: dict[tuple[Model, str], Any] = {}
_away: dict[Model, tuple[float, str]] = {}
"""The time until which a model is not asked again, and the reason."""


def model() -> Model:
    """Return the model that the settings name."""
    if folder := _settings.EMBEDDINGS_FOLDER.read():
        return folder_model.of_folder(folder)
    return endpoint.named_by(
        "--embeddings", _settings.EMBEDDINGS, _settings.EMBEDDINGS_MODEL, _settings.EMBEDDINGS_KEY
    )


def check() -> None:
    """Raise UsageError if the settings name two models, or a model lacks something."""
    asked = model()
    if isinstance(asked, Endpoint):
        endpoint.check(asked, numpy="NumPy")
        return
    if _settings.EMBEDDINGS.read():
        raise UsageError(f"--embeddings: {folder_model.OPTION} names a model, too: expected one of them")
    asked.check()


def meaning_of(question: str) -> tuple[Meaning | None, str]:
    """Return the meaning of a question; None, and the reason, if the model is unavailable."""
    asked = model()
    key = asked, question[:LONGEST_TEXT]
    with _lock:
        known, (until, reason) = _known.get(key), _away.get(asked, (0.0, ""))
    if known is not None:
        return Meaning(asked.name(), known), ""
    if monotonic() < until:
        return None, _by_words(reason)
    try:
        (vector,) = embed(asked, [question], QUESTION_SECONDS, is_question=True)
        with _store.current().database.reading() as connection:
            vectors.check_dimensions(connection, asked.name(), len(vector))
    except vectors.OtherDimensions as error:
        return None, _by_words(f"{asked.words(str(error))} (fastrpc knowledge reindex makes them anew)")
    except ModelUnavailable as error:
        if not isinstance(error, TextRefused):
            with _lock:
                _away[asked] = monotonic() + AWAY_SECONDS, str(error)
        return None, _by_words(str(error))
    with _lock:
        _away.pop(asked, None)
        while len(_known) >= REMEMBERED:
            del _known[next(iter(_known))]
        _known[key] = vector
    return Meaning(asked.name(), vector), ""


def _by_words(reason: str) -> str:
    return f"Searched only by words: {reason}."


def embed(asked: Model, texts: Sequence[str], seconds: float, *, is_question: bool = False) -> list[Any]:
    """Return a vector of length 1 for each text; for a model in a folder without a time limit. Raises
    ModelUnavailable."""
    texts = [each[:LONGEST_TEXT] for each in texts]
    if isinstance(asked, FolderModel):
        return asked.vectors(texts, is_question=is_question)
    answer = asked.ask_now("/embeddings", {"input": texts, "encoding_format": "float"}, seconds)
    return _checked(asked, answer.get("data"), len(texts))


def _checked(endpoint: Endpoint, data: Any, count: int) -> list[Any]:
    """Return the vectors of an answer, in the order of the texts."""
    import numpy

    if not isinstance(data, list) or len(data) != count:
        came = f"{len(data):,}" if isinstance(data, list) else "none"
        raise endpoint.broken(f"data: expected a list of {count:,} vectors, got {came}")
    found: dict[int, Any] = {}
    for at, item in enumerate(data):
        index = item.get("index", at) if isinstance(item, dict) else None
        numbers = item.get("embedding") if isinstance(item, dict) else None
        if not isinstance(index, int) or not 0 <= index < count or index in found:
            raise endpoint.broken(f"data[{at}].index: expected each of 0 to {count - 1:,} once")
        if not isinstance(numbers, list) or not 1 <= len(numbers) <= MOST_DIMENSIONS:
            raise endpoint.broken(f"data[{at}].embedding: expected 1 to {MOST_DIMENSIONS:,} numbers")
        if not all(type(each) in (int, float) for each in numbers):
            raise endpoint.broken(f"data[{at}].embedding: expected numbers")
        try:
            vector = numpy.array(numbers, "<f8")
        except OverflowError:
            raise endpoint.broken(f"data[{at}].embedding: expected finite numbers") from None
        found[index] = vectors.unit(vector)
        if found[index] is None:
            raise endpoint.broken(f"data[{at}].embedding: expected finite numbers, not all of them 0")
    sizes = {len(each) for each in found.values()}
    if len(sizes) > 1:
        raise endpoint.broken(f"expected vectors of one length, got {min(sizes):,} and {max(sizes):,}")
    return [found[at] for at in range(count)]
