"""The load client's further workloads: what is right is measured, what is wrong voids the run.

Each is tried with the C reference and with fastrpc's own benchmark server, and shown servers that lie:
a byte of a megabyte, a number of a record, a sleep that is too short, a command that was not run. Like
the rest of the benchmarks' tests these are skipped where nothing can be compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from support.waiting import SECONDS
from test_reference_server import BENCHMARKS, load, program

pytestmark = pytest.mark.long

ECHO = os.path.join(BENCHMARKS, "servers", "echo.py")
BRIEF = ("--seconds", "0.02", "--warm-up", "0.02", "--timeout", "60")
HASTY = (*BRIEF[:-1], "3")  # what does not answer at all is waited for

# A server that speaks as fast as it must and lies in the call numbered by its second argument.
LIAR = r"""
import json, os, sys, time
mode, when = sys.argv[1], int(sys.argv[2])
calls = 0
STATELESS = "io.modelcontextprotocol/protocolVersion"


def content(text):
    return {"content": [{"type": "text", "text": text}], "isError": False}


def result_of(request):
    params = request["params"]
    if request["method"] == "initialize":
        if mode == "modern only":
            raise ValueError("initialize")
        about = {"name": "a", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": about}
    name, given = params["name"], params["arguments"]
    if name == "payload":
        result = {**content(json.dumps(given["object"])), "structuredContent": given["object"]}
    elif name == "sleep":
        result = content("slept")
    elif name == "shell":
        printed = "" if given["command"].startswith("true") else "x" * 5000
        result = content(printed)
    else:
        result = content(given["text"])
    if params.get("_meta", {}).get(STATELESS) == "2026-07-28":
        result["resultType"] = "complete"
    elif mode == "modern only":
        raise ValueError("no envelope")
    return result


def lie(answer):
    result = answer["result"]
    block = result["content"][0]
    if mode == "a byte":
        middle = len(block["text"]) // 2
        other = "#" if block["text"][middle] != "#" else "+"
        block["text"] = block["text"][:middle] + other + block["text"][middle + 1 :]
    elif mode == "shorter":
        block["text"] = block["text"][:-1]
    elif mode == "a number":
        record = json.loads(block["text"])
        record["steps"][7]["took_ms"] += 1
        block["text"] = json.dumps(record)
    elif mode == "a member less":
        record = json.loads(block["text"])
        del record["owner"]["settings"]
        block["text"] = json.dumps(record)
    elif mode == "structure":
        result["structuredContent"] = {**result["structuredContent"], "open": None}
    elif mode == "no json":
        block["text"] = "{"
    elif mode == "printed":
        block["text"] += "x"
    elif mode == "failed":
        result["isError"] = True
    elif mode == "two blocks":
        result["content"].append(block)
    elif mode == "no type":
        del result["resultType"]
    elif mode == "silent":
        return []
    elif mode == "twice":
        return [answer, answer]
    elif mode == "another's":
        answer["id"] -= 1
    elif mode == "other id":
        answer["id"] += 1_000_000
    return [answer]


unread, asleep = b"", []
while data := os.read(0, 1 << 20):
    if mode == "pieces" and len(data) > when:
        sys.exit(3)
    *lines, unread = (unread + data).split(b"\n")
    answers = []
    for request in map(json.loads, lines):
        if "id" not in request:
            continue
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": result_of(request)}
        is_call = request["method"] == "tools/call"
        calls += is_call
        told = lie(answer) if is_call and calls == when else [answer]
        if request["params"].get("name") == "sleep" and mode != "early":
            asleep += told
        else:
            answers += told
    if asleep:
        time.sleep(0.01)
        answers, asleep = asleep + answers, []
    os.write(1, "".join(json.dumps(answer) + "\n" for answer in answers).encode())
"""


def liar(mode: str, when: int) -> list[str]:
    return ["--", sys.executable, "-c", LIAR, mode, str(when)]


@pytest.fixture(scope="module")
def client() -> str:
    return program("client")


@pytest.fixture(scope="module")
def servers() -> dict[str, list[str]]:
    return {"c": ["--", program("server")], "fastrpc": ["--", sys.executable, ECHO]}


def measured(client: str, *arguments: str) -> dict[str, Any]:
    """Run the client against a server that is right, and return its report."""
    code, report = load(client, *BRIEF, *arguments)
    assert (code, report.get("void"), report.get("exit_code")) == (0, None, 0), report
    return report


# --- right servers --------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["c", "fastrpc"])
@pytest.mark.parametrize("window", [1, 7])
def test_a_record_goes_there_and_back(
    client: str, servers: dict[str, list[str]], server: str, window: int
) -> None:
    report = measured(client, "--workload", "payload", "--window", str(window), *servers[server])
    assert 3000 < report["request_bytes"] < 5000
    assert report["answer_bytes"] > 1.9 * report["request_bytes"]  # as text and as structure
    assert report["mb_per_second"] > 0


@pytest.mark.parametrize("server", ["c", "fastrpc"])
@pytest.mark.parametrize("letters", ["any", "ascii"])
@pytest.mark.parametrize("size", [100, 65_536, 1_000_000])
def test_texts_have_the_size_that_was_asked_for(
    client: str, servers: dict[str, list[str]], server: str, letters: str, size: int
) -> None:
    arguments = ("--workload", "echo", "--size", str(size), "--letters", letters)
    report = measured(client, *arguments, *servers[server])
    assert size < report["request_bytes"] < 1.05 * size + 200
    assert report["ns_per_byte"] == pytest.approx(
        report["seconds"] * 1e9 / report["calls"] / report["request_bytes"], rel=1e-3
    )


@pytest.mark.parametrize("server", ["c", "fastrpc"])
def test_a_text_of_16_mb_arrives_in_pieces(client: str, servers: dict[str, list[str]], server: str) -> None:
    arguments = ("--workload", "echo", "--size", "16000000", "--letters", "ascii", "--piece", "4096")
    assert measured(client, *arguments, *servers[server])["calls"] >= 1


def test_no_read_of_the_server_brings_more_than_a_piece(client: str) -> None:
    """The liar leaves when it reads more than it was told to."""
    arguments = ("--workload", "echo", "--size", "50000", *liar("pieces", 4096))
    measured(client, "--piece", "4096", *arguments)
    code, report = load(client, *BRIEF, *arguments)
    assert (code, "closed its output" in report["void"]) == (1, True)


def test_a_command_is_run_and_its_output_looked_at(client: str, servers: dict[str, list[str]]) -> None:
    report = measured(client, "--workload", "shell", *servers["c"])
    assert report["p50"] > 100  # no process is started faster
    command = "head -c 1000000 /dev/zero | tr '\\0' x"
    arguments = ("--workload", "shell", "--tool", "Bash", "--shell", command, "--printed", "1000000")
    report = measured(client, *arguments, *servers["c"])
    assert report["mb_per_second"] == pytest.approx(report["calls_per_second"], rel=1e-3)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("server", "tool"), [("c", "sleep"), ("fastrpc", "sleep"), ("fastrpc", "sleep_sync")]
)
def test_sleepers_sleep_side_by_side(
    client: str, servers: dict[str, list[str]], server: str, tool: str
) -> None:
    report = measured(client, "--workload", "sleepers", "--tool", tool, "--ms", "20", *servers[server])
    assert 19 < report["wall_ms"] < 64 * 20 / 2
    assert report["calls"] > 10  # probes
    assert 0 < report["p50"] <= report["p99"] <= report["max"]


@pytest.mark.parametrize("server", ["c", "fastrpc"])
def test_thousands_of_calls_may_be_in_flight(client: str, servers: dict[str, list[str]], server: str) -> None:
    report = measured(client, "--workload", "sleepers", "--sleepers", "3000", "--ms", "50", *servers[server])
    assert report["sleepers"] == 3000
    assert 49 < report["wall_ms"] < 3000 * 50 / 2


@pytest.mark.parametrize("server", ["c", "fastrpc"])
def test_memory_is_read_before_the_loop_with_it_and_after_the_calls(
    client: str, servers: dict[str, list[str]], server: str
) -> None:
    arguments = ("--workload", "memory", "--ms", "1", "--window", "64", "--calls", "5000")
    report = measured(client, *arguments, *servers[server])
    assert report["calls"] == 5000
    if not sys.platform.startswith("linux"):
        return
    assert 500 < report["rss_start_kb"] <= report["rss_idle_kb"] <= report["peak_rss_kb"]
    assert report["peak_rss_kb"] >= report["rss_end_kb"]
    loop = report["rss_loop_kb"] - report["rss_start_kb"]
    assert loop > 2000 if server == "fastrpc" else loop < 1000


@pytest.mark.parametrize("window", [1, 64])
def test_the_newer_wire_has_no_handshake_and_an_envelope_in_every_request(
    client: str, servers: dict[str, list[str]], window: int
) -> None:
    arguments = ("--workload", "echo", "--wire", "modern", "--window", str(window))
    report = measured(client, *arguments, *servers["fastrpc"])
    assert "start_ms" not in report
    measured(client, *arguments, *liar("modern only", 0))
    code, report = load(client, *BRIEF, *arguments, *servers["c"])
    assert (code, "without a result" in report["void"]) == (1, True)  # the reference wants initialize


# --- wrong ones -----------------------------------------------------------------------------------

TEXT = ("--workload", "echo", "--size", "20000")
RECORD = ("--workload", "payload")
COMMAND = ("--workload", "shell", "--tool", "shell")
PRINTING = (*COMMAND, "--shell", "printing", "--printed")
SLEEPERS = ("--workload", "sleepers", "--sleepers", "8")
MEMORY = ("--workload", "memory", "--sleepers", "0", "--calls", "100")
STATELESS = ("--workload", "echo", "--wire", "modern")


@pytest.mark.parametrize(
    ("workload", "mode", "reason"),
    [
        (TEXT, "a byte", "around byte"),
        (TEXT, "shorter", "of 19999"),
        (TEXT, "failed", "the tool failed"),
        (TEXT, "two blocks", "one text block"),
        (RECORD, "a number", "expected the object"),
        (RECORD, "a member less", "expected the object"),
        (RECORD, "no json", "expected the object"),
        (RECORD, "structure", "structuredContent"),
        (RECORD, "failed", "the tool failed"),
        (COMMAND, "printed", "expected no output"),
        (COMMAND, "failed", "the tool failed"),
        ((*PRINTING, "5000"), "printed", "expected 5000 bytes"),
        ((*PRINTING, "5000"), "shorter", "expected 5000 bytes"),
        (MEMORY, "a byte", "expected the text"),
        (MEMORY, "other id", "nothing in flight"),
        (STATELESS, "no type", "resultType"),
        (STATELESS, "a byte", "expected the text"),
    ],
)
def test_a_wrong_answer_voids_the_run(client: str, workload: tuple[str, ...], mode: str, reason: str) -> None:
    measured(client, *workload, *liar("truth", 10))
    code, report = load(client, *BRIEF, *workload, *liar(mode, 10))
    assert code == 1
    assert reason in report["void"], report


@pytest.mark.parametrize(
    ("mode", "when", "reasons"),
    [
        ("early", 0, ["a call slept for"]),
        ("failed", 3, ["the tool failed"]),
        ("a byte", 9, ["expected the text"]),  # the first probe
        ("failed", 9, ["the tool failed"]),
        ("silent", 3, ["sleepers: 7 of 8"]),
        ("silent", 9, ["sleepers: 8 of 8"]),
        ("twice", 3, ["answered twice", "answers to 8 sleepers", "nothing in flight"]),
        ("twice", 9, ["nothing in flight"]),
        ("another's", 3, ["answered twice"]),
        ("other id", 3, ["nothing in flight"]),
        ("other id", 9, ["nothing in flight"]),
    ],
)
def test_a_sleeper_or_a_probe_that_is_wrong_voids_the_run(
    client: str, mode: str, when: int, reasons: list[str]
) -> None:
    measured(client, *SLEEPERS, *liar("truth", 0))
    long = ["--ms", "5000"] if mode == "early" else []  # longer than a busy machine takes to answer at once
    brief = HASTY if mode == "silent" else BRIEF
    code, report = load(client, *brief, *SLEEPERS, *long, *liar(mode, when))
    assert code == 1
    assert any(reason in report["void"] for reason in reasons), report


def test_a_wrong_value_of_an_option_is_reported(client: str) -> None:
    wrong = {"--wire": "old", "--letters": "greek", "--calls": "1", "--size": "x", "--shell": "a\nb"}
    for option, value in wrong.items():
        arguments = [client, option, value, "--", "true"]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS)
        assert (done.returncode, done.stdout) == (2, ""), option
        assert option in done.stderr
