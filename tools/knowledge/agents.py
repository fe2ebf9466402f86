"""The tools agent.list and agent.get, and the agents as resources: ``SCHEME://agents/{id}/SOUL.md``, BOOT.md,
TOOLS.md and ``/config``.

Agents are folders on the server's machine (`--agents DIR`, `_agent_folders`): every caller reads the same
agents, and none can write them. The server checks the files every two seconds and notifies clients of
changes.
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastrpc import ToolError, tool

from . import _settings
from ._answers import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Annotated

    from fastrpc import Server
else:
    from fastrpc.typing_forms import Annotated

WATCH_SECONDS = 2.0
FIRST_LINE = 120


class ListedAgent(TypedDict):
    """An agent: its id, the first line of its SOUL.md, its files, and what is wrong with it, else empty."""

    id: str
    about: str
    uris: list[str]
    error: str


class ListedAgents(TypedDict):
    """All agents, by id."""

    count: int
    agents: list[ListedAgent]


class Agent(TypedDict):
    """An agent's texts, empty if they are missing, and its configuration with secrets masked."""

    id: str
    soul: str
    boot: str
    tools: str
    config: Any


@tool(name="agent.list", effect="read", run="thread")
def list_agents() -> ListedAgents:
    """List the agents that this server describes."""
    from . import _agent_folders

    root = _settings.AGENTS.read()
    if not root:
        return answer("No agents: the server was started without --agents.", ListedAgents(count=0, agents=[]))
    try:
        found = [_listed(root, id, files) for id, files in _agent_folders.all_agents(root).items()]
    except _agent_folders.BrokenAgent as error:
        raise ToolError(str(error)) from None
    lines = [f"{len(found)} {'agent' if len(found) == 1 else 'agents'}{':' if found else '.'}"]
    lines += [f"{each['id']}: {each['error'] or each['about'] or 'no SOUL.md'}" for each in found]
    return answer("\n".join(lines), ListedAgents(count=len(found), agents=found))


@tool(name="agent.get", effect="read", run="thread")
def get(id: Annotated[str, "The agent's id, as agent.list has it"]) -> Agent:
    """Read an agent: SOUL.md, BOOT.md, TOOLS.md and its configuration, secrets masked."""
    from . import _agent_folders

    root = _settings.AGENTS.read()
    if not root or not _agent_folders.files(root, id):
        raise ToolError(f"id: there is no agent {id:.64}.")
    try:
        soul, boot, tools = (_agent_folders.text(root, id, name) or "" for name in _agent_folders.TEXTS)
        config = _agent_folders.config(root, id) or {}
    except _agent_folders.BrokenAgent as error:
        raise ToolError(str(error)) from None
    named = {"SOUL.md": soul, "BOOT.md": boot, "TOOLS.md": tools, "config": _json(config) if config else ""}
    parts = [f"# {name}\n{text}" for name, text in named.items() if text]
    return answer(
        "\n\n".join(parts) or f"{id} is empty.",
        Agent(id=id, soul=soul, boot=boot, tools=tools, config=config),
    )


def attach(server: Server) -> None:
    """Serve the agents as resources, and watch their folder, if the settings name one."""
    root = _settings.AGENTS.read()
    if root:
        prefix = f"{_settings.SCHEME.read()}://agents/"
        server.resources(prefix, run="thread")(Agents(root, prefix))
        server.watch(Watch(server, root, prefix).look, WATCH_SECONDS)


class Agents:
    """The provider of all files of agents."""

    def __init__(self, root: str, prefix: str) -> None:
        self._root = root
        self._prefix = prefix

    def list(self, cursor: str | None) -> Any:
        """Return all files."""
        from . import _agent_folders

        return [
            {
                "uri": f"{self._prefix}{id}/{name}",
                "name": f"{id}/{name}",
                "mime_type": _type_of(name),
            }
            for id, files in _agent_folders.all_agents(self._root).items()
            for name in files
        ]

    def read(self, uri: str) -> Any:
        """Return a file, None if it does not exist. Raises BrokenAgent."""
        from fastrpc import Contents

        from . import _agent_folders

        id, _, name = uri.removeprefix(self._prefix).partition("/")
        if name == "config":
            config = _agent_folders.config(self._root, id)
            found = None if config is None else _json(config)
        else:
            found = _agent_folders.text(self._root, id, name)
        return None if found is None else Contents(found, _type_of(name))


class Watch:
    """Compares the folder with its state at the last check, and notifies clients of the differences."""

    def __init__(self, server: Server, root: str, prefix: str) -> None:
        self._server = server
        self._root = root
        self._prefix = prefix
        self._known: dict[str, object] | None = None

    def look(self) -> None:
        """Notify clients of changes since the last check."""
        found, known = self._files(), self._known
        self._known = found
        if known is None or known == found:
            return
        for uri, stamp in known.items():
            if found.get(uri) != stamp:
                self._server.resource_updated(uri)
        if known.keys() != found.keys():
            self._server.registries.resources.changed()

    def _files(self) -> dict[str, object]:
        from . import _agent_folders

        try:
            found = _agent_folders.all_agents(self._root)
        except _agent_folders.BrokenAgent:
            return {}
        return {
            f"{self._prefix}{id}/{name}": stamp
            for id, files in found.items()
            for name, stamp in files.items()
        }


def _listed(root: str, id: str, files: Iterable[str]) -> ListedAgent:
    from . import _agent_folders

    about, error = "", ""
    try:
        lines = (_agent_folders.text(root, id, "SOUL.md") or "").splitlines()
        about = next((line.strip("# ")[:FIRST_LINE] for line in lines if line.strip("# ")), "")
        _agent_folders.config(root, id)
    except _agent_folders.BrokenAgent as broken:
        error = str(broken)
    prefix = f"{_settings.SCHEME.read()}://agents/{id}/"
    return ListedAgent(id=id, about=about, uris=[prefix + name for name in files], error=error)


def _type_of(name: str) -> str:
    return "application/json" if name == "config" else "text/markdown"


def _json(config: Any) -> str:
    import json

    return json.dumps(config, ensure_ascii=False, indent=2)
