"""``fastrpc demo``: prints a session between a client process and a server process, for people to read.

The script is the toolset's own: ``play(conversation)`` in its module ``_demo``. This module starts the
server, prints each message and the time it took, then measures a short pipelined run of a trivial tool, and
ends both servers. Any failure ends the demo with exit code 1. It uses a temporary folder, also for the tools'
state.
"""

from __future__ import annotations

import json
import os
import sys
import time

from fastrpc.cli import configuration, parser
from fastrpc.cli._assemble import toolset_settings
from fastrpc.cli._client import Answer, Client, ConversationFailed, encode, sheltered_environment
from fastrpc.cli._contract import load_companion, load_contract
from fastrpc.diagnostics import write_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

EXAMPLES = """\
  fastrpc demo
  fastrpc demo | less
"""
LINES_SHOWN = 12
WIDTH = 76
PIPELINED_CALLS = 20_000

BOLD, DIM, GREEN, BLUE, RED = "1", "2", "32", "34", "31"


def main(arguments: list[str]) -> int:
    """Run the demo; return 0 if every step succeeded, else 1."""
    parser("demo", "", EXAMPLES).parse(arguments)
    toolset = configuration()["FASTRPC_TOOLSET"]
    from tempfile import TemporaryDirectory

    try:
        with TemporaryDirectory(prefix="fastrpc-demo-") as folder:
            _play_toolset(toolset, folder)
            _time_pipelined_calls(sheltered_environment((), folder))
    except ConversationFailed as error:
        write_line(f"fastrpc: the demo failed: {error}")
        return 1
    return 0


def _play_toolset(toolset: str, folder: str) -> None:
    """Run the toolset's script in a temporary folder, with the state folder beside it."""
    work, state = os.path.join(folder, "work"), os.path.join(folder, "state")
    os.mkdir(work)
    environment = sheltered_environment(load_contract(toolset), state, toolset_settings(toolset))

    def start() -> Client:
        return Client(["--cwd", work], environment=environment, capabilities={"elicitation": {}})

    conversation = Conversation(start, work)
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
        conversation.client.process.kill()
        conversation.client.process.wait()


class Conversation:
    """A session that is printed while it runs; the script of a toolset uses it.

    Every method raises `ConversationFailed` if the server does not behave as expected.
    """

    def __init__(self, start: Callable[[], Client], folder: str) -> None:
        self.client = start()
        self._start = start
        self.folder = folder
        """An empty folder, the server's working directory."""
        self.tools: list[str] = []
        self.colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    # --- methods for scripts ---

    def title(self, text: str) -> None:
        """Print a heading."""
        self._print("\n" + self._colour(text, BOLD))

    def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        fails: bool = False,
        says: str = "",
        progress: bool = False,
        answers: Sequence[str] = (),
    ) -> Answer:
        """Call a tool and print both messages. `fails`: the result must be an error; `says`: its text must
        contain this; `progress`: progress notifications must arrive before the result; `answers`: what the
        person chooses, field by field, if the tool asks."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if progress:
            params["_meta"] = {"progressToken": f"watch-{self.client.last_id + 1}"}
        self._print_client(tool, arguments)
        reports: list[dict[str, Any]] = []
        self.client.on_question = (lambda asked: self._fill_in(asked, answers)) if answers else None
        answer = self._request("tools/call", params, reports)
        self._print_server(answer.text(), answer.seconds, failed=answer.is_error)
        self.check(answer.is_error is fails, f"{tool}: isError is {answer.is_error}, not {fails}")
        self.check(says in answer.text(), f"{tool}: {says!r} is not in the result")
        self.check(bool(reports) or not progress, f"{tool}: no progress came")
        return answer

    def cancel(self, tool: str, arguments: dict[str, Any], after_seconds: float) -> None:
        """Call a tool, cancel it, and check that no answer arrives while other calls are served."""
        self._print_client(tool, arguments)
        request = self.client.begin("tools/call", {"name": tool, "arguments": arguments})
        time.sleep(after_seconds)
        self._print_client("notifications/cancelled", {"requestId": request, "reason": "changed my mind"})
        self.client.notify("notifications/cancelled", {"requestId": request, "reason": "changed my mind"})
        self._print_client("ping", {})
        answer = self._request("ping", {}, [])
        self._print_server("(an empty answer to the ping, none to the cancelled call)", answer.seconds)

    def wait_for_log(self, what: str, seconds: float) -> None:
        """Enable log messages, and wait for one that contains `what`; print other messages meanwhile."""
        answer = self._request("logging/setLevel", {"level": "info"}, [])
        self._print_client("logging/setLevel", {"level": "info"})
        self._print_server("(an empty answer)", answer.seconds)
        begun = time.perf_counter()
        method, text = "", ""
        while method != "notifications/message":
            message = self.client.listen(max(0.0, begun + seconds - time.perf_counter()))
            method = str(message.get("method"))
            text = str(message.get("params", {}).get("data", ""))
            self._print_server(text, time.perf_counter() - begun, note=method)
        self.check(what in text, f"{what!r} is not in {text!r}")

    def restart(self) -> None:
        """Kill the server, and start another one."""
        self.client.process.kill()
        self.client.process.wait()
        self.client.close()
        self.remark(f"kill -9 {self.client.process.pid}")
        self.client = self._start()
        self.shake_hands()

    def _fill_in(self, asked: dict[str, Any], answers: Sequence[str]) -> dict[str, Any]:
        """Fill in a form field by field, as a person would, and print it."""
        self.check(asked["method"] == "elicitation/create", f"{asked['method']} is not to be answered")
        fields = asked["params"]["requestedSchema"]["properties"]
        self._print_server(asked["params"]["message"], 0.0, note="elicitation/create")
        content = dict(zip(fields, answers, strict=True))
        for name, answer in content.items():
            choices = ", ".join(fields[name].get("enum", ()))
            self.remark(f"{fields[name].get('title', name)} ({choices})")
            self._print(f"{self._colour('person', BLUE)}  {answer}")
        return {"action": "accept", "content": content}

    def remark(self, text: str) -> None:
        """Print an observation of the client that is not a message."""
        self._print(self._colour(f"        {text}", DIM))

    def check(self, condition: bool, otherwise: str) -> None:
        """Fail the demo unless `condition` is true."""
        if not condition:
            raise ConversationFailed(otherwise)

    # --- session ---

    def shake_hands(self) -> None:
        self._print_client("initialize", {"protocolVersion": "2025-11-25"})
        answer = self.client.initialize()
        server = answer.result["serverInfo"]
        text = f"{server['name']} {server['version']}, protocol {answer.result['protocolVersion']}"
        self._print_server(text, answer.seconds, note="from the start of its process")

    def list_tools(self) -> None:
        self._print_client("tools/list", {})
        begun = time.perf_counter()
        self.tools = [descriptor["name"] for descriptor in self.client.list_tools()]
        self._print_server(f"{len(self.tools)} tools: {', '.join(self.tools)}", time.perf_counter() - begun)
        self.check(bool(self.tools), "the server lists no tools")

    def end(self) -> None:
        begun = time.perf_counter()
        code = self.client.close()
        self._print_server(f"ends with exit code {code}", time.perf_counter() - begun)
        self.check(code == 0, f"the server ended with exit code {code}")
        self.check(not self.client.received, "the server said something nobody asked for")

    def _request(self, method: str, params: dict[str, Any], reports: list[dict[str, Any]]) -> Answer:
        begun = time.perf_counter()

        def show(message: dict[str, Any]) -> None:
            if message["method"] == "notifications/progress":
                reports.append(message)
                text = message["params"].get("message") or f"{message['params']['progress']:g}"
                self._print_server(text.rstrip("\n"), time.perf_counter() - begun, note="progress")

        self.client.on_notification = show
        answer = self.client.request(method, params)
        if answer.error is not None:
            raise ConversationFailed(f"{method}: {answer.error.get('message')}")
        return answer

    # --- printing ---

    def _print_client(self, what: str, arguments: dict[str, Any]) -> None:
        shown = "  ".join(f"{key}={_compact(value)}" for key, value in arguments.items())
        self._print(f"{self._colour('client', BLUE)}  {what}  {shown}".rstrip())

    def _print_server(self, text: str, seconds: float, *, failed: bool = False, note: str = "") -> None:
        """Print lines of the server; the time that they took follows the first."""
        first, *more = text.split("\n")
        took = f"{_duration(seconds)}{' ' + note if note else ''}"
        speaker = self._colour("server", RED if failed else GREEN)
        self._print(f"{speaker}  {first.ljust(WIDTH - len(took))}  {self._colour(took, DIM)}")
        for line in more[: LINES_SHOWN - 1]:
            self._print(f"        {line}")
        if len(more) >= LINES_SHOWN:
            self.remark(f"… {len(more) - LINES_SHOWN + 1} more lines")

    def _print(self, text: str) -> None:
        print(text, flush=True)

    def _colour(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours else text


def _compact(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:99] + "…"


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _time_pipelined_calls(environment: dict[str, str]) -> None:
    """Send many calls at once to the smallest server, check every answer, and print the rate."""
    path = os.path.join(os.path.dirname(__file__), "_demo_server.py")
    with Client([path], environment=environment) as client:
        client.initialize()
        requests = b"".join(encode(_numbered_call(number)) for number in range(PIPELINED_CALLS))
        begun = time.perf_counter()
        lines = client.exchange(requests, PIPELINED_CALLS)
        seconds = time.perf_counter() - begun
        _check_answers(lines)
        code = client.close()
    if code != 0:
        raise ConversationFailed(f"the timed server ended with exit code {code}")
    print(
        f"\n{PIPELINED_CALLS:,} calls of a trivial tool, sent at once, every answer checked: "
        f"{_duration(seconds)}, {PIPELINED_CALLS / seconds:,.0f} calls per second.\n"
        "Both servers ended with exit code 0."
    )


def _numbered_call(number: int) -> dict[str, Any]:
    params = {"name": "echo", "arguments": {"text": f"hello {number}"}}
    return {"jsonrpc": "2.0", "id": f"call-{number}", "method": "tools/call", "params": params}


def _check_answers(lines: list[bytes]) -> None:
    texts = {}
    for line in lines:
        message = json.loads(line)
        texts[message.get("id")] = message.get("result", {}).get("content", [{}])[0].get("text")
    for number in range(PIPELINED_CALLS):
        if texts.get(f"call-{number}") != f"hello {number}":
            raise ConversationFailed(f"call {number} was answered with {texts.get(f'call-{number}')!r}")
