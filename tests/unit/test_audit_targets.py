"""The other places for checkpoints: a folder, syslog and a webhook, over real sockets. While one of them is
not there the log goes on, and the checkpoints come later, in their order."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.dripping import Dripping
from support.waiting import SECONDS, eventually

from fastrpc.guard.audit import AuditLog, delivery, verify
from fastrpc.guard.audit.delivery import Delivery
from fastrpc.guard.audit.folder_target import FolderTarget
from fastrpc.guard.audit.syslog_target import SyslogTarget
from fastrpc.guard.audit.webhook_target import WebhookTarget
from fastrpc.unix_sockets import SocketFolder

SECRET = "a shared secret"
LINE = b'{"seq":7,"kind":"checkpoint","number":1}'


def log_to(target: Any, folder: Path, records: int = 5) -> list[bytes]:
    """Write a log that hands its checkpoints to a target; return these, as they are in the log."""
    log = AuditLog(str(folder), targets=[target], checkpoint_records=2)
    for number in range(records):
        log.append({"number": number})
    log.close()
    lines = b"".join(path.read_bytes() for path in sorted(folder.glob("2*.jsonl"))).splitlines()
    return [line for line in lines if json.loads(line).get("kind") == "checkpoint"]


def parsed(lines: list[bytes]) -> list[int]:
    return [json.loads(line)["number"] for line in lines]


# --- a folder ---------------------------------------------------------------------------------------------


def test_a_folder_gets_every_checkpoint_as_it_is_and_verifies_the_log(tmp_path: Path) -> None:
    there = log_to(FolderTarget(str(tmp_path / "other")), tmp_path / "audit")
    file = tmp_path / "other" / "checkpoints.jsonl"
    assert len(there) == 4
    assert file.read_bytes().splitlines() == there
    assert os.stat(file).st_mode & 0o777 == 0o600
    report = verify.verify(str(tmp_path / "audit"), checkpoint_files=[str(file)])
    assert report.faults == []


def test_logs_may_share_a_folder(tmp_path: Path) -> None:
    there = log_to(FolderTarget(str(tmp_path / "other")), tmp_path / "one")
    there += log_to(FolderTarget(str(tmp_path / "other")), tmp_path / "two")
    assert (tmp_path / "other" / "checkpoints.jsonl").read_bytes().splitlines() == there


def test_half_a_line_that_a_failed_write_has_left_is_ended_and_passed_over(tmp_path: Path) -> None:
    target = FolderTarget(str(tmp_path / "other"))
    target.send(LINE)
    file = tmp_path / "other" / "checkpoints.jsonl"
    with file.open("ab") as torn:
        torn.write(LINE[:10])
    there = log_to(target, tmp_path / "audit")
    assert file.read_bytes().splitlines() == [LINE, LINE[:10], *there]
    file.write_bytes(file.read_bytes().removeprefix(LINE + b"\n"))
    report = verify.verify(str(tmp_path / "audit"), checkpoint_files=[str(file)])
    assert report.faults == []
    assert any(note.startswith("checkpoints.jsonl:1: incomplete line") for note in report.notes)


# --- syslog -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["unix", "unix, in a folder with a long path", "udp"])
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, socket.socket]]:
    if request.param.startswith("unix"):
        if "long" in request.param and sys.platform != "linux":
            pytest.skip("Linux alone reaches a socket by its folder's descriptor")
        folder = tmp_path / ("d" * 200 if "long" in request.param else "d")
        folder.mkdir()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with SocketFolder(str(folder)) as reached:
            listener.bind(reached.address("log"))
        address: Any = str(folder / "log")
    else:
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.bind(("127.0.0.1", 0))
        address = listener.getsockname()
    listener.settimeout(SECONDS)
    with listener:
        yield address, listener


def test_syslog_gets_every_checkpoint_as_a_message_of_rfc_5424(daemon, tmp_path: Path) -> None:
    address, listener = daemon
    there = log_to(SyslogTarget(address), tmp_path / "audit")
    for line in there:
        message = listener.recv(65536)
        head, _, body = message.partition(b" - {")
        assert b"{" + body == line
        assert re.fullmatch(
            rb"<109>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S{1,255} fastrpc \d+ checkpoint", head
        )


def test_a_syslog_socket_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        SyslogTarget(str(tmp_path / "none")).send(LINE)


# --- a webhook --------------------------------------------------------------------------------------------


class Receiver:
    """An HTTP server on loopback that answers with the statuses it is given, the last one again and again."""

    def __init__(self, *statuses: int) -> None:
        self.requests: list[tuple[dict[str, str], bytes, str]] = []
        self.statuses = [*statuses]
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((dict(self.headers), body, self.path))
                status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
                self.send_response(status)
                self.send_header("Location", "http://127.0.0.1:9/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/audit?of=shop"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receive():
    receivers = []

    def make(*statuses: int) -> Receiver:
        receivers.append(Receiver(*statuses))
        return receivers[-1]

    yield make
    for receiver in receivers:
        receiver.close()


def test_a_webhook_gets_every_checkpoint_signed_with_the_shared_secret(receive, tmp_path: Path) -> None:
    receiver = receive(204)
    there = log_to(WebhookTarget(receiver.url, SECRET), tmp_path / "audit")
    assert [body for _, body, _ in receiver.requests] == there
    for headers, body, path in receiver.requests:
        assert path == "/audit?of=shop"
        assert headers["Content-Type"] == "application/json"
        stamp = headers["X-Fastrpc-Timestamp"]
        expected = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert headers["X-Fastrpc-Signature"] == f"sha256={expected}"


@pytest.mark.parametrize("status", [302, 400, 500])
def test_any_other_status_is_an_error_and_redirects_are_not_followed(receive, status: int) -> None:
    receiver = receive(status)
    with pytest.raises(OSError, match=f"status {status}"):
        WebhookTarget(receiver.url, SECRET).send(LINE)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "begins", ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"]
)
def test_an_answer_that_comes_byte_by_byte_is_given_up(begins: str) -> None:
    with Dripping(begins) as server, pytest.raises(TimeoutError, match=r"not answered within 0\.3 s"):
        WebhookTarget(server.url, SECRET, 0.3).send(LINE)


@pytest.mark.parametrize(
    ("url", "secret"),
    [("ftp://host/", SECRET), ("http:///x", SECRET), ("http://a:b@host/", SECRET), ("http://host/", "")],
)
def test_what_is_no_webhook_is_refused(url: str, secret: str) -> None:
    with pytest.raises(ValueError, match="webhook: expected"):
        WebhookTarget(url, secret)


# --- one that is not there --------------------------------------------------------------------------------


class Shy:
    """A target that fails until it is set not to."""

    name = "a shy target"

    def __init__(self) -> None:
        self.fails = True
        self.attempts = 0
        self.lines: list[bytes] = []

    def send(self, line: bytes) -> None:
        self.attempts += 1
        if self.fails:
            raise ConnectionError("not now")
        self.lines.append(line)


def test_a_target_that_fails_stops_no_log_is_tried_again_and_is_warned_of_once(
    tmp_path: Path, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(Delivery.__init__, "__defaults__", ((0.01, 0.02),))
    shy, good = Shy(), Shy()
    good.fails = False
    log = AuditLog(str(tmp_path), targets=[shy, good], checkpoint_records=2)
    for number in range(20):
        log.append({"number": number})
    assert log.flush()
    eventually(lambda: len(good.lines) >= 10 and shy.attempts > 3)
    assert shy.lines == []
    first, second = log.status()["targets"]
    assert first["failure"] == "ConnectionError: not now"
    assert first["failed"] > 2
    assert second["failure"] == ""
    shy.fails = False
    eventually(lambda: shy.lines == good.lines)
    log.close()
    assert parsed(shy.lines) == list(range(1, len(good.lines) + 1))
    assert len(good.lines) >= 11
    words = [record.message for record in caplog.records]
    assert sum("do not reach a shy target" in each for each in words) == 1
    assert sum("reach a shy target again" in each for each in words) == 1


def test_a_target_that_never_comes_back_keeps_the_latest_checkpoints_within_bounds(monkeypatch) -> None:
    monkeypatch.setattr(delivery, "CAPACITY", 5)
    shy = Shy()
    way = Delivery(shy, (0.01, 0.01))
    for number in range(12):
        way.put(b'{"number":%d}' % number)
    assert way.status()["waiting"] == 5
    assert way.status()["dropped"] == 7
    shy.fails = False
    eventually(lambda: way.status()["waiting"] == 0)
    assert parsed(shy.lines)[-4:] == [8, 9, 10, 11]
    way.close()


def test_what_does_not_arrive_before_the_end_is_logged(caplog) -> None:
    way = Delivery(Shy(), (30.0, 30.0))
    way.put(LINE)
    eventually(lambda: way.failed)
    way.close()
    assert any(
        "1 audit checkpoints did not reach a shy target" in record.message for record in caplog.records
    )
