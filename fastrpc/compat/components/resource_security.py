"""What variables of a resource's address may be, as FastMCP 4 and the official SDK 2.x have it: no path out
of a folder.

By default a template is not read with a value that is an absolute path, climbs above its start by ``..`` or
holds a NUL: there is no such resource. Values are checked as the address has them, before they are
converted to the parameter's type, wherever a template is bound. A template without such rules is not looked
at.
"""

from __future__ import annotations

from functools import wraps

from fastrpc.compat.errors import NotFoundError
from fastrpc.definitions.handler import is_async
from fastrpc.definitions.resource import ReadingSignature, ResourceTemplate
from fastrpc.errors import ResourceNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc.options import TemplateOptions
    from fastrpc.schema import Signature


class InheritSecurity:
    """Stands for the rules of the server."""


INHERIT_SECURITY = InheritSecurity()
"""The rules of the server."""


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
        self._exempt = {*self.exempt_params, *(name.replace("-", "_") for name in self.exempt_params)}

    def validate(self, params: Mapping[str, Any]) -> str | None:
        """Return the name of the first value that is refused, None if there is none."""
        for name, value in params.items():
            if name not in self._exempt:
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


class ResourceSecurityError(NotFoundError, ValueError):
    """A variable of a template has a value that is refused."""

    def __init__(self, template: str, param: str = "") -> None:
        super().__init__(f"{template}: the value of {param!r} is refused")
        self.template = template
        self.param = param


DEFAULT_RESOURCE_SECURITY = ResourceSecurity()
"""The rules of a server that names none."""


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


class ScreenedTemplate(ResourceTemplate):
    """A template whose variables `security` has to allow."""

    __slots__ = ("security",)

    def __init__(
        self, function: Callable[..., Any], *, security: Any, uri: str, **options: Unpack[TemplateOptions]
    ) -> None:
        self.security = security
        super().__init__(function, uri=uri, **options)

    def describe(self) -> Signature:
        return _ScreenedSignature(super().describe(), self.mime_type, self.security)


class _ScreenedSignature(ReadingSignature):
    __slots__ = ("security",)

    def __init__(self, signature: Signature, mime_type: str | None, security: Any) -> None:
        super().__init__(signature, mime_type)
        self.security = security

    def bind(self, arguments: dict[str, Any]) -> list[Any]:
        screen(arguments, self.security)
        return super().bind(arguments)


def screen(values: Mapping[str, Any], security: Any) -> None:
    """Raise ResourceNotFound for the values of a template's variables that `security` refuses."""
    refused = None if security is None else security.validate(values)
    if refused is not None:
        raise ResourceNotFound(str(values[refused]))


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
