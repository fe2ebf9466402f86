"""A URI has several spellings (RFC 3986, 6.2.2): reads, subscriptions, filters and guards see one."""

from __future__ import annotations

from typing import Any

import pytest
from support.in_memory import ask, every_version, read, refusal, with_client

from fastrpc import CallInfo, Server
from fastrpc.errors import DefinitionError, ToolError
from fastrpc.guard.policy.patterns import Patterns
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client

LISTED = "notes://caf%c3%a9/a~b"
SPELLINGS = (LISTED, "notes://caf%C3%A9/a~b", "NOTES://café/a%7eb", "notes://%63af%c3%a9/%61~b")


def found(path: str) -> str:
    return "found"


def app_with(uri: str = LISTED) -> Server:
    app = Server("spellings")
    app.add_resource(uri, "found")
    return app


@pytest.mark.parametrize("uri", SPELLINGS)
def test_a_resource_is_read_by_every_spelling(uri: str) -> None:
    app = app_with()
    assert [part["text"] for part in read(app, uri)] == ["found"]
    assert ask(app, "resources/list")["resources"][0]["uri"] == LISTED
    assert uri in app.registries.resources
    app.remove_resource(uri)
    assert LISTED not in app.registries.resources


def test_two_spellings_are_one_resource() -> None:
    with pytest.raises(DefinitionError, match="already"):
        app_with().add_resource(SPELLINGS[1], "again")


@pytest.mark.parametrize("is_completed_first", [False, True])
def test_a_template_is_completed_by_every_spelling_and_two_spellings_are_one(
    is_completed_first: bool,
) -> None:
    app = Server("spellings")

    def at(name: str) -> str:
        return name

    def names(value: str) -> list[str]:
        return [f"{value}!"]

    if is_completed_first:
        app.complete(f"{SPELLINGS[2]}/{{name}}", "name")(names)
    app.resource(f"{LISTED}/{{name}}")(at)
    if not is_completed_first:
        app.complete(f"{SPELLINGS[2]}/{{name}}", "name")(names)
    for uri in SPELLINGS:
        ref = {"type": "ref/resource", "uri": f"{uri}/{{name}}"}
        got = ask(app, "completion/complete", {"ref": ref, "argument": {"name": "name", "value": "a"}})
        assert got["completion"]["values"] == ["a!"]
    with pytest.raises(DefinitionError, match="already"):
        app.resource(f"{SPELLINGS[1]}/{{name}}")(at)


def test_names_in_the_place_of_a_host_differ_by_case() -> None:
    app = app_with("users://Alice")
    app.add_resource("users://alice", "another")
    assert read(app, "USERS://Alice")[0]["text"] == "found"
    assert read(app, "users://alice")[0]["text"] == "another"


@every_version
def test_an_update_reaches_a_subscription_by_another_spelling(version: str) -> None:
    app, uri = app_with(), SPELLINGS[3]

    async def conversation(client: Client) -> None:
        if version == STATELESS:
            async with client.listen(uris=[uri]) as changes:
                app.resource_updated(SPELLINGS[1])
                change = await changes.next()
        else:
            await client.subscribe(uri)
            app.resource_updated(SPELLINGS[1])
            await client.ping()
            [change] = client.notifications
        assert change["params"]["uri"] == uri
        if version != STATELESS:
            await client.unsubscribe(SPELLINGS[0])
            app.resource_updated(LISTED)
            await client.ping()
            assert len(client.notifications) == 1

    with_client(app, conversation, version=version)


@pytest.mark.parametrize("uri", [*SPELLINGS, "notes://caf%C3%A9/%61%7Eb"])
def test_a_guard_sees_the_normal_form(uri: str) -> None:
    app, seen = app_with(), []

    def guard(call: CallInfo) -> None:
        seen.append(call.name)
        if call.name == "notes://caf%C3%A9/a~b":
            raise ToolError("not this one")

    app.guard(guard)
    for _ in range(3):  # what is repeated may take another way
        assert "not this one" in refusal(app, "resources/read", {"uri": uri}).message
    assert set(seen) == {"notes://caf%C3%A9/a~b"}


def test_a_guard_sees_the_whole_of_a_long_uri() -> None:
    app, seen = Server("long"), []
    app.resource("notes://{path*}")(found)
    app.guard(lambda call: seen.append(call.name))
    uri = f"notes://{'a' * 300}/secret"
    assert read(app, uri)
    assert seen == [uri]


@pytest.mark.parametrize("uri", SPELLINGS)
def test_a_filter_sees_a_resource_by_its_listed_uri(uri: str) -> None:
    app = app_with()
    app.filter_lists(lambda caller, item: item.uri != LISTED, enforced=True)
    assert ask(app, "resources/list")["resources"] == []
    assert "not found" in refusal(app, "resources/read", {"uri": uri}).message


@pytest.mark.parametrize("pattern", [LISTED, "notes://caf%c3*", "NOTES://*/a~b", "caf%c3%a9/*", "café/a%7eb"])
def test_an_allowlist_has_every_spelling(pattern: str) -> None:
    patterns = Patterns([pattern])
    assert all(map(patterns.match_uri, SPELLINGS))
    assert not patterns.match_uri("notes://cafe/b")


def test_an_allowlist_is_not_left_by_dots() -> None:
    patterns = Patterns(["files:///public/*"])
    assert patterns.match_uri("files:///public/a/../b")
    for uri in (
        "files:///public/../secret",
        "FILES:///public/%2e%2E/secret",
        "files:///public/x/../../secret",
    ):
        assert not patterns.match_uri(uri)
    assert not Patterns(["files:///secret/*"]).match_uri("files:///public/../../secret/../x")


def test_providers_and_proxied_templates_take_every_spelling() -> None:
    app = Server("providers")

    @app.resources("Db://x")
    class Rows:
        def read(self, uri: str) -> str:
            return uri

    assert read(app, "DB://x/%41")[0]["text"] == "db://x/A"


def test_subscriptions_are_counted_once_and_given_back() -> None:
    async def conversation(client: Client) -> Any:
        for uri in SPELLINGS:
            await client.subscribe(uri)
        [dispatcher] = app.runtime.dispatchers
        held = dispatcher.session.quota.used
        assert len(dispatcher.session.subscriptions) == 1
        await client.unsubscribe(SPELLINGS[-1])
        assert dispatcher.session.quota.used < held

    app = app_with()
    with_client(app, conversation, version=LATEST_SESSION_VERSION)
