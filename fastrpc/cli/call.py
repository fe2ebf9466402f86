"""``fastrpc call``: calls one tool in a real session, reads one resource, or gets one prompt.

The result's text goes to stdout; log messages, progress (a bar, on a terminal) and what the server writes to
its standard error go to stderr. Questions of the server are asked on the terminal (`_form`). Exit code 0; 1
if the result is an error or the session fails; 2 if the command is wrong. A ``key=value`` is parsed by the
tool's schema; the server validates the arguments. Ctrl-C cancels the call.
"""

from __future__ import annotations

import sys

from fastrpc.cli import parser, toolset_examples
from fastrpc.cli._arguments import texts, typed, whole
from fastrpc.cli._target import add_options, converse, destination, is_url, split_command
from fastrpc.command_line import suggestion
from fastrpc.diagnostics import write_line
from fastrpc.errors import ClientError, RemoteError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from fastrpc.cli._feedback import Feedback
    from fastrpc.client.sync import SyncClient

EXAMPLES = """\
  fastrpc call my_tools.py word_count text='to be or not'
  fastrpc call word_count text='to be or not' --target my_tools.py
  fastrpc call add a=1 b=2 -- python server.py
  fastrpc call shop.py --resource orders://7
  fastrpc call shop.py --prompt complain id=7 tone=firm
"""
USAGE = "[TARGET] TOOL|--resource URI|--prompt NAME [key=value…] [option…] [-- COMMAND…]"
SECONDS = 600.0
FORMER = "--json"
"""What ``--arguments`` was called before 0.2; it still is, with a JSON object behind it."""


def main(arguments: list[str]) -> int:
    """Call a tool and print its result; return the exit code. Raises UsageError."""
    chosen, command = _options(arguments)
    targets, name, pairs = _split_words(chosen, command)
    given = None if chosen.arguments is None else whole(chosen.option, chosen.arguments, pairs)
    if chosen.option == FORMER:
        write_line("fastrpc: warning: --json JSON is called --arguments JSON now; --json prints the result")
    where = destination(targets, command, chosen)
    from fastrpc.cli._feedback import Feedback
    from fastrpc.cli._form import TerminalForm

    feedback = Feedback()

    def work(client: SyncClient) -> int:
        if "logging" in client.server_capabilities:
            client.set_log_level(chosen.log_level)
        if chosen.resource is not None:
            return _read(client, chosen)
        if chosen.prompt is not None:
            return _get(client, chosen, given, pairs)
        return _call(client, chosen, name, given, pairs, feedback)

    try:
        return converse(
            where,
            chosen,
            work,
            shows_stderr=True,
            on_log=feedback.on_log,
            on_elicit=TerminalForm(feedback).ask,
        )
    finally:
        feedback.wipe()


def _options(arguments: list[str]) -> tuple[Namespace, list[str]]:
    """Return the options, and the command behind ``--``. Raises UsageError."""
    from fastrpc.settings import LOG_LEVELS

    shown = toolset_examples("call") if {"--help", "-h"}.intersection(arguments) else ""
    arguments, command = split_command(arguments)
    arguments, is_former = _renamed(arguments)
    options = parser("call", USAGE, shown + EXAMPLES)
    options.add_argument(
        "words", metavar="[TARGET] TOOL key=value", nargs="*", help="arguments are typed by the tool's schema"
    )
    options.add_argument("--arguments", metavar="JSON", help="all as one JSON object; - reads it from stdin")
    options.add_argument("--resource", metavar="URI", help="read this resource")
    options.add_argument("--prompt", metavar="NAME", help="get this prompt")
    options.add_argument("--json", action="store_true", help="print the whole result, as received")
    options.add_argument(
        "--target", action="append", default=[], help="where TARGET may stand too; may be repeated"
    )
    add_options(options)
    options.add_argument("--time-limit", type=float, default=SECONDS, metavar="SECONDS", help="give up (600)")
    options.add_argument(
        "--log-level", metavar="LEVEL", choices=LOG_LEVELS, default="info", help="of log messages (info)"
    )
    chosen = options.parse(arguments)
    chosen.option = FORMER if is_former else "--arguments"
    if chosen.resource is not None and chosen.prompt is not None:
        raise UsageError("give either --resource or --prompt")
    if chosen.resource is not None and chosen.arguments is not None:
        raise UsageError("a resource takes no arguments")
    return chosen, command


def _renamed(arguments: list[str]) -> tuple[list[str], bool]:
    """Return the words with ``--json JSON`` as ``--arguments JSON``, and whether that was there."""
    for at, word in enumerate(arguments):
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        if word == FORMER and (following == "-" or following[:1] in ("{", "[")):
            return [*arguments[:at], "--arguments", *arguments[at + 1 :]], True
    return arguments, False


def _split_words(chosen: Namespace, command: list[str]) -> tuple[list[str], str, list[str]]:
    """Return targets, the tool's name ("" for a resource or a prompt) and the pairs. Raises UsageError."""
    words = list(chosen.words)
    targets = list(chosen.target)
    has_place = bool(targets or command or chosen.command)
    is_call = chosen.resource is None and chosen.prompt is None
    if not has_place and words and (not is_call or len(words) > 1):
        second = words[1] if is_call else words[0]
        if "=" not in second or (not is_call and is_url(second)):
            targets.append(words.pop(0))
    if not is_call:
        if chosen.resource is not None and words:
            raise UsageError(f"a resource takes no arguments, got {words[0]!r}")
        return targets, "", words
    if not words or (not has_place and not targets and (is_url(words[0]) or words[0].endswith(".py"))):
        behind = f" behind {words[0]}" if words else ""
        raise UsageError(f"a tool's name is needed{behind} (see 'fastrpc list')")
    return targets, words[0], words[1:]


def _call(
    client: SyncClient,
    chosen: Namespace,
    tool: str,
    given: dict[str, Any] | None,
    pairs: list[str],
    feedback: Feedback,
) -> int:
    descriptors = {str(descriptor.get("name")): descriptor for descriptor in client.list_tools()}
    _require(tool, "tool", descriptors)
    if given is None:
        given = typed(pairs, tool, descriptors[tool].get("inputSchema", {}))
    result = client.call_tool(
        tool,
        given,
        timeout_seconds=chosen.time_limit,
        on_progress=feedback.on_progress if feedback.has_terminal else None,
    )
    feedback.wipe()
    if chosen.json:
        _print_json(result.raw)
    elif result.content or result.structured is None:
        _print_text("\n".join(map(block_text, result.content)))
    else:
        _print_json(result.structured)
    return 1 if result.is_error else 0


def _read(client: SyncClient, chosen: Namespace) -> int:
    try:
        result = client.read_resource(chosen.resource, timeout_seconds=chosen.time_limit)
    except RemoteError as error:
        write_line(f"fastrpc: {error.message}{_near_resources(client, chosen.resource)}")
        return 1
    if chosen.json:
        _print_json(result.raw)
        return 0
    for part in result.contents:
        if "text" in part:
            _print_text(str(part["text"]))
        elif sys.stdout.isatty():
            print(f"[{part.get('mimeType', 'binary')}, {len(part.get('blob', '')):,} characters of base64]")
        else:
            from base64 import b64decode

            sys.stdout.flush()
            sys.stdout.buffer.write(b64decode(part.get("blob", "")))
    return 0


def _near_resources(client: SyncClient, uri: str) -> str:
    try:
        return suggestion(uri, [str(entry.get("uri")) for entry in client.list_resources()])
    except ClientError:
        return ""


def _get(client: SyncClient, chosen: Namespace, given: dict[str, Any] | None, pairs: list[str]) -> int:
    descriptors = {str(descriptor.get("name")): descriptor for descriptor in client.list_prompts()}
    _require(chosen.prompt, "prompt", descriptors)
    if given is None:
        known = [str(argument.get("name")) for argument in descriptors[chosen.prompt].get("arguments") or ()]
        given = dict(texts(pairs, chosen.prompt, known))
    result = client.get_prompt(chosen.prompt, given, timeout_seconds=chosen.time_limit)
    if chosen.json:
        _print_json(result.raw)
        return 0
    for message in result.messages:
        content = message.get("content")
        _print_text(f"{message.get('role')}: {block_text(content if isinstance(content, dict) else {})}")
    return 0


def _require(name: str, kind: str, known: dict[str, Any]) -> None:
    """Raise UsageError for a name that the server has not."""
    if name not in known:
        hint = suggestion(name, known) or f"; there is {', '.join(known) or 'none'}"
        raise UsageError(f"no {kind} {name!r}{hint}")


def block_text(block: dict[str, Any]) -> str:
    """Return a content block as text; one that is not text is named instead."""
    if block.get("type") == "text":
        return str(block.get("text", ""))
    size = len(block.get("data", ""))
    if not size:
        import json

        return json.dumps(block, ensure_ascii=False)
    return f"[{block.get('type')} {block.get('mimeType', '')}, {size:,} characters of base64]"


def _print_text(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2))
