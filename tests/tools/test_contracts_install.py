"""`fastrpc contracts install`: what is fetched is what the lock file names, or nothing of it is kept."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.contracts import _install, _programs
from fastrpc.tools.contracts._errors import ENGINE_UNAVAILABLE, EngineError
from support.dripping import Dripping

from fastrpc.__main__ import main

PROGRAM = b"#!/bin/sh\necho here\n"


def archive(name: str = "package/bin/forge") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        facts = tarfile.TarInfo(name)
        facts.size = len(PROGRAM)
        tar.addfile(facts, io.BytesIO(PROGRAM))
    return file.getvalue()


class Registry:
    """A registry on the loopback interface that has one archive under any path."""

    def __init__(self) -> None:
        self.archive = archive()
        self.requests: list[str] = []
        self.status = 200
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.requests.append(self.path)
                self.send_response(registry.status)
                self.end_headers()
                self.wfile.write(registry.archive)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def registry() -> Iterator[Registry]:
    found = Registry()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def lock(tmp_path: Path, registry: Registry) -> str:
    digest = base64.b64encode(hashlib.sha512(registry.archive).digest()).decode()
    package = {"path": "forge.tgz", "integrity": f"sha512-{digest}"}
    path = tmp_path / "lock.json"
    facts = {"version": "1", "member": "package/bin/forge", "packages": {"any": package}}
    path.write_text(json.dumps({"forge": facts}))
    return str(path)


def test_what_the_lock_file_names_is_installed_once(tmp_path: Path, registry: Registry, lock: str) -> None:
    folder = str(tmp_path / "programs")
    list(_install.install(folder, registry.url, lock))
    program = os.path.join(folder, "forge")
    assert Path(program).read_bytes() == PROGRAM
    assert os.stat(program).st_mode & 0o777 == 0o755
    (said,) = _install.install(folder, registry.url, lock)
    assert "is there" in said
    assert registry.requests == ["/forge.tgz"]


def test_a_program_of_another_version_is_replaced(tmp_path: Path, registry: Registry, lock: str) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "forge").write_bytes(b"old")
    list(_install.install(str(folder), registry.url, lock))
    assert (folder / "forge").read_bytes() == PROGRAM


def test_an_archive_with_another_hash_is_not_unpacked(tmp_path: Path, registry: Registry, lock: str) -> None:
    registry.archive = archive().replace(b"\x00", b"\x01", 1)
    folder = tmp_path / "programs"
    with pytest.raises(_install.CannotInstall, match="not what the lock file names"):
        list(_install.install(str(folder), registry.url, lock))
    assert list(folder.iterdir()) == []


def test_an_archive_without_the_program_leaves_nothing(tmp_path: Path, registry: Registry, lock: str) -> None:
    Path(lock).write_text(Path(lock).read_text().replace("package/bin/forge", "package/bin/other"))
    folder = tmp_path / "programs"
    with pytest.raises(_install.CannotInstall, match="has no package/bin/other"):
        list(_install.install(str(folder), registry.url, lock))
    assert list(folder.iterdir()) == []


def test_a_program_that_cannot_take_its_place_leaves_no_part_of_it(
    tmp_path: Path, registry: Registry, lock: str
) -> None:
    folder = tmp_path / "programs"
    (folder / "forge").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        list(_install.install(str(folder), registry.url, lock))
    assert [each.name for each in folder.iterdir()] == ["forge"]


def test_a_refusal_is_said_without_the_credentials_of_the_address(
    tmp_path: Path, registry: Registry, lock: str
) -> None:
    registry.status = 403
    address = registry.url.replace("//", "//me:secret-word@")
    with pytest.raises(_install.CannotInstall, match=r"forge\.tgz cannot be fetched: status 403") as caught:
        list(_install.install(str(tmp_path / "programs"), address, lock))
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("begins", ["", "HTTP/1.1 200 OK\r\n\r\n"])
def test_a_download_that_comes_byte_by_byte_is_given_up(
    tmp_path: Path, lock: str, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_install, "DOWNLOAD_SECONDS", 0.5)
    folder = tmp_path / "programs"
    with Dripping(begins) as server, pytest.raises(_install.CannotInstall, match="not complete after"):
        list(_install.install(str(folder), server.url, lock))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "said"), [("v16.20.2", "here is v16.20.2"), ("v18.0.0", None), ("what?", "here is what?")]
)
def test_an_old_node_is_reported(
    version: str, said: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    node, soljson = tmp_path / "node", tmp_path / "soljson.js"
    node.write_text(f"#!/bin/sh\necho '{version}'\n")
    node.chmod(0o755)
    soljson.write_text("")
    monkeypatch.setenv("FASTRPC_CONTRACTS_NODE", str(node))
    monkeypatch.setenv("FASTRPC_CONTRACTS_SOLC", str(soljson))
    if said is None:
        _install.need_node()
    else:
        with pytest.raises(_install.CannotInstall, match=re.escape(said)):
            _install.need_node()


def test_a_registry_that_is_away_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    assert main(["contracts", "install"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("fastrpc: contracts install: http://127.0.0.1:9/")
    assert captured.err.count("\n") == 1


def test_the_lock_file_has_every_machine_and_a_hash_for_each() -> None:
    with open(_install.LOCK, encoding="utf-8") as file:
        programs = json.load(file)
    assert list(programs) == ["forge", "anvil", "soljson.js"]
    for facts in programs.values():
        assert set(facts["packages"]) in (
            {"any"},
            {f"{system}-{processor}" for system in ("linux", "darwin") for processor in ("amd64", "arm64")},
        )
        assert all(package["integrity"].startswith("sha512-") for package in facts["packages"].values())


def test_a_missing_program_is_said_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FASTRPC_CONTRACTS_ANVIL", raising=False)
    with pytest.raises(EngineError, match="fastrpc contracts install") as caught:
        _programs.find("anvil")
    assert caught.value.code == ENGINE_UNAVAILABLE


def test_a_compiler_below_a_home_whose_name_looks_like_a_pattern_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "[a]*?"
    for version in ("0.8.9", "0.8.30"):
        program = home / ".svm" / version / f"solc-{version}"
        program.parent.mkdir(parents=True)
        program.touch(0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FASTRPC_CONTRACTS_SOLC", raising=False)
    assert _programs.find("solc") == str(program)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["contracts"], 0, "usage: fastrpc contracts COMMAND"),
        (["contracts", "--help"], 0, "install"),
        (["contracts", "instal"], 2, "did you mean 'install'"),
        (["contract"], 2, "unknown command"),
    ],
)
def test_a_toolset_that_is_shipped_has_its_commands_under_its_name(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
