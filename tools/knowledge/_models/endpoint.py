"""An endpoint with OpenAI's API, and its errors. Their texts contain neither its address, nor its key, nor
its answer: an endpoint may repeat the key.

`web_request` sends the requests, bounded in time and size, without redirects. The operator chooses the
address, so it may be anywhere.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import NamedTuple

from fastrpc import ToolError, UsageError

from ... import _reach
from .._workflows import web_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fastrpc.settings import Setting

LARGEST = 32 * 1024 * 1024
REFUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
"""The status codes of endpoints for a text that they cannot process."""


class ModelUnavailable(Exception):
    """A model gives no answer, or an unusable one. It may succeed later."""


class TextRefused(ModelUnavailable):
    """A model refuses a text."""


class Endpoint(NamedTuple):
    """An endpoint in the settings."""

    option: str
    url: str
    model: str
    key: str

    def __repr__(self) -> str:
        return f"Endpoint({self.option})"

    def name(self) -> str:
        """Return the name under which its vectors are stored."""
        return self.model

    def order(self, path: str, body: dict[str, Any]) -> web_request.Order:
        """Return the request to the model."""
        return web_request.Order(
            "POST",
            self.url.rstrip("/") + path,
            {"authorization": f"Bearer {self.key}"} if self.key else {},
            body={"model": self.model, **body},
        )

    async def ask(self, path: str, body: dict[str, Any], seconds: float) -> Any:
        """Return the JSON of an answer. Raises ModelUnavailable."""
        try:
            found = await web_request.send(self.order(path, body), _reach.Reach(), seconds, LARGEST)
        except web_request.ErrorStatus as error:
            kind = TextRefused if error.status in REFUSES else ModelUnavailable
            raise kind(self.words(f"it answers {error.status} {_phrase(error.status)}")) from None
        except ToolError as error:
            raise ModelUnavailable(self.words(str(error).removeprefix("url: ").rstrip("."))) from None
        if not isinstance(found.body, dict):
            raise self.broken("expected a JSON object")
        return found.body

    def ask_now(self, path: str, body: dict[str, Any], seconds: float) -> Any:
        """Ask from a thread without an event loop."""
        return asyncio.run(self.ask(path, body, seconds))

    def broken(self, reason: str) -> ModelUnavailable:
        """Return the error for an unusable answer."""
        return ModelUnavailable(self.words(f"its answer cannot be used: {reason}"))

    def words(self, reason: str) -> str:
        return f"the model that {self.option} names: {reason}"


def named_by(option: str, url: Setting, model: Setting, key: Setting) -> Endpoint:
    """Return the endpoint in the settings."""
    return Endpoint(option, url.read(), model.read(), key.read())


def check(endpoint: Endpoint, **libraries: str) -> None:
    """Raise UsageError for an endpoint without the name of a model, and if one of these libraries (module
    names) is missing."""
    if not endpoint.model:
        raise UsageError(f"{endpoint.option}-model: expected the name of the model of {endpoint.option}")
    check_libraries(endpoint.option, "embeddings", {"httpx": "httpx", **libraries})


def check_libraries(option: str, extra: str, libraries: Mapping[str, str]) -> None:
    """Raise UsageError if one of an option's libraries (module names) is missing."""
    from importlib.util import find_spec

    for module, library in libraries.items():
        if find_spec(module) is None:
            raise UsageError(f'{option} needs {library}: pip install "fastrpc-mcp[{extra}]"')


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
