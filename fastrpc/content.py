"""What a handler may return besides plain values: content blocks, `Contents`, and `ToolResult`.

A helper holds an author's values. `block_of` converts it to the content block of a protocol version; a type
that the version lacks is replaced by another. Plain classes: importing them costs nothing. `fastrpc.methods`
sends the blocks.
"""

from __future__ import annotations

from fastrpc.protocol.versions import known, knows_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike
    from typing import Any

    from typing_extensions import Self, Unpack

    from fastrpc.options import ContentAnnotations, ContentHints, Icon

    _List = list[Any]
else:
    _List = list

_MIME_TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "bmp": "image/bmp", "svg": "image/svg+xml", "wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg",
    "flac": "audio/flac", "m4a": "audio/mp4", "aac": "audio/aac", "weba": "audio/webm",
}  # fmt: skip

KINDS_OF_CONTENT = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource_link": "ResourceLink",
    "resource": "EmbeddedResource",
}


_CONTENTS_MEMBERS = frozenset(("text", "blob", "mimeType", "uri", "_meta"))


class Content:
    """A block of content. Subclasses define its type.

    `annotations` are hints for the client: ``audience`` (``user``, ``assistant`` or a list of both),
    ``priority`` (0 to 1) and ``last_modified`` (a datetime or a text in ISO 8601). `meta` becomes the
    block's ``_meta``. Raises ValueError for others, and for malformed keys.
    """

    __slots__ = ("annotations", "meta")

    def __init__(
        self, *, annotations: ContentAnnotations | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        self.annotations = annotations if annotations is None else annotations_of(annotations)
        self.meta = meta if meta is None else checked_meta(meta)

    def to_block(self) -> dict[str, Any]:
        """Return the block as the JSON object of the newest version. Members may be None."""
        raise NotImplementedError


class Text(Content):
    """A text block."""

    __slots__ = ("text",)

    def __init__(self, text: str, **hints: Unpack[ContentHints]) -> None:
        self.text = text
        self.annotations = self.meta = None
        if hints:
            super().__init__(**hints)

    def to_block(self) -> dict[str, Any]:
        """Return the block: `type`, `text`, and `annotations` and `_meta` or None."""
        return {"type": "text", "text": self.text, "annotations": self.annotations, "_meta": self.meta}


class _Media(Content):
    """Encoded bytes with their MIME type, by default the `usual` one."""

    __slots__ = ("data", "mime_type")

    kind = usual = ""

    def __init__(self, data: bytes, mime_type: str | None = None, **hints: Unpack[ContentHints]) -> None:
        super().__init__(**hints)
        self.data = data
        self.mime_type = self.usual if mime_type is None else mime_type

    @classmethod
    def from_file(cls, path: str | PathLike[str], mime_type: str | None = None) -> Self:
        """Read a file of at most 64 MiB, as `mime_type` or its extension says. Raises ValueError, OSError."""
        ending = str(path).rpartition(".")[2].lower()
        found = mime_type or _MIME_TYPES.get(ending, "")
        if mime_type is None and not found.startswith(cls.kind):
            raise ValueError(f"{path}: no {cls.kind} type is known by this ending; give mime_type=")
        from fastrpc.regular_files import LARGEST, read_regular

        return cls(read_regular(path, LARGEST), found)

    def to_block(self) -> dict[str, Any]:
        """Return the block: `type`, the data in base64, `mimeType`, and `annotations` and `_meta` or None."""
        return {
            "type": self.kind,
            "data": _base64(self.data),
            "mimeType": self.mime_type,
            "annotations": self.annotations,
            "_meta": self.meta,
        }


class Image(_Media):
    """An image block: the encoded image (PNG, JPEG, GIF, WebP …) and its MIME type."""

    __slots__ = ()

    kind, usual = "image", "image/png"


class Audio(_Media):
    """A sound: the encoded audio (WAV, MP3, Ogg …) and its MIME type.

    2024-11-05 has no audio blocks; clients of that version get an embedded resource, the only block that can
    hold the sound itself.
    """

    __slots__ = ()

    kind, usual = "audio", "audio/wav"


class EmbeddedResource(Content):
    """A resource's content inside the result: `text`, or `data` for bytes."""

    __slots__ = ("data", "mime_type", "text", "uri")

    def __init__(
        self,
        uri: str,
        *,
        text: str | None = None,
        data: bytes | None = None,
        mime_type: str | None = None,
        **hints: Unpack[ContentHints],
    ) -> None:
        if (text is None) == (data is None):
            raise ValueError("an embedded resource has either text= or data=")
        super().__init__(**hints)
        self.uri = uri
        self.text = text
        self.data = data
        self.mime_type = mime_type

    def to_block(self) -> dict[str, Any]:
        """Return the block: `type`, the `resource` with its text or base64 blob, `annotations`, `_meta`."""
        resource = {
            "uri": self.uri,
            "mimeType": self.mime_type,
            "text": self.text,
            "blob": None if self.data is None else _base64(self.data),
        }
        return {
            "type": "resource",
            "resource": resource,
            "annotations": self.annotations,
            "_meta": self.meta,
        }


class ResourceLink(Content):
    """The address of a resource, which the client may read if it wants to.

    Versions before 2025-06-18 have no links; their clients get a text with all of the link's members.
    """

    __slots__ = ("description", "icons", "mime_type", "name", "size", "title", "uri")

    def __init__(
        self,
        uri: str,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        icons: list[Icon] | None = None,
        **hints: Unpack[ContentHints],
    ) -> None:
        super().__init__(**hints)
        self.uri = uri
        self.name = name
        self.title = title
        self.description = description
        self.mime_type = mime_type
        self.size = size
        self.icons = icons

    def to_block(self) -> dict[str, Any]:
        """Return the block: `type`, `uri`, `name`, and the optional members, which may be None."""
        return {
            "type": "resource_link",
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
            "size": self.size,
            "icons": self.icons,
            "annotations": self.annotations,
            "_meta": self.meta,
        }


class Block(Content):
    """A content block as a JSON object in the form of the newest version."""

    __slots__ = ("block",)

    def __init__(self, block: dict[str, Any]) -> None:
        super().__init__()
        self.block = block

    def to_block(self) -> dict[str, Any]:
        """Return the block as it was given."""
        return self.block


class Contents:
    """One of the contents of a resource: a text, or bytes; anything else is sent as JSON text.

    `mime_type`, `uri` and `meta` are sent with it; by default MIME type and URI are those of the resource. A
    function may return a list of several.
    """

    __slots__ = ("content", "meta", "mime_type", "others", "uri")

    def __init__(
        self,
        content: object,
        mime_type: str | None = None,
        *,
        uri: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.content: Any = content
        self.mime_type = mime_type
        self.uri = uri
        self.meta = meta
        self.others: dict[str, Any] | None = None
        """Members that an upstream server has sent and that no version of MCP defines."""

    @staticmethod
    def received(part: dict[str, Any]) -> Contents:
        """Return one of the contents of a received result, with base64 decoded."""
        content = part.get("text")
        if content is None:
            from base64 import b64decode

            content = b64decode(part["blob"])
        found = Contents(content, part.get("mimeType"), uri=part.get("uri"), meta=part.get("_meta"))
        if not _CONTENTS_MEMBERS.issuperset(part):
            found.others = {name: part[name] for name in part if name not in _CONTENTS_MEMBERS}
        return found

    @property
    def text(self) -> str:
        """The content as a text. Raises TypeError if it is bytes."""
        if not isinstance(self.content, str):
            raise TypeError(f"{self.uri or 'the content'} is not a text, but {type(self.content).__name__}")
        return self.content

    @property
    def data(self) -> bytes:
        """The content as bytes: a text in UTF-8."""
        return self.content.encode() if isinstance(self.content, str) else bytes(self.content)

    def __repr__(self) -> str:
        return f"Contents({self.content!r:.60}, {self.mime_type!r}, uri={self.uri!r})"


class Received(_List):
    """The contents or the messages of an upstream server's result, with the other members of the result."""

    def __init__(self, parts: Iterable[Any], rest: dict[str, Any]) -> None:
        super().__init__(parts)
        self.rest = rest


class ToolResult:
    """Full control over a tool's result.

    `content` is a `str`, a content helper, or a sequence of either; `structured` any JSON value for
    ``structuredContent`` (sent from protocol 2025-06-18 on; before 2026-07-28, a value that is not an object
    is sent as ``{"result": …}``). Without `content` the text is `structured` as JSON. `is_error` marks a
    failure that the model can react to; `meta` becomes the result's ``_meta``. Raises ValueError for
    malformed keys in `meta`.

    Widely used clients show the model **only** ``structuredContent`` if a result has both. So put everything
    that the text says into `structured`, too, or leave `structured` out and put the data for programs into
    `meta`.
    """

    __slots__ = ("content", "is_error", "meta", "structured")

    is_checked = True
    """Whether `structured` is validated against the tool's output schema."""

    whole: dict[str, Any] | None = None
    """The complete result, if its type is one that this class cannot represent; it is sent unchanged."""

    is_null = False
    """Whether an upstream server has sent null as `structured`: null is forwarded, not left out."""

    rest: dict[str, Any] | None = None
    """Members that an upstream server has sent and that no version of MCP defines."""

    def __init__(
        self,
        content: str | Content | Sequence[str | Content] | None = None,
        *,
        structured: object = None,
        is_error: bool = False,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.content = content
        self.structured: Any = structured
        self.is_error = is_error
        self.meta = meta if meta is None else checked_meta(meta)


# ------------------------------------------------------------------------------------------ blocks


def block_of(content: str | Content | dict[str, Any], version: str) -> dict[str, Any]:
    """Return the content block, in the form of `version`, for a text, a helper, or a block of the newest
    version.

    Members that the version lacks are left out; a type that it lacks is replaced by another.
    Raises TypeError for anything else.
    """
    if isinstance(content, str):
        return {"type": "text", "text": content}
    block = content.to_block() if isinstance(content, Content) else content
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise TypeError(f"content: expected str, a content helper or a block, got {type(content).__name__}")
    kind = block["type"]
    if not knows_content(kind, version):
        block = _SUBSTITUTES[kind](block)
        kind = block["type"]
    if kind not in KINDS_OF_CONTENT:
        return block
    if block.get("annotations") is not None:
        annotations = known("Annotations", block["annotations"], version)
        block = {**block, "annotations": annotations or None}
    if kind == "resource":
        block = {**block, "resource": known("ResourceContents", block["resource"], version)}
    return known(KINDS_OF_CONTENT[kind], block, version)


def _resource_of_audio(block: dict[str, Any]) -> dict[str, Any]:
    """Return an embedded resource with the sound: a client that cannot play it can save it or pass it on."""
    from binascii import crc32

    address = f"audio:///{crc32(block['data'].encode('ascii')):08x}"
    resource = {"uri": address, "mimeType": block["mimeType"], "blob": block["data"]}
    return {"type": "resource", "resource": resource, "annotations": block.get("annotations")}


def _text_of_link(block: dict[str, Any]) -> dict[str, Any]:
    """Return a text for a link. An embedded resource would state that the linked resource is empty."""
    size = block.get("size")
    facts = [block.get("mimeType"), None if size is None else f"{size} bytes"]
    shown = ", ".join(fact for fact in facts if fact)
    lines = [f"{block.get('title') or block['name']}: {block['uri']}" + (f" ({shown})" if shown else "")]
    if block.get("description"):
        lines.append(block["description"])
    return {"type": "text", "text": "\n".join(lines), "annotations": block.get("annotations")}


_SUBSTITUTES = {"audio": _resource_of_audio, "resource_link": _text_of_link}


def _base64(data: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode("ascii")


# ------------------------------------------------------------------------- annotations and metadata


def annotations_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of content or a resource in the protocol's form. Raises ValueError."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name == "audience":
            roles = [value] if isinstance(value, str) else list(value)
            if not {"user", "assistant"}.issuperset(roles):
                raise ValueError(f"annotations: audience: expected user or assistant, got {value!r:.80}")
            found[name] = roles
        elif name == "priority":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise ValueError(f"annotations: priority: expected a number from 0 to 1, got {value!r:.80}")
            found[name] = value
        elif name in ("last_modified", "lastModified"):
            found["lastModified"] = value if isinstance(value, str) else value.isoformat()
        else:
            raise ValueError(f"annotations: {name!r:.80} is not one of audience, priority, last_modified")
    return found


def checked_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Return `meta` if its keys are well formed (MCP, basic: _meta). Raises ValueError.

    Reserved prefixes are accepted: authors of an extension use its keys.
    """
    for key in meta:
        if not isinstance(key, str) or not _is_meta_key(key):
            form = "a name of letters, digits and -_. between letters or digits, after an optional prefix/"
            raise ValueError(f"meta: {key!r:.80} is not a valid key; expected {form}")
    return meta


def checked_extensions(extensions: dict[str, Any]) -> dict[str, Any]:
    """Return `extensions` if its keys are names of extensions, ``vendor.example/name``. Raises ValueError."""
    for key, settings in extensions.items():
        if not isinstance(key, str) or "/" not in key or not _is_meta_key(key):
            raise ValueError(f"extensions: {key!r:.80} is not a name such as vendor.example/name")
        if not isinstance(settings, dict):
            raise ValueError(f"extensions: {key}: expected a dict of settings, got {settings!r:.80}")
    return extensions


def _is_meta_key(key: str) -> bool:
    if key in _meta_keys:
        return True
    good = _reads_as_meta_key(key)
    if good and len(_meta_keys) < 256:
        _meta_keys.add(key)
    return good


_meta_keys: set[str] = set()
"""Keys that have been checked: a tool uses the same ones in each result."""


def _reads_as_meta_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if not key.isascii() or (slash and not all(_is_label(label) for label in prefix.split("."))):
        return False
    if not name:
        return bool(slash)
    inner = name.replace("-", "").replace("_", "").replace(".", "")
    return name[0].isalnum() and name[-1].isalnum() and inner.isalnum()


def _is_label(label: str) -> bool:
    return label[:1].isalpha() and label[-1].isalnum() and label.replace("-", "").isalnum()
