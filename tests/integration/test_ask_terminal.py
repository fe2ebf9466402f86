"""Questions on a person's own terminal: real servers on real pseudo-terminals, and one in tmux.

A session of its own leads each terminal, as a shell does; the server is a job in it, in the foreground or
not. What it writes is read from the terminal's other side, keys are typed there, and at the end the
terminal's mode must be what it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support.skips import not_installed
from support.stdio import SECONDS, Process, encode, serve
from support.waiting import eventually

QUESTIONS = {
    "questions": [
        {"text": "Which database?", "options": ["PostgreSQL", "SQLite", "none"]},
        {"text": "Tests?", "options": ["yes", "no"]},
    ]
}
LAST = "Ctrl-C: decline"  # the end of what is drawn

SERVE = [sys.executable, "-m", "fastrpc", "serve"]

TOOL = """
from fastrpc import Server
from fastrpc.tools.agent.ask_user_question import ask_user_question
app = Server("t")
app.add_tool(ask_user_question)

@app.tool(effect="exec")
def wipe(place: str) -> str:
    return f"wiped {place}"
"""

LEADER = """
import fcntl, os, signal, subprocess, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = subprocess.Popen(sys.argv[4:], preexec_fn=lambda: (
    os.setpgid(0, 0),
    sys.argv[2] == "front" and os.tcsetpgrp(terminal, os.getpgrp()),
    signal.signal(signal.SIGTTOU, signal.SIG_DFL),
))
with open(sys.argv[3] + ".new", "w") as file:
    file.write(str(job.pid))
os.rename(sys.argv[3] + ".new", sys.argv[3])
os.close(0)
os.close(1)
def bring(front):
    os.tcsetpgrp(terminal, job.pid if front else os.getpgrp())
signal.signal(signal.SIGUSR1, lambda *_: bring(True))
signal.signal(signal.SIGUSR2, lambda *_: bring(False))
while True:
    signal.pause()
"""
"""A shell with one job. USR1 brings the job to the foreground, USR2 puts it into the background."""


class Terminal:
    """Our side of a pseudo-terminal whose other side a server's session has."""

    def __init__(self, server: Process, master: int, path: str, pid: int) -> None:
        self.server = server
        self.master = master
        self.path = path
        self.pid = pid
        self.written = b""

    def type(self, data: bytes | str) -> None:
        os.write(self.master, data.encode() if isinstance(data, str) else data)

    def until(self, wanted: str) -> str:
        """Read until what has been written since the last call holds a text; return it up to there."""
        deadline = time.monotonic() + SECONDS
        while wanted.encode() not in self.written:
            left = deadline - time.monotonic()
            assert left > 0, f"{wanted!r} never came; {self.written!r}\n{self.server.stderr}"
            if select.select([self.master], [], [], left)[0]:
                self.written += os.read(self.master, 65536)
        before, _, self.written = self.written.partition(wanted.encode())
        return before.decode() + wanted

    def stays_silent(self, seconds: float = 0.1) -> None:
        """Fail if something is written meanwhile; what is no answer to a call comes before that."""
        assert not select.select([self.master], [], [], seconds)[0], os.read(self.master, 65536)

    def mode(self) -> list[Any]:
        """All of the terminal's settings but its size, as ``stty -a`` shows them. At once: it may change."""
        terminal = os.open(self.path, os.O_RDONLY | os.O_NOCTTY)
        try:
            return termios.tcgetattr(terminal)
        finally:
            os.close(terminal)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def job(self, number: int) -> None:
        """Have the shell bring its job to the foreground or put it into the background."""
        before = os.tcgetpgrp(self.master)
        self.server.signal(number)
        eventually(lambda: os.tcgetpgrp(self.master) != before)


@contextlib.contextmanager
def terminal(
    tmp_path: Any,
    place: str = "front",
    before: Sequence[str] = (),
    source: str = "",
    options: Sequence[str] = (),
    **environment: str | None,
) -> Iterator[Terminal]:
    """A server with a terminal; its client cannot be asked. `before` precedes its command, `source` is
    what its program does to itself first, `options` those of its command."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    pid_file = str(tmp_path / f"pid{master}")
    path = os.ttyname(slave)
    command = [sys.executable, "-c", LEADER, path, place, pid_file, *before, *SERVE]
    if source or options:
        (tmp_path / "server.py").write_text(source + TOOL)
        command += [str(tmp_path / "server.py"), *options]
    variables = {
        "ASK_TERMINAL": "1",
        "TERM": "xterm-256color",
        "NO_COLOR": None,
        "FASTRPC_ASK_SECONDS": None,
        "FASTRPC_STATE_DIR": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        **environment,
    }
    try:
        with serve(
            command=command, environment=variables, folder=str(tmp_path), start_new_session=True
        ) as server:
            eventually(lambda: os.path.exists(pid_file))
            with open(pid_file) as file:
                pid = int(file.read())
            try:
                server.initialize()
                yield Terminal(server, master, path, pid)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    finally:
        os.close(master)
        os.close(slave)


def ask(here: Terminal, questions: Any = QUESTIONS, **params: Any) -> Any:
    arguments = {"questions_json": json.dumps(questions)}
    return here.server.ask("tools/call", {"name": "AskUserQuestion", "arguments": arguments, **params})


def outcome(here: Terminal, request: Any) -> tuple[Any, str]:
    """Return what a call has come to: its facts and its text."""
    while (message := here.server.answer()).get("id") != request:
        pass
    result = message["result"]
    return result["_meta"]["fastrpc/facts"], result["content"][0]["text"]


def selected(text: str) -> list[str]:
    return [answer["selected"] for answer in json.loads(text)["answers"]]


# --- answers --------------------------------------------------------------------------------------------


def test_arrow_keys_and_numbers_answer_and_the_terminal_is_as_before(tmp_path: Any) -> None:
    """AskUserQuestion: at a person's terminal arrow keys and numbers answer."""
    with terminal(tmp_path) as here:
        before = here.mode()
        request = ask(here)
        drawn = here.until(LAST)
        assert "Which database?" in drawn
        assert "\x1b[?1049h" in drawn
        assert "\x1b[1;36m> 1. PostgreSQL" in drawn
        assert here.mode() != before
        here.type("\x1b[B")
        here.until("> 2. SQLite")
        here.type("\r")
        here.until("Question 2 of 2")
        here.type("2\r")
        assert here.until("\x1b[?1049l").count("\x1b[?25h") == 1
        facts, text = outcome(here, request)
        assert facts == {"how": "terminal", "action": "accept"}
        assert selected(text) == ["SQLite", "no"]
        assert here.mode() == before
        assert here.server.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("key", "action", "sentence"),
    [
        (b"\x03", "decline", "The user declined to answer."),
        (b"\x1b", "cancel", "The user dismissed the question without an answer."),
        (b"\x04", "cancel", "The user dismissed the question without an answer."),
    ],
)
def test_a_no_at_the_terminal_is_said_plainly(tmp_path: Any, key: bytes, action: str, sentence: str) -> None:
    """AskUserQuestion: Ctrl-C at the terminal declines."""
    with terminal(tmp_path) as here:
        before = here.mode()
        request = ask(here)
        here.until(LAST)
        here.type(key)
        facts, text = outcome(here, request)
        assert facts == {"how": "terminal", "action": action}
        assert text.startswith(sentence)
        assert here.mode() == before
        assert here.server.request("ping")["result"] == {}  # Ctrl-C has interrupted no one


def test_what_was_typed_before_the_question_is_no_answer(tmp_path: Any) -> None:
    with terminal(tmp_path) as here:
        here.type("\r\r2\r\r")
        here.until("2\r\n\r\n")  # its echo: the terminal has it
        request = ask(here)
        here.until(LAST)
        here.server.assert_silent()
        here.type("3\r1\r")
        assert selected(outcome(here, request)[1]) == ["none", "yes"]


def test_the_server_serves_on_while_a_person_thinks_and_hears_only_its_client(tmp_path: Any) -> None:
    """AskUserQuestion: while a person is asked at the terminal descriptors 0 and 1 serve the client."""
    with terminal(tmp_path) as here:
        request = ask(here)
        here.until(LAST)
        for _ in range(20):
            assert here.server.request("ping")["result"] == {}
        assert here.server.call("ListBgTasks")["content"][0]["text"] == "No background tasks."
        here.type("\r\r")
        assert selected(outcome(here, request)[1]) == ["PostgreSQL", "yes"]


def test_one_question_after_the_other_when_several_calls_ask(tmp_path: Any) -> None:
    with terminal(tmp_path) as here:
        before = here.mode()
        question = '[{{"text":"Question {}?","options":["a","b"]}}]'
        requests = [ask(here, json.loads(question.format(number))) for number in (1, 2, 3)]
        for number in (1, 2, 3):
            drawn = here.until(LAST)
            assert f"Question {number}?" in drawn
            assert f"Question {number + 1}?" not in drawn
            here.type("2\r")
            here.until("\x1b[?1049l")
        for request in requests:
            assert selected(outcome(here, request)[1]) == ["b"]
        assert here.mode() == before


WITHOUT_UVLOOP = """
import sys
sys.modules["uvloop"] = None
"""

WATCHES_NO_TERMINAL = """
from fastrpc.terminal import dialog

class Loop:
    def __init__(self, loop):
        self.loop = loop
    def __getattr__(self, name):
        return getattr(self.loop, name)
    def add_reader(self, *arguments):
        raise OSError(22, "as kqueue does")

class Dialog(dialog._Dialog):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.loop = Loop(self.loop)

dialog._Dialog = Dialog
"""


@pytest.mark.parametrize("source", [WITHOUT_UVLOOP, WATCHES_NO_TERMINAL], ids=["asyncio", "kqueue"])
def test_any_loop_will_do(tmp_path: Any, source: str) -> None:
    with terminal(tmp_path, source=source) as here:
        before = here.mode()
        request = ask(here)
        here.until(LAST)
        here.type("\x1b[B\r")
        here.until("Question 2 of 2")
        here.type("2")
        here.until("> 2. no")
        here.type("\r")
        assert selected(outcome(here, request)[1]) == ["SQLite", "no"]
        assert here.mode() == before


# --- ends -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["cancelled", "timeout", "SIGTERM", "SIGHUP", "end of input"])
def test_the_terminal_is_as_before_however_the_asking_ends(tmp_path: Any, end: str) -> None:
    """AskUserQuestion: the terminal's mode comes back after cancel, time-out, SIGTERM, SIGHUP and end of
    input.
    """
    limit = "2" if end == "timeout" else None
    with terminal(tmp_path, FASTRPC_ASK_SECONDS=limit) as here:
        before = here.mode()
        request = ask(here)
        here.until(LAST)
        assert here.mode() != before
        if end == "cancelled":
            here.server.notify("notifications/cancelled", {"requestId": request})
        elif end == "timeout":
            facts, text = outcome(here, request)
            assert facts == {"how": "terminal", "action": "timeout"}
            assert text.startswith("The user did not answer within 2 s.")
        elif end == "end of input":
            here.server.close_stdin()
        else:
            os.kill(here.pid, getattr(signal, end))
        assert here.until("\x1b[?1049l")
        eventually(lambda: here.mode() == before)
        if end in ("cancelled", "timeout"):
            assert here.server.request("ping")["result"] == {}


FAILS = """
from fastrpc.terminal import menu

def fail(self, key):
    self.draw = None

menu.Menu.press = fail
"""


def test_the_terminal_is_as_before_when_the_menu_itself_fails(tmp_path: Any) -> None:
    with terminal(tmp_path, source=FAILS) as here:
        before = here.mode()
        request = ask(here)
        here.until(LAST)
        here.type("x2")
        while (message := here.server.answer()).get("id") != request:
            pass
        assert message["result"]["isError"] is True
        assert here.mode() == before
        assert here.server.request("ping")["result"] == {}


def test_a_terminal_that_goes_away_leaves_the_question_unasked(tmp_path: Any) -> None:
    """As when its window is closed, for a server that is to outlive that."""
    with terminal(tmp_path, before=["nohup"]) as here:
        request = ask(here)
        here.until(LAST)
        here.server.kill()  # the session's leader: the terminal is taken from all
        facts, text = outcome(here, request)
        assert facts == {"how": "none", "action": "unasked"}
        assert "the terminal is gone" in text


# --- whose terminal it is -------------------------------------------------------------------------------


def test_a_server_in_the_background_does_not_take_the_screen(tmp_path: Any) -> None:
    """AskUserQuestion: the terminal is used only while the server is in its foreground group."""
    with terminal(tmp_path, "back") as here:
        before = here.mode()
        facts, text = outcome(here, ask(here))
        assert facts == {"how": "none", "action": "unasked"}
        assert "the server is not in the foreground of its terminal" in text
        here.stays_silent()
        assert here.mode() == before


@pytest.mark.parametrize("value", ["", "0", "off", "perhaps", None])
def test_a_terminal_is_used_only_if_the_person_wants_it(tmp_path: Any, value: str | None) -> None:
    """AskUserQuestion: the terminal is used only with `ASK_TERMINAL=1`."""
    with terminal(tmp_path, ASK_TERMINAL=value) as here:
        facts, text = outcome(here, ask(here))
        assert facts == {"how": "none", "action": "unasked"}
        assert "ASK_TERMINAL is not set" in text
        here.stays_silent()


def test_a_client_that_can_be_asked_is_asked_first(tmp_path: Any) -> None:
    """AskUserQuestion: a client that can be asked is asked before the terminal."""
    with terminal(tmp_path) as here:
        here.server.initialize(elicitation={})
        request = ask(here)
        question = here.server.answer()
        assert question["method"] == "elicitation/create"
        here.stays_silent(0.2)
        content = {"question_1": "SQLite", "question_2": "no"}
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}
        here.server.send_message(answer)
        assert outcome(here, request)[0]["how"] == "client"


def test_a_server_without_a_terminal_says_so(tmp_path: Any) -> None:
    environment = {"ASK_TERMINAL": "1", "TERM": "xterm", "FASTRPC_STATE_DIR": str(tmp_path)}
    with serve(environment=environment, start_new_session=True) as server:
        server.initialize()
        result = server.call("AskUserQuestion", questions_json=json.dumps(QUESTIONS))
        assert "the server has no terminal" in result["content"][0]["text"]


@pytest.mark.parametrize("name", ["dumb", ""])
def test_a_terminal_that_cannot_place_a_cursor_is_not_asked_on(tmp_path: Any, name: str) -> None:
    with terminal(tmp_path, TERM=name) as here:
        assert "TERM is dumb or not set" in outcome(here, ask(here))[1]
        here.stays_silent()


def test_a_menu_that_is_put_into_the_background_waits_there(tmp_path: Any) -> None:
    with terminal(tmp_path) as here:
        before = here.mode()
        request = ask(here)
        here.until(LAST)
        here.job(signal.SIGUSR2)
        time.sleep(0.3)
        here.type("2\r")  # for whoever has the foreground now
        here.server.assert_silent(0.3)
        assert here.server.request("ping")["result"] == {}  # nothing has stopped it
        here.job(signal.SIGUSR1)
        here.until(LAST)
        here.type("3\r")
        here.until("Question 2 of 2")
        here.type("\r")
        assert selected(outcome(here, request)[1]) == ["none", "yes"]
        assert here.mode() == before


# --- what is drawn --------------------------------------------------------------------------------------


def test_nothing_in_a_question_can_command_the_terminal(tmp_path: Any) -> None:
    evil = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31mx\x08\x1bc"
    questions = [{"text": evil, "options": [evil + "1", {"label": "fine", "description": evil}]}]
    with terminal(tmp_path) as here:
        request = ask(here, questions)
        drawn = here.until(LAST)
        drawn = re.sub(r"\x1b\[(?:\?\d+[hl]|\d+;1H|[\d;]*m|K|J)", "", drawn)
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", drawn), drawn
        assert "␛]52;c;aGk=␇␛[2J" in drawn
        here.type("\r")
        assert selected(outcome(here, request)[1]) == [evil + "1"]


def test_no_colours_where_they_are_not_wanted(tmp_path: Any) -> None:
    with terminal(tmp_path, NO_COLOR="1") as here:
        request = ask(here)
        drawn = here.until(LAST)
        assert "> 1. PostgreSQL" in drawn
        assert not re.search(r"\x1b\[[\d;]*m", drawn)
        here.type("\x03")
        outcome(here, request)


def test_a_long_list_scrolls_and_a_resized_terminal_is_drawn_anew(tmp_path: Any) -> None:
    options = [f"الخيار {number} 👨‍👩‍👧" for number in range(1, 51)]
    with terminal(tmp_path) as here:
        request = ask(here, [{"text": "أي واحد؟", "options": options}])
        assert "50." not in here.until(LAST)
        here.type("49")
        assert f"> 49. {options[48]}" in here.until("(more above and below)")
        here.resize(40, 10)
        drawn = here.until("more above and below")
        assert "\x1b[10;1H" in drawn
        assert "\x1b[11;1H" not in drawn
        assert "> 49. " in drawn
        here.type("\x1b[B")
        here.until("> 50. ")
        here.type("\r")
        assert selected(outcome(here, request)[1]) == [options[49]]


def test_a_terminal_that_takes_nothing_delays_no_one(tmp_path: Any) -> None:
    with terminal(tmp_path) as here:
        here.resize(200, 200)
        option = "x" * 200
        request = ask(here, [{"text": "?", "options": [f"{number}{option}" for number in range(50)]}])
        for _ in range(20):  # no one reads what is drawn meanwhile
            here.type("\x1b[B")
            assert here.server.request("ping")["result"] == {}
        here.until(LAST)
        here.type("1\r")
        assert selected(outcome(here, request)[1]) == [f"0{option}"]


# --- two servers, one terminal --------------------------------------------------------------------------

PAIR = """
import subprocess, sys
servers = [subprocess.Popen([sys.executable, "-m", "fastrpc", "serve"], stdin=subprocess.PIPE,
           stdout=subprocess.PIPE) for _ in range(2)]
for number, server in enumerate(servers):
    server.stdin.write(sys.argv[1].replace("Which", f"Server {number}").encode())
    server.stdin.flush()
for server in servers:
    while b'"id":2' not in (line := server.stdout.readline()):
        pass
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
"""


def session(questions: Any) -> str:
    """All that a client sends that has one question and cannot be asked."""
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    call = {"name": "AskUserQuestion", "arguments": {"questions_json": json.dumps(questions)}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    return b"".join(map(encode, messages)).decode()


def test_two_servers_on_one_terminal_ask_one_after_the_other(tmp_path: Any) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    path, pid_file = os.ttyname(slave), str(tmp_path / "pid")
    sent = session([{"text": "Which?", "options": ["a", "b"]}])
    command = [sys.executable, "-c", LEADER, path, "front", pid_file, sys.executable, "-c", PAIR, sent]
    environment = {"ASK_TERMINAL": "1", "TERM": "xterm", "FASTRPC_STATE_DIR": str(tmp_path / "state")}
    with serve(command=command, environment=environment, start_new_session=True) as server:
        here = Terminal(server, master, path, 0)
        before = here.mode()
        shown = []
        for key in ("1", "2"):
            shown += re.findall(r"Server (\d)\?", here.until(LAST))
            here.stays_silent(0.3)
            here.type(f"{key}\r")
            here.until("\x1b[?1049l")
        assert sorted(shown) == ["0", "1"]
        answers = [json.loads(answer["result"]["content"][0]["text"]) for answer in server.answers(2)]
        chosen = {answer["answers"][0]["question"]: answer["answers"][0]["selected"] for answer in answers}
        assert chosen == {f"Server {shown[0]}?": "a", f"Server {shown[1]}?": "b"}
        eventually(lambda: here.mode() == before)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    os.close(master)
    os.close(slave)


# --- tmux -----------------------------------------------------------------------------------------------

CLIENT = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "fastrpc", "serve"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=open(sys.argv[2] + ".err", "w"))
server.stdin.write(open(sys.argv[1], "rb").read())
server.stdin.flush()
while b'"id":2' not in (line := server.stdout.readline()):
    pass
with open(sys.argv[2], "wb") as file:
    file.write(line)
print("the client goes on")
sys.stdin.readline()
"""


def test_in_tmux_a_person_answers_and_finds_the_screen_as_it_was(tmp_path: Any) -> None:
    """AskUserQuestion: a person in tmux can answer and finds the screen as it was."""
    if shutil.which("tmux") is None:
        pytest.skip(not_installed("tmux"))
    (tmp_path / "client.py").write_text(CLIENT)
    questions = [{"text": "ما قاعدة البيانات؟ 数据库", "options": ["PostgreSQL", "SQLite 👍", "لا شيء"]}]
    (tmp_path / "sent").write_text(session(questions))
    answer = tmp_path / "answer"
    socket = str(tmp_path / "tmux")

    def tmux(*words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", socket, "-f", os.devnull, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "ASK_TERMINAL": "1", "FASTRPC_STATE_DIR": str(tmp_path / "state"), "TMUX": ""},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen(wanted: str) -> str:
        shown: str = eventually(lambda: wanted in (found := tmux("capture-pane", "-p")) and found)
        return shown

    arguments = f"{sys.executable} {tmp_path}/client.py {tmp_path}/sent {answer}"
    try:
        tmux("new-session", "-d", "-x", "70", "-y", "12", f"echo before; {arguments}")
        shown = screen(LAST)
        assert "ما قاعدة البيانات؟ 数据库" in shown
        assert "> 1. PostgreSQL" in shown
        assert "before" not in shown
        tmux("send-keys", "Down")
        assert "  1. PostgreSQL\n> 2. SQLite 👍" in screen("> 2.")
        tmux("resize-window", "-x", "40", "-y", "8")
        tmux("send-keys", "Enter")
        shown = screen("the client goes on")
        assert "before" in shown
        assert "PostgreSQL" not in shown
        result = json.loads(answer.read_text())["result"]
        assert selected(result["content"][0]["text"]) == ["SQLite 👍"]
    finally:
        with contextlib.suppress(AssertionError):
            tmux("kill-server")


# --- approvals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("keys", "answer"), [("2\r", "wiped the attic"), ("\r", None), ("\x1b", None)])
def test_a_guarded_call_is_approved_at_the_terminal(tmp_path: Any, keys: str, answer: str | None) -> None:
    """Of a client without forms; what is not approved there does not run."""
    (tmp_path / "guard.toml").write_text('[expose]\ntools = ["*"]\n')
    options = ("--guard", str(tmp_path / "guard.toml"))
    with terminal(tmp_path, options=options) as here:
        arguments = {"name": "wipe", "arguments": {"place": "the attic"}}
        request = here.server.ask("tools/call", arguments)
        drawn = here.until(LAST)
        assert "May the tool wipe run? Risk: high." in drawn
        assert "the attic" in drawn
        here.type(keys)
        while (message := here.server.answer()).get("id") != request:
            pass
        if answer is None:
            assert message["error"]["data"]["reason"] == "approval_rejected"
        else:
            assert message["result"]["content"][0]["text"] == answer
