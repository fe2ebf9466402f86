"""Definitions of resources: what ``@app.resource`` and ``@app.resources`` create.

A `Resource` is a function with a fixed URI. A `ResourceTemplate` is a function with a URI template, whose
variables are its parameters. A `Provider` is an object that lists and reads all resources of a scheme. All
are validated when they are decorated. If a function returns a path, the file is read on the thread where the
function ran. `fastrpc.methods.resources` finds the definition for a URI and encodes the result.
"""

from __future__ import annotations

from fastrpc.content import Contents as Contents
from fastrpc.content import annotations_of, checked_meta
from fastrpc.definitions.handler import DescribedHandler, Handler, is_unbound_method
from fastrpc.errors import DefinitionError, ResourceNotFound, Reworded
from fastrpc.protocol.versions import known
from fastrpc.schema import Signature, describe
from fastrpc.tool_style import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc.definitions.addresses import Addresses
    from fastrpc.options import (
        CacheScope,
        CallOptions,
        ContentAnnotations,
        Icon,
        PromptOptions,
        TemplateOptions,
    )
    from fastrpc.protocol.uri_template import Template
    from fastrpc.tool_style import ToolStyle

CACHE_SCOPES = ("public", "private")

_SCHEME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-")
_TEXTS = ("json", "xml", "javascript", "yaml", "toml", "x-sh", "sql")
"""MIME types of text that do not begin with ``text/``, by their endings."""
_MORE_TYPES = {
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
"""MIME types that the standard library, or some version of it, does not know."""
_types: Any = None


# ---------------------------------------------------------------------------------------- contents


def guessed_type(name: str, *, text: bool) -> str | None:
    """Return the MIME type for the extension of a URI or path; None if there is no suitable one.

    A text is not given the type of an image, for example, and compressed content gets none.
    """
    path = name.partition("?")[0].partition("#")[0]
    scheme, separator, rest = path.partition("://")
    if separator and scheme in ("http", "https") and "/" not in rest:
        return None  # a host, not a file
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    if not dot or not ending:
        return None
    ending = f".{ending.lower()}"
    found = _MORE_TYPES.get(ending)
    if found is None:
        global _types
        if _types is None:
            from mimetypes import MimeTypes

            _types = MimeTypes()  # without the types configured on this machine
        found, compression = _types.guess_type("file" + ending)
        if compression is not None:
            return None
    if found is None or (text and not found.startswith("text/") and not found.endswith(_TEXTS)):
        return None
    return found


def opened(value: Any, mime_type: str | None = None) -> Any:
    """Return what a function returned, or the content of the file if that is a path; None if there is no such
    file.

    Raises OSError if it is not a regular file or is larger than 64 MiB.
    """
    if not hasattr(value, "__fspath__"):
        return value
    from errno import EISDIR, ENOENT, ENOTDIR

    from fastrpc.regular_files import LARGEST, read_regular

    try:
        data = read_regular(value, LARGEST)
    except OSError as error:
        if error.errno in (ENOENT, ENOTDIR, EISDIR):
            return None
        raise
    content: str | bytes = data
    if b"\0" not in data:
        try:
            content = data.decode()
        except UnicodeDecodeError:
            pass
    name = value.__fspath__()
    name = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return Contents(content, mime_type or guessed_type(name, text=isinstance(content, str)))


class ReadingSignature(Signature):
    """A signature whose `call` also reads the file that the function returns, on the same thread.

    `ResourceNotFound`, raised by the function, becomes None, which it may also return; the error that the
    client receives depends on its version and is made elsewhere.
    """

    def __init__(self, signature: Signature, mime_type: str | None) -> None:
        vars(self).update(vars(signature))
        self.mime_type = mime_type

    def call(self, function: Callable[..., Any], values: list[Any], context: object = None) -> Any:
        try:
            value = super().call(function, values, context)
        except ResourceNotFound:
            return None
        return self._later(value) if hasattr(value, "__await__") else opened(value, self.mime_type)

    async def _later(self, awaited: Any) -> Any:
        try:
            value = await awaited
        except ResourceNotFound:
            return None
        if not hasattr(value, "__fspath__"):
            return value
        from asyncio import to_thread

        return await to_thread(opened, value, self.mime_type)


# ------------------------------------------------------------------------------------- descriptors


class Entry:
    """An entry of ``resources/list`` as a provider returns it; the members are those of a `Resource`.

    Raises ValueError for invalid annotations and metadata.
    """

    __slots__ = ("annotations", "description", "icons", "meta", "mime_type", "name", "size", "title", "uri")

    def __init__(
        self,
        uri: str,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: ContentAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.uri = uri
        self.name = name or uri
        self.title = title
        self.description = description
        self.mime_type = mime_type
        self.size = size
        self.annotations = annotations_of(annotations or {})
        self.icons = icons
        self.meta = checked_meta(meta or {})

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the entry in ``resources/list``, with the members that a protocol version has."""
        return known("Resource", {"uri": self.uri, **_described(self, version), "size": self.size}, version)


def _described(entry: Any, version: str) -> dict[str, Any]:
    """Return the members that descriptors of resources and templates share."""
    return {
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "mimeType": entry.mime_type,
        "annotations": known("Annotations", entry.annotations, version) or None,
        "icons": entry.icons,
        "_meta": entry.meta or None,
    }


_OPTIONS = {"mimeType": "mime_type", "_meta": "meta"}
"""The members that MCP writes differently from the options of an `Entry`."""


def entry_of(thing: Any) -> Any:
    """Return what a provider returned as an entry: an `Entry`, a URI, or a dict with the members of an
    `Entry`.

    Raises TypeError for anything else.
    """
    if isinstance(thing, (Entry, Resource)):
        return thing
    if isinstance(thing, str):
        return Entry(thing)
    if isinstance(thing, dict) and isinstance(thing.get("uri"), str):
        unknown = sorted(name for name in thing if _OPTIONS.get(name, name) not in Entry.__slots__)
        if unknown:
            raise TypeError(f"an entry of a list of resources has no member {unknown[0]!r}")
        return Entry(**{str(_OPTIONS.get(name, name)): value for name, value in thing.items()})
    raise TypeError(f"expected Entry, str or a dict with a 'uri', got {type(thing).__name__}")


# ---------------------------------------------------------------------------- resources, templates


class _Readable(DescribedHandler):
    """What resources and templates have in common. `style` is that of their errors."""

    def __init__(
        self,
        function: Callable[..., Any],
        address: str,
        *,
        mime_type: str | None = None,
        annotations: ContentAnnotations | None = None,
        ttl: float | None = None,
        cache_scope: CacheScope | None = None,
        **options: Unpack[PromptOptions],
    ) -> None:
        super().__init__(function, **options)
        if options.get("name") is None and self.name == "<lambda>":
            self.name = address
        self.style: ToolStyle = PLAIN
        self.mime_type = mime_type
        with Reworded(ValueError, self.error):
            self.annotations = annotations_of(annotations or {})
        self.ttl = ttl
        self.cache_scope: CacheScope | None = cache_scope
        check_caching(self, ttl, cache_scope)
        if is_unbound_method(self.function):
            raise self.error("is a method; add the method of an object, app.add_resource(uri, thing.method)")


def check_caching(owner: Any, ttl: Any, cache_scope: Any) -> None:
    """Raise DefinitionError for invalid caching hints."""
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not ttl >= 0):
        raise owner.error(f"ttl={ttl!r} is not a number of seconds, 0 or more")
    if cache_scope is not None and cache_scope not in CACHE_SCOPES:
        raise owner.error(f"cache_scope={cache_scope!r} is not one of {', '.join(CACHE_SCOPES)}")


class Resource(_Readable):
    """A function that returns the content of one URI. Raises `DefinitionError` for an invalid definition.

    `name`, `title`, `description`, `mime_type`, `size` (bytes), `annotations` (``audience``, ``priority``,
    ``last_modified``), `icons` and `meta` are sent to clients; name and description default to the function's
    own. `ttl` (seconds, default 0) and `cache_scope` say for how long, and by whom, the content may be cached
    (MCP 2026-07-28). The other options are those of `Handler`.
    """

    kind = "resource"

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        uri: str,
        size: int | None = None,
        **options: Unpack[TemplateOptions],
    ) -> None:
        self.uri = uri
        self.size = size
        self.is_shared = False
        """Whether it is the same in each server that has it: a mount does not add it a second time."""
        super().__init__(function, uri, **options)
        scheme, colon, rest = uri.partition(":")
        if not colon or not scheme or not rest or not scheme[0].isalpha() or not _SCHEME.issuperset(scheme):
            raise self.error(f"{uri!r} is not a URI; write for example docs://{self.name}")
        if not uri.isascii() or not uri.isprintable() or " " in uri:
            from fastrpc.protocol.uri_template import valid

            raise self.error(f"{uri!r} contains characters that a URI cannot have; write {valid(uri)}")
        if size is not None and (type(size) is not int or size < 0):
            raise self.error(f"size={size!r} is not a number of bytes")
        self.describe_early()

    @property
    def key(self) -> str:
        return self.uri

    def move(self, addresses: Addresses) -> None:
        """Take the URI that it has where its server is mounted."""
        self.uri = addresses.here(self.uri)

    def describe(self) -> Signature:
        signature = describe(self.function, structured=False)
        needed = [parameter.name for parameter in signature.parameters if parameter.required]
        if needed:
            raise self.error(
                f"takes {_names(needed)}, but {self.uri} has no variables; "
                f"write for example {self.uri.rstrip('/')}/{{{needed[0]}}}"
            )
        return ReadingSignature(signature, self.mime_type)

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the entry in ``resources/list``, with the members that a protocol version has."""
        return known("Resource", {"uri": self.uri, **_described(self, version), "size": self.size}, version)


class ResourceTemplate(_Readable):
    """A function that returns the content of each URI of a template, whose variables are its parameters.

    A value from the URI is converted to the parameter's type: ``"5"`` becomes 5 for an int. If the URI omits
    an optional variable (``{?page}``), the parameter's default is used; a parameter without one makes the URI
    not match. The options are those of `Resource`, except `size`. Raises `DefinitionError`.
    """

    kind = "template"

    def __init__(self, function: Callable[..., Any], *, uri: str, **options: Unpack[TemplateOptions]) -> None:
        from fastrpc.protocol.uri_template import Template

        self.uri_template = uri
        super().__init__(function, uri, **options)
        self.template: Template = Template(uri)
        self.describe_early()

    @property
    def key(self) -> str:
        return self.uri_template

    def move(self, addresses: Addresses) -> None:
        """Take the template that it has where its server is mounted."""
        from fastrpc.protocol.uri_template import Template

        self.uri_template = addresses.here(self.uri_template)
        self.template = Template(self.uri_template)

    def describe(self) -> Signature:
        signature = describe(self.function, structured=False)
        parameters = {parameter.name: parameter for parameter in signature.parameters}
        variables = self.template.variables
        unknown = [name for name in variables if name not in parameters]
        missing = [name for name, found in parameters.items() if found.required and name not in variables]
        if unknown or missing:
            raise self.error(
                f"{self.uri_template} has the variables {_names(variables)}, "
                f"the function the parameters {_names(parameters)}; let them be the same"
            )
        return ReadingSignature(signature, self.mime_type)

    def match(self, uri: str) -> dict[str, Any] | None:
        """Return the values of the variables in a URI: texts, or the steps of a path where the parameter is a
        list; None if the URI does not match."""
        from fastrpc.protocol.uri_template import LONGEST, normal

        return None if len(uri) > LONGEST else self.match_normal(normal(uri))

    def match_normal(self, uri: str) -> dict[str, Any] | None:
        """`match` for a URI that `uri_templates.normal` has normalised."""
        values: dict[str, Any] | None = self.template.match_normal(uri)
        if values is None:
            return None
        for parameter in self.signature.parameters:
            if parameter.name not in values:
                if parameter.required:
                    return None
            elif parameter.schema.get("type") == "array":
                values[parameter.name] = [step for step in values[parameter.name].split("/") if step]
        return values

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the entry in ``resources/templates/list``, as `Resource.descriptor` does."""
        entry = {"uriTemplate": self.uri_template, **_described(self, version)}
        return known("ResourceTemplate", entry, version)


def _names(names: Any) -> str:
    return ", ".join(repr(name) for name in names) or "none"


# --------------------------------------------------------------------------------------- providers


class ProviderMethod(Handler):
    """A provider's ``list`` or ``read`` method. Its first parameter receives the cursor or the URI."""

    kind = "provider"

    def __init__(
        self, provider: Provider, function: Callable[..., Any], name: str, **options: Unpack[CallOptions]
    ) -> None:
        super().__init__(function, name=f"{provider.scheme}.{name}", **options)
        self.provider = provider
        self.mime_type, self.ttl, self.cache_scope = provider.mime_type, provider.ttl, provider.cache_scope
        self.is_list = name == "list"
        self.describe_early()

    def describe(self) -> Signature:
        signature = describe(self.function, structured=False)
        first = signature.parameters[0] if signature.parameters else None
        needed = [parameter.name for parameter in signature.parameters[1:] if parameter.required]
        if first is not None and needed:
            raise self.error(f"takes {_names([first.name, *needed])}; a provider's method takes one value")
        if (
            self.is_list
            and first is not None
            and first.required
            and not (first.allows_null or first.kind == "json")
        ):
            raise self.error(f"{first.name!r} is None for the first page; write {first.name}: str | None")
        if not self.is_list and first is None:
            raise self.error("takes no URI; write def read(self, uri: str)")
        return ReadingSignature(signature, self.provider.mime_type)

    def bind(self, text: str | None) -> list[Any]:
        """Return the arguments of a call with a cursor or a URI. Raises ArgumentError."""
        signature = self.signature
        return signature.bind({signature.parameters[0].name: text} if signature.parameters else {})


class Provider:
    """An object that lists all resources of a scheme page by page, and reads them.

    The object has one or both of two methods, synchronous or asynchronous, which may also take a `Context`.
    ``list(self, cursor: str | None)`` returns a page: its entries (`Entry`, URIs, or dicts with ``uri``,
    ``name``, ``mime_type`` …) and the cursor of the next page, None on the last one; or just the entries.
    ``read(self, uri: str)`` returns what a resource's function returns, None if there is no such resource. A
    class is instantiated without arguments. A method ``watch(self, uri: str)``, if it has one, is called when
    a client has subscribed to one of its resources (`fastrpc.subscriptions`). `scheme` is ``db`` for
    ``db://…``, or a URI prefix. Raises `DefinitionError`.
    """

    def __init__(
        self,
        thing: Any,
        *,
        scheme: str,
        mime_type: str | None = None,
        ttl: float | None = None,
        cache_scope: CacheScope | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        self.scheme = scheme
        self.function = thing  # for messages
        from fastrpc.protocol.uri_template import normal

        self.prefix = normal(scheme if ":" in scheme else f"{scheme}:")
        self.is_exclusive = False
        """Whether it also reads URIs that resources and templates have."""
        self.mime_type = mime_type
        self.ttl = ttl
        self.cache_scope: CacheScope | None = cache_scope
        check_caching(self, ttl, cache_scope)
        if not scheme or not scheme[0].isalpha() or not _SCHEME.issuperset(scheme.partition(":")[0]):
            raise self.error("is not a URI scheme; write for example 'db'")
        if isinstance(thing, type):
            with Reworded(TypeError, self.error, "", "; give an object of the class"):
                thing = thing()
        lister, reader = getattr(thing, "list", None), getattr(thing, "read", None)
        if not callable(lister) and not callable(reader):
            raise self.error(f"a {type(thing).__name__} has neither list(cursor) nor read(uri)")
        self.lister = ProviderMethod(self, lister, "list", **options) if callable(lister) else None
        self.reader = ProviderMethod(self, reader, "read", **options) if callable(reader) else None
        self.watch: Callable[[str], object] | None = getattr(thing, "watch", None)

    @classmethod
    def of(cls, thing: object, options: dict[str, Any]) -> Provider:
        """Return a `Provider` unchanged, or make one of an object or a class. Raises `DefinitionError`."""
        return thing if isinstance(thing, cls) and not options else cls(thing, **options)

    @property
    def key(self) -> str:
        return self.scheme

    def settle(self) -> None:
        """Read the signatures of both methods, as `Handler.settle` does."""
        for method in (self.lister, self.reader):
            if method is not None:
                method.settle()

    def error(self, problem: str) -> DefinitionError:
        return DefinitionError(f"resources {self.scheme!r}: {problem}")

    def __repr__(self) -> str:
        return f"<Provider {self.scheme}>"


def is_template(uri: str) -> bool:
    """Whether a URI contains variables."""
    return "{" in uri
