"""What a client returns: results with attributes for their parts, and descriptors.

`raw` is the result as received. Nothing here communicates with a server. The result of a tool call is
`fastrpc._core.call_result.CallResult`.
"""

from __future__ import annotations

from fastrpc._core.call_result import check_block
from fastrpc.errors import InvalidAnswer, Reworded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Described(dict[str, "Any"]):
    """The descriptor of a tool, a resource, a template or a prompt: the dict as received. Its members are
    also attributes, in snake case too: ``tool.input_schema`` is ``tool["inputSchema"]``. A missing member
    is None."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name.startswith("__"):
            raise AttributeError(name)
        first, *others = name.split("_")
        return self.get(first + "".join(map(str.capitalize, others)), self.get(f"_{name}"))


class Result:
    """A result: `raw` as received, `meta`: its ``_meta``. Raises InvalidAnswer for wrong types."""

    method = ""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.meta: dict[str, Any] = member(self.method, raw, "_meta", dict, {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


class ReadResult(Result):
    """The content of a resource: `contents`, each with its ``uri`` and a ``text`` or a ``blob``."""

    method = "resources/read"

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self.contents = objects(self.method, raw, "contents")
        for part in self.contents:
            for name in ("uri", "text", "blob"):
                member(f"{self.method}: contents", part, name, str, None)

    @property
    def text(self) -> str:
        """All texts, joined by newlines."""
        return "\n".join(part["text"] for part in self.contents if part.get("text") is not None)

    @property
    def data(self) -> bytes:
        """All blobs, decoded and joined. Raises InvalidAnswer for one that is not base64."""
        from base64 import b64decode

        with Reworded(ValueError, InvalidAnswer, f"{self.method}: contents: blob: "):
            return b"".join(b64decode(part["blob"]) for part in self.contents if part.get("blob") is not None)


class PromptResult(Result):
    """A prompt: `messages`, each with a ``role`` and its ``content``; `description`."""

    method = "prompts/get"

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self.messages = objects(self.method, raw, "messages")
        self.description: str | None = member(self.method, raw, "description", str, None)
        for message in self.messages:
            check_block(f"{self.method}: messages: content", message.get("content"))

    @property
    def text(self) -> str:
        """The texts of all messages, joined by newlines."""
        contents = [message["content"] for message in self.messages]
        return "\n".join(content["text"] for content in contents if content["type"] == "text")


class CompletionResult(Result):
    """The completions of an argument: `values`, their `total` number, and whether there are more."""

    method = "completion/complete"

    def __init__(self, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        found = raw.get("completion")
        if not isinstance(found, dict):
            raise wrong(f"{self.method}: completion", "an object", found)
        values = found.get("values")
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise wrong(f"{self.method}: completion: values", "an array of strings", values)
        self.values: list[str] = values
        self.total: int | None = member(f"{self.method}: completion", found, "total", int, None)
        self.has_more: bool = member(f"{self.method}: completion", found, "hasMore", bool, False)


# --- what is expected of members --------------------------------------------------------------------------

NOUNS = {str: "a string", int: "an integer", bool: "a boolean", dict: "an object"}


def wrong(where: str, expected: str, found: Any) -> InvalidAnswer:
    """Return the error for a member that is not what was expected."""
    return InvalidAnswer(f"{where}: expected {expected}, got {found!r:.80}")


def member(where: str, raw: dict[str, Any], name: str, kind: type, otherwise: Any) -> Any:
    """Return an optional member, `otherwise` if it is missing or null. Raises InvalidAnswer."""
    found = raw.get(name)
    if found is None:
        return otherwise
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise wrong(f"{where}: {name}", NOUNS[kind], found)
    return found


def objects(method: str, raw: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a member that is an array of objects. Raises InvalidAnswer."""
    found = raw.get(name)
    if not isinstance(found, list) or not all(isinstance(part, dict) for part in found):
        raise wrong(f"{method}: {name}", "an array of objects", found)
    return found


KEYS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
"""The member of an entry without which it cannot be used."""
OPTIONAL: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("name", "title", "description", "mimeType"), str),
    **dict.fromkeys(("annotations", "outputSchema", "execution", "_meta"), dict),
    **dict.fromkeys(("icons", "arguments"), list),
    "size": (int, float),
}
"""What other members are, without which it can."""
KEYS_OF_ITEMS = {"icons": "src", "arguments": "name"}
"""The member that each item of such a list needs."""


def entries_of(method: str, raw: dict[str, Any], name: str, log: Callable[[str], object]) -> list[Any]:
    """Return the entries of a page of a list. Those that no client could use are left out, and members of a
    wrong type, for which other clients refuse the whole list; `log` is called with a text about both. Raises
    InvalidAnswer if the page has no list."""
    found = raw.get(name)
    if not isinstance(found, list):
        raise wrong(f"{method}: {name}", "an array", found)
    kept = []
    for entry in found:
        problem = _problem_of(name, entry)
        if problem:
            log(f"{method}: an entry is left out: {problem}")
            continue
        unsound = [each for each, value in entry.items() if each in OPTIONAL and not _is_sound(each, value)]
        if unsound:
            names = ", ".join(unsound)
            log(f"{method}: {entry[KEYS[name]]:.80}: members of a wrong type are left out: {names}")
            entry = {each: value for each, value in entry.items() if each not in unsound}
        kept.append(entry)
    return kept


def _is_sound(name: str, value: Any) -> bool:
    """Whether an optional member of an entry has its type, or is null."""
    if value is None:
        return True
    key, items = KEYS_OF_ITEMS.get(name), value if isinstance(value, list) else ()
    return isinstance(value, OPTIONAL[name]) and (
        key is None or all(isinstance(each, dict) and isinstance(each.get(key), str) for each in items)
    )


def _problem_of(name: str, entry: Any) -> str:
    """Return why an entry cannot be used; "" if it can."""
    if not isinstance(entry, dict):
        return f"expected an object, got {entry!r:.80}"
    key = KEYS[name]
    if not isinstance(entry.get(key), str):
        return f"{key}: expected a string, got {entry.get(key)!r:.80}"
    return _problem_of_schema(entry) if name == "tools" else ""


def _problem_of_schema(entry: dict[str, Any]) -> str:
    schema, where = entry.get("inputSchema"), f"{entry['name']:.80}: inputSchema"
    if not isinstance(schema, dict):
        return f"{where}: expected an object, got {schema!r:.80}"
    if not isinstance(schema.get("properties", {}), dict):
        return f"{where}: properties: expected an object, got {schema['properties']!r:.80}"
    if not isinstance(schema.get("required", []), list):
        return f"{where}: required: expected an array, got {schema['required']!r:.80}"
    return ""


def input_requests_of(method: str, found: Any, *, any_type: bool = False) -> dict[str, Any] | None:
    """Return the input requests of a result that asks for input (MCP 2026-07-28: InputRequiredResult); None
    for a complete one, and, with `any_type`, for one of a type that an extension defines. Raises
    InvalidAnswer for any other, or for requests that are none."""
    kind = found.get("resultType", "complete") if isinstance(found, dict) else "complete"
    if kind == "complete" or (any_type and kind != "input_required"):
        return None
    if kind != "input_required":
        raise wrong(f"{method}: resultType", "complete or input_required", kind)
    return input_requests_in(method, found)


def input_requests_in(method: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the input requests of a result or a task, by key. Raises InvalidAnswer."""
    requests: dict[str, Any] = member(method, found, "inputRequests", dict, {})
    for key, request in requests.items():
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            raise wrong(f"{method}: inputRequests: {key:.80}", "a request with a method", request)
        member(f"{method}: inputRequests: {key:.80}", request, "params", dict, None)
    return requests
