"""Makes the HTTP request of an operation from a call's arguments, and a result of the response.

The client has httpx's interface. Values in a path are percent-encoded, and a segment that would change the
path (``..``) is refused: no argument reaches another operation.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastrpc.content import ToolResult
from fastrpc.errors import ToolError
from fastrpc.json_encoding import to_json
from fastrpc.openapi.document import FORM, JSON, MULTIPART, base_of, is_json
from fastrpc.openapi.styles import (
    items_of,
    pairs_of,
    query_of,
    quoted,
    reserved,
    segment_of,
    simple_of,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from fastrpc.openapi.document import Operation, OperationParameter

LONGEST_ERROR = 2_000
BINARY = "application/octet-stream"


@dataclass
class OperationRequest:
    """The requests of one operation, by `client`. `headers_of_call` returns headers to send besides the
    client's. `names` gives the argument of each parameter, by its place and name; `body_members` are the
    members of the body that are arguments, None where `body` is one argument."""

    operation: Operation
    client: Any
    headers_of_call: Callable[[], Mapping[str, str]]
    names: Mapping[tuple[str, str], str]
    body_members: Collection[str] | None
    failure: type[Exception] = ToolError
    """The class of the error for a request that fails: its text has parts of the response."""

    async def send(self, arguments: Mapping[str, Any]) -> Any:
        """Send the request and return the response: by ``build_request``, where the client has it, and
        ``send``, which custom clients have instead of all others.

        Raises ToolError for an argument that has no place in the path, and `failure` for a request that fails
        and a status of 400 and more.
        """
        client, options = self.client, self._options(arguments)
        base, url = str(getattr(client, "base_url", None) or ""), self._path(arguments)
        if base:
            url = f"{base.rstrip('/')}/{url.lstrip('/')}"
        if getattr(client, "params", None):  # which httpx puts in the place of the URL's own query
            options["params"] = self._query(arguments, str)
        elif query := query_of(self._query(arguments, quoted)):
            url = f"{url}?{query}"
        try:
            response = await client.send(_request(client, self.operation.method, url, options))
        except Exception as error:
            raise self.failure(
                f"{self.operation.method} {self.operation.path}: {error or type(error).__name__}"
            ) from error
        if response.status_code >= 400:
            text = response.text[:LONGEST_ERROR]
            reason = getattr(response, "reason_phrase", "")
            shown = f" - {text}" if text else ""
            raise self.failure(f"HTTP error {response.status_code}: {reason}{shown}")
        return response

    def _path(self, arguments: Mapping[str, Any]) -> str:
        path = self.operation.path
        for parameter in self.operation.parameters:
            if parameter.place != "path":
                continue
            name = self.names[parameter.place, parameter.name]
            if name not in arguments:
                raise ToolError(f"{name}: required, missing")
            value = _written(parameter, arguments[name])
            value = segment_of(parameter.name, value, parameter.style, parameter.explode)
            if value in ("", ".", ".."):
                raise ToolError(f"{name}: expected a segment of a path, got {value!r}")
            path = path.replace(f"{{{parameter.name}}}", value)
        return path.lstrip("/") if path != "/" else path

    def _query(self, arguments: Mapping[str, Any], written: Callable[[str], str]) -> list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = []
        for parameter in self.operation.parameters:
            if parameter.place == "query":
                value = _written(parameter, arguments.get(self.names[parameter.place, parameter.name]))
                keeps = parameter.keeps_reserved and written is quoted
                form = reserved if keeps else written
                pairs += pairs_of(parameter.name, value, parameter.style, parameter.explode, form)
        return pairs

    def _options(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        sent = dict(self.headers_of_call())
        cookies = []
        for parameter in self.operation.parameters:
            name = self.names[parameter.place, parameter.name]
            value = _written(parameter, arguments.get(name))
            if value is None:
                continue
            if parameter.place == "header":
                text = simple_of(value, parameter.explode)
                if not text.isascii() or not text.replace("\t", " ").isprintable():
                    raise ToolError(f"{name}: expected printable ASCII, for a header, got {text[:200]!r}")
                sent[parameter.name] = text
            elif parameter.place == "cookie":
                pairs = pairs_of(parameter.name, value, parameter.style, parameter.explode, quoted)
                cookies += [f"{quoted(key)}={text}" for key, text in pairs]
        if cookies:
            sent["Cookie"] = "; ".join(cookies)
        options: dict[str, Any] = {"headers": sent}
        self._add_body(options, self._body(arguments))
        return options

    def _add_body(self, options: dict[str, Any], body: Any) -> None:
        kind = self.operation.body_type or ""
        if isinstance(body, dict) and base_of(kind) == FORM:
            options["data"] = self._form(body)
        elif isinstance(body, dict) and base_of(kind) == MULTIPART:
            options["files"] = self._parts(body)
        elif body is not None:
            is_text = isinstance(body, str) and not is_json(kind)
            if "*" in kind:
                kind = "text/plain" if is_text else JSON
            options["headers"]["Content-Type"] = kind
            options["content"] = body.encode() if is_text else to_json(body)

    def _parts(self, body: Mapping[str, Any]) -> list[tuple[str, tuple[str | None, bytes, str | None]]]:
        """Return the parts of a form of several (OpenAPI 3.1, 4.8.15.2): one for each item of an array, an
        object as JSON, what is binary as a file with the member's name."""
        found: list[tuple[str, tuple[str | None, bytes, str | None]]] = []
        members = self.operation.body_schema.get("properties") or {}
        for member, value in body.items():
            schema = members.get(member) or {}
            encoding = self.operation.body_encoding.get(member) or {}
            given = encoding.get("contentType", "").partition(",")[0].strip()
            item = (schema.get("items") or {}) if isinstance(value, list) else schema
            is_text = "contentMediaType" not in item or "contentEncoding" in item
            is_file = item.get("format") == "binary" or not is_text
            for each in items_of(value):
                kind = JSON if isinstance(each, (dict, list)) else BINARY if is_file else None
                if given and "*" not in given:
                    kind = given
                found.append((member, (member if is_file else None, text_of(each).encode(), kind)))
        return found

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
        if self.body_members is None:
            return arguments.get("body")
        found = {member: arguments[member] for member in self.body_members if member in arguments}
        return found if found or self.operation.body_required else None


def _written(parameter: OperationParameter, value: Any) -> Any:
    """Return a value as it is put into a request; of a parameter with a content of JSON, in the place of a
    schema, that text (4.8.12.3)."""
    is_left_out = value is None and parameter.place != "path"
    return to_json(value).decode() if parameter.is_json and not is_left_out else value


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
