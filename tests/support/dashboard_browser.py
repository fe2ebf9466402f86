"""A person at the dashboard without scripts, and questions to decide there."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx

from fastrpc.dashboard.app import Dashboard
from fastrpc.guard.approvals.binding import Binding
from fastrpc.guard.approvals.store import Question

BASE = "http://127.0.0.1:8700"
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>' autofocus onfocus=alert(3) {{7*7}}"
"""A text that would become a part of a page, or run, where it is not escaped."""
FORM_TOKEN = re.compile(r'name="form_token" value="(\w*)"')


def question(name: str = "wipe", arguments: dict[str, Any] | None = None, **changed: Any) -> Question:
    """Return a question about a call of a tool."""
    bound = {
        "caller": "agent#1",
        "server": "shop",
        "kind": "tool",
        "policy": "p1",
        "schema": {"type": "object"},
    }
    bound |= {key: changed.pop(key) for key in bound if key in changed}
    binding = Binding(**bound, name=name, arguments={"place": "x"} if arguments is None else arguments)
    facts = {"owner": "agent", "caller_class": "default", "risk": "high", "rule": "", "reason": "", **changed}
    return Question(binding=binding, **facts)


class Browser:
    """What a person does without scripts: keeps the cookies, and sends forms with the token of a page. Of a
    dashboard in this process, or at the URL of a server."""

    def __init__(self, dashboard: Dashboard | str) -> None:
        self._base = dashboard if isinstance(dashboard, str) else BASE
        self._transport = None if isinstance(dashboard, str) else httpx.ASGITransport(dashboard)
        self.cookies = httpx.Cookies()
        self.last = ""

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._send("GET", path, headers=headers)

    def send(
        self,
        path: str,
        origin: str | None = "",
        token: str | None = None,
        headers: dict[str, str] | None = None,
        **fields: str,
    ) -> httpx.Response:
        """Send a form, with the token of the last page and the origin of the server unless others are
        given."""
        origin = self._base if origin == "" else origin
        found = FORM_TOKEN.search(self.last)
        fields["form_token"] = token if token is not None else found[1] if found else ""
        named = {name.replace("arg_", "arg:"): text for name, text in fields.items()}
        return self._send(
            "POST",
            path,
            data=named,
            headers={**({} if origin is None else {"origin": origin}), **(headers or {})},
        )

    def sign_in(self, code: str) -> httpx.Response:
        return self.send("/enter", code=code)

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=self._transport, base_url=self._base, cookies=self.cookies, timeout=60
            ) as client:
                answer = await client.request(method, f"/dashboard{path}", **options)
                self.cookies = client.cookies
                return answer

        answer = asyncio.run(sent())
        if answer.headers.get("content-type", "").startswith("text/html"):
            self.last = answer.text
        return answer
