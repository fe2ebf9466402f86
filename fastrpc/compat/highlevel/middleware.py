"""Middleware of a compat server: `add_middleware`, `middleware` and the option of that name.

A server without middleware pays nothing; one with it pays for what a hook is overridden of
(`fastrpc.compat.middleware`).
"""

from __future__ import annotations

from fastrpc.compat.dialect import SDK_1, SDK_2
from fastrpc.compat.errors import NotOffered
from fastrpc.errors import DefinitionError
from fastrpc.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc.compat.dialect import Dialect

HOOKS = "write hooks: @mcp.before, @mcp.after, @mcp.on_error"

ALTERNATIVES = {"middleware": HOOKS}
"""What servers of the official SDK 1.x do not support, and the alternatives."""


class Interception(Server):
    """The methods of a compat server that add middleware."""

    dialect: Dialect

    @property
    def middleware(self) -> list[Any]:
        """The middleware, the outermost first. The list may be changed. Raises NotOffered for a server of the
        official SDK 1.x, which has none."""
        if self.dialect is SDK_1:
            raise NotOffered  # `__getattr__` of the server names the alternative
        found = self.__dict__.get("_middleware")
        if found is None:
            found = self.__dict__["_middleware"] = MiddlewareList(self._middleware_changed)
        return found

    @property
    def _handlers(self) -> list[Any]:
        """Middleware that is no author's: the handlers of an inner server, for example. It is within the
        author's; a server of the SDK 2 that has middleware does without."""
        found = self.__dict__.get("_own_handlers")
        if found is None:
            found = self.__dict__["_own_handlers"] = MiddlewareList(self._middleware_changed)
        return found

    def _handle(self, handlers: Any) -> None:
        """Add middleware that is no author's."""
        self._handlers.append(handlers)

    def add_middleware(self, middleware: Any) -> None:
        """Add middleware, within that which was added before. Raises DefinitionError for what is no function
        or object that can be called."""
        self.middleware.append(middleware)

    def _take_middleware(self, middleware: Iterable[Any] | None) -> None:
        """Take the option of the constructor."""
        if middleware:
            self.middleware.extend(middleware)

    if TYPE_CHECKING:  # `SdkParts` has it

        def _take_sdk_middleware(self) -> None: ...

    def _middleware_changed(self, added: Iterable[Any] = ()) -> None:
        if self.dialect is SDK_2 and (self.middleware or getattr(self, "_interceptors", None)):
            self._take_sdk_middleware()
            return
        for each in added:
            attach = getattr(each, "attach", None)
            if attach is not None:
                attach(self)
        self._rewrap()

    def _rewrap(self) -> None:
        """Make what is around the requests anew, here and where this server is mounted."""
        hooks = [*(self.__dict__.get("_middleware") or ()), *self._handlers]
        if self._is_composed():
            from fastrpc.compat.composition.chain import ComposedChain

            self._wrapper = ComposedChain(self, hooks)
        elif hooks:
            from fastrpc.compat.interception.chain import MiddlewareChain

            self._wrapper = MiddlewareChain(self, hooks)
        else:
            self._wrapper = None
        self._plan_anew()
        for host in self._hosts:
            if isinstance(host, Interception):
                host._rewrap()

    def _is_composed(self) -> bool:
        """Whether this server, or one that is mounted here, has more than its registries."""
        if self.__dict__.get("_composed") is not None:
            return True
        return any(isinstance(each, Interception) and each._is_composed() for each in self._mounts)


class MiddlewareList(list["Any"]):
    """The middleware of a server: when the list changes, its server's plans are made anew."""

    def __init__(self, changed: Callable[..., object]) -> None:
        super().__init__()
        self._changed = changed

    def append(self, middleware: Any) -> None:
        self.extend((middleware,))

    def extend(self, several: Iterable[Any]) -> None:
        added = [*several]
        for each in added:
            _check(each)
        super().extend(added)
        self._changed(added)

    def insert(self, at: Any, middleware: Any) -> None:
        _check(middleware)
        super().insert(at, middleware)
        self._changed((middleware,))

    def remove(self, middleware: Any) -> None:
        super().remove(middleware)
        self._changed()

    def pop(self, at: Any = -1) -> Any:
        found = super().pop(at)
        self._changed()
        return found

    def clear(self) -> None:
        super().clear()
        self._changed()


def _check(middleware: Any) -> None:
    is_one = callable(middleware) or hasattr(middleware, "attach")
    if not is_one or isinstance(middleware, type):
        raise DefinitionError(
            f"middleware: {middleware!r:.60} is no object that can be called; derive it from Middleware"
        )
