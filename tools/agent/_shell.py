"""How the shell tools start a command, and how they show its output."""

from __future__ import annotations

from fastrpc import ToolError

from . import _output_files, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.processes import Output, Process

ARGUMENT_LIMIT = 100_000  # bytes; Linux takes 128 KiB for one argument
COMMAND_SHOWN = 80

# A long command is passed as descriptor 3, which is closed before the command begins; `$0`, the standard
# descriptors and line numbers are as with `bash -c`.
LONG_COMMAND = (
    "IFS= read -r -d '' -u 3 __fastrpc_command; exec 3<&-; "
    'eval "unset __fastrpc_command; $__fastrpc_command"'
)

VARIABLES = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "BAT_PAGER": "cat",
    "AWS_PAGER": "",
}


async def start(
    command: str,
    *,
    timeout_ms: int | None = None,
    output: Output,
    on_output: Callable[[bytes], object] | None = None,
    confirmed: bool = True,
) -> Process:
    """Start a command as ``bash -c`` would. Raises ToolError."""
    from fastrpc import processes

    script = None
    if len(command) > ARGUMENT_LIMIT // 4:  # a character has four bytes at most
        script = _script_of(command)
    return await processes.start(
        ["bash", "-c", command if script is None else LONG_COMMAND],
        script=script,
        changes=VARIABLES,
        timeout_ms=timeout_ms,
        output=output,
        on_output=on_output,
        confirmed=confirmed,
    )


def _script_of(command: str) -> bytes | None:
    try:
        script = command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ToolError("command: contains a lone surrogate, which programs cannot receive.") from None
    if b"\0" in script:
        raise ToolError("command: contains a NUL character, which programs cannot receive.")
    return script if len(script) > ARGUMENT_LIMIT else None


def new_output(name: str) -> Output:
    """Return a collector of output whose file, if it needs one, is named after `name`."""
    from fastrpc import processes

    return processes.Output(open_file=lambda: _output_files.create(name))


def shorten(command: str) -> str:
    """Return a command as one line of a list, shortened."""
    line = " ".join(command[: COMMAND_SHOWN * 4].split())
    return line if len(line) <= COMMAND_SHOWN else line[: COMMAND_SHOWN - 1] + "…"


def show(output: Output) -> tuple[str, bool]:
    """Return output in the form of a result, and whether something was left out.

    Of output that is too long, the result shows the beginning (one third) and the end (two thirds); the file
    has all of it.
    """
    head = _text.clean(output.head.decode("utf-8", "replace"))
    if output.complete:
        if _text.fits(head):
            return head.removesuffix("\n"), False
        output.keep_file()
        tail = head
    else:
        tail = _text.clean(output.tail.decode("utf-8", "replace"))
    first, last = _text.head_of(head, 1 / 3), _text.tail_of(tail, 2 / 3)
    if output.complete:
        left_out = head[len(first) : len(head) - len(last)]
        characters, lines = len(left_out), left_out.count("\n")
    else:
        characters = output.dropped_characters + len(head) - len(first) + len(tail) - len(last)
        lines = (
            output.dropped_lines + head.count("\n", len(first)) + tail.count("\n", 0, len(tail) - len(last))
        )
    joint = "" if first.endswith("\n") else "\n"
    line = f"[... {characters:,} characters in {lines:,} lines left out; {_whereabouts(output)} ...]"
    return f"{first}{joint}{line}\n{last}".removesuffix("\n"), True


def _whereabouts(output: Output) -> str:
    file = output.file
    if output.file_error is not None:
        reason = output.file_error.strerror or str(output.file_error)
        return (
            f"they could not be stored: {reason}" if file is None else f"{file.path} is incomplete: {reason}"
        )
    if file is None:
        return "they were not stored"
    if file.wrapped:
        return f"the first and the last {file.first // 1024**2} MiB of all output: {file.path}"
    return f"the whole output: {file.path}"


def children_note(process: Process) -> str:
    """Return the line about processes that a command has started and that still run."""
    named = ", ".join(f"{child.pid} {child.name}" for child in process.children)
    more = process.children_left - len(process.children)
    if more > 0:
        named += f" and {more} more"
    if process.children_left == 1:
        return f"[1 child still runs: {named}; it ends with the server]"
    return f"[{process.children_left} children still run: {named}; they end with the server]"
