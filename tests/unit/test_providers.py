"""Providers of resources in each version: pages behind the plain list, reading, what cannot be one."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from support.in_memory import ask, every_version, read, refusal, with_client

from fastrpc import Context, Server, diagnostics
from fastrpc.definitions.resource import Entry
from fastrpc.engine import listing
from fastrpc.errors import DefinitionError
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS
from fastrpc.testing import Client, RemoteError

THIRD = SESSION_VERSIONS[2]


class Rows:
    """Lists three pages of a table, reads any row below 6."""

    def list(self, cursor: str | None) -> Any:
        at = int(cursor or 0)
        entries: Any = [
            {
                "uri": f"db://{at}",
                "name": f"row {at}",
                "mimeType": "text/plain",
                "_meta": {"example.com/at": at},
            },
            Entry(f"db://{at + 1}", "next", title="The next"),
        ]
        return entries, str(at + 2) if at < 4 else None

    def read(self, uri: str) -> str | None:
        row = int(uri.removeprefix("db://"))
        return f"row {row}" if row < 6 else None


class Async:
    """All at once, without names; asks for the call's context."""

    async def list(self) -> Any:
        await asyncio.sleep(0)
        return ["logs://today", "logs://yesterday"]

    async def read(self, uri: str, ctx: Context) -> bytes:
        await asyncio.sleep(0)
        return f"{uri} {ctx.protocol_version}".encode()


@every_version
@pytest.mark.parametrize("plain", [0, 1, 2, 3])
def test_providers_are_listed_after_the_resources(plain: int, version: str) -> None:
    app = Server("t", page_size=2)
    for number in range(plain):
        app.add_resource(f"docs://{number}", "")
    assert app.resources("db")(Rows) is Rows
    app.resources("logs")(Async())
    app.resources("other")(ReadOnly)

    async def conversation(client: Client) -> None:
        found = await client.resources()
        assert [entry["uri"] for entry in found] == [
            *(f"docs://{at}" for at in range(plain)),
            *(f"db://{at}" for at in range(6)),
            "logs://today",
            "logs://yesterday",
        ]
        row = {"uri": "db://0", "name": "row 0", "mimeType": "text/plain"}
        assert found[plain] == (row | {"_meta": {"example.com/at": 0}} if version >= THIRD else row)
        assert ("title" in found[plain + 1]) == (version >= THIRD)
        assert found[-1] == {"uri": "logs://yesterday", "name": "logs://yesterday"}

    with_client(app, conversation, version)


class ReadOnly:
    def read(self, uri: str) -> dict[str, str]:
        return {"uri": uri}


@every_version
def test_providers_read_what_is_of_their_scheme(version: str) -> None:
    app = Server("t")
    app.resources("db", mime_type="text/csv", ttl=1)(Rows)
    app.resources("logs")(Async)
    app.resources("db://special/")(ReadOnly)
    app.add_resource("db://3", "static")
    assert read(app, "db://2", version) == [{"uri": "db://2", "mimeType": "text/csv", "text": "row 2"}]
    assert read(app, "db://3", version)[0]["text"] == "static"
    assert read(app, "db://special/x", version)[0]["text"] == '{"uri":"db://special/x"}'
    blob = read(app, "logs://today", version)[0]["blob"]
    assert base64.b64decode(blob) == f"logs://today {version}".encode()
    assert ask(app, "resources/read", {"uri": "db://2"}, version).get("ttlMs") == (
        1000 if version == STATELESS else None
    )
    for uri in ("db://6", "dbx://1"):
        error = refusal(app, "resources/read", {"uri": uri}, version)
        assert error.code == (-32602 if version == STATELESS else -32002)


def test_a_cursor_of_a_provider_that_is_gone_is_refused() -> None:
    app = Server("t")
    app.resources("db")(Rows)

    async def conversation(client: Client) -> None:
        cursor = (await client.request("resources/list"))["nextCursor"]
        assert "db://2" in str(await client.request("resources/list", {"cursor": cursor}))
        app.registries.providers.remove("db")
        app.resources("logs")(Async)
        with pytest.raises(RemoteError, match="list again") as caught:
            await client.request("resources/list", {"cursor": cursor})
        assert caught.value.code == -32602

    with_client(app, conversation, STATELESS)


class Wrong:
    def __init__(self, value: Any) -> None:
        self.value = value

    def list(self, cursor: str | None = None) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "a list of entries"),
        ((["db://1"], 5), "a list of entries"),
        ([5], "expected Entry"),
        ([{"name": "x"}], "a dict with a 'uri'"),
        ([{"uri": "db://1", "colour": "red"}], "no member 'colour'"),
        (ValueError("no ink"), "ValueError: no ink"),
    ],
)
def test_what_a_provider_lists_wrongly_is_left_out_and_logged(
    value: Any, problem: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "log", diagnostics.Once("error"))
    app = Server("t")
    app.add_resource("docs://first", "1")
    app.resources("db")(Wrong(value))
    app.resources("logs")(Async)

    async def conversation(client: Client) -> None:
        assert [entry.uri for entry in await client.list_resources()] == [
            "docs://first",
            "logs://today",
            "logs://yesterday",
        ]

    with_client(app, conversation, STATELESS)
    assert problem in caplog.text


class Nothing:
    pass


class Demanding:
    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, uri: str) -> str:
        return uri


class NoNull:
    def list(self, cursor: str) -> Any:
        return []


class NoUri:
    def read(self) -> str:
        return ""


class TwoValues:
    def read(self, uri: str, name: str) -> str:
        return ""


@pytest.mark.parametrize(
    ("scheme", "thing", "problem"),
    [
        ("db", Nothing, r"neither list\(cursor\) nor read\(uri\)"),
        ("db", Demanding, "give an object of the class"),
        ("db", NoNull, r"write cursor: str \| None"),
        ("db", NoUri, "takes no URI"),
        ("db", TwoValues, "takes 'uri', 'name'"),
        ("1db", ReadOnly, "is not a URI scheme"),
        ("", ReadOnly, "is not a URI scheme"),
        ("d b", ReadOnly, "is not a URI scheme"),
    ],
)
def test_what_cannot_be_a_provider_is_said_at_once(scheme: str, thing: Any, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        Server("t").resources(scheme)(thing)
