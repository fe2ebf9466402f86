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
