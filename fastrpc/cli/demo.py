"""``fastrpc demo``: prints a session between a client process and a server process, for people to read.

The toolset provides the script, ``play(conversation)`` in its module ``_demo``. This module starts the
server, prints each message and the time it took, then measures a short pipelined run of a trivial tool, and
ends both servers. Any failure ends the demo with exit code 1. It uses a temporary folder, also for the tools'
state.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from fastrpc.cli import configuration, parser
from fastrpc.cli._assemble import toolset_settings
from fastrpc.cli._contract import load_companion, load_contract
from fastrpc.cli._own_server import own_command, sheltered_variables
from fastrpc.client.client import Client
from fastrpc.command_line import takes_colours
from fastrpc.diagnostics import write_line
from fastrpc.errors import ClientError, FastrpcError, RequestTimeout, excerpt
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.terminal.text import styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc._core.call_result import CallResult
    from fastrpc.client.sync import SyncClient

EXAMPLES = """\
  fastrpc demo
  fastrpc demo | less
"""
LINES_SHOWN = 12
WIDTH = 76
PIPELINED_CALLS = 20_000
LOOK_SECONDS = 0.05

# Writes the server's process id to a file, for `kill`: the client does not publish the id.
NOTING = "import os; open({path!r}, 'w').write(str(os.getpid()))\n"

BOLD, DIM, GREEN, BLUE, RED = "1", "2", "32", "34", "31"


class ConversationFailed(FastrpcError):
    """A step of the demo has failed. The message names the difference."""


def main(arguments: list[str]) -> int:
    """Run the demo; return 0 if every step succeeded, else 1."""
    parser("demo", "", EXAMPLES).parse(arguments)
    toolset = configuration()["FASTRPC_TOOLSET"]
    from tempfile import TemporaryDirectory

    try:
        with TemporaryDirectory(prefix="fastrpc-demo-") as folder:
            _play_toolset(toolset, folder)
            _time_pipelined_calls({**os.environ, **sheltered_variables((), folder)})
    except (ConversationFailed, ClientError) as error:
        write_line(f"fastrpc: the demo failed: {error}")
        return 1
    return 0


def _play_toolset(toolset: str, folder: str) -> None:
    """Run the toolset's script in a temporary folder, with the state folder beside it."""
    work, state = os.path.join(folder, "work"), os.path.join(folder, "state")
    os.mkdir(work)
    variables = sheltered_variables(load_contract(toolset), state, toolset_settings(toolset))
    conversation = Conversation(work, os.path.join(folder, "server.pid"), {**os.environ, **variables})
    try:
        conversation.title("A client starts the server and shakes hands")
        conversation.shake_hands()
        conversation.list_tools()
        script = load_companion(toolset, "_demo")
        if script is not None:
            script.play(conversation)
        conversation.title("The client closes the pipe")
        conversation.end()
    finally:
        conversation.client.close()


class Conversation:
    """A session that is printed while it runs; the script of a toolset uses it.

    Every method raises `ConversationFailed` or `ClientError` if the server does not behave as expected.
    """

    def __init__(self, folder: str, pid_file: str, variables: dict[str, str]) -> None:
        self.folder = folder
        """An empty folder, the server's working directory."""
        self.tools: list[str] = []
        self.colours = takes_colours(sys.stdout)
        self._pid_file = pid_file
        self._variables = variables
        self._answers: Sequence[str] = ()
        self._heard: list[dict[str, Any]] = []
        self.client = self._new_client()

    def _new_client(self) -> SyncClient:
        """Return a client of a new server, not connected. It uses the protocol version in which servers may
        send requests and notifications at any time."""
        python, option, code, *arguments = own_command("serve", ["--cwd", self.folder])
        return Client.sync(
            [python, option, NOTING.format(path=self._pid_file) + code, *arguments],
            version=LATEST_SESSION_VERSION,
            env=self._variables,
            on_elicit=self._fill_in,
            on_notification=self.hear,
        )

    # --- methods for scripts ---

    def title(self, text: str) -> None:
        """Print a heading."""
        print("\n" + self._colour(text, BOLD), flush=True)

    def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        fails: bool = False,
        says: str = "",
        progress: bool = False,
        answers: Sequence[str] = (),
    ) -> CallResult:
        """Call a tool and print both messages. `fails`: the result must be an error; `says`: its text must
        contain this; `progress`: progress notifications must arrive before the result; `answers`: what the
        person chooses, field by field, if the tool asks."""
        self._print_client(tool, arguments)
        self._answers = answers
        reports: list[dict[str, Any]] = []
        begun = time.perf_counter()

        def show(report: dict[str, Any]) -> None:
            reports.append(report)
            text = report.get("message") or f"{report['progress']:g}"
            self._print_server(text.rstrip("\n"), time.perf_counter() - begun, note="progress")

        result = self.client.call_tool(tool, arguments, on_progress=show if progress else None)
        self._print_server(result.text, time.perf_counter() - begun, failed=result.is_error)
        self.check(result.is_error is fails, f"{tool}: isError is {result.is_error}, not {fails}")
        self.check(says in result.text, f"{tool}: {says!r} is not in the result")
        self.check(bool(reports) or not progress, f"{tool}: no progress came")
        return result

    def cancel(self, tool: str, arguments: dict[str, Any], after_seconds: float) -> None:
        """Call a tool, cancel it after `after_seconds`, and check that other calls are served."""
        self._print_client(tool, arguments)
        try:
            self.client.call_tool(tool, arguments, timeout_seconds=after_seconds)
            raise ConversationFailed(f"{tool}: was answered before it could be cancelled")
        except RequestTimeout:
            self._print_client("notifications/cancelled", {"reason": "no answer in time"})
        self._print_client("ping", {})
        begun = time.perf_counter()
        self.client.ping()
        self._print_server("(an empty answer)", time.perf_counter() - begun)

    def wait_for_log(self, what: str, seconds: float) -> None:
        """Enable log messages, and wait for one that contains `what`; print other messages meanwhile."""
        self._print_client("logging/setLevel", {"level": "info"})
        begun = time.perf_counter()
        self.client.set_log_level("info")
        self._print_server("(an empty answer)", time.perf_counter() - begun)
        method, text = "", ""
        begun = time.perf_counter()
        while method != "notifications/message":
            while not self._heard:
                self.check(time.perf_counter() < begun + seconds, f"no log message came within {seconds:g} s")
                self.client.wait(LOOK_SECONDS)
            message = self._heard.pop(0)
            method = message["method"]
            text = str(message.get("params", {}).get("data", ""))
            self._print_server(text, time.perf_counter() - begun, note=method)
        self.check(what in text, f"{what!r} is not in {text!r}")

    def kill(self) -> None:
        """Kill the server."""
        with open(self._pid_file, encoding="ascii") as file:
            pid = int(file.read())
        os.kill(pid, signal.SIGKILL)
        self.remark(f"kill -9 {pid}")

    def restart(self) -> None:
        """Kill the server, and start another one."""
        self.kill()
        self.client.close()
        self.client = self._new_client()
        self.shake_hands()

    def hear(self, notification: dict[str, Any]) -> None:
        """Store a notification for `wait_for_log`; progress is shown with its call."""
        if notification["method"] != "notifications/progress":
            self._heard.append(notification)

    def _fill_in(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Fill in a form field by field, as a person would, and print it."""
        self.check(bool(self._answers), f"no answer is known for {asked['message']!r}")
        fields = asked["requestedSchema"]["properties"]
        self._print_server(asked["message"], 0.0, note="elicitation/create")
        content = dict(zip(fields, self._answers, strict=True))
        for name, answer in content.items():
            choices = ", ".join(fields[name].get("enum", ()))
            self.remark(f"{fields[name].get('title', name)} ({choices})")
            print(f"{self._colour('person', BLUE)}  {answer}", flush=True)
        return content

    def remark(self, text: str) -> None:
        """Print an observation by the client that is not a message."""
        print(self._colour(f"        {text}", DIM), flush=True)

    def check(self, condition: bool, otherwise: str) -> None:
        """Fail the demo unless `condition` is true."""
        if not condition:
            raise ConversationFailed(otherwise)

    # --- session ---

    def shake_hands(self) -> None:
        self._print_client("initialize", {"protocolVersion": LATEST_SESSION_VERSION})
        begun = time.perf_counter()
        self.client.connect()
        server = self.client.server_info
        text = f"{server['name']} {server['version']}, protocol {self.client.version}"
        self._print_server(text, time.perf_counter() - begun, note="from the start of its process")

    def list_tools(self) -> None:
        self._print_client("tools/list", {})
        begun = time.perf_counter()
        self.tools = [descriptor["name"] for descriptor in self.client.list_tools()]
        self._print_server(f"{len(self.tools)} tools: {', '.join(self.tools)}", time.perf_counter() - begun)
        self.check(bool(self.tools), "the server lists no tools")

    def end(self) -> None:
        begun = time.perf_counter()
        self.client.close()
        code = self.client.exit_code
        self._print_server(f"ends with exit code {code}", time.perf_counter() - begun)
        self.check(code == 0, f"the server ended with exit code {code}")

    # --- printing ---

    def _print_client(self, what: str, arguments: dict[str, Any]) -> None:
        texts = ((key, json.dumps(value, ensure_ascii=False)) for key, value in arguments.items())
        shown = "  ".join(f"{key}={excerpt(text, 100)}" for key, text in texts)
        print(f"{self._colour('client', BLUE)}  {what}  {shown}".rstrip(), flush=True)

    def _print_server(self, text: str, seconds: float, *, failed: bool = False, note: str = "") -> None:
        """Print lines of the server; the elapsed time follows the first line."""
        first, *more = text.split("\n")
        took = f"{_duration(seconds)}{' ' + note if note else ''}"
        speaker = self._colour("server", RED if failed else GREEN)
        print(f"{speaker}  {first.ljust(WIDTH - len(took))}  {self._colour(took, DIM)}", flush=True)
        for line in more[: LINES_SHOWN - 1]:
            print(f"        {line}", flush=True)
        if len(more) >= LINES_SHOWN:
            self.remark(f"… {len(more) - LINES_SHOWN + 1} more lines")

    def _colour(self, text: str, code: str) -> str:
        return styled(text, code) if self.colours else text


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _time_pipelined_calls(variables: dict[str, str]) -> None:
    """Send many pipelined calls to the smallest server, check every answer, and print the rate."""
    from fastrpc.transports.loop import new_loop

    loop = new_loop()
    try:
        seconds = loop.run_until_complete(_call_pipelined(variables))
    finally:
        loop.close()
    print(
        f"\n{PIPELINED_CALLS:,} calls of a trivial tool, sent at once, every answer checked: "
        f"{_duration(seconds)}, {PIPELINED_CALLS / seconds:,.0f} calls per second.\n"
        "Both servers ended with exit code 0."
    )


async def _call_pipelined(variables: dict[str, str]) -> float:
    """Return the seconds from the first call to the last answer. Raises ConversationFailed, ClientError."""
    import asyncio

    path = os.path.join(os.path.dirname(__file__), "_demo_server.py")
    async with Client(own_command("serve", [path]), env=variables) as client:
        begun = time.perf_counter()
        results = await asyncio.gather(
            *[client.call_tool("echo", {"text": f"hello {number}"}) for number in range(PIPELINED_CALLS)]
        )
        seconds = time.perf_counter() - begun
    for number, result in enumerate(results):
        if result.text != f"hello {number}":
            raise ConversationFailed(f"call {number} was answered with {result.text!r:.80}")
    if client.exit_code != 0:
        raise ConversationFailed(f"the timed server ended with exit code {client.exit_code}")
    return seconds
