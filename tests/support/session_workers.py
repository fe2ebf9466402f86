"""Workers of one server that share sealed sessions: objects of this process, each with a server. Tests carry
the frames that they send each other.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from fastrpc import Server
from fastrpc.signed_texts import TextKeys
from fastrpc.transports.http.session_ids import worker_of
from fastrpc.transports.http.session_sharing import SessionSharing
from fastrpc.transports.http.sessions import HttpSession, Sessions
from fastrpc.transports.http.streams import Reader

KEYS = TextKeys((b"k" * 32,), are_shared=True)
ALICE = "alice"
ONE, OTHER = "docs://one", "docs://other"
Frame = tuple[dict[str, Any], Callable[[bool], object] | None]


def new_server(keys: TextKeys = KEYS) -> Server:
    """Return a server with two resources."""
    server = Server("shared")
    server.resource(ONE)(lambda: "one")
    server.resource(OTHER)(lambda: "other")
    server.runtime.signing_keys = keys
    return server


class Worker:
    """One of the workers, and what a client asks it."""

    def __init__(self, among: Workers, number: int, count: int, make: Callable[[], Any]) -> None:
        self.number = number
        self.results: list[Any] = []
        """Of requests that were answered later."""
        self.server = make()
        self.sessions = Sessions(self.server.connect)
        loop = asyncio.get_running_loop()

        def send(to: int, frame: Any, on_taken: Callable[[bool], object] | None = None) -> None:
            among.sent.append(frame["what"])
            among.between[number, to].append((frame, on_taken))

        self.sharing = self.sessions.sharing = SessionSharing(self.sessions, loop, number, count, send)

    def session(self, id: str) -> HttpSession:
        """Return a session, as a request that arrives here does."""
        found = self.sessions.find(id, ALICE)
        found = found or self.sessions.adopt(id, ALICE, asyncio.get_running_loop())
        assert found is not None
        return found

    def ask(self, id: str, method: str, **params: Any) -> Any:
        """Have the session's client send a request here; return its result, None if it is held."""
        session = self.session(id)
        exchange = session.exchange()
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = exchange.receive(json.dumps(message).encode())
        if answer is None:
            assert session.delivery is not None

            def answered(kind: str, line: bytes) -> None:
                session.put_back(exchange)
                self.results.append(json.loads(line).get("result"))

            exchange.hand_over(answered)
            return None
        session.put_back(exchange)
        return json.loads(answer)["result"]

    def subscribe(self, id: str, uri: str) -> None:
        assert self.ask(id, "resources/subscribe", uri=uri) in ({}, None)

    def unsubscribe(self, id: str, uri: str) -> None:
        assert self.ask(id, "resources/unsubscribe", uri=uri) in ({}, None)

    def set_level(self, id: str, level: str) -> None:
        assert self.ask(id, "logging/setLevel", level=level) in ({}, None)

    def listen(self, id: str) -> Reader:
        """Open the standalone stream of a session here."""
        reader = self.session(id).listen(None)
        assert reader is not None
        return reader

    def state(self, id: str) -> tuple[str | None, set[str]] | None:
        """Return the log level and the subscriptions of a session; None if it is not here."""
        session = self.sessions.find(id, ALICE)
        if session is None:
            return None
        state = session.dispatcher.session
        return state.log_level, set(state.subscriptions)


class Workers:
    """All workers, and the frames between each two of them."""

    def __init__(self, count: int, make: Callable[[], Any] = new_server) -> None:
        numbers = range(count)
        self.between: dict[tuple[int, int], deque[Frame]] = {
            (a, b): deque() for a in numbers for b in numbers if a != b
        }
        self.sent: list[str] = []
        """The kinds of all frames."""
        self.all = [Worker(self, number, count, make) for number in numbers]

    def begin(self) -> tuple[str, Worker, list[Worker]]:
        """Begin a session; return its id, its owner and the other workers."""
        loop = asyncio.get_running_loop()
        first = self.all[0]
        session = first.sessions.open(ALICE, loop)
        assert session is not None
        exchange = session.exchange()
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        exchange.receive(json.dumps(message).encode())
        session.put_back(exchange)
        first.sessions.seal(session)
        owner = self.all[worker_of(session.id.encode(), len(self.all)) or 0]
        return session.id, owner, [each for each in self.all if each is not owner]

    def carry(self, sender: Worker, to: Worker) -> None:
        """Carry the frames that one worker has sent to another one so far."""
        frames = self.between[sender.number, to.number]
        for _ in range(len(frames)):
            frame, on_taken = frames.popleft()
            if "announcement" in frame:
                to.server.runtime.announcements.take(*json.loads(frame["announcement"]))
            else:
                to.sharing.take(frame)
            if on_taken is not None:
                on_taken(True)

    def carry_all(self) -> None:
        """Carry all frames, with those that are sent because of them."""
        while any(self.between.values()):
            for sender, to in self.between:
                self.carry(self.all[sender], self.all[to])

    def announce_by_frames(self) -> None:
        """Have what each worker announces sent to the others as frames, in the order of all that it sends."""
        for sender in self.all:
            others = [frames for (number, _), frames in self.between.items() if number == sender.number]

            def send(announcement: bytes, others: Any = others) -> None:
                for frames in others:
                    frames.append(({"announcement": announcement}, None))

            sender.server.runtime.announcements.carriers.append(send)

    def announce_from(self, sender: Worker) -> None:
        """Have all others take what a worker announces, as its router does."""

        def carry(announcement: bytes) -> None:
            for each in self.all:
                if each is not sender:
                    each.server.runtime.announcements.take(*json.loads(announcement))

        sender.server.runtime.announcements.carriers.append(carry)

    async def heard(self, reader: Reader) -> list[Any]:
        """Return the messages that have come to a stream, as the name of the method or the URI."""
        found = await self._messages(reader)
        return [each.get("params", {}).get("uri", each["method"]) for each in found]

    async def heard_updates(self, reader: Reader) -> list[tuple[str, Any]]:
        """Return the updates that have come to a stream: the URI and the revision, if it has one."""
        params = [each.get("params", {}) for each in await self._messages(reader)]
        return [(each["uri"], each.get("revision")) for each in params if "uri" in each]

    async def _messages(self, reader: Reader) -> list[dict[str, Any]]:
        for _ in range(3):
            await asyncio.sleep(0)  # several changes of a list in one turn of the loop are one
        self.carry_all()
        lines = (reader.take() or b"").decode().splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]

    def close(self) -> None:
        for worker in self.all:
            worker.sessions.end_all("over")


def among(count: int, act: Callable[[Workers], object], make: Callable[[], Any] = new_server) -> None:
    """Call a function with so many workers of servers that `make` makes."""

    async def run() -> None:
        workers = Workers(count, make)
        try:
            found = act(workers)
            if isinstance(found, Coroutine):
                await found
            await asyncio.sleep(0)
            assert all(result == {} for worker in workers.all for result in worker.results)
        finally:
            workers.close()

    asyncio.run(asyncio.wait_for(run(), 60))
