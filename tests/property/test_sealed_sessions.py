"""Many sealed sessions among four workers, with frames that arrive late, beside a model of what each client
has set and must hear."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from support.session_workers import ALICE, KEYS, Worker, Workers, among

from fastrpc import Server
from fastrpc.transports.http.streams import Reader

URIS = [f"docs://{number}" for number in range(6)]
LEVELS = ["debug", "info", "error"]


class Client:
    """A client, which sends its next request when the last one has been answered, and what it has set."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.id, self.owner, _ = workers.begin()
        self.level: str | None = None
        self.uris: set[str] = set()
        self.ended = False
        self.stream: Reader | None = None
        self.expected: list[str] = []
        """The changes that it must hear of, and has not."""

    @property
    def waits(self) -> bool:
        """Whether its last request has not been answered."""
        found = [worker.sessions.find(self.id, ALICE) for worker in self.workers.all]
        return any(session is not None and session.delivery is not None for session in found)

    def act(self, chance: random.Random) -> None:
        """Send a request to some worker."""
        worker, uri = chance.choice(self.workers.all), chance.choice(URIS)
        what = chance.choices(["subscribe", "unsubscribe", "level", "call", "listen"], [4, 3, 1, 2, 1])[0]
        if what == "subscribe":
            worker.subscribe(self.id, uri)
            self.uris.add(uri)
        elif what == "unsubscribe":
            worker.unsubscribe(self.id, uri)
            self.uris.discard(uri)
        elif what == "level":
            self.level = chance.choice(LEVELS)
            worker.set_level(self.id, self.level)
        elif what == "call":
            worker.ask(self.id, "ping")
        elif what == "listen":  # at the owner, where the router sends it
            self.stream = self.owner.listen(self.id)

    async def check(self) -> None:
        """All frames have been carried: what do the workers have, what has come?"""
        states = [worker.state(self.id) for worker in self.workers.all]
        if self.ended:
            assert states == [None] * len(states)
            loop = asyncio.get_running_loop()
            assert all(worker.sessions.adopt(self.id, ALICE, loop) is None for worker in self.workers.all)
            return
        own = self.owner.state(self.id)
        if self.uris or self.level:
            assert own == (self.level, self.uris)
        assert all(state in (None, (self.level, self.uris)) for state in states)
        if self.stream is not None:
            heard = await self.workers.heard(self.stream)
            assert sorted(heard) == sorted(self.expected)
            self.expected = []


def make() -> Server:
    """Return a server with resources."""
    server = Server("shared")
    for uri in URIS:
        server.resource(uri)(lambda: "text")
    server.runtime.signing_keys = KEYS
    return server


def end(client: Client, worker: Worker) -> None:
    """The client ends its session."""
    client.ended = True
    session = worker.sessions.find(client.id, ALICE)
    worker.sessions.end_for_client(client.id, ALICE)
    if session is not None:
        session.close()


def evict(workers: Workers, client: Client, chance: random.Random) -> None:
    """A worker ends its copy, which was idle for long, if another one has the session."""
    having = [worker for worker in workers.all if worker.state(client.id) is not None]
    if len(having) > 1:
        worker = chance.choice([each for each in having if each is not client.owner])
        session = worker.sessions.find(client.id, ALICE)
        assert session is not None
        worker.sessions.end(session)


def announce(workers: Workers, clients: list[Client], chance: random.Random) -> None:
    """Announce an update, of which every worker hears."""
    uri = chance.choice(URIS)
    for client in clients:
        if not client.ended and uri in client.uris:
            client.expected.append(uri)
    chance.choice(workers.all).server.resource_updated(uri)


def carry_some(workers: Workers, chance: random.Random) -> None:
    """Carry the frames between some workers."""
    pairs: list[Any] = [pair for pair, frames in workers.between.items() if frames]
    for sender, to in chance.sample(pairs, chance.randrange(len(pairs) + 1)):
        workers.carry(workers.all[sender], workers.all[to])


@pytest.mark.parametrize("seed", range(4))
def test_clients_hear_of_what_they_have_set_whichever_workers_they_ask(seed: int) -> None:
    chance = random.Random(seed)

    async def act(workers: Workers) -> None:
        for worker in workers.all:
            workers.announce_from(worker)
        clients = [Client(workers) for _ in range(50)]
        for _ in range(30):
            for _ in range(60):
                client = chance.choice(clients)
                if not client.ended and not client.waits:
                    client.act(chance)
                    if chance.random() < 0.01:
                        end(client, chance.choice(workers.all))
                if chance.random() < 0.3:
                    carry_some(workers, chance)
                await asyncio.sleep(0)
            workers.carry_all()
            for client in clients:
                assert not client.waits
                await client.check()
                if chance.random() < 0.2 and not client.ended:
                    evict(workers, client, chance)
            for _ in range(5):
                announce(workers, clients, chance)
            workers.carry_all()
            for client in clients:
                await client.check()

    among(4, act, make)


class Listener:
    """A client that listens, subscribes and unsubscribes, and what it has to hear of."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.id, self._owner, self._others = workers.begin()
        self._asked: Worker | None = None
        """The worker that has not answered the last request yet."""
        self._uri = ""
        self._subscribes = False
        self._answered: set[str] = set()
        """What it has subscribed to, and has the answer."""
        self._stream = self._owner.listen(self.id)
        self._others[0].session(self.id)  # what only a worker that ends knows is lost with it
        workers.carry_all()
        self._owed: dict[str, list[int]] = {}
        """The revisions of each resource that it must hear of."""
        self._was_lost = False
        """Whether the process that had its stream has ended since the last check."""

    def act(self, chance: random.Random) -> None:
        """Send a request to some worker, or read the answer of the last one."""
        if self._asked is None:
            self._uri, self._subscribes = chance.choice(URIS), chance.random() < 0.6
            self._asked = chance.choice([self._owner, *self._others])
            if self._subscribes:
                self._asked.subscribe(self.id, self._uri)
            else:
                self._answered.discard(self._uri)
                self._owed.pop(self._uri, None)
                self._asked.unsubscribe(self.id, self._uri)
        session = self._asked.session(self.id)
        if session.delivery is None:
            self._asked = None
            if self._subscribes:
                self._answered.add(self._uri)

    def is_announced(self, uri: str, revision: int) -> None:
        """An update is announced from now on."""
        if uri in self._answered:
            self._owed.setdefault(uri, []).append(revision)

    async def lose(self) -> None:
        """The owner ends, and another process takes its place, where the client listens again."""
        await self.check()
        self._owner.sessions.end(self._owner.session(self.id))
        self._was_lost = True

    def listen_again(self) -> None:
        self._stream = self._owner.listen(self.id)

    async def check(self) -> None:
        """All frames have been carried."""
        if self._asked is not None:
            assert self._asked.session(self.id).delivery is None
            self._asked = None
            if self._subscribes:
                self._answered.add(self._uri)
        heard = await self._workers.heard_updates(self._stream)
        for uri, revisions in self._owed.items():
            own = [revision for heard_uri, revision in heard if heard_uri == uri]
            missing = {*revisions}.difference(own)
            if self._was_lost:
                assert not missing or own[-1] is None or own[-1] > max(missing), (revisions, own)
            else:
                assert not missing, (missing, own)
        self._owed.clear()
        self._was_lost = False


@pytest.mark.parametrize("seed", range(4))
def test_a_client_that_has_the_answer_of_its_subscription_hears_of_each_later_update(seed: int) -> None:
    chance = random.Random(seed)

    async def act(workers: Workers) -> None:
        workers.announce_by_frames()
        listeners, revision = [Listener(workers) for _ in range(20)], 0
        for _ in range(20):
            lost = []
            for each in listeners:
                if chance.random() < 0.2:
                    workers.carry_all()
                    await each.lose()
                    lost.append(each)
            for _ in range(100):
                chance.choice(listeners).act(chance)
                carry_some(workers, chance)
                if chance.random() < 0.5:
                    uri = chance.choice(URIS)
                    for each in listeners:
                        each.is_announced(uri, revision)
                    chance.choice(workers.all).server.resource_updated(uri, {"revision": revision})
                    revision += 1
                if chance.random() < 0.1 and lost:
                    lost.pop().listen_again()
                await asyncio.sleep(0)
            for each in lost:
                each.listen_again()
            workers.carry_all()
            for each in listeners:
                await each.check()

    among(3, act, make)
