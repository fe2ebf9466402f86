"""Makes the JSON of a tool's result: content blocks, structured content, errors; each version's own form.

The most common result, `str`, is usually not handled here: the connection escapes it directly into the
output. The JSON of all other values is written by `fastrpc.json_encoding`. Whether a value conforms to
its tool's output schema is checked by `fastrpc.engine.output_validation`, imported by the first that has one.
"""

from __future__ import annotations

from fastrpc._core.encoder import OBJECT_FORM, TEXT_FORM, WRAPPED_FORM, dumps, quoted, result_of
from fastrpc.content import Content, ToolResult, block_of
from fastrpc.errors import ProtocolError
from fastrpc.json_encoding import UnencodableResult, rich_json, to_json
from fastrpc.protocol.versions import ANY_STRUCTURED, SERVER_KEY, STATELESS, STRUCTURED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc.definitions.tool import Tool
    from fastrpc.schema import Signature

WRAP_MARK = {"fastmcp": {"wrap_result": True}}
SIGNATURE_MEMBERS = ("name", "version", "title")
"""The members of `serverInfo` in every 2026-07-28 result; server/discover returns all of them."""
GLANCED_AT = {"str": str, "object": dict, "array": list, "int": int, "float": float, "bool": bool}
"""Kinds of converters whose values the connection writes without a check, if they have exactly this type."""


class Results:
    """Encodes results, in 2026-07-28 with the server's `serverInfo`."""

    def __init__(self, server_info: dict[str, Any]) -> None:
        signature = {name: server_info[name] for name in SIGNATURE_MEMBERS if name in server_info}
        self._server_meta = {SERVER_KEY: signature}
        self._stateless_ending = b',"resultType":"complete","_meta":' + dumps(self._server_meta) + b"}"
        self._tails: dict[str, tuple[bytes, ...]] = {}
        self._endings: dict[str, tuple[bytes, ...]] = {}
        self.notes: Sequence[Callable[[], list[str]]] = ()
        """Called for each result; the returned texts are appended to its content (`Server.set_note`)."""

    def tails(self, version: str) -> tuple[bytes, ...]:
        """Return what follows a plain value's text, the text's own end included, for each form of result."""
        tails = self._tails.get(version)
        if tails is None:
            usual = b'"}]' + self.tail(version)
            wrapped = b'"}]' + self.tail(version, meta=WRAP_MARK)
            tails = self._tails[version] = (usual, usual, wrapped if version in STRUCTURED else usual)
        return tails

    def endings(self, version: str) -> tuple[bytes, ...]:
        """Return tails(), and that of an error, each with the end of the response: what connections write by
        themselves."""
        endings = self._endings.get(version)
        if endings is None:
            error = b'"}]' + self.tail(version, is_error=True)
            endings = tuple(tail + b"}\n" for tail in (*self.tails(version), error))
            self._endings[version] = endings
        return endings

    def tail(self, version: str, *, is_error: bool = False, meta: dict[str, Any] | None = None) -> bytes:
        """Return all that follows the content of a result, closing brace included."""
        text = b',"isError":true' if is_error else b',"isError":false'
        return text + self.ending(version, meta)

    def ending(self, version: str, meta: dict[str, Any] | None = None) -> bytes:
        """Return what every result of a version ends with, closing brace included."""
        if version == STATELESS:
            if not meta:
                return self._stateless_ending
            return b',"resultType":"complete","_meta":' + to_json({**meta, **self._server_meta}) + b"}"
        return b',"_meta":' + to_json(meta) + b"}" if meta else b"}"

    def failure(self, message: str, version: str) -> bytes:
        """Return an error result, with a message for the model."""
        encoded = quoted(message.encode("utf-8", "backslashreplace").decode())
        result = b'{"content":[{"type":"text","text":' + encoded + b"}]" + self.tail(version, is_error=True)
        return self._noted(result) if self.notes else result

    def of(self, tool: Tool, value: Any, version: str) -> bytes:
        """Return the result that `tool`'s return value makes. Raises UnencodableResult."""
        try:
            result = self._of(tool, value, version)
        except UnicodeEncodeError:
            raise UnencodableResult("the result holds half a surrogate pair, which is not text") from None
        return self._noted(result) if self.notes else result

    def _noted(self, result: bytes) -> bytes:
        """Return a result with the texts of `notes` appended to its content."""
        texts = [text for note in self.notes for text in note()]
        if not texts:
            return result
        from json import loads

        members = loads(result)
        members["content"] += [{"type": "text", "text": text} for text in texts]
        return to_json(members)

    def _of(self, tool: Tool, value: Any, version: str) -> bytes:
        promised = tool.signature.output_schema is not None
        is_list = isinstance(value, (list, tuple))
        if not isinstance(value, ToolResult) and tool.style.convert is not None:
            value = tool.style.convert(value)
            if promised and not tool.style.checks_results and self._is_beside_schema(tool, value):
                promised = False
        if isinstance(value, ToolResult):
            if promised and tool.style.checks_results and value.is_checked and not value.is_error:
                from fastrpc.engine.output_validation import check_structured

                check_structured(tool.signature, value.structured)
            return self._full(value, version)
        if promised and isinstance(value, (list, tuple)) and takes_blocks(tool) and _holds_content(value):
            return self._listed_blocks(value, version)
        if promised:
            from fastrpc.engine.output_validation import conforming

            is_text = tool.style.structures_texts and (value is None or type(value) is str)
            is_object = not tool.signature.wraps_result
            is_strict = tool.style.checks_results or (is_object and tool.style.checks_objects)
            if tool.style.numeric is not None:
                value = tool.style.numeric(value)
            value = conforming(tool.signature, value, is_strict=is_strict)
            if tool.style.block_per_item and is_list:
                structured = {"result": value} if tool.signature.wraps_result else None
                return self._full(ToolResult(_items(value), structured=structured), version)
            if is_text and (value is None or isinstance(value, str)):
                return self._text_value(value, version)
            return self._value(tool, value, version)
        try:
            return self._unpromised(tool, value, version, is_list, tool.style.structures_objects)
        except UnencodableResult:
            if tool.style.readable is None:
                raise
            return self._unpromised(tool, tool.style.readable(value), version, is_list, False)

    def _unpromised(self, tool: Tool, value: Any, version: str, is_list: bool, is_structured: bool) -> bytes:
        """A result of which no output schema says anything."""
        if isinstance(value, str):
            return _texts([value]) + self.tail(version)
        if value is None:
            return b'{"content":[]' + self.tail(version)
        if isinstance(value, Content):
            return _blocks([value], version) + self.tail(version)
        if isinstance(value, (list, tuple)) and _holds_content(value):
            return _blocks(value, version) + self.tail(version)
        value = tool.signature.to_json(value)
        if is_structured and to_json(value).startswith(b"{"):
            return self._full(ToolResult(structured=value), version)
        if tool.style.block_per_item and is_list:
            return _blocks(_items(value), version) + self.tail(version)
        return self._value(tool, value, version)

    @staticmethod
    def _is_beside_schema(tool: Tool, value: Any) -> bool:
        """Whether a result is content, or none at all, where another framework sends that without looking at
        the output schema."""
        if isinstance(value, (list, tuple)):
            return _holds_content(value)
        is_none_sent = not tool.signature.wraps_result and not tool.style.checks_objects
        return isinstance(value, Content) or (value is None and is_none_sent)

    def _listed_blocks(self, value: Sequence[Any], version: str) -> bytes:
        """Blocks of a tool whose schema promises a list of anything: they are its items, too."""
        blocks = _blocks(value, version)
        if version not in STRUCTURED:
            return blocks + self.tail(version)
        items = blocks.removeprefix(b'{"content":')
        return blocks + b',"structuredContent":{"result":' + items + b"}" + self.tail(version, meta=WRAP_MARK)

    def _full(self, result: ToolResult, version: str) -> bytes:
        if result.whole is not None:
            return to_json({**result.whole, "_meta": {**result.whole.get("_meta", {}), **self._server_meta}})
        content, structured, meta = result.content, result.structured, result.meta
        encoded = b"" if structured is None and not result.is_null else to_json(structured)
        parts: Sequence[Any]
        if content is None:
            parts = [encoded.decode()] if encoded else []
        elif isinstance(content, (str, Content)):
            parts = [content]
        else:
            parts = content
        text = _blocks(parts, version)
        if encoded and version in STRUCTURED:
            if version not in ANY_STRUCTURED and not encoded.startswith(b"{") and not result.is_null:
                encoded = b'{"result":' + encoded + b"}"
                meta = {**WRAP_MARK, **(meta or {})}
            text += b',"structuredContent":' + encoded
        if result.rest:
            text += b"," + to_json(result.rest)[1:-1]
        return text + self.tail(version, is_error=result.is_error, meta=meta)

    def _text_value(self, value: str | None, version: str) -> bytes:
        """A text or None of a tool whose results are wrapped: structured content, too."""
        text = _texts([] if value is None else [value])
        if version not in STRUCTURED:
            return text + self.tail(version)
        wrapped = b',"structuredContent":' + dumps({"result": value})
        return text + wrapped + self.tail(version, meta=WRAP_MARK)

    def _value(self, tool: Tool, value: Any, version: str) -> bytes:
        """Any other value: its JSON as a text, and as structured content where there is a schema for it."""
        form = form_of(tool.signature) if version in STRUCTURED else TEXT_FORM
        result = result_of(value, form, self.tails(version)[form])
        return result if result is not None else self._rare_value(value, form, version)

    def _rare_value(self, value: Any, form: int, version: str) -> bytes:
        """The same for values that the compiled writer does not support."""
        encoded = to_json(value)
        text = b'{"content":[{"type":"text","text":' + quoted(encoded.decode())[:-1]
        end = self.tails(version)[form]
        if form == WRAPPED_FORM:
            end = b'"}],"structuredContent":{"result":' + encoded + b"}" + end[3:]
        elif form == OBJECT_FORM and encoded.startswith(b"{"):
            end = b'"}],"structuredContent":' + encoded + end[3:]
        return text + end


def form_of(signature: Signature) -> int:
    """Return the form of a tool's results in versions with structured content: a text, and what beside it."""
    if signature.output_schema is None:
        return TEXT_FORM
    return WRAPPED_FORM if signature.wraps_result else OBJECT_FORM


def keeps_plain_values(signature: Signature) -> bool:
    """Return whether `Signature.to_json` returns every plain value unchanged, so that it need not be called.

    Plain converters return whatever they get; msgspec changes only what is not plain; pydantic may have a
    serializer for anything.
    """
    return signature.output_schema is None or not hasattr(signature.result_converter, "adapter")


def exact_type_of(signature: Signature) -> type | None:
    """Return the type that a plain value has to have for the connection to write it; None: any."""
    return None if signature.output_schema is None else GLANCED_AT.get(signature.result_converter.kind)


def divides_values(tool: Tool) -> bool:
    """Return whether a plain value of a tool may have to be divided into blocks, by its output schema."""
    signature = tool.signature
    if signature.output_schema is None or not tool.style.block_per_item:
        return False
    return signature.result_converter.kind not in GLANCED_AT or signature.result_converter.kind == "array"


def plain_check_of(tool: Tool) -> Callable[[Any], bool] | None:
    """Return a function that checks a plain value against the output schema; None if its type decides.

    Without a schema, it tells the values that need not be divided into blocks.
    """
    signature = tool.signature
    if signature.output_schema is None:
        if tool.style.structures_objects:
            return lambda value: not isinstance(value, dict)
        return (lambda value: not isinstance(value, (list, tuple))) if tool.style.block_per_item else None
    if signature.result_converter.kind in GLANCED_AT:
        return None
    from fastrpc.engine.output_validation import plain_check

    return plain_check(signature.result_converter, texts=tool.style.structures_texts)


def plain_of(tool: Tool) -> tuple[Callable[[Any], Any], int] | None:
    """Return what makes a plain value of a tool's results that keep its output schema, and the form of that;
    None where a look at their type is enough, or there is more to do than that."""
    signature = tool.signature
    converter = signature.result_converter
    if signature.output_schema is None or converter.kind in GLANCED_AT or divides_values(tool):
        return None
    from fastrpc.schema.value_types import value_type_of

    value_type = value_type_of(converter)
    plain = converter.plain_value if value_type is None else value_type.plain
    return None if plain is None else (plain, form_of(signature))


def text_maker_of(tool: Tool) -> Callable[[Any], str | None] | None:
    """Return what makes the text of a record that no schema describes; None where more is made of it."""
    style = tool.style
    if tool.signature.output_schema is not None or style.structures_objects or style.block_per_item:
        return None
    return _text_of_record


def _text_of_record(value: Any) -> str | None:
    kind = type(value)
    if kind is not _records[-1]:
        if not _is_record(kind):
            return None
        _records[:] = [kind]
    return rich_json(value).decode()


_records: list[type] = [str]
"""The class of the last record that was one: most tools return instances of one class."""


def _is_record(kind: type) -> bool:
    """Whether instances of a class are what their members say: dataclasses, Structs, models."""
    is_marked = any(hasattr(kind, mark) for mark in RECORD_MARKS)
    return is_marked and not hasattr(kind, "__await__") and not issubclass(kind, (Content, ToolResult))


RECORD_MARKS = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__", "__pydantic_serializer__")


def takes_blocks(tool: Tool) -> bool:
    """Return whether results may be content blocks: without a schema, or with one of a list of anything."""
    signature = tool.signature
    if signature.output_schema is None:
        return True
    is_list = signature.wraps_result and signature.result_converter.kind == "array"
    return is_list and not tool.style.block_per_item


def _holds_content(values: Sequence[Any]) -> bool:
    """Whether a list is content, made of helpers and texts, and no value."""
    found = False
    for part in values:
        if isinstance(part, Content):
            found = True
        elif not isinstance(part, str):
            return False
    return found


def _items(values: Sequence[Any]) -> list[Any]:
    """Return the blocks of a list's items: texts and content as they are, those of lists in it, of other
    values the JSON, and none of None."""
    blocks: list[Any] = []
    for item in values:
        if isinstance(item, (list, tuple)):
            blocks += _items(item)
        elif item is not None:
            blocks.append(item if isinstance(item, (str, Content)) else to_json(item).decode())
    return blocks


def _texts(texts: list[str]) -> bytes:
    blocks = b",".join(b'{"type":"text","text":' + quoted(text) + b"}" for text in texts)
    return b'{"content":[' + blocks + b"]"


def _blocks(parts: Sequence[Any], version: str) -> bytes:
    for part in parts:
        if not isinstance(part, (str, Content)):
            raise UnencodableResult(f"content: expected str or a helper, got {type(part).__name__}")
    return b'{"content":' + to_json([block_of(part, version) for part in parts])


def error_object(code: int, message: str, data: Any = None) -> bytes:
    """Return a JSON-RPC error object (section 5.1). A handler may have raised it: what JSON cannot hold is
    left out of it, half a surrogate pair is shown as an escape, a code that is not an integer is -32603."""
    code = int(code) if isinstance(code, int) else ProtocolError.code
    message = message if isinstance(message, str) else str(message)
    error = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    try:
        return dumps(error)
    except (TypeError, UnicodeEncodeError):
        shown = message.encode("utf-8", "backslashreplace").decode()
        return dumps({"code": code, "message": shown})
