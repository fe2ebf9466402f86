"""The result of a tool call, for a client: content, structured content, and whether the tool failed.

The most common result is one text block in a line whose other bytes are those of an earlier line: only the
text is stored (60 ns), and the dict is made when another attribute is used. No I/O: the connection reads the
lines.
"""

from cython cimport freelist

from fastrpc.errors import InvalidAnswer

cdef enum:
    LONGEST_TAIL = 1024


cdef class AnswerTail:
    """The bytes after the text of an earlier line, and the part of the result that they encode."""


cdef CallResult text_result(str text, AnswerTail tail):
    cdef CallResult result = CallResult.__new__(CallResult)
    result.only_text = text
    result.tail = tail
    return result


cdef AnswerTail tail_of(const char* line, Py_ssize_t size, dict result):
    """Return the tail of a line that simdjson has read; None if it is unlikely to be repeated."""
    cdef AnswerTail tail
    content = result["content"]
    if size > LONGEST_TAIL or "structuredContent" in result:
        return None
    if len(content) != 1 or content[0].keys() != {"type", "text"}:
        return None
    tail = AnswerTail.__new__(AnswerTail)
    tail.line = line[:size]
    tail.is_error = result.get("isError") is True
    tail.is_bare = result.keys() <= {"content", "isError"}
    tail.members = {name: value for name, value in result.items() if name != "content"}
    return tail


@freelist(256)
cdef class CallResult:
    """The result of a tool call (MCP, tools: CallToolResult). Raises InvalidAnswer for an invalid one."""

    def __init__(self, dict raw):
        content = raw.get("content")
        if type(content) is not list:
            raise InvalidAnswer(f"content: expected an array, got {short(content)}")
        for block in content:
            check_block("content", block)
        if type(raw.get("isError", False)) is not bool:
            raise InvalidAnswer(f"isError: expected a boolean, got {short(raw['isError'])}")
        if type(raw.get("_meta")) not in (dict, NONE):
            raise InvalidAnswer(f"_meta: expected an object, got {short(raw['_meta'])}")
        self.received = raw

    @property
    def raw(self):
        """The result as received."""
        if self.received is None:
            from copy import deepcopy

            content = [{"type": "text", "text": self.only_text}]
            self.received = {"content": content, **deepcopy(self.tail.members)}
        return self.received

    @property
    def content(self):
        """The content blocks, dicts."""
        return self.raw["content"]

    @property
    def text(self):
        """All text blocks, joined by newlines."""
        if self.only_text is not None:
            return self.only_text
        return "\n".join([block["text"] for block in self.received["content"] if block["type"] == "text"])

    @property
    def structured(self):
        """The structured content, or None."""
        return None if self.received is None else self.received.get("structuredContent")

    @property
    def is_error(self):
        """Whether the tool failed; the content is the error message."""
        if self.tail is not None:
            return self.tail.is_error
        return self.received.get("isError", False)

    @property
    def meta(self):
        """The result's ``_meta``."""
        return self.raw.get("_meta") or {}

    def __repr__(self):
        return f"CallResult({self.raw!r})"


cdef object NONE = type(None)
# Members of each type of block that are strings.
cdef dict TEXTS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


cpdef int check_block(str where, block) except -1:
    """Raise InvalidAnswer for what is no content block (MCP: ContentBlock). Types that MCP does not know are
    let through."""
    if type(block) is not dict or type(block.get("type")) is not str:
        raise InvalidAnswer(f"{where}: expected blocks with a type, got {short(block)}")
    kind = block["type"]
    for name in TEXTS.get(kind, ()):
        if type(block.get(name)) is not str:
            raise InvalidAnswer(f"{where}: {kind}: expected a string as {name}, got {short(block)}")
    if kind == "resource":
        resource = block.get("resource")
        content = None
        if type(resource) is dict and type(resource.get("uri")) is str:
            content = resource.get("blob") if resource.get("text") is None else resource["text"]
        if type(content) is not str:
            raise InvalidAnswer(f"{where}: resource: expected a uri and a text or a blob, got {short(block)}")
    for name in ("annotations", "_meta"):
        if type(block.get(name)) not in (dict, NONE):
            raise InvalidAnswer(f"{where}: {name}: expected an object, got {short(block[name])}")
    return 0


cdef str short(value):
    return f"{value!r:.80}"
