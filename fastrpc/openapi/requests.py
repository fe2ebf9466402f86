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
from fastrpc.openapi.styles import pairs_of, segment_of, simple_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fastrpc.openapi.document import Operation

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
            value = segment_of(parameter.name, arguments[name], parameter.style, parameter.explode)
            if value in ("", ".", ".."):
                raise ToolError(f"{name}: expected a segment of a path, got {value!r}")
            path = path.replace(f"{{{parameter.name}}}", value)
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
                params += pairs_of(parameter.name, value, parameter.style, parameter.explode)
            elif parameter.place == "header":
                sent[parameter.name] = simple_of(value, parameter.explode)
            elif parameter.place == "cookie":
                pairs = pairs_of(parameter.name, value, parameter.style, parameter.explode)
                cookies += [f"{key}={quote(text)}" for key, text in pairs]
        if cookies:
            sent["Cookie"] = "; ".join(cookies)
        options: dict[str, Any] = {"headers": sent}
        if params:
            options["params"] = params
        body = self._body(arguments)
        kind = self.operation.body_type
        if isinstance(body, dict) and kind == FORM:
            options["data"] = self._form(body)
        elif body is not None:
            sent["Content-Type"] = kind or ""
            is_text = isinstance(body, str) and not (kind or "").endswith("json")
            options["content"] = body.encode() if is_text else to_json(body)
        return options

    def _form(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a form (OpenAPI 3.1, 4.8.15: encoding). An object is JSON unless its encoding
        has a style, and so is what is inside of an array."""
        found: dict[str, Any] = {}
        for member, value in body.items():
            encoding = self.operation.body_encoding.get(member) or {}
            style = encoding.get("style") or "form"
            has_style = not encoding.keys().isdisjoint(("style", "explode", "allowReserved"))
            if isinstance(value, dict) and not has_style:
                value = text_of(value)
            elif isinstance(value, list) and not value:
                continue
            for key, text in pairs_of(member, value, style, encoding.get("explode", style == "form")):
                found[key] = [*found[key], text] if key in found else [text]
        return {key: texts if len(texts) > 1 else texts[0] for key, texts in found.items()}

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
