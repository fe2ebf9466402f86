"""``fastmcp run`` and ``mcp run`` under `fastrpc swap --run`: serves the server of a file.

``fastmcp run server.py[:name]`` takes the object of that name, or of ``mcp``, ``server`` or ``app``; a
function is called for its server. ``fastmcp run fastmcp.json``, or without a file, takes them and the options
from that file. The options of the originals' transports are handed to ``run``; those of the environment, as
``--with`` and ``--python``, to ``uv run``, which starts the command anew. Other commands and options are not
served: the original has them.
"""

from __future__ import annotations

import os
import sys

from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["app"]

NAMES = ("mcp", "server", "app")
"""Where a server is looked for in a file."""

OPTIONS = {
    **dict.fromkeys(("--transport", "-t"), "transport"),
    "--host": "host",
    **dict.fromkeys(("--port", "-p"), "port"),
    "--path": "path",
    **dict.fromkeys(("--log-level", "-l"), "log_level"),
}
OF_UV = ("--python", "--with", "--with-editable", "--with-requirements", "--project")
"""Options of the environment that ``uv run`` makes for the server; each has a value."""

CONFIGURATION = "fastmcp.json"
DEPLOYMENT = ("transport", "host", "port", "path", "log_level")
"""What ``deployment`` in that file says of ``run``."""

IGNORED = ("--no-banner", "--skip-env", "--skip-source", "--no-reload")


def app() -> int:
    """Run the command line of this process; return the exit code."""
    from fastrpc.diagnostics import write_line

    try:
        _start_in_environment(sys.argv[1:])
        place, options, rest = _parsed(sys.argv[1:])
        if place.endswith(".json"):
            place, options, rest = _configured(place, options, rest)
        sys.argv[:] = [place.partition(":")[0], *rest]
        _server_in(place).run(**options)
    except UsageError as error:
        write_line(f"fastrpc: {error}")
        return 2
    return 0


def _parsed(arguments: list[str]) -> tuple[str, dict[str, Any], list[str]]:
    """Return the file, the options for ``run`` and the server's own arguments. Raises UsageError."""
    program = os.path.basename(sys.argv[0])
    if arguments[:1] != ["run"]:
        raise UsageError(f"{program} {' '.join(arguments[:1])}: fastrpc serves '{program} run FILE' only")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    words, rest = iter(arguments[1:at]), arguments[at + 1 :]
    places: list[str] = []
    options: dict[str, Any] = {}
    for word in words:
        name, is_joined, value = word.partition("=")
        if name in OPTIONS:
            value = value if is_joined else next(words, "")
            if OPTIONS[name] == "port" and not value.isdigit():
                raise UsageError(f"{program} run: {name}: expected a number, got {value or 'none'}")
            options[OPTIONS[name]] = int(value) if OPTIONS[name] == "port" else value
        elif word.startswith("-") and word not in IGNORED:
            raise UsageError(f"{program} run: fastrpc has no {word}; start it without, or by the original")
        elif not word.startswith("-"):
            places.append(word)
    if not places and os.path.isfile(CONFIGURATION):
        places = [CONFIGURATION]
    if len(places) != 1 or not places[0].partition(":")[0].endswith((".py", ".json")):
        raise UsageError(f"{program} run: expected one Python file, got {' '.join(places) or 'none'}")
    return places[0], options, rest


def _start_in_environment(arguments: list[str]) -> None:
    """Start the command anew by ``uv run``, where options ask for an environment; does not return then."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    words = arguments[:at]
    for_uv, others = [], []
    while words:
        word = words.pop(0)
        if word.partition("=")[0] not in OF_UV:
            others.append(word)
        else:
            for_uv += [word] if "=" in word else [word, *words[:1]]
            words = words if "=" in word else words[1:]
    if for_uv:
        program = os.path.basename(sys.argv[0])
        requirement = program if program == "fastmcp" else "mcp[cli]"
        command = ["uv", "run", "--with", requirement, *for_uv, program, *others, *arguments[at:]]
        try:
            os.execvp("uv", command)
        except OSError as error:
            raise UsageError(f"{program} run: {for_uv[0]} needs uv ({error.strerror}); install it") from None


def _configured(path: str, options: dict[str, Any], rest: list[str]) -> tuple[str, dict[str, Any], list[str]]:
    """Return the file, the options and the arguments that a ``fastmcp.json`` says; given ones count for more.
    Its environment is the one that runs this. Raises UsageError."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        source, deployment = found["source"], found.get("deployment") or {}
        place = os.path.join(os.path.dirname(path), source["path"])
        name = source.get("entrypoint")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: no configuration with a source: {error!r:.80}") from None
    for variable, value in (deployment.get("env") or {}).items():
        os.environ[variable] = os.path.expandvars(str(value))
    said = {key: deployment[key] for key in DEPLOYMENT if deployment.get(key) is not None}
    place = os.path.abspath(place)
    if deployment.get("cwd"):
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(path)), deployment["cwd"]))
    return (f"{place}:{name}" if name else place), {**said, **options}, rest or deployment.get("args") or []


def _server_in(place: str) -> Any:
    """Return the server of ``file.py`` or ``file.py:name``. Raises UsageError."""
    from importlib.util import module_from_spec, spec_from_file_location

    path, _, name = place.partition(":")
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file")
    sys.path.insert(0, os.path.dirname(path))
    spec = spec_from_file_location("server_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    wanted = [name] if name else NAMES
    found = next((getattr(module, each) for each in wanted if hasattr(module, each)), None)
    if found is None:
        raise UsageError(f"{path}: it has no {' or '.join(wanted)}; name the server: {path}:NAME")
    if not hasattr(found, "run") and callable(found):
        import asyncio
        import inspect

        found = found()
        found = asyncio.run(_result_of(found)) if inspect.isawaitable(found) else found
    return found


async def _result_of(awaitable: Any) -> Any:
    return await awaitable
