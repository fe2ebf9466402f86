"""Every file that the framework opens by a given name is a regular one, is not waited for, and is bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.special_files import KINDS, at_most, make

from fastrpc import Image, regular_files, settings
from fastrpc.cli import _client_files, bridge, serve
from fastrpc.client.http.address import Remote
from fastrpc.compat.values import File
from fastrpc.definitions.resource import opened
from fastrpc.errors import UsageError
from fastrpc.loader import load_target
from fastrpc.processes import OutputFile
from fastrpc.transports.http.auth import TokenFile
from fastrpc.transports.http.settings import HttpSettings
from fastrpc.transports.trace import Trace


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    with at_most(5):
        yield


def refusal(*exceptions: type[Exception]) -> Callable[[Callable[[str], Any]], Callable[[str], str]]:
    """Have a function return what it refuses a file with."""

    def wrap(read: Callable[[str], Any]) -> Callable[[str], str]:
        def said(path: str) -> str:
            with pytest.raises(exceptions) as caught:
                read(path)
            return str(caught.value)

        return said

    return wrap


# --- the helper -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("follow", [True, False])
def test_what_is_no_regular_file_is_named(tmp_path: Path, kind: str, follow: bool) -> None:
    path = str(tmp_path / "odd")
    make(kind, path)
    linked = kind.startswith("link") and not follow
    with pytest.raises(regular_files.NotRegular) as caught:
        regular_files.open_regular(path, follow=follow)
    assert caught.value.kind == ("a symbolic link" if linked else KINDS[kind])
    assert caught.value.strerror == f"{caught.value.kind}, not a regular file"
    assert caught.value.filename == path


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_put_there_after_the_look_is_seen_by_its_descriptor(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it had been swapped between the look and the opening."""
    path = str(tmp_path / "odd")
    make(kind, path)
    regular = os.stat(__file__)
    monkeypatch.setattr(os, "stat", lambda *rest, **named: regular)
    descriptors = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT | os.O_APPEND):
        for follow in (True, False):
            with pytest.raises(OSError, match=r"odd|not a regular file"):
                regular_files.open_regular(path, flags, follow=follow)
    monkeypatch.undo()
    assert len(os.listdir("/proc/self/fd") if descriptors else []) == len(descriptors)


def test_a_link_that_leads_nowhere_is_no_file_and_none_is_made_after_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        regular_files.open_regular(str(tmp_path / "link"))
    with pytest.raises(regular_files.NotRegular, match="a symbolic link"):
        regular_files.open_regular(str(tmp_path / "link"), os.O_RDWR | os.O_CREAT, follow=False)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        os.close(regular_files.open_regular(str(tmp_path / "new"), os.O_WRONLY | os.O_CREAT))
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)
    assert regular_files.read_regular(path, 100_000) == b"x" * 100_000
    with pytest.raises(OSError, match="larger than 99,999 bytes"):
        regular_files.read_regular(path, 99_999)


def test_a_file_that_says_nothing_of_its_size_is_bounded_too() -> None:
    if not os.path.exists("/proc/self/environ"):
        pytest.skip("needs /proc")
    with pytest.raises(OSError, match="larger than 1 byte"):
        regular_files.read_regular("/proc/self/status", 1)


# --- who uses it ------------------------------------------------------------------------------------------


def _configuration(path: str) -> str:
    home = os.path.dirname(os.path.dirname(path))
    (warning,) = settings.load({}, home, "/").warnings
    return warning


def _client_file(path: str) -> str:
    return refusal(UsageError)(_client_files.read)(path)


def _tls(path: str) -> Any:
    return HttpSettings("127.0.0.1:0", token="x" * 32, tls_cert=path, tls_key=path)


def _output(path: str) -> OutputFile:
    file = OutputFile(-1, path)
    file.total = 10
    return file


USERS: dict[str, Callable[[str], str]] = {
    "--token-file of serve": refusal(UsageError)(TokenFile),
    "--token-file of connect": refusal(UsageError)(bridge.token_of),
    "--tls-cert": refusal(UsageError)(_tls),
    "--tls-ca": refusal(ValueError)(lambda path: Remote("https://127.0.0.1/", tls_ca=path)),
    "--trace": refusal(UsageError)(Trace),
    "--trace and --log-file, before": refusal(UsageError)(
        lambda path: serve.check_appendable("--trace", path)
    ),
    "a client's configuration": _client_file,
    "Image.from_file": refusal(OSError)(lambda path: Image.from_file(path, "image/png")),
    "compat.File": refusal(OSError)(lambda path: File(path)),
    "a target": refusal(UsageError)(lambda path: load_target(path + ":app")),
    "an output file": refusal(OSError)(lambda path: _output(path).read(0, 1)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("user", USERS)
def test_what_is_no_regular_file_is_refused_at_once_by_its_name(tmp_path: Path, user: str, kind: str) -> None:
    path = str(tmp_path / "odd.py")
    make(kind, path)
    said = USERS[user](path)
    assert "odd.py" in said
    linked = user == "an output file" and kind.startswith("link")
    assert ("a symbolic link" if linked else KINDS[kind]) in said
    assert len(said) < len(path) + 150


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_that_the_environment_names_are_looked_at_first(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastrpc.tools.agent._search import _network

    from fastrpc.client.http.dialing import Route

    make(kind, str(tmp_path / "certificates"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificates"))
    monkeypatch.setattr(_network, "_ssl_context", None)
    for _ in range(2):
        with pytest.raises(regular_files.NotRegular, match=KINDS[kind]):
            _network.ssl_context()
    with pytest.raises(regular_files.NotRegular, match=KINDS[kind]):
        Route(Remote("https://127.0.0.1/"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_settings_file_that_is_none_is_a_warning(tmp_path: Path, kind: str) -> None:
    (tmp_path / ".claude").mkdir()
    make(kind, str(tmp_path / ".claude" / settings.FILE_NAME))
    assert _configuration(str(tmp_path / ".claude" / settings.FILE_NAME)) == (
        f"~/.claude/{settings.FILE_NAME}: {KINDS[kind]}, not a regular file"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_path_of_a_resource_that_is_not_a_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    make(kind, str(tmp_path / "odd"))
    if kind == "folder":
        assert opened(tmp_path / "odd") is None  # as before: there is no such file
        return
    with pytest.raises(OSError, match=KINDS[kind]):
        opened(tmp_path / "odd")


@pytest.mark.parametrize("user", ["Image.from_file", "compat.File", "a resource"])
def test_whole_files_are_bounded(tmp_path: Path, user: str) -> None:
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(regular_files.LARGEST + 1)
    read: dict[str, Callable[[], Any]] = {
        "Image.from_file": lambda: Image.from_file(path, "image/png"),
        "compat.File": lambda: File(path),
        "a resource": lambda: opened(path),
    }
    with pytest.raises(OSError, match="larger than 67,108,864 bytes"):
        read[user]()
