"""OAuth without its servers: where tokens are kept, options that are wrong, and the page of the login."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import os
import stat
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from fastrpc import Client
from fastrpc._core.client_stream import ClientStream
from fastrpc.client import ClientCredentials, FileStore, KeyringStore, OAuth
from fastrpc.client.oauth import login_callback
from fastrpc.client.oauth.record import LoginRecord, key_of
from fastrpc.client.oauth.token_store import MemoryStore, default_store
from fastrpc.compat.client.endpoints import address
from fastrpc.errors import AuthorizationFailed, RequestTimeout

URL = "https://example.com/mcp"

with_sdk = pytest.mark.skipif(
    importlib.util.find_spec("httpx2") is None, reason="the official SDK brings it: pip install 'mcp>=2.3'"
)

# --- where tokens are kept ------------------------------------------------------------------------------


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_of_tokens_is_this_users_alone_and_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "oauth"
    store = FileStore(str(folder))
    before = os.umask(0)
    try:
        store.save("a", "one")
        (file,) = folder.iterdir()
        old = file.stat().st_ino
        store.save("a", "two")
    finally:
        os.umask(before)
    assert (mode_of(folder), mode_of(file)) == (0o700, 0o600)
    assert list(folder.iterdir()) == [file]
    assert file.stat().st_ino != old
    assert store.load("a") == "two"
    assert store.load("b") is None
    store.delete("a")
    store.delete("a")
    assert store.load("a") is None


def test_on_a_full_disk_what_was_kept_stays_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(str(tmp_path))
    store.save("a", "one")
    (file,) = tmp_path.iterdir()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        store.save("a", "two")
    assert list(tmp_path.iterdir()) == [file]
    assert store.load("a") == "one"


def test_files_are_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    FileStore().save("a", "one")
    assert [path.name for path in tmp_path.iterdir()] == ["oauth"]


@pytest.mark.parametrize("kind", ["open to others", "a link", "a FIFO"])
def test_a_file_that_may_be_anothers_is_not_used(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = FileStore(str(tmp_path))
    store.save("a", "one")
    (file,) = tmp_path.iterdir()
    if kind == "open to others":
        file.chmod(0o640)
    else:
        there = file.rename(tmp_path / "there")
        if kind == "a link":
            file.symlink_to(there)
        else:
            os.mkfifo(file, 0o600)
    assert store.load("a") is None
    assert str(file) in caplog.text


class Keyring:
    """The package keyring, with a backend in memory."""

    def __init__(self, priority: float, *, fails: bool = False) -> None:
        self.backend = types.SimpleNamespace(priority=priority)
        self.entries: dict[tuple[str, str], str] = {}
        self.fails = fails

    def get_keyring(self) -> object:
        return self.backend

    def get_password(self, service: str, name: str) -> str | None:
        if self.fails:
            raise RuntimeError("locked, and this is the secret")
        return self.entries.get((service, name))

    def set_password(self, service: str, name: str, password: str) -> None:
        self.entries[service, name] = password

    def delete_password(self, service: str, name: str) -> None:
        del self.entries[service, name]


def test_the_systems_keyring_keeps_tokens_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = Keyring(5)
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    store = default_store()
    assert isinstance(store, KeyringStore)
    store.save("a", "one")
    assert keyring.entries == {("fastrpc", "a"): "one"}
    assert store.load("a") == "one"
    store.delete("a")
    store.delete("a")
    assert keyring.entries == {}


@pytest.mark.parametrize("keyring", [Keyring(0), Keyring(-1), Keyring(0.5), Keyring(5, fails=True), None])
def test_without_a_keyring_that_works_files_keep_them(
    monkeypatch: pytest.MonkeyPatch, keyring: Keyring | None
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", keyring)  # None: an import fails
    assert isinstance(default_store(), FileStore)


def test_a_keyring_of_the_real_package_keeps_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = pytest.importorskip("keyring.backend", reason="pip install keyring")
    keyring = pytest.importorskip("keyring", reason="pip install keyring")
    entries: dict[tuple[str, str], str] = {}

    class InMemory(backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return entries.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            entries[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del entries[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    try:
        store = default_store()
        assert isinstance(store, KeyringStore)
        store.save("a", "one")
        assert store.load("a") == "one"
    finally:
        keyring.set_keyring(before)


def test_what_a_keyring_says_when_it_fails_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Keyring(5, fails=True))
    with pytest.raises(OSError, match=r"^the keyring failed: RuntimeError$"):
        KeyringStore().load("a")


@with_sdk
def test_a_key_names_the_server_and_tells_clients_apart() -> None:
    keys = {
        key_of(f"{URL}?api_key=secret-of-mine", auth.identity)
        for auth in (OAuth(), OAuth(client_id="a"), ClientCredentials("b", "s"))
    }
    assert len(keys) == 3
    assert all(key.startswith(URL) and "secret" not in key for key in keys)


def test_a_record_that_cannot_be_read_raises_a_separate_error() -> None:
    for text in ("[]", '{"tokens": "x"}', '{"redirect_port": null}', "nonsense"):
        with pytest.raises(ValueError, match=r"no object|has a wrong type|Expecting"):
            LoginRecord.read(text)
    record = LoginRecord()
    record.tokens = {"access_token": "x"}
    assert LoginRecord.read(record.text()).access_token == "x"


# --- options --------------------------------------------------------------------------------------------


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("fastrpc.client.oauth.find_spec", lambda name: None if name == "mcp" else find(name))
    with pytest.raises(ImportError, match=r"pip install 'fastrpc-mcp\[oauth\]'"):
        Client(URL, auth="oauth")


@with_sdk
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"auth": "basic"}, "auth: expected"),
        ({"auth": "oauth", "token": "t"}, "auth excludes token"),
        ({"auth": "oauth", "headers": {"authorization": "x"}}, "auth excludes token"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Client(URL, **options)


@with_sdk
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scopes": "read"}, "scopes: expected a list"),
        ({"scopes": ["a b"]}, "scopes: 'a b' is no scope"),
        ({"scopes": ['a"b']}, "is no scope"),
        ({"client_secret": "s"}, "client_secret: expected a client_id"),
        ({"client_id": "c", "client_metadata_url": "https://x/y"}, "exclude each other"),
        ({"client_metadata_url": "http://x/y"}, "client_metadata_url: expected an https URL"),
        ({"redirect_port": 70000}, "redirect_port: expected 0 to 65535"),
    ],
)
def test_a_login_that_cannot_be_is_refused_before_anything_is_sent(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        OAuth(**options)


def test_the_option_of_other_clients_is_the_same_word() -> None:
    assert address(URL, auth="oauth").options == {"auth": "oauth"}


@with_sdk
def test_credentials_of_a_program_are_a_secret_or_a_key() -> None:
    for options in ({}, {"client_secret": "s", "private_key": "k"}):
        with pytest.raises(ValueError, match="either client_secret or private_key"):
            ClientCredentials("robot", **options)
    assert "hidden-secret" not in repr(ClientCredentials("robot", "hidden-secret"))
    assert isinstance(ClientCredentials("robot", "s").store(), MemoryStore)


# --- the page of the login ------------------------------------------------------------------------------


def test_without_a_screen_the_address_is_written_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(login_callback, "_has_screen", lambda: False)
    asyncio.run(login_callback.show("https://login.example/?state=s", None))
    asyncio.run(login_callback.show("https://login.example/two", lambda url: False))
    asyncio.run(login_callback.show("https://login.example/three", lambda url: True))
    seen = capfd.readouterr()
    assert seen.out == ""
    assert seen.err.splitlines() == [
        "fastrpc: log in at https://login.example/?state=s",
        "fastrpc: log in at https://login.example/two",
    ]


def test_the_systems_browser_gets_the_address_and_none_of_our_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho noise\necho "$1 [$FASTRPC_TOKEN]" > {tmp_path}/seen\n')
    browser.chmod(0o700)
    monkeypatch.setattr(login_callback, "_has_screen", lambda: True)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    monkeypatch.setenv("FASTRPC_TOKEN", "a-token-of-this-process")
    asyncio.run(login_callback.show("https://login.example/", None))
    assert (tmp_path / "seen").read_text() == "https://login.example/ []\n"
    assert capfd.readouterr().out == ""


async def answer_to(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


def test_the_redirect_is_taken_once_and_only_as_it_was_sent() -> None:
    async def conversation() -> None:
        redirect = login_callback.Redirect()
        await redirect.listen(0)
        host = f"Host: 127.0.0.1:{redirect.port}\r\n\r\n"
        good = "GET /callback?code=c&state=s&iss=i HTTP/1.1\r\n"
        redirect.expect("https://login.example/?state=s")
        for wrong in (
            f"POST /callback?code=c&state=s HTTP/1.1\r\n{host}",
            f"GET /favicon.ico HTTP/1.1\r\n{host}",
            f"{good}Host: evil.example:{redirect.port}\r\n\r\n",
            f"GET /callback?code=c&state=other HTTP/1.1\r\n{host}",
            f"GET /callback?code=c&state=%C3%A9 HTTP/1.1\r\n{host}",
        ):
            assert (await answer_to(redirect.port, wrong)).split()[1] in ("400", "404"), wrong
        assert await answer_to(redirect.port, "GET /" + "x" * 100_000) == ""
        idle = await asyncio.open_connection("127.0.0.1", redirect.port)  # as browsers do in advance
        assert (await answer_to(redirect.port, good + host)).split()[1] == "200"
        assert await redirect.result(5) == {"code": "c", "state": "s", "iss": "i"}
        assert (await answer_to(redirect.port, good.replace("c&", "d&") + host)).split()[1] == "400"
        await redirect.close()
        assert await idle[0].read() == b""
        idle[1].close()

    asyncio.run(asyncio.wait_for(conversation(), 30))


def test_a_denial_is_shown_to_the_user_and_not_quoted_on_the_page() -> None:
    async def conversation() -> None:
        redirect = login_callback.Redirect()
        await redirect.listen(0)
        redirect.expect("https://login.example/?state=s")
        query = "error=access_denied&error_description=%3Cscript%3E&state=s"
        page = await answer_to(
            redirect.port, f"GET /callback?{query} HTTP/1.1\r\nHost: 127.0.0.1:{redirect.port}\r\n\r\n"
        )
        assert "was not completed" in page
        assert "script" not in page.partition("\r\n\r\n")[2]
        with pytest.raises(AuthorizationFailed, match="the login was denied: access_denied: <script>"):
            await redirect.result(5)
        await redirect.close()

    asyncio.run(asyncio.wait_for(conversation(), 30))


# --- time limits ----------------------------------------------------------------------------------------


def test_no_time_runs_out_while_limits_are_held() -> None:
    async def conversation() -> None:
        loop = asyncio.get_running_loop()
        stream = ClientStream()
        stream.carry = lambda request, params: None
        stream.attach(loop)
        future = loop.create_future()
        stream.hold_limits(True)
        request = stream.request("ping", {}, future, 0.001)
        for _ in range(3):
            await asyncio.sleep(0.01)
            stream.expire()
        assert not request.done
        stream.hold_limits(False)
        with pytest.raises(RequestTimeout, match="no answer within"):
            await future

    asyncio.run(asyncio.wait_for(conversation(), 30))
