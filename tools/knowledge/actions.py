"""The tools that steps of workflows call besides the server's own: action.api_call, each of the name of a type
of nodes.

They are tools, so that guard, limits and audit know them, and callers may call them; no list shows them.
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastrpc import Context, tool

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


class ApiAnswer(TypedDict):
    """The answer to a request. `body` is what its JSON says, else its text."""

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


def attach(server: Server) -> None:
    """Keep these tools out of lists."""
    server.filter_lists(_is_listed, lambda principal: None)


def _is_listed(everyone: None, item: ListItem) -> bool:
    return item.kind != "tool" or not item.name.startswith((PREFIX, PREFIX.replace(".", "_")))
