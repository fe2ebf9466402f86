"""``fastrpc call``: calls one tool in a real session, reads one resource, or gets one prompt.

The result's text goes to stdout; log messages, progress (a bar, on a terminal) and the server's standard
error go to stderr. Elicitation requests are answered on the terminal (`_form`). Exit codes: 0; 1 if the
result is an error or the session fails; 2 for a wrong command line. A ``key=value`` is parsed by the tool's
schema; one JSON object may replace all of them. The server validates the arguments. Ctrl-C cancels the call.
"""

from __future__ import annotations

import re

from fastrpc.cli import parser, toolset_examples
from fastrpc.cli._arguments import as_object, is_json, whole
from fastrpc.cli._command_caller import CALL_LIMIT, CommandCaller, converse_with_user, seconds_of
from fastrpc.cli._target import add_options, add_time_limit, destination, is_url, split_command
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from fastrpc.cli._feedback import Feedback
    from fastrpc.client.sync import SyncClient

EXAMPLES = """\
  fastrpc call my_tools.py word_count text='to be or not'
  fastrpc call word_count text='to be or not' --target my_tools.py
  fastrpc call add a=1 b=2 -- python server.py
  fastrpc call my_tools.py add '{"a": 1, "b": 2}'
  fastrpc call shop.py orders://7
  fastrpc call shop.py --prompt complain id=7 tone=firm
"""
USAGE = "[TARGET] TOOL|URI|--prompt NAME|--task-id ID [key=value…|JSON] [option…] [-- COMMAND…]"
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
FORMER = "--json"
"""The former name of ``--arguments``, still accepted before a JSON object."""


def main(arguments: list[str]) -> int:
    """Call a tool and print its result; return the exit code. Raises UsageError."""
    chosen, command = _options(arguments)
    targets, name, pairs = _split_words(chosen, command)
    if chosen.arguments is None:
        pairs, given = as_object(pairs)
    else:
        given = whole(chosen.option, chosen.arguments, pairs)
    if chosen.option == FORMER:
        write_line("fastrpc: warning: --json JSON is called --arguments JSON now; --json prints the result")
    where = destination(targets, command, chosen)
    if chosen.no_wait and not isinstance(where.target, str):
        raise UsageError(f"--no-wait: requires a URL, since the task would end with {where.shown}")
    is_resource = chosen.resource is not None

    def work(client: SyncClient, feedback: Feedback) -> int:
        caller = CommandCaller(client, feedback, seconds=seconds_of(chosen), is_json=chosen.json)
        if chosen.task_id is not None:
            return caller.wait_for(client.task(chosen.task_id))
        if is_resource:
            return caller.read(name)
        if chosen.prompt is not None:
            return caller.get(chosen.prompt, pairs, given)
        return caller.call(name, pairs, given, chosen.task or chosen.no_wait, not chosen.no_wait)

    return converse_with_user(where, chosen, work, chosen.log_level)


def _options(arguments: list[str]) -> tuple[Namespace, list[str]]:
    """Return the options, and the command after ``--``. Raises UsageError."""
    from fastrpc.settings import LOG_LEVELS

    shown = toolset_examples("call") if {"--help", "-h"}.intersection(arguments) else ""
    arguments, command = split_command(arguments)
    arguments, is_former = _renamed(arguments)
    options = parser("call", USAGE, shown + EXAMPLES)
    options.add_argument(
        "words",
        metavar="[TARGET] TOOL key=value",
        nargs="*",
        help="values become the types of the tool's schema; or one JSON object. A URI in place of TOOL: "
        "read this resource",
    )
    options.option("--arguments JSON", "all arguments as one JSON object; -: read it from stdin")
    options.option("--resource URI", "read this resource")
    options.option("--prompt NAME", "get this prompt")
    options.option("--task", "call the tool as a task, and print its id; Ctrl-C cancels it")
    options.option("--no-wait", "the same, and do not wait for it (URLs)")
    options.option("--task-id ID", "wait for this task, and print its result")
    options.option("--json", "print the whole result as the server sent it")
    options.option("--target TARGET…", "the same as TARGET; may be repeated")
    add_options(options)
    add_time_limit(options, CALL_LIMIT)
    options.option(
        "--log-level LEVEL",
        "show the server's log messages from this level on (info)",
        choices=LOG_LEVELS,
        default="info",
    )
    chosen = options.parse(arguments)
    chosen.option = FORMER if is_former else "--arguments"
    if (chosen.resource is not None) + (chosen.prompt is not None) + (chosen.task_id is not None) > 1:
        raise UsageError("give either --resource or --prompt or --task-id")
    if (chosen.task or chosen.no_wait) and (chosen.resource or chosen.prompt or chosen.task_id):
        raise UsageError("--task and --no-wait: require a tool")
    return chosen, command


def _renamed(arguments: list[str]) -> tuple[list[str], bool]:
    """Return the words with ``--json JSON`` replaced by ``--arguments JSON``, and whether it was."""
    for at, word in enumerate(arguments):
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        if word == FORMER and (following == "-" or following[:1] in ("{", "[")):
            return [*arguments[:at], "--arguments", *arguments[at + 1 :]], True
    return arguments, False


def _split_words(chosen: Namespace, command: list[str]) -> tuple[list[str], str, list[str]]:
    """Return the targets, the tool's name or the resource's URI ("" for a prompt), and the following words. A
    URI instead of a tool sets the option for resources. Raises UsageError."""
    words = list(chosen.words)
    targets = list(chosen.target)
    has_place = bool(targets or command or chosen.command)
    is_call = chosen.resource is None and chosen.prompt is None and chosen.task_id is None
    if not has_place and words and (not is_call or len(words) > 1):
        second = words[1] if is_call else words[0]
        # ``key=value`` or JSON; a URI is neither, though its query may contain ``=``
        is_argument = is_json(second) or ("=" in second and not URI.match(second))
        if not is_argument or (not is_call and is_url(second)):
            targets.append(words.pop(0))
    if is_call and words and URI.match(words[0]) and (has_place or targets or not is_url(words[0])):
        chosen.resource, is_call = words.pop(0), False
    if chosen.resource is not None:
        if words or chosen.arguments is not None:
            got = f", got {words[0]!r:.80}" if words else ""
            raise UsageError(f"a resource takes no arguments{got}")
        return targets, chosen.resource, []
    if not is_call:
        if chosen.task_id is not None and (words or chosen.arguments is not None):
            raise UsageError("--task-id: takes no arguments")
        return targets, "", words
    if not words or (not has_place and not targets and (is_url(words[0]) or words[0].endswith(".py"))):
        behind = f" after {words[0]}" if words else ""
        raise UsageError(f"a tool's name is needed{behind} (see 'fastrpc list')")
    return targets, words[0], words[1:]
