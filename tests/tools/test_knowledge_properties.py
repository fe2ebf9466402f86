"""Random operations of several owners on one server, beside a model in plain Python: what each of them is
answered, told and offered is what is theirs, in every line that their client gets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools import knowledge
from fastrpc.tools.knowledge import _listing, _store, _watching
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from fastrpc import Server
from fastrpc.callers import Caller
from fastrpc.client.in_memory import InMemory
from fastrpc.testing import Client, RemoteError

CALLERS = {
    "ada#1": Caller("ada#1", "chat", owner="ada"),
    "ada#2": Caller("ada#2", "mail", owner="ada"),
    "bob#1": Caller("bob#1", "chat", owner="bob"),
    "ad#1": Caller("ad#1", "chat", owner="ad"),
}
PRINCIPALS = list(CALLERS)
WORDS = ["deadline", "meeting", "meetings", "会议", "مكتبة", "straße"]
ID = re.compile(rb"(?:mem|doc)_[a-km-z2-9]{12}")
LISTS = ("knowledge://memory/", "knowledge://documents/")

who = st.sampled_from(PRINCIPALS)
some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)


class Thing:
    """An entry or a document of the model."""

    def __init__(self, id: str, by: str, scope: str, text: str) -> None:
        self.id, self.text, self.owner = id, text, CALLERS[by].owner
        self.caller_class = CALLERS[by].caller_class if scope == "agent" else ""
        self.is_entry = id.startswith("mem_")
        self.superseded_by = ""
        self.uri = f"knowledge://{'memory' if self.is_entry else 'documents'}/{id}"

    def is_seen_by(self, by: str) -> bool:
        return CALLERS[by].owner == self.owner and self.caller_class in ("", CALLERS[by].caller_class)


class OwnersClient(Client):
    """A client of a principal, which looks for what is not theirs in the lines that it gets: the mark of
    another owner, or an id that is neither theirs nor one that they have named."""

    def __init__(self, app: Server, by: str, things: dict[str, Thing]) -> None:
        super().__init__(app)
        self.by, self.things, self.named = by, things, set[bytes]()
        self.lines: list[bytes] = []
        recorder = Client.watch(self) if Client.watch else None
        self._watchers = [each for each in (recorder,) if each]
        self._make_transport = lambda: InMemory(app, self, by)  # type: ignore[assignment]
        self.subscribed: set[str] = set()
        self.may_be_told: set[str] = set()
        self.must_be_told: set[str] = set()
        self.heard = 0

    def sent(self, data: bytes) -> None:
        self.named.update(ID.findall(data))
        for each in self._watchers:
            each.sent(data)

    def received(self, data: bytes) -> None:
        for each in self._watchers:
            each.received(data)
        self.lines.append(data)

    def wrong_line(self) -> bytes | None:
        """Return a line with what is another owner's; forget the others."""
        marks = {mark_of(by).encode() for by in PRINCIPALS if CALLERS[by].owner != CALLERS[self.by].owner}
        own = {id.encode() for id, thing in self.things.items() if thing.is_seen_by(self.by)} | self.named
        lines, self.lines = self.lines, []
        return next(
            (line for line in lines if any(map(line.__contains__, marks)) or set(ID.findall(line)) - own),
            None,
        )


def mark_of(by: str) -> str:
    return f"zq{CALLERS[by].owner}qz"


class Owners(RuleBasedStateMachine):
    made: Bundle[str] = Bundle("made")
    folder: Path
    number = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).number += 1
        self.patched = pytest.MonkeyPatch()
        self.patched.setenv("FASTRPC_STATE_DIR", str(self.folder / "state"))
        self.patched.setenv("FASTRPC_KNOWLEDGE_DATABASE", f"sqlite:///{self.folder}/{self.number}.sqlite3")
        self.patched.setattr(_watching, "EVERY_SECONDS", 0.02)
        self.patched.setattr(_listing, "PAGE", 3)
        self.patched.setattr(knowledge.documents, "PAGE", 2)
        self.loop = asyncio.new_event_loop()
        self.things: dict[str, Thing] = {}
        self.gone: set[str] = set()
        app = Server("knowledge")
        app.include(knowledge)
        app.runtime.caller_of = CALLERS.__getitem__
        self.clients = {by: OwnersClient(app, by, self.things) for by in PRINCIPALS}
        for client in self.clients.values():
            self.run(client.__aenter__())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def call(self, by: str, tool: str, **arguments: Any) -> Any:
        done = self.run(self.clients[by].call(tool, **arguments))
        assert not done.is_error, done.text
        return done.structured

    def refusal(self, by: str, tool: str, **arguments: Any) -> str:
        done = self.run(self.clients[by].call(tool, **arguments))
        assert done.is_error
        return str(done.text)

    def seen(self, by: str, *, entries: bool = True, documents: bool = False) -> dict[str, Thing]:
        return {
            id: thing
            for id, thing in self.things.items()
            if id not in self.gone and thing.is_seen_by(by) and (entries if thing.is_entry else documents)
        }

    def has_changed(self, thing: Thing) -> None:
        """Whoever has subscribed to it, or to its list, and sees it, is notified; no one else."""
        for by, client in self.clients.items():
            if thing.is_seen_by(by):
                for uri in (thing.uri, LISTS[not thing.is_entry]):
                    if uri in client.subscribed:
                        client.may_be_told.add(uri)
                        client.must_be_told.add(uri)

    # --- entries ------------------------------------------------------------------------------------------

    @rule(target=made, by=who, scope=st.sampled_from(["user", "agent"]), words=some_words)
    def write(self, by: str, scope: str, words: list[str]) -> str:
        text = " ".join([mark_of(by), *words])
        done = self.call(by, "memory.write", content=text, scope=scope, tags=[mark_of(by)])
        thing = Thing(done["id"], by, scope, text)
        same = [
            each
            for each in self.seen(by).values()
            if (each.text, each.caller_class) == (text, thing.caller_class)
        ]
        assert done["is_new"] is not bool(same)
        assert [each.id for each in same] in ([], [thing.id])
        self.things[thing.id] = thing
        self.has_changed(thing)
        return thing.id

    @rule(target=made, by=who, id=made, words=some_words)
    def supersede(self, by: str, id: str, words: list[str]) -> Any:
        text = " ".join([mark_of(by), "newer", str(len(self.things)), *words])
        if id not in self.seen(by):
            said = self.refusal(by, "memory.write", content=text, supersedes=id)
            assert said == f"supersedes: there is no entry {id}."
            return multiple()
        new = self.call(by, "memory.write", content=text, supersedes=id)["id"]
        self.things[new] = Thing(new, by, "user", text)
        self.things[id].superseded_by = new
        self.has_changed(self.things[new])
        self.has_changed(self.things[id])
        return new

    @rule(by=who, id=made)
    def read(self, by: str, id: str) -> None:
        if id in (own := self.seen(by)):
            entry = self.call(by, "memory.read", id=id)
            assert (entry["content"], entry["superseded_by"]) == (own[id].text, own[id].superseded_by)
        else:
            assert self.refusal(by, "memory.read", id=id) == f"id: there is no entry {id}."

    @rule(by=who, id=made)
    def forget(self, by: str, id: str) -> None:
        if id in self.seen(by):
            self.call(by, "memory.forget", id=id)
            self.gone.add(id)
            self.has_changed(self.things[id])
        else:
            assert self.refusal(by, "memory.forget", id=id) == f"id: there is no entry {id}."

    @rule(by=who, scope=st.sampled_from(["user", "agent", "all"]))
    def forget_all(self, by: str, scope: str) -> None:
        own = [
            thing
            for thing in self.seen(by).values()
            if scope == "all" or (scope == "agent") is bool(thing.caller_class)
        ]
        done = self.call(by, "memory.forget_all", scope=scope, confirm="forget everything")
        assert done == {"forgotten": len(own)}
        for thing in own:
            self.gone.add(thing.id)
            self.has_changed(thing)

    @rule(by=who, word=st.sampled_from(WORDS))
    def search(self, by: str, word: str) -> None:
        found = self.call(by, "memory.search", query=word, limit=100)
        ids = [each["id"] for each in found["entries"]]
        alike = {"meeting", "meetings"} if word.startswith("meeting") else {word}
        own = self.seen(by)
        assert set(ids) == {id for id, thing in own.items() if alike & set(thing.text.split())}
        assert found["count"] == len(ids) == len(set(ids))
        late = [bool(each["superseded_by"]) for each in found["entries"]]
        assert late == sorted(late)

    @rule(by=who)
    def count(self, by: str) -> None:
        own = self.seen(by)
        assert self.call(by, "insights.query", metric="entries")["total"] == len(own)
        total = self.call(by, "insights.query", metric="documents")["total"]
        assert total == len(self.seen(by, entries=False, documents=True))
        self.run(self.clients[by].call("memory.traverse", entity=mark_of(by), depth=3))

    # --- documents ----------------------------------------------------------------------------------------

    @rule(target=made, by=who, words=some_words)
    def add(self, by: str, words: list[str]) -> str:
        text = " ".join(["paper", mark_of(by), *words])
        document = self.call(by, "document.add", name=f"{mark_of(by)}.txt", content=text, tags=words)[
            "document"
        ]
        thing = Thing(document["id"], by, "user", text)
        same = [each for each in self.seen(by, entries=False, documents=True).values() if each.text == text]
        assert [each.id for each in same] in ([], [thing.id])
        self.things[thing.id] = thing
        self.has_changed(thing)
        return thing.id

    @rule(by=who, id=made)
    def get(self, by: str, id: str) -> None:
        own = self.seen(by, entries=False, documents=True)
        for tool in ("document.get", "document.extract"):
            if id in own:
                self.call(by, tool, id=id)
            else:
                assert self.refusal(by, tool, id=id) == f"id: there is no document {id}."

    @rule(by=who, id=made)
    def delete(self, by: str, id: str) -> None:
        if id in self.seen(by, entries=False, documents=True):
            self.call(by, "document.delete", id=id)
            self.gone.add(id)
            self.has_changed(self.things[id])
        else:
            assert self.refusal(by, "document.delete", id=id) == f"id: there is no document {id}."

    @rule(by=who, word=st.sampled_from(WORDS), id=made)
    def query(self, by: str, word: str, id: str) -> None:
        own = self.seen(by, entries=False, documents=True)
        alike = {"meeting", "meetings"} if word.startswith("meeting") else {word}
        found = self.call(by, "document.query", query=word, limit=50)
        wanted = {id for id, thing in own.items() if alike & set(thing.text.split())}
        assert {each["id"] for each in found["passages"]} == wanted
        found = self.call(by, "document.query", query=word, ids=[id], limit=50)
        assert {each["id"] for each in found["passages"]} == wanted & {id}

    @rule(by=who, word=st.sampled_from(["", "deadline", "meeting"]))
    def list_documents(self, by: str, word: str) -> None:
        ids: list[str] = []
        cursor = ""
        while True:
            page = self.call(by, "document.list", cursor=cursor, tag=word)
            ids += [each["id"] for each in page["documents"]]
            cursor = page["next_cursor"]
            if not cursor:
                break
        own = self.seen(by, entries=False, documents=True)
        added = {id for id, thing in own.items() if not word or word in thing.text.split()}
        assert set(ids) == added
        assert len(ids) == len(added)

    # --- resources ----------------------------------------------------------------------------------------

    @rule(by=who, id=made)
    def read_resource(self, by: str, id: str) -> None:
        client, own = self.clients[by], self.seen(by, documents=True)
        if id in own:
            assert self.run(client.read(own[id].uri)).text == own[id].text
        else:
            with pytest.raises(RemoteError):
                self.run(client.read(self.things[id].uri))

    @rule(by=who)
    def list_resources(self, by: str) -> None:
        uris = [each["uri"] for each in self.run(self.clients[by].resources())]
        uris = [uri for uri in uris if ID.search(uri.encode())]
        wanted = {thing.uri for thing in self.seen(by, documents=True).values()}
        assert sorted(uris) == sorted(wanted)

    @rule(by=who, length=st.integers(0, 6))
    def complete(self, by: str, length: int) -> None:
        client = self.clients[by]
        own = self.seen(by)
        for begun in ("mem_"[:length], *(id[:length] for id in own)):
            values = self.run(client.complete("knowledge://memory/{id}", "id", begun)).values
            assert set(values) == {id for id in own if id.startswith(begun)}
        values = self.run(client.complete("summarize-document", "documentUri", "paper")).values
        assert values == []
        values = self.run(client.complete("summarize-document", "documentUri", "knowledge://")).values
        assert set(values) == {thing.uri for thing in self.seen(by, documents=True).values()}

    @rule(by=who, id=made)
    def prompt(self, by: str, id: str) -> None:
        client, own = self.clients[by], self.seen(by, documents=True)
        asked = client.prompt("summarize-document", documentUri=self.things[id].uri)
        if id in own:
            assert own[id].text in json.dumps(self.run(asked).messages, ensure_ascii=False)
        else:
            with pytest.raises(RemoteError, match="there is none"):
                self.run(asked)

    # --- subscriptions ------------------------------------------------------------------------------------

    @rule(by=who, id=made, is_list=st.booleans())
    def subscribe(self, by: str, id: str, is_list: bool) -> None:
        client = self.clients[by]
        uri = LISTS[not self.things[id].is_entry] if is_list else self.things[id].uri
        self.settle()
        self.run(client.subscribe(uri))
        client.subscribed.add(uri)

    @rule()
    def settle(self) -> None:
        """Wait until each has been told of what has changed."""

        async def wait() -> None:
            while any(each.must_be_told - told(each) for each in self.clients.values()):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)

        def told(client: OwnersClient) -> set[str]:
            return {
                each["params"]["uri"]
                for each in client.notifications[client.heard :]
                if each["method"] == "notifications/resources/updated"
            }

        self.run(wait())
        for client in self.clients.values():
            assert told(client) <= client.may_be_told
            client.heard = len(client.notifications)
            client.may_be_told.clear()
            client.must_be_told.clear()

    @invariant()
    def nobody_got_a_line_with_what_is_anothers(self) -> None:
        for client in self.clients.values():
            assert client.wrong_line() is None

    def teardown(self) -> None:
        for client in self.clients.values():
            self.run(client.__aexit__(None, None, None))
        self.loop.close()
        url = f"sqlite:///{self.folder}/{self.number}.sqlite3"
        if url in _store._opened:
            _store._opened.pop(url).database.close()
        self.patched.undo()


def test_owners_never_mix_in_anything_that_a_client_gets(tmp_path: Path) -> None:
    Owners.folder = tmp_path
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Owners,
        settings=settings(max_examples=10, stateful_step_count=25, suppress_health_check=list(HealthCheck)),
    )
