"""What ``@app.resource`` and ``@app.resources`` leave behind, and what a resource hands back.

A `Resource` is a function at a fixed URI, a `ResourceTemplate` one at a URI with variables, which are its
parameters; a `Provider` is an object that lists and reads all resources of a scheme. They are judged while
they are decorated. A function that returns a path has the file read where the function ran. Which of them
serves a URI, and the JSON of what it returns, is left to `fastrpc.methods.resources`.
"""

from __future__ import annotations

from fastrpc.catalogue.handlers import Handler, clean_docstring, docstring_of, is_unbound_method, made
from fastrpc.errors import DefinitionError, ResourceNotFound
from fastrpc.schema import Signature, describe
from fastrpc.types import Contents as Contents
from fastrpc.types import annotations_of, checked_meta
from fastrpc.versions import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Unpack

    from fastrpc.options import CacheScope, CallOptions, ContentAnnotations, Icon, Run, TemplateOptions
    from fastrpc.resources.uri_templates import Template

CACHE_SCOPES = ("public", "private")

_SCHEME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-")
_TEXTS = ("json", "xml", "javascript", "yaml", "toml", "x-sh", "sql")
"""Ends of MIME types that are of texts without saying so."""
_MORE_TYPES = {
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
"""What the standard library does not know, or not in every version."""
_types: Any = None


# ---------------------------------------------------------------------------------------- contents


def guessed_type(name: str, *, text: bool) -> str | None:
    """Return the MIME type that the end of a URI or path tells of; None if it tells none that fits.

    The type of a picture, say, does not fit a text; nor does that of what is compressed.
    """
    path = name.partition("?")[0].partition("#")[0]
    scheme, separator, rest = path.partition("://")
    if separator and scheme in ("http", "https") and "/" not in rest:
        return None  # a host, no file
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    if not dot or not ending:
        return None
    ending = f".{ending.lower()}"
    found = _MORE_TYPES.get(ending)
    if found is None:
        global _types
        if _types is None:
            from mimetypes import MimeTypes

            _types = MimeTypes()  # without what this machine adds
        found, compression = _types.guess_type("file" + ending)
        if compression is not None:
            return None
    if found is None or (text and not found.startswith("text/") and not found.endswith(_TEXTS)):
        return None
    return found


def opened(value: Any, mime_type: str | None = None) -> Any:
    """Return what a function returned; the content of the file, if that is a path. None: there is no file.

    Raises OSError for what is no regular file or has more than 64 MiB.
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
    """A signature whose call opens what the function returns, on the same thread.

    `ResourceNotFound`, raised by the function, says the same as None, which it may return: the answer is
    made by whoever knows the client's version.
    """

    __slots__ = ("mime_type",)

    def __init__(self, signature: Signature, mime_type: str | None) -> None:
        for name in Signature.__slots__:
            setattr(self, name, getattr(signature, name))
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


# --------------------------------------------------------------------------- what clients are told


class Entry:
    """An entry of ``resources/list`` as a provider lists it; the members are those of a `Resource`.

    Raises ValueError for annotations and metadata that are none.
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
        return known("Resource", {"uri": self.uri, **_described(self, version), "size": self.size}, version)


def _described(entry: Any, version: str) -> dict[str, Any]:
    """Return what resources and templates say of themselves alike."""
    return {
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "mimeType": entry.mime_type,
        "annotations": known("Annotations", entry.annotations, version) or None,
        "icons": entry.icons,
        "_meta": entry.meta or None,
    }


_MEMBERS = {
    "uri": "uri",
    "name": "name",
    "title": "title",
    "description": "description",
    "mimeType": "mime_type",
    "mime_type": "mime_type",
    "size": "size",
    "annotations": "annotations",
    "icons": "icons",
    "_meta": "meta",
    "meta": "meta",
}


def entry_of(thing: Any) -> Any:
    """Return what a provider lists as an entry: an `Entry`, a URI, or a dict with the members of either.

    Raises TypeError for anything else.
    """
    if isinstance(thing, (Entry, Resource)):
        return thing
    if isinstance(thing, str):
        return Entry(thing)
    if isinstance(thing, dict) and isinstance(thing.get("uri"), str):
        unknown = sorted(name for name in thing if name not in _MEMBERS)
        if unknown:
            raise TypeError(f"an entry of a list of resources has no member {unknown[0]!r}")
        return Entry(**{_MEMBERS[name]: value for name, value in thing.items()})
    raise TypeError(f"expected Entry, str or a dict with a 'uri', got {type(thing).__name__}")


# ---------------------------------------------------------------------------- resources, templates


class _Readable(Handler):
    """What a resource and a template have in common."""

    __slots__ = ("annotations", "cache_scope", "description", "icons", "meta", "mime_type", "title", "ttl")

    def __init__(
        self,
        function: Callable[..., Any],
        address: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: ContentAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        ttl: float | None = None,
        cache_scope: CacheScope | None = None,
        run: Run = "auto",
        timeout_seconds: float | None = None,
        max_running: int | None = None,
    ) -> None:
        super().__init__(
            function, name=name, run=run, timeout_seconds=timeout_seconds, max_running=max_running
        )
        if name is None and self.name == "<lambda>":
            self.name = address
        self.title = title
        self.description = clean_docstring(
            docstring_of(self.function) if description is None else description
        )
        self.mime_type = mime_type
        self.icons = icons
        try:
            self.annotations = annotations_of(annotations or {})
            self.meta = checked_meta(meta or {})
        except ValueError as error:
            raise self.error(str(error)) from None
        self.ttl = ttl
        self.cache_scope: CacheScope | None = cache_scope
        check_caching(self, ttl, cache_scope)
        if is_unbound_method(self.function):
            raise self.error("is a method; add the method of an object, app.add_resource(uri, thing.method)")


def check_caching(owner: Any, ttl: Any, cache_scope: Any) -> None:
    """Raise DefinitionError for caching hints that are none."""
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not ttl >= 0):
        raise owner.error(f"ttl={ttl!r} is not a number of seconds, 0 or more")
    if cache_scope is not None and cache_scope not in CACHE_SCOPES:
        raise owner.error(f"cache_scope={cache_scope!r} is none of {', '.join(CACHE_SCOPES)}")


class Resource(_Readable):
    """A function that gives what is at a URI. Raises `DefinitionError` for what cannot be one.

    `name`, `title`, `description`, `mime_type`, `size` (bytes), `annotations` (``audience``, ``priority``,
    ``last_modified``), `icons` and `meta` are what clients are told; name and description are the
    function's own unless given. `ttl` (seconds; 0 unless given) and `cache_scope` say for how long and by
    whom what was read may be kept (MCP 2026-07-28). The other options are those of `Handler`.
    """

    __slots__ = ("size", "uri")

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
        super().__init__(function, uri, **options)
        scheme, colon, rest = uri.partition(":")
        if not colon or not scheme or not rest or not scheme[0].isalpha() or not _SCHEME.issuperset(scheme):
            raise self.error(f"{uri!r} is no URI; write for example docs://{self.name}")
        if not uri.isascii() or not uri.isprintable() or " " in uri:
            from fastrpc.resources.uri_templates import normal

            raise self.error(f"{uri!r} holds what a URI cannot; write {normal(uri)}")
        if size is not None and (type(size) is not int or size < 0):
            raise self.error(f"size={size!r} is not a number of bytes")
        self.describe_early()

    @property
    def key(self) -> str:
        return self.uri

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
        """Return the entry in ``resources/list``, with the members that a protocol version knows."""
        return known("Resource", {"uri": self.uri, **_described(self, version), "size": self.size}, version)


class ResourceTemplate(_Readable):
    """A function that gives what is at each URI of a template, whose variables are its parameters.

    What a client wrote is read by the parameter's type, ``"5"`` as 5 for an int. Where a URI leaves out what
    it may (``{?page}``) the parameter's default is meant; without one the URI is not of this template. The
    options are those of `Resource`, but for `size`. Raises `DefinitionError`.
    """

    __slots__ = ("template", "uri_template")

    kind = "template"

    def __init__(self, function: Callable[..., Any], *, uri: str, **options: Unpack[TemplateOptions]) -> None:
        from fastrpc.resources.uri_templates import Template

        self.uri_template = uri
        super().__init__(function, uri, **options)
        self.template: Template = Template(uri)
        self.describe_early()

    @property
    def key(self) -> str:
        return self.uri_template

    @property
    def variables(self) -> tuple[str, ...]:
        return self.template.variables

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

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables' values in a URI; None if it is none of the template's."""
        from fastrpc.resources.uri_templates import LONGEST, normal

        return None if len(uri) > LONGEST else self.match_normal(normal(uri))

    def match_normal(self, uri: str) -> dict[str, str] | None:
        """`match` for a URI in its one spelling (`uri_templates.normal`)."""
        values = self.template.match_normal(uri)
        if values is None:
            return None
        for parameter in self.signature.parameters:
            if parameter.required and parameter.name not in values:
                return None
        return values

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the entry in ``resources/templates/list``, as `Resource.descriptor`."""
        entry = {"uriTemplate": self.uri_template, **_described(self, version)}
        return known("ResourceTemplate", entry, version)


def _takes_null(parameter: Any) -> bool:
    return bool(parameter.allows_null or parameter.kind == "json")


def _names(names: Any) -> str:
    return ", ".join(repr(name) for name in names) or "none"


# --------------------------------------------------------------------------------------- providers


class ProviderMethod(Handler):
    """A provider's ``list`` or ``read``; its first parameter, if it has one, is the cursor or the URI."""

    __slots__ = ("is_list", "provider")

    kind = "provider"

    def __init__(
        self, provider: Provider, function: Callable[..., Any], name: str, **options: Unpack[CallOptions]
    ) -> None:
        super().__init__(function, name=f"{provider.scheme}.{name}", **options)
        self.provider = provider
        self.is_list = name == "list"
        self.describe_early()

    def describe(self) -> Signature:
        signature = describe(self.function, structured=False)
        first = signature.parameters[0] if signature.parameters else None
        needed = [parameter.name for parameter in signature.parameters[1:] if parameter.required]
        if first is not None and needed:
            raise self.error(f"takes {_names([first.name, *needed])}; a provider's method takes one value")
        if self.is_list and first is not None and first.required and not _takes_null(first):
            raise self.error(f"{first.name!r} is None for the first page; write {first.name}: str | None")
        if not self.is_list and first is None:
            raise self.error("takes no URI; write def read(self, uri: str)")
        return ReadingSignature(signature, self.provider.mime_type)

    @property
    def mime_type(self) -> str | None:
        return self.provider.mime_type

    @property
    def ttl(self) -> float | None:
        return self.provider.ttl

    @property
    def cache_scope(self) -> str | None:
        return self.provider.cache_scope

    def bind(self, text: str | None) -> list[Any]:
        """Return the arguments of a call whose first parameter gets the cursor, or the URI."""
        signature = self.signature
        return signature.bind({signature.parameters[0].name: text} if signature.parameters else {})


class Provider:
    """All resources of a scheme, listed page by page and read by one object.

    The object has one or both of two methods, synchronous or not, which may take a `Context` too.
    ``list(self, cursor: str | None)`` returns a page: its entries (`Entry`, URIs, or dicts with ``uri``,
    ``name``, ``mime_type`` …) and the cursor of the next page, None at the end; or the entries alone.
    ``read(self, uri: str)`` returns what a resource's function returns, None if there is nothing.
    A class is called without arguments. `scheme` is ``db`` for ``db://…``, or the beginning of URIs.
    """

    __slots__ = ("cache_scope", "function", "lister", "mime_type", "prefix", "reader", "scheme", "ttl")

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
        self.function = thing  # what a message names
        self.prefix = scheme if ":" in scheme else f"{scheme}:"
        self.mime_type = mime_type
        self.ttl = ttl
        self.cache_scope: CacheScope | None = cache_scope
        check_caching(self, ttl, cache_scope)
        if not scheme or not scheme[0].isalpha() or not _SCHEME.issuperset(scheme.partition(":")[0]):
            raise self.error("is no scheme of URIs; write for example 'db'")
        if isinstance(thing, type):
            try:
                thing = thing()
            except TypeError as error:
                raise self.error(f"{error}; give an object of the class") from None
        lister, reader = getattr(thing, "list", None), getattr(thing, "read", None)
        if not callable(lister) and not callable(reader):
            raise self.error(f"a {type(thing).__name__} has neither list(cursor) nor read(uri)")
        self.lister = ProviderMethod(self, lister, "list", **options) if callable(lister) else None
        self.reader = ProviderMethod(self, reader, "read", **options) if callable(reader) else None

    @property
    def key(self) -> str:
        return self.scheme

    def error(self, problem: str) -> DefinitionError:
        return DefinitionError(f"resources {self.scheme!r}: {problem}")

    def __repr__(self) -> str:
        return f"<Provider {self.scheme}>"


# --------------------------------------------------------------------------------------- factories


def is_template(uri: str) -> bool:
    """Whether an address has variables."""
    return "{" in uri


def resource_of(thing: Any, options: dict[str, Any]) -> Resource:
    """Return a `Resource`, or what it makes of a function and options."""
    return thing if isinstance(thing, Resource) and not options else made(Resource, thing, options)


def template_of(thing: Any, options: dict[str, Any]) -> ResourceTemplate:
    """Return a `ResourceTemplate`, or what it makes of a function and options."""
    if isinstance(thing, ResourceTemplate) and not options:
        return thing
    return made(ResourceTemplate, thing, options)


def provider_of(thing: Any, options: dict[str, Any]) -> Provider:
    """Return a `Provider`, or what it makes of an object or a class."""
    return thing if isinstance(thing, Provider) and not options else Provider(thing, **options)
