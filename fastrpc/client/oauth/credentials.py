"""The tokens of one connection to a server: which header a request gets, and what follows a refusal.

`headers` is awaited before each request, and refreshes a token that has expired; `check` after each answer,
and returns whether the request is to be sent again with a new token. Both are quick while the token is good:
neither the SDK nor the store is touched. Whatever needs a flow is one task at a time, however many requests
wait for it; it ends with the connection.

A login is begun once for each reason: a token that was refused right after it was issued, scopes that have
been asked for, and a login that a person has not completed are errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from typing import Any

from fastrpc import diagnostics
from fastrpc.client.oauth import OAuth
from fastrpc.client.oauth.record import AuthorizationRefusal, LoginRecord, key_of
from fastrpc.errors import AuthorizationFailed, ClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.client.oauth.record import LoginTarget


class Credentials:
    """The tokens of one connection.

    `hold`, if it is set, is called with True when a flow begins and with False when it has ended: meanwhile
    requests wait for a person, and not for their server.
    """

    def __init__(self, auth: OAuth, place: LoginTarget) -> None:
        self._auth = auth
        self._place = place
        self._key = key_of(place.url, auth.identity)
        self._record = LoginRecord()
        self._is_loaded = False
        self._is_kept = True
        """Whether the store has what was last saved."""
        self._running: asyncio.Task[None] | None = None
        self._fresh: str | None = None
        """A token that a login on this connection has led to, and that the server has not accepted yet."""
        self._refreshed: str | None = None
        """A token that a refresh has led to."""
        self._asked: set[str] = set()
        """The scopes for which a login was made on this connection."""
        self._failure: str | None = None
        """Why no further login is started."""
        self.hold: Callable[[bool], object] | None = None
        for secret in (auth.client_secret, getattr(auth, "private_key", None)):
            if secret is not None:
                place.add_secret(secret)

    @property
    def is_busy(self) -> bool:
        """Whether requests wait for a token, and perhaps for a person."""
        return self._running is not None

    async def headers(self, sent: Mapping[str, str]) -> dict[str, str]:
        """Return the header that authenticates a request with these other headers; none without a token.
        Raises AuthorizationFailed."""
        await self._idle()
        if not self._is_loaded:
            await self._do(self._load())
            await self._idle()
        if self._record.is_expired and self._record.can_refresh:
            await self._do(self._renew(None, sent))
        token = self._record.access_token
        return {} if token is None or self._record.is_expired else {"Authorization": f"Bearer {token}"}

    async def check(self, status: int, challenge: str | None, sent: Mapping[str, str]) -> bool:
        """Look at an answer; return whether to send the request again. `challenge`: its header
        WWW-Authenticate. `sent`: the request's headers. Raises AuthorizationFailed."""
        token = sent.get("Authorization", "").partition(" ")[2] or None
        if status not in (401, 403):
            if token == self._fresh:
                self._fresh = None
            return False
        refusal = AuthorizationRefusal(status, challenge, token)
        if status == 403 and not refusal.wants_scopes:
            return False
        await self._idle()
        if self._is_newer_than(token):
            return True  # another request has had it renewed
        self._check_reason(refusal)
        await self._do(self._renew(refusal, sent))
        return True

    def _is_newer_than(self, token: str | None) -> bool:
        """Whether there is a token, and another one than this."""
        return self._record.access_token not in (None, token) and not self._record.is_expired

    def _check_reason(self, refusal: AuthorizationRefusal) -> None:
        """Raise AuthorizationFailed where another login would change nothing."""
        if self._failure is not None:
            raise AuthorizationFailed(self._failure)
        if refusal.status == 401:
            if refusal.token is not None and refusal.token == self._fresh:
                raise AuthorizationFailed(
                    f"{self._place.shown} refuses the token that was just issued for it"
                )
            return
        scopes = set(refusal.scopes) or {""}
        if scopes <= self._asked:
            wanted = " ".join(sorted(scopes)) or "others"
            raise AuthorizationFailed(
                f"{self._place.shown} still requires the scopes {wanted:.200}, which were asked for"
            )

    async def _idle(self) -> None:
        """Wait until nothing is done on the record. Raises AuthorizationFailed if that fails."""
        while self._running is not None:
            await asyncio.shield(self._running)

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work on the record, while it is idle. Whoever waits for it may be cancelled: it goes on."""
        self._running = asyncio.get_running_loop().create_task(work)
        self._running.add_done_callback(self._ended)
        if self.hold is not None:
            self.hold(True)
        await asyncio.shield(self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running = None
        if not task.cancelled():
            task.exception()  # whoever waits has got it
        if self.hold is not None:
            self.hold(False)

    async def _renew(self, refusal: AuthorizationRefusal | None, sent: Mapping[str, str]) -> None:
        """Get another token than the one that was refused, or has expired. Raises AuthorizationFailed."""
        if self._is_kept:
            await self._load()
            if self._is_newer_than(None if refusal is None else refusal.token):
                return  # another process has
        flow = await asyncio.to_thread(import_module, "fastrpc.client.oauth.flow")
        record = self._record
        record.was_shown = False
        before = record.access_token
        is_login = False
        if refusal is not None and refusal.token == self._refreshed:
            refusal.may_refresh = False
        try:
            version = sent.get("MCP-Protocol-Version")
            is_login = await flow.run(self._auth, self._place, record, refusal, version)
        except ClientError as error:
            if record.was_shown:
                self._failure = f"{error}; connect again to log in"
            raise
        finally:
            if record.access_token != before:
                self._hide()
                self._fresh, self._refreshed = None, None
                if is_login:
                    self._fresh = record.access_token
                else:
                    self._refreshed = record.access_token
                await self._save()
        if refusal is not None and is_login:
            self._asked.update(refusal.scopes or [""])

    async def close(self) -> None:
        """End a flow that runs."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _load(self) -> None:
        try:
            text = await asyncio.to_thread(lambda: self._auth.store().load(self._key))
            if text is not None:
                self._record = LoginRecord.read(text)
        except (OSError, ValueError) as error:
            diagnostics.write("warning", f"{self._place.shown}: the stored login cannot be read: {error}")
        self._is_loaded = True
        self._hide()

    async def _save(self) -> None:
        text = self._record.text()
        try:
            await asyncio.to_thread(lambda: self._auth.store().save(self._key, text))
            self._is_kept = True
        except OSError as error:
            self._is_kept = False
            diagnostics.write("warning", f"{self._place.shown}: the login cannot be stored: {error}")

    def _hide(self) -> None:
        for member in ("access_token", "refresh_token"):
            secret = (self._record.tokens or {}).get(member)
            if secret:
                self._place.add_secret(secret)
        secret = (self._record.client or {}).get("client_secret")
        if secret:
            self._place.add_secret(secret)
