"""The part that `call` and `repl` share: calls, reads and prompts, with their results on standard output.

An unknown name is a `UsageError` that suggests similar ones.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from fastrpc.cli._arguments import texts, typed
from fastrpc.cli._catalogue import arguments_of, print_json, schema_of
from fastrpc.cli._target import converse
from fastrpc.command_line import suggestion
from fastrpc.diagnostics import write_line
from fastrpc.errors import (
    ClientError,
    InvalidAnswer,
    MissingRequiredClientCapability,
    RemoteError,
    UsageError,
)
from fastrpc.protocol.versions import TASKS_EXTENSION
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from fastrpc.cli._feedback import Feedback
    from fastrpc.cli._target import Destination
    from fastrpc.client import CallResult, SyncRemoteTask
    from fastrpc.client.sync import SyncClient
    from fastrpc.options import LogLevel

SECONDS = 600.0
CALL_LIMIT = f"give up a call, a read or a prompt after so long ({SECONDS:g})"


def seconds_of(chosen: Namespace) -> float:
    """Return the time limit of a call: ``--time-limit``, or else ``--timeout``."""
    seconds: float = chosen.time_limit or chosen.timeout or SECONDS
    return seconds


def converse_with_user(
    where: Destination,
    chosen: Namespace,
    work: Callable[[SyncClient, Feedback], int],
    log_level: LogLevel = "info",
    **handlers: Any,
) -> int:
    """Connect with `converse`, and return the exit code of `work`. Prints the server's log messages and its
    standard error, and answers elicitation requests on the terminal. Raises UsageError."""
    from fastrpc.cli._feedback import Feedback
    from fastrpc.cli._form import terminal_form

    feedback = Feedback()
    if chosen.time_limit:  # progress extends a call up to this limit
        handlers["max_seconds"] = chosen.time_limit

    def logging(client: SyncClient) -> int:
        if "logging" in client.server_capabilities:
            client.set_log_level(log_level)
        return work(client, feedback)

    try:
        return converse(
            where,
            chosen,
            logging,
            shows_stderr=True,
            feedback=feedback,
            on_log=feedback.on_log,
            on_elicit=terminal_form(feedback),
            **handlers,
        )
    finally:
        feedback.wipe()


@dataclass(eq=False)
class CommandCaller:
    """Calls tools, reads resources, gets prompts, and prints the result; with `is_json`, the whole result as
    it was received. `seconds`: the time limit of each request. Methods return an exit code, and raise
    UsageError and ClientError."""

    client: SyncClient
    feedback: Feedback
    seconds: float = SECONDS
    is_json: bool = False

    def call(
        self,
        tool: str,
        pairs: list[str],
        given: dict[str, Any] | None = None,
        as_task: bool = False,
        waits: bool = True,
    ) -> int:
        """Call a tool with ``key=value`` words, or with `given`; 1 if its result is an error. `as_task`: as a
        task, which is not waited for without `waits`. A tool that requires a task is called as one."""
        descriptors = {str(descriptor.get("name")): descriptor for descriptor in self.client.list_tools()}
        _require(tool, "tool", descriptors)
        if given is None:
            given = typed(pairs, tool, schema_of(descriptors[tool]))
        on_progress = self.feedback.on_progress if self.feedback.has_terminal else None
        execution = descriptors[tool].get("execution")  # MCP 2025-11-25
        if as_task or (isinstance(execution, dict) and execution.get("taskSupport") == "required"):
            task = self.client.call_tool(
                tool, given, task=True, timeout_seconds=self.seconds, on_progress=on_progress
            )
            shown = f"task {plain(task.id)}" if task.id else ""
            if waits or task.is_done:
                return self.wait_for(task, shown)
            self.feedback.write(shown)
            return 0
        try:
            result = self.client.call_tool(tool, given, timeout_seconds=self.seconds, on_progress=on_progress)
        except RemoteError as error:  # in 2026-07-28, no list says that a tool requires a task
            if error.code != MissingRequiredClientCapability.code or TASKS_EXTENSION not in str(error.data):
                raise
            return self.call(tool, pairs, given, as_task=True)
        return self._print_result(result)

    def wait_for(self, task: SyncRemoteTask, shown: str = "") -> int:
        """Wait for the end of a task; 1 if its result is an error. Ctrl-C cancels the task, from the moment
        on at which its id is `shown`."""
        try:
            if shown:
                self.feedback.write(shown)
            result = task.wait(timeout_ms=self.seconds * 1000, on_change=self.feedback.on_task)
        except KeyboardInterrupt:
            task.cancel()
            raise
        return self._print_result(result)

    def _print_result(self, result: CallResult) -> int:
        self.feedback.wipe()
        if self.is_json:
            print_json(result.raw)
        elif result.content or result.structured is None:
            _print_text("\n".join(map(block_text, result.content)))
        else:
            print_json(result.structured)
        return 1 if result.is_error else 0

    def read(self, uri: str) -> int:
        """Read a resource; 1 if the server refuses."""
        try:
            result = self.client.read_resource(uri, timeout_seconds=self.seconds)
        except RemoteError as error:
            write_line(f"fastrpc: {error.message}{self._near_resources(uri)}")
            return 1
        if self.is_json:
            print_json(result.raw)
            return 0
        for part in result.contents:
            if "text" in part:
                _print_text(str(part["text"]))
            else:
                _print_bytes(part)
        return 0

    def _near_resources(self, uri: str) -> str:
        try:
            return suggestion(uri, [str(entry.get("uri")) for entry in self.client.list_resources()])
        except ClientError:
            return ""

    def get(self, prompt: str, pairs: list[str], given: dict[str, Any] | None = None) -> int:
        """Get a prompt with ``key=value`` words, or with `given`."""
        descriptors = {str(descriptor.get("name")): descriptor for descriptor in self.client.list_prompts()}
        _require(prompt, "prompt", descriptors)
        if given is None:
            given = texts(pairs, prompt, [name for name, *_ in arguments_of(descriptors[prompt])])
        result = self.client.get_prompt(prompt, given, timeout_seconds=self.seconds)
        if self.is_json:
            print_json(result.raw)
            return 0
        for message in result.messages:
            content = message.get("content")
            _print_text(f"{message.get('role')}: {block_text(content if isinstance(content, dict) else {})}")
        return 0


def _require(name: str, kind: str, known: dict[str, Any]) -> None:
    if name not in known:
        hint = suggestion(name, known) or f"; there is {', '.join(known) or 'none'}"
        raise UsageError(f"no {kind} {name!r}{hint}")


def block_text(block: dict[str, Any]) -> str:
    """Return a content block as text; a block of another type is described."""
    if block.get("type") == "text":
        return str(block.get("text", ""))
    size = len(block.get("data", ""))
    if not size:
        import json

        return json.dumps(block, ensure_ascii=False)
    return f"[{block.get('type')} {block.get('mimeType', '')}, {size:,} characters of base64]"


def _print_bytes(part: dict[str, Any]) -> None:
    """Write the bytes of a resource; on a terminal only their number."""
    if sys.stdout.isatty():
        print(f"[{part.get('mimeType', 'binary')}, {len(part.get('blob', '')):,} characters of base64]")
        return
    from base64 import b64decode

    try:
        data = b64decode(part.get("blob", ""))
    except (ValueError, TypeError):
        raise InvalidAnswer("resources/read: blob: expected base64") from None
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _print_text(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
