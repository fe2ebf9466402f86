"""`FastMCPApp`: a user interface and the tools that it calls, as a provider of a server.

``@app.ui`` marks a tool that a model calls and that returns the interface, ``@app.tool`` one that the
interface calls; both are described by their ``_meta``, and it is the client's host that keeps them apart:
neither is a limit of access. An address (`fastrpc.compat.apps.addresses`) reaches a tool however the server
names it.
"""

from __future__ import annotations

from functools import partial
from inspect import isroutine

from fastrpc.compat.apps.addresses import hash_in, hash_of
from fastrpc.compat.apps.offering import page_at
from fastrpc.compat.apps.renderer import APPS, PLACEHOLDER, renderer_at
from fastrpc.compat.components.tools import FunctionTool, Tool
from fastrpc.compat.providers.local import LocalProvider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class FastMCPApp(LocalProvider):
    """The tools of an app called `name`. Raises ValueError for a tool name that the app already has, or that
    has the form of an address."""

    extensions = APPS

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def tool(
        self, name_or_fn: Any = None, *, name: str | None = None, model: bool = False, **options: Any
    ) -> Any:
        """Add a function that the interface calls, ``@app.tool``; with ``model=True`` a model, too.
        `options`: description, auth, timeout."""
        visibility = ["app", "model"] if model else ["app"]
        return self._declare(name_or_fn, name, {"visibility": visibility}, options)

    def ui(self, name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
        """Add a function that returns the interface, ``@app.ui``. `options`: description, title, tags, icons,
        annotations, auth, timeout."""
        return self._declare(name_or_fn, name, {"resourceUri": PLACEHOLDER, "visibility": ["model"]}, options)

    def _declare(self, name_or_fn: Any, name: str | None, ui: dict[str, Any], options: dict[str, Any]) -> Any:
        if isroutine(name_or_fn):
            return self._add_function(name, ui, options, name_or_fn)
        if name_or_fn is not None and not isinstance(name_or_fn, str):
            raise TypeError(f"expected a function or a name, got {type(name_or_fn).__name__}")
        if name_or_fn is not None and name is not None:
            raise TypeError("expected one name, got two")
        return partial(self._add_function, name_or_fn or name, ui, options)

    def _add_function(
        self, name: str | None, ui: dict[str, Any], options: dict[str, Any], function: Any
    ) -> Any:
        name = name or function.__name__
        self._add(FunctionTool(function, name=name, meta={"ui": ui, **self._mark(name)}, **options))
        return function

    def _mark(self, name: str) -> dict[str, Any]:
        """Return what ``_meta`` says of a tool of this app. Raises ValueError."""
        if hash_in(name) is not None:
            raise ValueError(f"{name}: a name like this is the address of an app's tool; choose another one")
        return {"fastmcp": {"app": self.name, "tool_hash": hash_of(self.name, name)}}

    def add_tool(self, tool: Any) -> Any:
        """Add a tool object, or a function, that the interface calls."""
        found = tool if isinstance(tool, Tool) else Tool.from_function(tool)
        meta = dict(found.meta or {})
        own = self._mark(found.name)["fastmcp"]
        meta["fastmcp"] = {**(meta.get("fastmcp") or {}), **own}
        meta["ui"] = {"visibility": ["app"], **(meta.get("ui") or {})}
        found.meta = meta
        return self._add(found)

    async def _list_resources(self) -> Sequence[Any]:
        uris = (((tool.meta or {}).get("ui") or {}).get("resourceUri") for tool in self._of("tool"))
        renderers = filter(None, map(renderer_at, dict.fromkeys(filter(None, uris))))
        return [*await super()._list_resources(), *map(page_at, renderers)]

    def run(self, transport: Any = None, **options: Any) -> None:
        """Serve this app alone."""
        from fastrpc.compat.server import FastMCP

        server = FastMCP(self.name)
        server.add_provider(self)
        server.run(transport=transport, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"
