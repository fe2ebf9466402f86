"""The tools that only steps of workflows need, each named after a type of nodes.

They are tools, so that guard, limits and audit apply to them, and callers may call them; no list shows them.
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastrpc import Context, ToolError, tool

from . import _settings
from ._answers import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Literal

    from fastrpc import ListItem, Meta, Server
else:
    from fastrpc import Meta
    from fastrpc.typing_forms import Annotated, Literal

PREFIX = "action."
LONGEST_REQUEST = 300
NO_CODE = "action.execute_code is switched off here: start the server with --execute-code"


class ApiAnswer(TypedDict):
    """The answer to a request. `body` is the value of its JSON, else its text."""

    status: int
    headers: dict[str, str]
    body: Any


@tool(name="action.api_call", effect="network")
async def api_call(
    ctx: Context,
    url: str,
    method: Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] = "GET",
    headers: dict[str, str] | None = None,
    query: dict[str, str | int | float | bool] | None = None,
    body: Annotated[Any, "Sent as JSON; a text is sent as it is"] = None,
    seconds: Annotated[float, Meta(gt=0, le=LONGEST_REQUEST)] = 30,
) -> ApiAnswer:
    """Send an HTTP request; a status of 400 and above is an error."""
    from .. import _reach
    from ._workflows import web_request

    order = web_request.Order(method, url, headers or {}, query or {}, body)
    found = await web_request.send(order, _reach.of(ctx), seconds)
    return answer(f"{found.status}", ApiAnswer(status=found.status, headers=found.headers, body=found.body))


class CodeOutput(TypedDict):
    """What the code has assigned to the name output."""

    output: Any


@tool(name="action.execute_code", effect="exec")
async def execute_code(
    code: Annotated[str, "Python: reads the name input, assigns the name output"],
    input: Annotated[Any, "Any JSON"] = None,
) -> CodeOutput:
    """Run Python in a process with limits: 10 s, 512 MiB, no files, no network."""
    from ._workflows import code as python

    if not _settings.EXECUTE_CODE.read():
        raise ToolError(NO_CODE)
    output = await python.run(code, input)
    return answer("done", CodeOutput(output=output))


class ModelAnswer(TypedDict):
    """The answer of a model."""

    text: str
    model: str


@tool(name="action.llm_prompt", effect="network")
async def llm_prompt(
    ctx: Context,
    prompt: str,
    system: str = "",
    max_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 1024,
) -> ModelAnswer:
    """Ask the client's model; where it has none, the one that the server's settings name."""
    from ._workflows import model

    if "sampling" in ctx.client_capabilities:
        sample = await ctx.sample(prompt, max_tokens=max_tokens, system_prompt=system or None)
        text, name = sample.text, sample.model
    elif model.is_there():
        text, name = await model.answer(prompt, system, max_tokens)
    else:
        raise ToolError(
            "no model: no client that samples waits for the run (wait_seconds of workflow.trigger), and the "
            "server was started without --model-url"
        )
    return answer(text, ModelAnswer(text=text, model=name))


class SentMessage(TypedDict):
    """A message that was sent: to so many clients, to the callbacks or the webhook, which are one."""

    to: str
    count: int


@tool(name="action.send_message", effect="network")
async def send_message(
    ctx: Context,
    text: Annotated[str, Meta(min_length=1, max_length=16_384)],
    to: Literal["log", "callback", "webhook"] = "log",
) -> SentMessage:
    """Send a message: to the owner's clients as a log message, as a callback, to the server's webhook."""
    from ._workflows import messages

    count = 1
    if to == "log":
        count = messages.log(ctx, text)
    elif to == "callback":
        await messages.call_back(ctx, text)
    else:
        await messages.post(ctx, text)
    return answer(f"Sent to {count}.", SentMessage(to=to, count=count))


def attach(server: Server) -> None:
    """Keep these tools out of lists."""
    server.filter_lists(_is_listed, lambda principal: None)


def _is_listed(everyone: None, item: ListItem) -> bool:
    return item.kind != "tool" or not item.name.startswith((PREFIX, PREFIX.replace(".", "_")))
