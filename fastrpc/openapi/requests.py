"""Makes the HTTP request of an operation from a call's arguments, and a result of the response.

The client has httpx's interface. Values in a path are percent-encoded, and a segment that would change the
path (``..``) is refused: no argument reaches another operation.
"""

from __future__ import annotations

from urllib.parse import quote

from fastrpc.content import ToolResult
from fastrpc.errors import ToolError
from fastrpc.json_encoding import to_json
from fastrpc.openapi.document import FORM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fastrpc.openapi.document import Operation, Parameter

DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}
LONGEST_ERROR = 2_000


class OperationRequest:
    """The requests of one operation. `names` gives the argument of each parameter, by its place and name;
    `body_names` the argument of each member of the body, or is None where `body` is one argument."""

    def __init__(
        self,
        operation: Operation,
        names: Mapping[tuple[str, str], str],
        body_names: Mapping[str, str] | None,
    ) -> None:
        self.operation = operation
        self.names = names
        self.body_names = body_names

    async def send(self, client: Any, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """Send the request and return the response: by ``build_request``, where the client has it, and
        ``send``, which clients of a program's own have in the place of all others.

        Raises ToolError for an argument that has no place in the path, a request that fails, and a status of
        400 and more.
        """
        options = self._options(arguments, headers)
        url = _absolute(client, self._path(arguments))
        try:
            response = await client.send(_request(client, self.operation.method, url, options))
        except Exception as error:
            raise ToolError(
                f"{self.operation.method} {self.operation.path}: {error or type(error).__name__}"
            ) from error
        if response.status_code >= 400:
            text = response.text[:LONGEST_ERROR]
            reason = getattr(response, "reason_phrase", "")
            raise ToolError(f"HTTP error {response.status_code}: {reason}" + (f" - {text}" if text else ""))
        return response

    def _path(self, arguments: Mapping[str, Any]) -> str:
        path = self.operation.path
        for parameter in self.operation.parameters:
            if parameter.place != "path":
                continue
            name = self.names[parameter.place, parameter.name]
            if name not in arguments:
                raise ToolError(f"{name}: required, missing")
            value = ",".join(map(_text, _items(arguments[name])))
            if value in ("", ".", ".."):
                raise ToolError(f"{name}: expected a segment of a path, got {value!r}")
            path = path.replace(f"{{{parameter.name}}}", quote(value, safe=","))
        return path.lstrip("/") if path != "/" else path

    def _options(self, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        params: list[tuple[str, str]] = []
        sent = dict(headers)
        cookies = []
        for parameter in self.operation.parameters:
            value = arguments.get(self.names[parameter.place, parameter.name])
            if value is None:
                continue
            if parameter.place == "query":
                params += _query(parameter, value)
            elif parameter.place == "header":
                sent[parameter.name] = ",".join(map(_text, _items(value)))
            elif parameter.place == "cookie":
                cookies.append(f"{parameter.name}={quote(_text(value))}")
        if cookies:
            sent["Cookie"] = "; ".join(cookies)
        options: dict[str, Any] = {"headers": sent}
        if params:
            options["params"] = params
        body = self._body(arguments)
        kind = self.operation.body_type
        if body is not None and kind == FORM:
            options["data"] = {key: _text(value) for key, value in body.items()}
        elif body is not None:
            sent["Content-Type"] = kind or ""
            is_text = isinstance(body, str) and not (kind or "").endswith("json")
            options["content"] = body.encode() if is_text else to_json(body)
        return options

    def _body(self, arguments: Mapping[str, Any]) -> Any:
        if self.operation.body_type is None:
            return None
        if self.body_names is None:
            return arguments.get("body")
        found = {member: arguments[name] for member, name in self.body_names.items() if name in arguments}
        return found if found or self.operation.body_required else None


def _absolute(client: Any, path: str) -> str:
    """Return the URL of a path; the path itself for a client without a base URL."""
    base = str(getattr(client, "base_url", None) or "")
    return f"{base.rstrip('/')}/{path.lstrip('/')}" if base else path


def _request(client: Any, method: str, url: str, options: dict[str, Any]) -> Any:
    build = getattr(client, "build_request", None)
    if build is not None:
        return build(method, url, **options)
    import httpx

    headers = {**dict(getattr(client, "headers", None) or {}), **options.pop("headers")}
    return httpx.Request(method, url, headers=headers, **options)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else to_json(value).decode()


def _query(parameter: Parameter, value: Any) -> list[tuple[str, str]]:
    """Return the pairs of a query parameter (OpenAPI 3.1, section 4.8.12: style values)."""
    if isinstance(value, dict):
        if parameter.style == "deepObject":
            return [(f"{parameter.name}[{key}]", _text(each)) for key, each in value.items()]
        if parameter.explode:
            return [(key, _text(each)) for key, each in value.items()]
        return [(parameter.name, ",".join(f"{key},{_text(each)}" for key, each in value.items()))]
    if parameter.explode:
        return [(parameter.name, _text(each)) for each in _items(value)]
    delimiter = DELIMITERS.get(parameter.style, ",")
    return [(parameter.name, delimiter.join(map(_text, _items(value))))]


def result_of(response: Any, has_schema: bool) -> Any:
    """Return the tool's result of a response: the JSON it holds, an array or a scalar wrapped as
    ``{"result": …}``; a text as it is."""
    if "json" not in response.headers.get("content-type", "") or not response.content:
        return ToolResult(response.text)
    try:
        value = response.json()
    except ValueError:
        return ToolResult(response.text)
    structured = value if isinstance(value, dict) and not has_schema else {"result": value}
    return ToolResult(to_json(structured).decode(), structured=structured)
