"""Ids of sessions that contain the session's handshake, so that any process with the key can continue it.

An id is ``NONCE.HANDSHAKE.SIGNATURE``: 96 random bits, what `initialize` has agreed on (the time, the
version, the client's name, version and capabilities) as JSON in base64, and the signature of
`fastrpc.signed_texts`, which covers the principal and the server's name. The client reads in it only what it
has sent. All of it is visible ASCII (MCP, transports: session management), at most `LONGEST` bytes: a
handshake that does not fit is not sealed. A process that does not have the session accepts an id for
`ADOPTED_SECONDS`. An id that a client has ended (DELETE) is refused by the process that has ended it.
"""

from __future__ import annotations

import json
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict

from fastrpc import diagnostics
from fastrpc.protocol.versions import SESSION_VERSIONS
from fastrpc.quotas import size_of
from fastrpc.transports.http.session_ids import belongs_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.protocol.lifecycle import SessionState
    from fastrpc.signed_texts import TextKeys

LONGEST = 1000
"""Bytes; the fast path reads ids of 1,024 (`remembered`)."""
ADOPTED_SECONDS = 24 * 3600
CLOCK_SECONDS = 300
"""How far the clocks of two machines may differ, in seconds."""
ENDED_KEPT = 10_000
NONCE_BYTES, NONCE = 12, 16
LAYOUT = 1
"""Of the payload. A process refuses the ids of other layouts."""
FAR_TOO_LARGE = 100 * LONGEST
"""Memory of what a client declares that no id can contain, however short it is as JSON; in bytes."""
NAMES = ("name", "version", "title")
"""What is kept of `clientInfo`, if it is text."""


class SessionSeals:
    """Makes and reads the ids of one server, `audience`, with its keys."""

    def __init__(self, keys: TextKeys, audience: str) -> None:
        self._keys = keys
        self._purpose = f"session {LAYOUT} {json.dumps(audience)}"
        self._ended: OrderedDict[str, None] = OrderedDict()  # nonces of sessions that clients have ended
        self._log = diagnostics.Once("info")

    def sealed(self, principal: str, session: SessionState) -> str | None:
        """Return an id for a session that has agreed, which this worker has; None if it would be too long."""
        info = {name: session.client_info.get(name) for name in NAMES}
        info = {name: value for name, value in info.items() if isinstance(value, str)}
        if size_of([info, session.client_capabilities], FAR_TOO_LARGE) > FAR_TOO_LARGE:
            self._say_too_long()
            return None
        parts = [int(time.time()), session.version, info, session.client_capabilities]
        handshake = _encoded(json.dumps(parts, separators=(",", ":")).encode())
        while True:
            nonce = _encoded(os.urandom(NONCE_BYTES))
            id = self._keys.signed(self._purpose, principal, f"{nonce}.{handshake}")
            if len(id) > LONGEST:
                self._say_too_long()
                return None
            if belongs_here(id.encode()):
                return id

    def _say_too_long(self) -> None:
        self._log.write(
            f"a client declares more than an id of {LONGEST} bytes can contain: "
            "other processes cannot continue its session"
        )

    def handshake_of(self, id: str, principal: str) -> dict[str, Any] | None:
        """Return the params of `initialize` of a session; None for an id that was changed, is another
        principal's, of an unknown key, of a version that is not served, or too old, and for a session that
        was ended here."""
        if len(id) > LONGEST or id.count(".") != 2:
            return None
        payload = self._keys.payload_of(id, self._purpose, principal)
        if payload is None or id[:NONCE] in self._ended:
            return None
        begun, version, info, capabilities = json.loads(urlsafe_b64decode(payload.partition(".")[2]))
        if version not in SESSION_VERSIONS:  # of another release
            return None
        if not -CLOCK_SECONDS <= time.time() - begun <= ADOPTED_SECONDS:
            return None
        return {"protocolVersion": version, "clientInfo": info, "capabilities": capabilities}

    def refuse(self, id: str) -> None:
        """Refuse an id from now on, as long as its place among the last `ENDED_KEPT` is kept."""
        self._ended[id[:NONCE]] = None
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)


def _encoded(data: bytes) -> str:
    """Return base64 that `urlsafe_b64decode` reads, with no character that a header would not carry."""
    return urlsafe_b64encode(data).decode("ascii")
