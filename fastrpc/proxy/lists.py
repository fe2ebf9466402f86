"""Reads the lists of an upstream server: every entry that can be used, whatever the others are.

An entry that no client could use (no name, no URI, no input schema) is left out and logged, and so is a list
that is answered with an error or with none, except the tools. The time of a list is limited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastrpc.client.results import entries_of
from fastrpc.errors import InvalidAnswer, MethodNotFound, ToolError
from fastrpc.protocol.followed_pages import FollowedPages
from fastrpc.proxy.requests import UnreadableAnswer, UpstreamError
from fastrpc.proxy.upstream import UpstreamClient
from fastrpc.time_limit import TimeLimit


async def read_list(
    client: UpstreamClient,
    method: str,
    member: str,
    key: str,
    seconds: float,
    *,
    is_needed: bool,
    log: Callable[[str], object],
) -> dict[str, dict[str, Any]]:
    """Return the entries of all pages, by their `key`. Raises ToolError if the connection is lost or the time
    is over; if the list `is_needed`, RemoteError, UnreadableAnswer and InvalidAnswer too."""
    listed: dict[str, dict[str, Any]] = {}
    pages = FollowedPages(method, "the upstream server")
    with TimeLimit(seconds, lambda: ToolError(f"{method} is not answered within {seconds:g} s")):
        try:
            async for page in pages.read_by(client.request):
                listed.update((raw[key], raw) for raw in entries_of(method, page, member, log))
        except (UpstreamError, UnreadableAnswer, InvalidAnswer) as error:
            # Where there is no such method, there are for example resources without templates.
            if not isinstance(error, UpstreamError) or error.code != MethodNotFound.code:
                if is_needed:
                    raise
                log(f"{method} is left out: {error}")
    return listed
