"""The model in the server's settings: an endpoint with OpenAI's chat completions."""

from __future__ import annotations

from fastrpc import ToolError

from ... import _reach
from .. import _settings
from .._models.endpoint import named_by
from . import web_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 300.0


def is_there() -> bool:
    """Whether the settings name a model."""
    return bool(_settings.MODEL_URL.read())


async def answer(prompt: str, system: str, max_tokens: int) -> tuple[str, str]:
    """Return the model's text and its name. Raises ToolError."""
    named = named_by("--model-url", _settings.MODEL_URL, _settings.MODEL, _settings.MODEL_KEY)
    messages = [
        *([{"role": "system", "content": system}] if system else []),
        {"role": "user", "content": prompt},
    ]
    order = named.order("/chat/completions", {"max_tokens": max_tokens, "messages": messages})
    try:
        found = await web_request.send(order, _reach.Reach(), SECONDS)  # the operator's choice, no caller's
        said: Any = found.body
        return str(said["choices"][0]["message"]["content"] or ""), str(said.get("model") or named.model)
    except ToolError as error:
        raise ToolError(f"the model that --model-url names: {str(error).removeprefix('url: ')}") from None
    except (AttributeError, LookupError, TypeError):
        raise ToolError("the model that --model-url names: its answer is not a chat completion.") from None
