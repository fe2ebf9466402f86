"""Observes a server: what it describes, what it answers to some calls, and how long that takes.

        seen = observe(["python", "server.py"], [{"tool": "add", "arguments": {"a": 1, "b": 2}}], repeat=100)

Starts the server as a child process of `fastrpc.Client` and sends the requests one after another. Answers
are kept as received: no schema is checked here. `fastrpc.swap.comparison` compares two observations.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

from fastrpc.client.client import Client
from fastrpc.errors import ClientError, MethodNotFound, RemoteError
from fastrpc.protocol.followed_pages import FollowedPages
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fastrpc.client.sync import SyncClient

START_SECONDS = 120.0
CALL_SECONDS = 120.0

LISTS = {
    "tools": ("tools", "tools/list"),
    "resources": ("resources", "resources/list"),
    "resourceTemplates": ("resources", "resources/templates/list"),
    "prompts": ("prompts", "prompts/list"),
}
"""The lists of a server: the capability and the method of each."""


def observe(
    command: Sequence[str],
    calls: Sequence[dict[str, Any]] = (),
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    version: str = LATEST_SESSION_VERSION,
    repeat: int = 1,
    start_seconds: float = START_SECONDS,
    call_seconds: float = CALL_SECONDS,
) -> dict[str, Any]:
    """Return what a server describes and answers.

    `calls`: objects with ``tool``, ``resource`` or ``prompt``, and ``arguments``. `repeat`: how often each is
    sent; the median of the times counts. A server that does not start, or ends, has a ``failure``.
    """
    seen: dict[str, Any] = {}
    begun = perf_counter()
    client = Client.sync(
        list(command), env=env, cwd=cwd, version=version, stderr=False, start_seconds=start_seconds,
        timeout_seconds=call_seconds, on_sample=None,
    )  # fmt: skip
    try:
        with client:
            started = perf_counter()
            seen.update(
                protocolVersion=client.version,
                serverInfo=dict(client.server_info),
                capabilities=dict(client.server_capabilities),
                instructions=client.instructions,
            )
            for member, (capability, method) in LISTS.items():
                seen[member] = _listed(client, method) if capability in client.server_capabilities else []
            listed = perf_counter()
            seen["answers"] = [_answer(client, call, repeat) for call in calls]
    except ClientError as error:
        return {**seen, "failure": str(error)}
    times = [answer["seconds"] for answer in seen["answers"]]
    seen["seconds"] = {"start": started - begun, "list": listed - started}
    if times:
        seen["seconds"]["call"] = median(times)
    return seen


def _listed(client: SyncClient, method: str) -> list[dict[str, Any]]:
    """Return all pages of a list. Raises ClientError."""
    found: list[dict[str, Any]] = []
    pages = FollowedPages(method, "the server")
    params: dict[str, Any] | None = {}
    while params is not None:
        try:
            page = client.request(method, params)
        except RemoteError as error:
            if error.code != MethodNotFound.code:
                raise
            return found
        found += next((value for value in page.values() if isinstance(value, list)), [])
        params = pages.next(page)
    return found


def request_of(call: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the title, the method and the params of a call. Raises ValueError."""
    if "tool" in call:
        return (
            f"tool {call['tool']}",
            "tools/call",
            {"name": call["tool"], "arguments": call.get("arguments", {})},
        )
    if "prompt" in call:
        return (
            f"prompt {call['prompt']}",
            "prompts/get",
            {"name": call["prompt"], "arguments": call.get("arguments", {})},
        )
    if "resource" in call:
        return f"resource {call['resource']}", "resources/read", {"uri": call["resource"]}
    raise ValueError(f'a call has a member "tool", "resource" or "prompt"; got {call!r:.80}')


def _answer(client: SyncClient, call: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Send a request `repeat` times; return the first and the last answer. Raises ClientError, but not for
    an error that the server answers."""
    title, method, params = request_of(call)
    answer: dict[str, Any] = {"of": title}
    times = []
    for at in range(repeat):
        begun = perf_counter()
        try:
            member, value = "result", client.request(method, params)
        except RemoteError as error:
            member, value = "error", _error_of(error)
        times.append(perf_counter() - begun)
        if at == 0:
            answer[member] = value
        answer["last"] = value
    answer["seconds"] = median(times)
    return answer


def _error_of(error: RemoteError) -> dict[str, Any]:
    found = {"code": error.code, "message": error.message, "data": error.data}
    return {name: value for name, value in found.items() if value is not None}
