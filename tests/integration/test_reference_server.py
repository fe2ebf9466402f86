"""What the benchmarks are built on, both in C: a reference that skips no work, a load client that sees a lie.

The C reference goes through the cases of our own wire tests that apply to it. The load client is shown
servers that answer wrongly, twice, late, out of order or not at all. Nothing is fetched: before
`make prepare` has fetched yyjson once these tests are skipped.
SANITIZE=1 runs them on the build with ASan and UBSan.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from conftest import REPOSITORY
from support import twin
from support.agent_tools import EFFECTS
from support.child_processes import gone
from support.json_cases import BLANK, cases, is_accepted
from support.protocol import SESSION_VERSIONS
from support.skips import not_prepared
from support.stdio import Process, decode, encode, serve
from support.waiting import SECONDS
from support.wire_conversation import Conversation, error_of, id_text
from test_wire_envelopes import malformed

BENCHMARKS = os.path.join(REPOSITORY, "benchmarks")
SANITIZE = os.environ.get("SANITIZE") == "1"
PARSE_ERROR = (-32700, b"null")
MEGABYTE = 1_000_000


def program(name: str) -> str:
    """Build a program of the benchmarks, or skip the test."""
    sys.path.insert(0, BENCHMARKS)
    try:
        import build
    finally:
        sys.path.remove(BENCHMARKS)
    module: ModuleType = build
    try:
        path: str = module.build(name, offline=True, sanitize=SANITIZE)
    except module.CannotBuild:
        pytest.skip(not_prepared(f"the benchmarks' {name}"))
    return path


@pytest.fixture(scope="module")
def reference() -> str:
    return program("server")


@pytest.fixture(scope="module")
def client() -> str:
    return program("client")


@pytest.fixture
def server(reference: str) -> Iterator[Process]:
    with serve(command=[reference]) as process:
        process.initialize()
        yield process


@pytest.fixture
def wire(server: Process) -> Conversation:
    return Conversation(server, SESSION_VERSIONS[-1])


def text_of(result: Any) -> str:
    assert [block["type"] for block in result["content"]] == ["text"]
    text: str = result["content"][0]["text"]
    return text


# --- the reference: methods and tools ------------------------------------------------------------


@pytest.mark.parametrize("asked", [*SESSION_VERSIONS, "2026-07-28", "1.0"])
def test_initialize_agrees_on_a_version_that_shakes_hands(reference: str, asked: str) -> None:
    with serve(command=[reference]) as server:
        params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        result = server.request("initialize", params)["result"]
        assert result["protocolVersion"] == (asked if asked in SESSION_VERSIONS else SESSION_VERSIONS[-1])
        assert result["capabilities"] == {"tools": {}}
        assert set(result["serverInfo"]) == {"name", "version"}


def test_before_initialize_only_ping_is_served(reference: str) -> None:
    with serve(command=[reference]) as server:
        assert server.request("ping")["result"] == {}
        for method in ("tools/list", "tools/call", "no/such"):
            assert server.request(method, {"name": "echo"})["error"]["code"] == -32600
        server.initialize()
        assert text_of(server.call("echo", text="x")) == "x"


@pytest.mark.parametrize("options", [[], ["--ready-list"]])
def test_the_list_holds_the_descriptors_of_the_agents_tools(reference: str, options: list[str]) -> None:
    with open(os.path.join(BENCHMARKS, "servers", "descriptors.json"), encoding="utf-8") as file:
        descriptors = json.load(file)
    assert [tool["name"] for tool in descriptors] == list(EFFECTS)
    with serve(command=[reference, *options]) as server:
        server.initialize()
        for _ in range(3):
            assert server.request("tools/list", {})["result"] == {"tools": descriptors}


@pytest.mark.parametrize("length", [*range(40), 4095, 4096, 4097, 8191, 65_536])
def test_echo_carries_every_character_at_every_place(server: Process, length: int) -> None:
    for odd in ('"', "\\", "\n", "\x00", "\x1f", "\x7f", "é", "😀"):
        text = "a" * length + odd + "b" * (length % 17)
        assert server.call("echo", text=text) == {
            "content": [{"type": "text", "text": text}],
            "isError": False,
        }


def test_echo_escapes_every_control_character(server: Process) -> None:
    text = "".join(map(chr, range(0x80))) * 3
    assert text_of(server.call("echo", text=text)) == text


@pytest.mark.parametrize("size", [65_536, MEGABYTE, 15 * MEGABYTE])
def test_large_lines_are_answered_whole_and_small_ones_after_them(server: Process, size: int) -> None:
    """A first prototype of the reference silently never answered lines of 1 MB."""
    for piece in ("x", '"'):
        text = piece * (size // len(json.dumps(piece).strip()) + 1)
        assert text_of(server.call("echo", text=text)) == text
        assert text_of(server.call("echo", text="small")) == "small"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(2, 3, "5"), (0, 0, "0"), (-5, 2, "-3"), (2**63 - 2, 1, str(2**63 - 1)), (-(2**63), 0, str(-(2**63)))],
)
def test_add_adds(server: Process, a: int, b: int, expected: str) -> None:
    result = server.call("add", a=a, b=b)
    assert (text_of(result), result["isError"]) == (expected, False)


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("echo", {}, "text"),
        ("echo", {"text": 1}, "text"),
        ("add", {"a": 1}, "b"),
        ("add", {"a": 1.5, "b": 1}, "a"),
        ("add", {"a": 2**64, "b": 1}, "a"),
        ("add", {"a": 2**63 - 1, "b": 1}, "sum"),
        ("payload", {"object": []}, "object"),
        ("bash", {"command": None}, "command"),
        ("bash", {"command": "a\0b"}, "command"),
        ("bash", {"command": "true", "timeout": 0}, "timeout"),
    ],
)
def test_arguments_that_do_not_fit_are_explained_to_the_model(
    server: Process, tool: str, arguments: dict[str, Any], field: str
) -> None:
    result = server.call(tool, **arguments)
    assert result["isError"] is True
    assert field in text_of(result)


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_payload_returns_the_object_as_text_and_where_known_as_structure(
    reference: str, version: str
) -> None:
    record = {"id": 7, "nested": {"list": [1, 2.5, None, True, 'é\n"\\'] * 60, "empty": [{}, []]}}
    with serve(command=[reference]) as server:
        server.initialize(version)
        result = server.call("payload", object=record)
        assert json.loads(text_of(result)) == record
        assert result.get("structuredContent") == (record if version >= "2025-06-18" else None)


@pytest.mark.parametrize(
    ("command", "text", "is_error"),
    [
        ("true", "(no output)", False),
        ("echo hi; echo there >&2", "hi\nthere\n", False),
        ("printf x; exit 3", "x\n[exit code 3]", True),
        ("kill -9 $$", "[killed by signal 9]", True),
        ("head -c 3 /dev/stdin | wc -c", "0\n", False),
        (r"printf 'a\xffb\xc3\xa9\xed\xa0\x80'", "a\ufffdbé\ufffd\ufffd\ufffd", False),
        (
            "stat=$(</proc/$$/stat); set -- ${stat##*) }; [ $4 = $$ ] && echo own session",
            "own session\n",
            False,
        ),
    ],
)
def test_bash_says_what_was_printed_and_how_it_ended(
    server: Process, command: str, text: str, is_error: bool
) -> None:
    result = server.call("bash", command=command)
    assert (text_of(result), result["isError"]) == (text, is_error)


def test_bash_keeps_head_and_tail_of_a_long_output(server: Process) -> None:
    result = server.call("Bash", command="seq 1 200000")
    text = text_of(result)
    whole = "".join(f"{number}\n" for number in range(1, 200_001))
    assert len(text) < 30_100
    assert text.startswith(whole[:10_000])
    assert text.endswith(whole[-20_000:])
    assert f"[... {len(whole) - 30_000} bytes left out ...]" in text


def test_bash_ends_the_session_when_its_time_is_up(server: Process) -> None:
    # Time enough to begin, on a busy machine too.
    result = server.call("bash", command="sleep 300 & echo $!; sleep 300", timeout=1500)
    child, ending = text_of(result).splitlines()
    assert (ending, result["isError"]) == ("[timed out after 1500 ms]", True)
    assert text_of(server.call("echo", text="next")) == "next"
    gone(int(child))


# --- the reference: the wire -----------------------------------------------------------------------


def test_a_malformed_envelope_gets_the_right_code_or_silence(wire: Conversation) -> None:
    tried = 0
    for line, code, request_id in malformed():
        if "1E400" in line:  # numbers have no bound here: no integer, but JSON
            code = -32600
        if code == -32700:  # whose id the reference does not look for
            request_id = "null"
        answer = wire.exchange(line.encode(), answered=code is not None)
        if code is not None:
            assert error_of(answer or b"") == (code, request_id.encode()), line
        tried += 1
    assert tried > 100


@pytest.mark.parametrize("key", ["jsonrpc", "id", "method", "params", "name", "arguments", "_meta"])
def test_a_repeated_member_is_refused(wire: Conversation, key: str) -> None:
    params = {"name": '"echo"', "arguments": '{"text":"x"}', "_meta": "{}"}
    envelope = {"jsonrpc": '"2.0"', "id": "9", "method": '"tools/call"', "params": ""}
    request_id = b"null" if key == "id" else b"9"
    for spelling in (key, f"\\u{ord(key[0]):04x}{key[1:]}"):
        doubled = [*params.items(), *((spelling, value) for name, value in params.items() if name == key)]
        envelope["params"] = members(doubled)
        doubled = [*envelope.items(), *((spelling, value) for name, value in envelope.items() if name == key)]
        line = members(doubled).encode()
        assert wire.error(line) == (-32600, request_id), line


def members(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"


@pytest.mark.parametrize("line", [b"[]", b"[1]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])
def test_a_batch_is_an_invalid_request(wire: Conversation, line: bytes) -> None:
    assert wire.error(line) == (-32600, b"null")


def test_unknown_names_are_named(wire: Conversation) -> None:
    for method, params, code in (
        ("no/such\n", {}, -32601),
        ("tools/call", {"name": "no\\such", "arguments": {}}, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": "echo", "arguments": []}, -32602),
        ("tools/list", {"cursor": "x"}, -32602),
    ):
        answer = wire.exchange(wire.request(1, method, params))
        assert error_of(answer or b"") == (code, b"1")
    assert "no/such\n" in decode(wire.exchange(wire.request(1, "no/such\n")) or b"")["error"]["message"]


@pytest.mark.parametrize(
    "text",
    [
        *("0", "-1", "-0", "18446744073709551616", "1" * 400),
        *('"1"', '""', '"\\u0000"', '"é"', '"' + "k" * 70_000 + '"'),
    ],
    ids=lambda text: text[:12],
)
def test_an_id_comes_back_as_it_came(wire: Conversation, text: str) -> None:
    for method in ('"ping"', '"no/such"', "7"):
        answer = wire.exchange(f'{{"jsonrpc":"2.0","method":{method},"id":{text}}}'.encode())
        assert id_text(answer or b"") == text.encode()


def test_each_case_of_jsontestsuite_is_judged_strictly(wire: Conversation, data_folder: str) -> None:
    wrong = []
    for name, line in cases(data_folder):
        if name in BLANK or name.startswith("i_"):
            continue
        code, _ = wire.error(line)  # no case is a request, so what is accepted is an invalid request
        if code != (-32600 if is_accepted(name) else -32700):
            wrong.append((name, code))
    assert wrong == []


def test_text_that_is_not_utf_8_or_half_a_surrogate_pair_is_broken(wire: Conversation) -> None:
    for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\\ud800", b"\\udc00x", b"\xf4\x90\x80\x80"):
        line = wire.request(1, "tools/call", {"name": "echo", "arguments": {"text": "TEXT"}})
        assert wire.error(line.replace(b"TEXT", text)) == PARSE_ERROR


def test_however_the_stream_is_cut_the_same_answers_come(server: Process) -> None:
    call = {"name": "echo", "arguments": {"text": "é\n"}}
    lines = [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call} for number in range(5)]
    stream = b"\r\n\n \t\n".join(encode(line).rstrip(b"\n") for line in lines) + b"\n"
    for at in range(len(stream)):
        server.send(stream[:at])
        os.sched_yield()
        server.send(stream[at:])
        answers = server.answers(5)
        assert [answer["id"] for answer in answers] == list(range(5)), at
        assert all(text_of(answer["result"]) == "é\n" for answer in answers)


def test_a_line_of_the_limit_is_served_and_one_over_it_is_answered_once(server: Process) -> None:
    line = encode({"jsonrpc": "2.0", "id": 1, "method": "ping"}).rstrip(b"\n")
    server.send(line + b" " * (twin.MAX_LINE - len(line)) + b"\n")
    assert server.answer()["result"] == {}
    for over in (1, twin.MAX_LINE):
        server.send(line + b" " * (twin.MAX_LINE - len(line) + over))
        assert error_of(server.line()) == PARSE_ERROR  # told when the limit is passed
        server.send(b"x" * 100_000 + b"\n" + line + b"\n")
        assert server.answer()["result"] == {}
    server.assert_silent()


def test_at_end_of_input_everything_is_answered_the_last_line_too(reference: str) -> None:
    with serve(command=[reference]) as server:
        server.initialize()
        call = {"name": "echo", "arguments": {"text": "x" * 1000}}
        calls = [
            encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
            for number in range(2000)
        ]
        server.send(b"".join(calls).rstrip(b"\n"))
        server.close_stdin()
        assert [decode(line)["id"] for line in server.rest().splitlines()] == list(range(2000))
        assert server.wait() == 0


def test_a_client_that_has_left_ends_it_quietly(server: Process) -> None:
    server.close_stdout()
    server.send(encode({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
    assert server.wait() == 0
    assert server.stderr == ""


# --- the load client -------------------------------------------------------------------------------

# A server for the client, with one place where it can be made to lie.
SERVER = """
import json, os, sys
mode = sys.argv[1]
calls = 0


def result_of(request):
    if request["method"] == "initialize":
        about = {"name": "a", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": about}
    if request["method"] == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    text = request["params"]["arguments"]["text"]
    return {"content": [{"type": "text", "text": text}], "isError": False}


def lie(answer):
    if mode == "other text":
        answer["result"]["content"][0]["text"] += "."
    elif mode == "failed":
        answer["result"]["isError"] = True
    elif mode == "other id":
        answer["id"] += 100_000
    elif mode == "id as text":
        answer["id"] = str(answer["id"])
    elif mode == "error":
        del answer["result"]
        answer["error"] = {"code": -32603, "message": "no"}
    elif mode == "silent":
        return []
    elif mode == "twice":
        return [answer, answer]
    elif mode == "chatty":
        return [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, answer]
    elif mode == "gone":
        sys.exit(3)
    elif mode == "no json":
        return ["}"]
    return [answer]


unread = b""
while data := os.read(0, 65536):
    *lines, unread = (unread + data).split(b"\\n")
    answers = []
    for request in map(json.loads, lines):
        if "id" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": result_of(request)}
            calls += request["method"] == "tools/call"
            answers += lie(answer) if calls == 40 else [answer]
    if mode == "backwards":
        answers.reverse()
    texts = [each if each == "}" else json.dumps(each) for each in answers]
    os.write(1, "".join(text + "\\n" for text in texts).encode())
"""


def load(client: str, *arguments: str, timeout: float = 110) -> tuple[int, dict[str, Any]]:
    """Run the client; return its exit code and what it reports."""
    done = subprocess.run([client, *arguments], capture_output=True, text=True, timeout=timeout)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def short(workload: str, window: int, *command: str, timeout_seconds: int = 60) -> list[str]:
    return [
        *("--workload", workload, "--window", str(window), "--seconds", "0.02", "--warm-up", "0.02"),
        *("--timeout", str(timeout_seconds), "--", *command),
    ]


@pytest.mark.parametrize("window", [1, 7, 256])
@pytest.mark.parametrize("workload", ["echo", "list"])
def test_the_client_reports_a_right_server(client: str, reference: str, workload: str, window: int) -> None:
    code, report = load(client, *short(workload, window, reference))
    assert code == 0
    assert "void" not in report
    assert report["calls"] >= window
    assert report["exit_code"] == 0
    assert 0 < report["p50"] <= report["p99"] <= report["p99_9"] <= report["max"]
    assert report["calls_per_second"] == pytest.approx(report["calls"] / report["seconds"], rel=1e-3)
    assert 0 < report["server_cpu_us_per_call"] < 10_000
    assert report["peak_rss_kb"] > 500


def test_one_at_a_time_calls_fill_the_clock(client: str, reference: str) -> None:
    """Calls so long that a pause of the client's between two of them does not count."""
    arguments = ("--workload", "shell", "--shell", "sleep 0.02", "--seconds", "0.2", "--warm-up", "0.02")
    code, report = load(client, *arguments, "--timeout", "60", "--", reference)
    assert (code, report.get("void")) == (0, None)
    assert report["mean"] * report["calls"] == pytest.approx(report["seconds"] * 1e6, rel=0.05)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("other text", "expected the text"),
        ("failed", "the tool failed"),
        ("other id", "nothing in flight"),
        ("id as text", "nothing in flight"),
        ("error", "without a result"),
        ("silent", "answers: "),
        ("twice", "answered twice"),
        ("chatty", "nothing in flight"),
        ("gone", "closed its output"),
        ("no json", "not JSON"),
    ],
)
@pytest.mark.parametrize("window", [1, 16])
def test_a_wrong_answer_voids_the_run(client: str, mode: str, reason: str, window: int) -> None:
    command = (sys.executable, "-c", SERVER, mode)
    seconds = 1 if mode == "silent" else 60  # what does not answer is waited for
    code, report = load(client, *short("echo", window, *command, timeout_seconds=seconds))
    assert code == 1
    # One at a time an answer too many shows as the next one's.
    assert reason in report["void"] or (window == 1 and mode in ("twice", "chatty")), report


def test_answers_may_come_in_any_order(client: str) -> None:
    code, report = load(client, *short("echo", 32, sys.executable, "-c", SERVER, "backwards"))
    assert (code, report.get("void")) == (0, None)


def test_a_list_of_another_length_voids_the_run(client: str, reference: str) -> None:
    code, report = load(client, "--tools", "2", *short("list", 1, reference))
    assert code == 1
    assert f"expected 2 tools, got {len(EFFECTS)}" in report["void"]


def test_a_server_that_cannot_start_voids_the_run(client: str) -> None:
    code, report = load(client, *short("echo", 1, os.path.join(BENCHMARKS, "no-such-server")))
    assert code == 1
    assert "cannot start" in report["void"]


def test_starts_are_timed_to_the_answers(client: str, reference: str) -> None:
    code, report = load(client, "--workload", "start", "--starts", "3", "--timeout", "60", "--", reference)
    assert code == 0
    assert (report["unit"], report["starts"], report["exit_code"]) == ("ms", 3, 0)
    assert 0 < report["p50"] <= report["max"]
    assert report["list_mean"] >= report["mean"]


def test_a_bare_start_needs_no_protocol(client: str) -> None:
    arguments = ("--workload", "bare", "--starts", "2", "--timeout", "60", "--", sys.executable, "-c", "pass")
    code, report = load(client, *arguments)
    assert (code, report["exit_code"]) == (0, 0)
    assert report["p50"] > 0


def test_a_wrong_option_is_reported_and_nothing_is_run(client: str) -> None:
    behind = ["--", "true"]
    for arguments in (["--workload", "no-such", *behind], ["--window", "0", *behind], ["--window"], []):
        done = subprocess.run([client, *arguments], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 2, arguments
        assert "usage" in done.stderr
        assert done.stdout == ""
