"""An endpoint that speaks OpenAI's API, and what may go wrong with it, in words that hold neither its address
nor its key, nor what it says: an endpoint may repeat the key.

Requests are `web_request`'s: bounded in time and size, without redirects. The address is the operator's
choice, so it may be anywhere.
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
"""What endpoints answer for a text that they cannot take."""


class ModelUnavailable(Exception):
    """A model gives no answer, or none that can be used. It may later."""


class TextRefused(ModelUnavailable):
    """A model does not take what it was sent."""


class Endpoint(NamedTuple):
    """An endpoint as the settings name it."""

    option: str
    url: str
    model: str
    key: str

    def __repr__(self) -> str:
        return f"Endpoint({self.option})"

    def name(self) -> str:
        """Return the name by which its vectors are kept."""
        return self.model

    def order(self, path: str, body: dict[str, Any]) -> web_request.Order:
        """Return the request for an answer of the model."""
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
        """Ask from a thread that runs no event loop."""
        return asyncio.run(self.ask(path, body, seconds))

    def broken(self, reason: str) -> ModelUnavailable:
        """Return the error for an answer that cannot be used."""
        return ModelUnavailable(self.words(f"its answer cannot be used: {reason}"))

    def words(self, reason: str) -> str:
        return f"the model that {self.option} names: {reason}"


def named_by(option: str, url: Setting, model: Setting, key: Setting) -> Endpoint:
    """Return the endpoint that settings name."""
    return Endpoint(option, url.read(), model.read(), key.read())


def check(endpoint: Endpoint, **libraries: str) -> None:
    """Raise UsageError for an endpoint without the name of a model, and where one of these libraries, by
    their modules, is missing."""
    if not endpoint.model:
        raise UsageError(f"{endpoint.option}-model: expected the name of the model of {endpoint.option}")
    check_libraries(endpoint.option, "embeddings", {"httpx": "httpx", **libraries})


def check_libraries(option: str, extra: str, libraries: Mapping[str, str]) -> None:
    """Raise UsageError where one of the libraries of an option, by their modules, is missing."""
    from importlib.util import find_spec

    for module, library in libraries.items():
        if find_spec(module) is None:
            raise UsageError(f'{option} needs {library}: pip install "fastrpc-mcp[{extra}]"')


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
