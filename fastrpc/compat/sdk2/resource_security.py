"""What variables of a resource's address may be, as the official SDK 2.x has it: no path out of a folder.

By default a template of an `MCPServer` is not called with a value that is an absolute path, climbs above its
start by ``..`` or holds a NUL: there is no such resource. Checked in front of the function, at the cost of a
look at each value that is a text; other servers, and templates that exempt a variable, have no check.
"""

from __future__ import annotations

from functools import wraps

from fastrpc.definitions.handler import is_async
from fastrpc.errors import ResourceNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any


class ResourceSecurity:
    """What is refused, and in which variables (`exempt_params`) nothing is."""

    def __init__(
        self,
        reject_path_traversal: bool = True,
        reject_absolute_paths: bool = True,
        reject_null_bytes: bool = True,
        exempt_params: Collection[str] = (),
    ) -> None:
        self.reject_path_traversal = reject_path_traversal
        self.reject_absolute_paths = reject_absolute_paths
        self.reject_null_bytes = reject_null_bytes
        self.exempt_params = frozenset(exempt_params)

    def validate(self, params: Mapping[str, Any]) -> str | None:
        """Return the name of the first value that is refused, None if there is none."""
        for name, value in params.items():
            if name not in self.exempt_params:
                values = value if isinstance(value, (list, tuple)) else (value,)
                if any(isinstance(each, str) and self._refuses(each) for each in values):
                    return name
        return None

    def _refuses(self, value: str) -> bool:
        return (
            (self.reject_null_bytes and "\0" in value)
            or (self.reject_path_traversal and climbs(value))
            or (self.reject_absolute_paths and is_absolute(value))
        )


class ResourceSecurityError(ValueError):
    """A variable of a template has a value that is refused."""

    def __init__(self, template: str, param: str) -> None:
        super().__init__(f"{template}: the value of {param!r} is refused")
        self.template = template
        self.param = param


DEFAULT_RESOURCE_SECURITY = ResourceSecurity()


def climbs(value: str) -> bool:
    """Whether a relative path leads above where it begins."""
    depth = 0
    for part in value.replace("\\", "/").split("/"):
        if part == "..":
            depth -= 1
            if depth < 0:
                return True
        elif part not in ("", "."):
            depth += 1
    return False


def is_absolute(value: str) -> bool:
    """Whether a text is an absolute path, on whatever system; ``C:notes`` is one, too."""
    return value[:1] in ("/", "\\") or (value[1:2] == ":" and value[0].isascii() and value[0].isalpha())


def guarded(function: Callable[..., Any], uri: str, security: Any) -> Callable[..., Any]:
    """Return a function of a template that is not called with what `security` refuses."""
    names = _positional(function)

    def check(values: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = {**dict(zip(names, values, strict=False)), **named}
        if security.validate(given) is not None:
            raise ResourceNotFound(uri)

    return wrapped(function, before=check)


def wrapped(
    function: Callable[..., Any],
    before: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = None,
    after: Callable[[Any], Any] = lambda value: value,
) -> Callable[..., Any]:
    """Return a function with something before each call, which may raise, and something after it."""
    if is_async(function):

        @wraps(function)
        async def called_async(*values: Any, **named: Any) -> Any:
            if before is not None:
                before(values, named)
            return after(await function(*values, **named))

        return called_async

    @wraps(function)
    def called(*values: Any, **named: Any) -> Any:
        if before is not None:
            before(values, named)
        return after(function(*values, **named))

    return called


def _positional(function: Any) -> tuple[str, ...]:
    """Return the names of the parameters that may be given by their place."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return ()
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names[1:] if hasattr(function, "__func__") else names
