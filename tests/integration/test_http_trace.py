"""``--trace`` over HTTP: both directions of the wire, request by request, and no secret. Real processes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.http_client import TOKEN, Serving, Stream, stateless_request

TOOLS = """
import asyncio
from fastrpc import Context, Server

app = Server("traced")

@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool
async def walk(ctx: Context) -> str:
    for step in range(3):
        ctx.info(f"step {step}")
        await asyncio.sleep(0.01)
    return "arrived"
"""
LINE = re.compile(r"([<>]) \d+\.\d{6} #((?:\d\.)?\d+) (GET|POST|DELETE|\d{3})(?: (/\S*))?(?: (.*))?")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def serve(folder: Path, *options: str) -> Serving:
    given = ("--http", "127.0.0.1:0", "--trace", "wire", *options)
    return Serving("serve", "tools.py", *given, folder=folder)


def traced(folder: Path) -> list[tuple[str, str, str, Any]]:
    """The lines of a trace: number of the request, direction, method and path or status, message.

    Those of one request are together: a client may send the next one before an empty body is written down.
    """
    found = []
    for line in (folder / "wire").read_text().splitlines():
        match = LINE.fullmatch(line)
        assert match, f"no line of a trace: {line!r}"
        what = f"{match[3]} {match[4]}" if match[4] else match[3]
        found.append((match[2], match[1], what, json.loads(match[5]) if match[5] else None))
    return sorted(found, key=lambda line: [int(number) for number in line[0].split(".")])


def test_a_call_is_two_lines_and_the_answer_is_what_it_was(folder: Path) -> None:
    with serve(folder) as server:
        for _ in range(2):
            message, headers = stateless_request(
                "tools/call", {"name": "echo", "arguments": {"text": "a\nb"}}
            )
            answer = server.ask("POST", "/mcp?x=y", json.dumps(message, indent=2), **headers)
            assert answer.text == "a\nb"
        assert server.stop() == 0
    assert traced(folder) == [
        (number, *line)
        for number in ("1", "2")
        for line in (("<", "POST /mcp", message), (">", "200", answer.json))
    ]
    assert (folder / "wire").stat().st_mode & 0o777 == 0o600


def test_a_stream_has_a_line_for_each_message_in_it(folder: Path) -> None:
    with serve(folder) as server:
        session = server.session()
        assert session.call("walk").text == "arrived"
        assert server.ask("DELETE", "/mcp", **session.headers()).status == 200
        assert server.stop() == 0
    lines = traced(folder)
    assert [(number, direction, what) for number, direction, what, _ in lines] == [
        ("1", "<", "POST /mcp"),
        ("1", ">", "200"),
        ("2", "<", "POST /mcp"),
        ("2", ">", "202"),
        ("3", "<", "POST /mcp"),
        *[("3", ">", "200")] * 4,
        ("4", "<", "DELETE /mcp"),
        ("4", ">", "200"),
    ]
    said = [message["params"]["data"] for *_, message in lines[5:8]]
    assert said == ["step 0", "step 1", "step 2"]
    assert lines[8][3]["result"]["content"][0]["text"] == "arrived"


def test_what_was_refused_is_there_and_no_secret_is(folder: Path) -> None:
    with serve(folder) as server:
        session = server.session()
        stream = Stream(server, "GET", "/sse")
        assert "session_id=" in next(stream.data())
        server.call("echo", text=f"it was {TOKEN}")
        server.call("echo", text="password=planted-password")
        server.token = "a-token-of-nobody-at-all"
        server.ask("POST", "/x%0A%3C%200.1?token=planted-in-the-query", {"a": 1})
        server.ask("POST", "/mcp", {"a": 1})
        stream.close()
        assert server.stop() == 0
    text = (folder / "wire").read_text()
    for secret in (TOKEN, session.id, "planted", "nobody", "session_id"):
        assert secret not in text
    lines = traced(folder)
    assert ("POST /x%0A%3C%200.1", None) in [(what, message) for _, _, what, message in lines]
    refused = [
        (what, message["error"]["message"][:12]) for *_, what, message in lines if what in ("401", "404")
    ]
    assert refused == [("404", "There is not"), ("401", "Unauthorized")]


def test_each_worker_has_numbers_of_its_own_and_a_request_is_traced_once(folder: Path) -> None:
    with serve(folder, "--workers", "2") as server:
        session = server.session()
        texts = [str(number) for number in range(12)]
        for text in texts:  # each on a separate connection: some are handed over to the other worker
            assert session.call("echo", text=text).text == text
        assert server.stop() == 0
    lines = traced(folder)
    numbers = [number for number, direction, *_ in lines if direction == "<"]
    assert len(numbers) == len(set(numbers)) == len(texts) + 2
    assert {number[:2] for number in numbers} <= {"0.", "1."}
    messages = [message for _, direction, _, message in lines if direction == "<"]
    called = [message["params"] for message in messages if message["method"] == "tools/call"]
    assert sorted([params["arguments"]["text"] for params in called], key=int) == texts


def test_a_program_may_ask_for_a_trace_too(folder: Path) -> None:
    (folder / "program.py").write_text(TOOLS + "\napp.run(http='127.0.0.1:0', trace='wire')\n")
    with Serving(command=[sys.executable, "program.py"], folder=folder) as server:
        server.call("echo", text="hello")
        assert server.stop() == 0
    assert [what for _, _, what, _ in traced(folder)] == ["POST /mcp", "200"]
