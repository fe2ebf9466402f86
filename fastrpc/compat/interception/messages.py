"""What middleware sees as the message of a request: the SDK's models where the program has imported them, and
otherwise objects with the same attributes, which read the arguments at the first access."""

from __future__ import annotations

from fastrpc.compat import models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Self

REQUESTS = {"tools/list": "ListToolsRequest", "initialize": "InitializeRequest"}
"""Methods whose message is the request; that of other lists is the params."""


class CallParams(models.Model):
    """The params of ``tools/call``, ``prompts/get`` or ``resources/read``: `name`, `arguments`; `uri`."""

    if TYPE_CHECKING:
        name: str
        uri: str
        arguments: dict[str, Any] | None

    def __init__(self, raw: dict[str, Any], arguments: Callable[[], Any] | None = None) -> None:
        super().__init__(raw)
        self.__dict__["_arguments"] = arguments
        if "arguments" in raw:
            self.__dict__["arguments"] = raw["arguments"]

    def __getattr__(self, name: str) -> Any:
        later = self.__dict__["_arguments"]
        if name == "arguments" and later is not None:
            self.__dict__["_arguments"] = None
            self.arguments = later()
            return self.arguments
        return super().__getattr__(name)

    @property
    def are_arguments_untouched(self) -> bool:
        """Whether no code has read or set the arguments."""
        return self.__dict__["_arguments"] is not None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "arguments":
            self.__dict__["_arguments"] = None
            self.__dict__[name] = self._raw[name] = value
        else:
            super().__setattr__(name, value)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        if self.are_arguments_untouched:
            self.arguments  # noqa: B018 - reads them
        found = {name: value for name, value in self._raw.items() if value is not None}
        return found if options.get("by_alias", True) else {**found, "meta": found.get("_meta")}

    def model_copy(self, *, update: dict[str, Any] | None = None, deep: bool = False) -> Self:
        copy = type(self)(dict(self.model_dump()))
        for name, value in (update or {}).items():
            setattr(copy, name, value)
        return copy

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.model_dump().items())
        return f"{type(self).__name__}({shown})"


class CallToolRequestParams(CallParams):
    """The params of ``tools/call``."""


class GetPromptRequestParams(CallParams):
    """The params of ``prompts/get``."""


class ReadResourceRequestParams(CallParams):
    """The params of ``resources/read``."""


_CLASSES: dict[str, type[CallParams]] = {
    kind.__name__: kind for kind in (CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams)
}


def call_params(kind: str, raw: dict[str, Any], arguments: Callable[[], Any] | None) -> Any:
    """Return the params of a call: of the SDK's class `kind`, if the program has imported it, with the
    arguments read now, or ours. `raw` has all but the arguments; None: there are none."""
    if models.has_types():
        return models.typed(kind, raw if arguments is None else {**raw, "arguments": arguments()})
    return _CLASSES[kind](raw, arguments)


def request_message(method: str, params: dict[str, Any]) -> Any:
    """Return the message of a request that is no call; without what 2026-07-28 has in each request."""
    params = {name: value for name, value in params.items() if name != "_meta"}
    if method in REQUESTS:
        raw: dict[str, Any] = {"method": method}
        if params:
            raw["params"] = params
        return models.typed(REQUESTS[method], raw)
    return params
