"""The servers behind a gateway, or the server itself: their health, their tools with their schemas, and a
form to call a tool as oneself.

A call is made by `fastrpc.dashboard.own_calls`: the guard decides about it as about any caller's, and it may
wait for an approval. The page waits for it a moment, then shows how far it is.
"""

from __future__ import annotations

import re
import secrets
from json import loads
from urllib.parse import urlencode

from fastrpc.dashboard import behind, own_calls, schema_form
from fastrpc.dashboard.access import APPROVER
from fastrpc.dashboard.behind import ShownTool
from fastrpc.dashboard.own_calls import TooManyCalls
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.schema_form import fields_of, placed, read
from fastrpc.dashboard.view import PREFIX, Page, PageError, PageRoute
from fastrpc.gateway import member
from fastrpc.guard.approvals.display import visible_name, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from starlette.responses import Response

    from fastrpc.dashboard.behind import ShownServer
    from fastrpc.dashboard.own_calls import ShownOwnCall
    from fastrpc.dashboard.view import PageView

ON_A_PAGE = 50
WAIT_SECONDS = 2.0
"""How long a page waits for its call before it says that it runs."""
LONGEST_SHOWN = 100_000
"""Characters of a result that a page shows."""
LONGEST_ID = 64
LAST_PART = 286
"""The status with which htmx shows a part of a page, and does not ask for it again."""
ID = re.compile(r"[A-Za-z0-9_-]{20,64}")
STATES = (
    *(member.RUNNING, member.STARTING, member.NOT_STARTED, member.FAILED, member.ENDED),
    *(member.INVALID, member.DISABLED, member.DENIED),
)
WORDS = (*STATES, *schema_form.WORDS, *own_calls.WORDS)


def servers(view: PageView) -> Response:
    """The servers, with how each is."""
    server = view.serving.server
    found = view.in_loop(behind.servers(server))
    for each in found:
        behind.measure(each, server)
    return view.page(
        "server_cards.html" if view.is_part else "servers.html",
        shown=found,
        untried=[each for each in found if each.state == member.NOT_STARTED],
        is_gateway=behind.gateway_of(server) is not None,
        is_measured=server.statistics is not None,
    )


def start(view: PageView) -> Response:
    """Start the servers that no client has needed so far."""
    gateway = behind.gateway_of(view.serving.server)
    if gateway is None:
        raise PageError("This server is no gateway.", 404)
    with recorded(view, "servers.start"):
        view.loop.call_soon_threadsafe(gateway.start_untried)
    return view.redirect("/servers")


def tools(view: PageView) -> Response:
    """The tools of one server, those that have a text in their name or description."""
    name = view.query.get("server", "")
    wanted = view.query.get("find", "").casefold()
    text = view.query.get("from", "")
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
    server = _server(view, name)
    found = view.in_loop(behind.tools(view.serving.server, server.tools, view.person))
    fitting = [each for each in found if wanted in f"{each[0].name}\n{each[0].description or ''}".casefold()]
    return view.page(
        "tools.html",
        of=server,
        shown=[ShownTool(*each) for each in fitting[start : start + ON_A_PAGE]],
        count=len(fitting),
        find=view.query.get("find", ""),
        following=start + ON_A_PAGE if len(fitting) > start + ON_A_PAGE else None,
    )


def _server(view: PageView, name: str) -> ShownServer:
    for each in view.in_loop(behind.servers(view.serving.server)):
        if each.name == name:
            return each
    raise PageError("There is no such server.", 404)


def tool(view: PageView) -> Response:
    """A tool with its schema, and the form; with the values of an earlier call, if it names one."""
    shown = _tool(view, view.query.get("name", ""))
    typed: dict[str, str] = {}
    earlier = view.query.get("again", "")[:LONGEST_ID]
    if earlier:
        call = view.in_loop(view.serving.own_call(earlier, view.person))
        typed = {} if call is None or call.tool != shown.name else call.typed
    return _form(view, shown, typed)


def _tool(view: PageView, name: str) -> ShownTool:
    found = view.in_loop(behind.tools(view.serving.server, [name], view.person))
    if not found:
        raise PageError("There is no such tool.", 404)
    return ShownTool(*found[0])


def _form(
    view: PageView,
    shown: ShownTool,
    typed: dict[str, str],
    mistakes: dict[str, str] | None = None,
    error: str = "",
    status: int = 200,
) -> Response:
    return view.page(
        "tool.html",
        status,
        tool=shown,
        fields=fields_of(shown.schema),
        typed=typed,
        mistakes=mistakes or {},
        error=error,
        call_id=secrets.token_urlsafe(16),
        place=f"{PREFIX}/tool?{urlencode({'name': shown.name})}",
        others=schema_form.OTHERS,
    )


def call(view: PageView) -> Response:
    """Call a tool with what the form has; a form that is sent again shows the call that it has made."""
    shown = _tool(view, view.form.get("tool", ""))
    fields = fields_of(shown.schema)
    typed = _typed(view)
    arguments, mistakes = read(fields, typed, view.language.text)
    if mistakes:
        return _form(view, shown, typed, mistakes, status=400)
    id = view.form.get("call", "")
    if not ID.fullmatch(id):
        id = secrets.token_urlsafe(16)
    if not view.keys.is_first(f"call {id}", view.person):  # by whichever worker it was made
        return view.redirect(f"/own-calls/{id}")
    own = view.serving.own_calls
    try:
        made = view.in_loop(own.make(id, view.person, shown.name, typed, arguments, WAIT_SECONDS))
    except TooManyCalls as error:
        said = view.language.text(str(error), **error.values)
        return _form(view, shown, typed, error=said, status=429)
    problem = _text_of(made.result) if made.result is not None and made.result.get("isError") else ""
    mistakes = placed(problem, fields)
    if mistakes:
        return _form(view, shown, typed, mistakes, status=400)
    return view.redirect(f"/own-calls/{id}")


def _typed(view: PageView) -> dict[str, str]:
    """Return the texts of the form by the keys of its fields."""
    prefix = schema_form.PREFIX
    return {name.removeprefix(prefix): text for name, text in view.form.items() if name.startswith(prefix)}


def tool_again(view: PageView) -> Response:
    """The form of a tool, with what was typed."""
    return _form(view, _tool(view, view.form.get("tool", "")), _typed(view))


def own_call(view: PageView) -> Response:
    """A call that the visitor has made. An open page asks for it until it has ended, or is not known."""
    made = _find_call(view)
    if made is None and view.is_part:
        return view.page("own_call_unknown.html", LAST_PART)
    return _show_call(view, _known(made))


def _find_call(view: PageView) -> ShownOwnCall | None:
    id = view.request.path_params["id"][:LONGEST_ID]
    return view.in_loop(view.serving.own_call(id, view.person))


def _known(found: ShownOwnCall | None) -> ShownOwnCall:
    if found is None:
        raise PageError("This call is not known here, or no longer: results are kept for 15 minutes.", 404)
    return found


def _show_call(view: PageView, made: ShownOwnCall) -> Response:
    result = made.result or {}
    blocks: list[Any] = result.get("content") or []
    structured = result.get("structuredContent")
    if structured is not None and len(blocks) == 1 and _is_json_of(structured, _text_of(result)):
        blocks = []  # the same once more, for clients that know no structured results
    return view.page(
        "own_call_state.html" if view.is_part else "own_call.html",
        LAST_PART if view.is_part and made.seconds is not None else 200,
        call=made,
        serving=view.serving,
        place=f"{PREFIX}/own-calls/{made.id}",
        name=visible_name(made.tool),
        problem=_problem(view, made),
        is_error=bool(result.get("isError")),
        blocks=[_shown_block(each) for each in blocks],
        structured="" if structured is None else _cut(written(structured, 2)),
        seconds=made.seconds,
        longest=LONGEST_SHOWN,
    )


def _problem(view: PageView, made: ShownOwnCall) -> str:
    if made.values is None:  # the error of the server, which has no translation
        return visible_name(made.problem)
    return view.language.text(made.problem, **made.values)


def _is_json_of(structured: Any, text: str) -> bool:
    try:
        return bool(loads(text) == structured)
    except (ValueError, RecursionError):
        return False


def _shown_block(block: Any) -> tuple[str, str]:
    """Return the type of a block of content, and its text, or the JSON of a block without one, in which data
    is stated by its size."""
    if not isinstance(block, dict):
        return "", ""
    kind = visible_name(str(block.get("type", "")))
    if block.get("type") == "text":
        return kind, _cut(str(block.get("text", "")))
    shown = {
        key: f"{len(value):,} characters" if key in ("data", "blob") and isinstance(value, str) else value
        for key, value in block.items()
    }
    return kind, _cut(written(shown, 2))


def _cut(text: str) -> str:
    return text[:LONGEST_SHOWN]


def _text_of(result: dict[str, Any]) -> str:
    blocks = result.get("content")
    texts = (
        [each.get("text") for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []
    )
    return "\n".join(each for each in texts if isinstance(each, str))


def end(view: PageView) -> Response:
    """Cancel a call that the visitor has made."""
    made = _known(_find_call(view))
    view.in_loop(view.serving.end_own_call(made.id, view.person))
    return view.redirect(f"/own-calls/{made.id}")


PAGES = [
    Page(
        [
            PageRoute("GET", "/servers", servers),
            PageRoute("POST", "/servers/start", start, APPROVER),
            PageRoute("GET", "/tools", tools),
            PageRoute("GET", "/tool", tool),
            PageRoute("POST", "/tool", call, APPROVER, again=tool_again),
            PageRoute("GET", "/own-calls/{id}", own_call),
            PageRoute("POST", "/own-calls/{id}/cancel", end, APPROVER),
        ],
        title="Servers",
        order=12,
        is_there=lambda sources: sources.serving is not None,
    )
]
