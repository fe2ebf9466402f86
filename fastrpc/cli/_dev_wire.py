"""One readable line for each message: what `fastrpc dev` writes to standard error.

Direction, id, method and subject; for an answer, the time it took and the beginning of its content. Secrets
are masked as in a trace.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from fastrpc.command_line import takes_colours
from fastrpc.diagnostics import write_line
from fastrpc.redaction import masked
from fastrpc.terminal.text import plain, styled

FROM_CLIENT = "→"
TO_CLIENT = "←"
WIDTH = 100  # characters of shortened values

SUBJECTS = ("name", "uri", "level", "protocolVersion")
"""The params that identify the subject of a request; the first that exists is shown."""


def show(direction: str, message: Any, asked: dict[str, Any] | None = None, seconds: float = 0.0) -> None:
    """Write what `shown` returns to standard error, a failure in colour if the terminal takes colours."""
    line = plain(shown(direction, message, asked, seconds))
    if is_failure(message) and takes_colours(sys.stderr):
        line = line[0] + styled(line[1:], "31")  # after the direction, which `_dev_view` parses
    write_line(line)


def shown(direction: str, message: Any, asked: dict[str, Any] | None = None, seconds: float = 0.0) -> str:
    """Return a message as one line. `asked` is the request that it answers, `seconds` the response time."""
    if isinstance(message, list):
        return f"{direction} a batch of {len(message)}: {shortened(message)}"
    if not isinstance(message, dict):
        return f"{direction} not a message"
    if "method" in message:
        id = f"{message['id']} " if "id" in message else ""
        params = message.get("params")
        return f"{direction} {id}{_title(message)} {_params(params)}".rstrip()
    title = f" {_title(asked)}" if asked is not None else ""
    time = f" {seconds * 1000:.1f} ms" if asked is not None else ""
    return f"{direction} {message.get('id')}{title}{time}: {_outcome(message)}"


def is_failure(message: Any) -> bool:
    """Whether a message is an error, or a result with ``isError``."""
    if not isinstance(message, dict):
        return False
    result = message.get("result")
    return "error" in message or (isinstance(result, dict) and result.get("isError") is True)


def _title(message: dict[str, Any]) -> str:
    params = message.get("params")
    if isinstance(params, dict):
        for name in SUBJECTS:
            if isinstance(params.get(name), str):
                return f"{message['method']} {params[name]:.{WIDTH}}"
    return str(message["method"])


def _params(params: Any) -> str:
    if not isinstance(params, dict):
        return ""
    if isinstance(params.get("arguments"), dict):
        return shortened(params["arguments"]) if params["arguments"] else ""
    rest = {name: value for name, value in params.items() if name not in (*SUBJECTS, "_meta")}
    return shortened(rest) if rest else ""


def _outcome(message: dict[str, Any]) -> str:
    error = message.get("error")
    if isinstance(error, dict):
        return f"error {error.get('code')} {shortened(error.get('message'))}"
    result = message.get("result")
    if not isinstance(result, dict):
        return shortened(result)
    if "content" in result and isinstance(result["content"], list):
        said = "failed: " if result.get("isError") else ""
        return said + ", ".join(_block(block) for block in result["content"])
    for name in ("tools", "resources", "resourceTemplates", "prompts"):
        entries = result.get(name)
        if isinstance(entries, list):
            names = ", ".join(str(entry.get("name")) for entry in entries if isinstance(entry, dict))
            return f"{len(entries)} {name}: {names}"[: WIDTH * 2]
    return shortened({name: value for name, value in result.items() if name != "_meta"})


def _block(block: Any) -> str:
    if isinstance(block, dict) and block.get("type") == "text":
        return shortened(block.get("text"))
    if isinstance(block, dict) and "data" in block:
        return f"{block.get('type')} {block.get('mimeType')}, {len(str(block['data'])):,} characters"
    return shortened(block)


def shortened(value: Any) -> str:
    """Return a value as JSON, with secrets masked, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    text = masked(text.encode("utf-8", "replace").decode())
    if len(text) <= WIDTH:
        return text
    return f"{text[:WIDTH]}… ({len(text):,} characters)"
