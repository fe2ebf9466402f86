"""The session state of `fastrpc dev`: enough to move a client from one server process to the next.

Receives every line in both directions. Stores the pending requests and what a new server must receive again
(the handshake, the log level, subscriptions), and determines which change notifications the client may
receive. No I/O. Requests of the server get ids that no other process has used, so that late answers are
recognised.
"""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

from fastrpc.errors import InternalError
from fastrpc.protocol.versions import CAPABILITIES_KEY, STATELESS, SUBSCRIPTION_KEY, VERSION_KEY

OWN = "fastrpc-dev:"
"""The prefix of the ids of requests by `fastrpc dev` itself."""

PROBE = OWN + "probe"
LISTS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
"""The lists that can change, and the name of each in the filter of a 2026-07-28 client."""

RELOADED = "the server was reloaded while it worked on this request; send it again"
ENDED = "the server ended while it worked on this request; see its standard error"


class Pending:
    """A pending request of the client; `batch` is the same object for all elements of a batch."""

    def __init__(self, message: dict[str, Any], batch: int) -> None:
        self.message = message
        self.batch = batch
        self.began = perf_counter()


class DevSession:
    """One client's session, independent of the process that serves it."""

    def __init__(self) -> None:
        self.pending: dict[str, Pending] = {}
        self.answered: Pending | None = None
        """The request that the last line from the server has answered."""
        self._handshake: dict[str, Any] | None = None
        self._initialized = False
        self._log_level: dict[str, Any] | None = None
        self._subscribed: dict[str, dict[str, Any]] = {}
        self._listening: dict[str, dict[str, Any]] = {}  # subscriptions/listen, by key
        self._server_ids: dict[str, Any] = {}  # the server's id of each request, by ours
        self._swallow: set[str] = set()  # keys of answers and acknowledgements that are not for the client
        self._last = 0

    def from_client(self, line: bytes) -> bytes | None:
        """Handle a line from the client; return what the server receives, or None."""
        self._last += 1
        message = read(line)
        if isinstance(message, list):  # a batch, of 2025-03-26
            for element in message:
                if isinstance(element, dict):
                    self._track(element, self._last)
            return line
        if not isinstance(message, dict):
            return line
        if "method" not in message and "id" in message:  # an answer, perhaps to a server that has ended
            key = str(message["id"])
            return encode({**message, "id": self._server_ids.pop(key)}) if key in self._server_ids else None
        self._track(message, 0)
        return line

    def _track(self, message: dict[str, Any], batch: int) -> None:
        method, params = message.get("method"), message.get("params")
        if not isinstance(params, dict):
            params = {}
        if "id" in message:
            self.pending[key_of(message["id"])] = Pending(message, batch)
        if method == "initialize":
            self._handshake = message
        elif method == "notifications/initialized":
            self._initialized = True
        elif method == "logging/setLevel":
            self._log_level = message
        elif method == "resources/subscribe":
            self._subscribed[str(params.get("uri"))] = message
        elif method == "resources/unsubscribe":
            self._subscribed.pop(str(params.get("uri")), None)
        elif method == "notifications/cancelled":
            key = key_of(params.get("requestId"))
            self.pending.pop(key, None)
            self._listening.pop(key, None)
        elif method == "subscriptions/listen" and "id" in message:
            key = key_of(message["id"])
            self._listening[key] = message
            del self.pending[key]  # its response comes only when the stream ends

    def from_server(self, line: bytes) -> bytes | None:
        """Handle a line from the server; return what the client receives, or None."""
        self.answered = None
        message = read(line)
        if isinstance(message, list):
            for element in message:
                if isinstance(element, dict):
                    self.pending.pop(key_of(element.get("id")), None)
            return line
        if not isinstance(message, dict):
            return line
        if "method" in message:
            return self._on_server_message(message, line)
        key = key_of(message.get("id"))
        if key in self._swallow:
            self._swallow.discard(key)
            return None
        self.answered = self.pending.pop(key, None)
        self._listening.pop(key, None)
        return line

    def _on_server_message(self, message: dict[str, Any], line: bytes) -> bytes | None:
        if "id" in message:
            self._last += 1
            id = f"{OWN}{self._last}"
            self._server_ids[id] = message["id"]
            return encode({**message, "id": id})
        if message["method"] == "notifications/subscriptions/acknowledged":
            meta = message.get("params", {}).get("_meta", {})
            key = "acknowledged " + key_of(meta.get(SUBSCRIPTION_KEY))
            if key in self._swallow:
                self._swallow.discard(key)
                return None
        return line

    def probe(self) -> bytes:
        """Return the request that a new server must answer before it is used."""
        meta = {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}
        return encode({"jsonrpc": "2.0", "id": PROBE, "method": "server/discover", "params": {"_meta": meta}})

    def replay(self) -> list[bytes]:
        """Return the messages for a new server; the client does not receive the answers to them.

        The exception is a handshake that the previous server has not answered.
        """
        messages = []
        if self._handshake is not None:
            asked = self.pending.get(key_of(self._handshake["id"]))
            waits = asked is not None and asked.message is self._handshake
            messages.append(self._handshake if waits else self._again(self._handshake))
            if self._initialized:
                messages.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
            if self._log_level is not None:
                messages.append(self._again(self._log_level))
            messages += [self._again(message) for message in self._subscribed.values()]
        for key, message in self._listening.items():
            self._swallow.add(f"acknowledged {key}")
            messages.append(message)
        return [encode(message) for message in messages]

    def _again(self, message: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        id = f"{OWN}{self._last}"
        self._swallow.add(key_of(id))
        return {**message, "id": id}

    def give_up(self, reason: str) -> list[bytes]:
        """The server has ended: return an error for each pending request of the client, and a cancellation
        for each of the server's requests.

        The handshake stays pending: the next server answers it.
        """
        self._swallow.clear()
        lines = []
        for id in self._server_ids:
            params = {"requestId": id, "reason": reason}
            lines.append(encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        self._server_ids.clear()
        batches: dict[int, list[dict[str, Any]]] = {}
        for key, request in list(self.pending.items()):
            if request.message is not self._handshake:
                del self.pending[key]
                batches.setdefault(request.batch, []).append(refusal(request.message["id"], reason))
        for batch, answers in batches.items():
            lines += [encode(answers)] if batch else [encode(answer) for answer in answers]
        return lines

    def changes(self, kinds: set[str]) -> list[bytes]:
        """Return the list_changed notifications that the client may receive."""
        lines = []
        for kind, wish in LISTS.items():
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
            if kind in kinds and self._initialized:
                lines.append(encode(message))
            for listen in self._listening.values():
                wishes = listen.get("params", {}).get("notifications", {})
                if isinstance(wishes, dict) and wishes.get(wish) is True:
                    meta = {SUBSCRIPTION_KEY: listen["id"]}
                    lines.append(encode({**message, "params": {"_meta": meta}}))
        return lines


def kinds_of(capabilities: dict[str, Any]) -> set[str]:
    """Return the lists that a server's capabilities declare."""
    return {kind for kind in LISTS if kind in capabilities}


def refusal(id: Any, reason: str) -> dict[str, Any]:
    """Return an error response for a request whose server has ended."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": InternalError.code, "message": reason}}


def read(line: bytes) -> Any:
    """Return a line as a JSON value, or None if it is not JSON, which the server reports."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def encode(message: Any) -> bytes:
    """Return a message as one line."""
    return (
        json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        + b"\n"
    )


def key_of(id: Any) -> str:
    """Return the dictionary key of an id, which distinguishes 1 from "1"."""
    return json.dumps(id, ensure_ascii=False)
