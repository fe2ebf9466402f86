"""A model on the loopback address, for tests: OpenAI's embeddings, whose vectors know a few synonyms, and
chat completions, which name what they are asked to.

    with served() as model:
        model.url                     # what --embeddings and --entities name
        model.embedded                # texts whose vectors were asked for
        model.says = "<h1>Error</h1>" # instead of vectors
        model.status = 503
        model.holds = True            # requests wait until they may go on
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

from support.web_server import Visit, serve

KEY = "sk-geheim-4711-embedding"
CONCEPTS = (
    {"car", "automobile", "vehicle"},
    {"doctor", "physician", "cardiologist"},
    {"budget", "money", "funds"},
    {"holiday", "vacation"},
)
SILENT = {"a", "the", "is", "of", "in", "for", "has", "was", "to", "and"}
DIMENSIONS = 512


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A number for each word, the same for synonyms."""
    found = [0.0] * dimensions
    for word in set(re.findall(r"\w+", text.lower())) - SILENT:
        at = next((at for at, each in enumerate(CONCEPTS) if word in each), None)
        spread = len(CONCEPTS) + crc32(word.encode()) % (dimensions - len(CONCEPTS) - 1)
        found[spread if at is None else at] += 1.0
    return found if any(found) else [*found[:-1], 1.0]


class Model:
    """The server, what it was asked, and what it is to say."""

    def __init__(self, web: Any) -> None:
        self.web = web
        self.url = web.url("/v1")
        self.embedded: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.says: str | None = None
        self.status = 200
        self.media = "application/json"
        self.dimensions = DIMENSIONS
        self.refuses: Callable[[str], bool] = lambda text: False
        self.breaks = self.refuses
        self.entities: Callable[[str], list[Any]] = lambda text: []
        self.vector_of = vector_of
        self.holds = False
        self.waiting = 0
        web.answer("/v1/embeddings", self._embeddings)
        web.answer("/v1/chat/completions", self._completion)

    def _body(self, visit: Visit) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(visit.rfile.read(int(visit.headers["content-length"])))
        self.bodies.append(body)
        self.keys.add(visit.headers["authorization"])
        self.waiting += 1
        while self.holds and not self.web.over.wait(0.02):
            pass
        self.waiting -= 1
        return body

    def _answer(self, visit: Visit, answer: Any) -> None:
        text = json.dumps(answer) if self.says is None else self.says
        visit.respond(text, self.media, self.status)

    def _embeddings(self, visit: Visit) -> None:
        texts = self._body(visit)["input"]
        if any(map(self.refuses, texts)):
            visit.respond(f'{{"error": "too long; your key is {KEY}"}}', self.media, 400)
            return
        if any(map(self.breaks, texts)):
            visit.respond("", status=500)
            return
        if self.status == 200:
            self.embedded += texts
        data = [
            {"index": at, "embedding": self.vector_of(text, self.dimensions)} for at, text in enumerate(texts)
        ]
        self._answer(visit, {"data": data[::-1], "model": "m"})

    def _completion(self, visit: Visit) -> None:
        asked = self._body(visit)["messages"][-1]["content"]
        said = json.dumps({"entities": self.entities(asked)})
        self._answer(visit, {"choices": [{"message": {"content": said}}]})


@contextmanager
def served() -> Iterator[Model]:
    with serve() as web:
        yield Model(web)
