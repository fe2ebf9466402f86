"""The tools agent.list and agent.get, and the agents as resources: ``SCHEME://agents/{id}/SOUL.md``, BOOT.md,
TOOLS.md and ``/config``.

Agents are folders of the server's (`--agents DIR`, `_agent_folders`): every caller sees the same, and none
writes them. Where the folder is watched, clients are told what has changed.
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastrpc import ToolError, ToolResult, tool

from . import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, TypeVar

    from fastrpc import Server

    Shape = TypeVar("Shape")
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
    """An agent's texts, empty where it has none, and its configuration with secrets masked."""

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
        return _answer(
            "No agents: the server was started without --agents.", ListedAgents(count=0, agents=[])
        )
    try:
        found = [_listed(root, id) for id in _agent_folders.ids(root)]
    except _agent_folders.BrokenAgent as error:
        raise ToolError(str(error)) from None
    lines = [f"{len(found)} {'agent' if len(found) == 1 else 'agents'}{':' if found else '.'}"]
    lines += [f"{each['id']}: {each['error'] or each['about'] or 'no SOUL.md'}" for each in found]
    return _answer("\n".join(lines), ListedAgents(count=len(found), agents=found))


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
    return _answer(
        "\n\n".join(parts) or f"{id} is empty.",
        Agent(id=id, soul=soul, boot=boot, tools=tools, config=config),
    )


def attach(server: Server) -> None:
    """Serve the agents as resources, and watch their folder, if there is one."""
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
        """Return all of them."""
        from . import _agent_folders

        return [
            {
                "uri": f"{self._prefix}{id}/{name}",
                "name": f"{id}/{name}",
                "mime_type": _type_of(name),
            }
            for id in _agent_folders.ids(self._root)
            for name in _agent_folders.files(self._root, id)
        ]

    def read(self, uri: str) -> Any:
        """Return a file, None where there is none. Raises BrokenAgent."""
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
    """What the folder was like, and who is told when it is different."""

    def __init__(self, server: Server, root: str, prefix: str) -> None:
        self._server = server
        self._root = root
        self._prefix = prefix
        self._known: dict[str, object] | None = None

    def look(self) -> None:
        """Tell clients what has changed since the last look."""
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
            ids = _agent_folders.ids(self._root)
        except _agent_folders.BrokenAgent:
            return {}
        return {
            f"{self._prefix}{id}/{name}": stamp
            for id in ids
            for name, stamp in _agent_folders.files(self._root, id).items()
        }


def _listed(root: str, id: str) -> ListedAgent:
    from . import _agent_folders

    about, error = "", ""
    try:
        lines = (_agent_folders.text(root, id, "SOUL.md") or "").splitlines()
        about = next((line.strip("# ")[:FIRST_LINE] for line in lines if line.strip("# ")), "")
        _agent_folders.config(root, id)
    except _agent_folders.BrokenAgent as broken:
        error = str(broken)
    prefix = f"{_settings.SCHEME.read()}://agents/{id}/"
    uris = [prefix + name for name in _agent_folders.files(root, id)]
    return ListedAgent(id=id, about=about, uris=uris, error=error)


def _type_of(name: str) -> str:
    return "application/json" if name == "config" else "text/markdown"


def _json(config: Any) -> str:
    import json

    return json.dumps(config, ensure_ascii=False, indent=2)


def _answer(text: str, structured: Shape) -> Shape:
    """Return a result with a text of its own. To a type checker it is what the tool's annotation says."""
    found: Any = ToolResult(text, structured=structured)
    return found  # type: ignore[no-any-return]
