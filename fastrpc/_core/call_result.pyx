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
            if type(block) is not dict or type(block.get("type")) is not str:
                raise InvalidAnswer(f"content: expected blocks with a type, got {short(block)}")
            if block["type"] == "text" and type(block.get("text")) is not str:
                raise InvalidAnswer(f"content: expected a text block with a text, got {short(block)}")
        if type(raw.get("isError", False)) is not bool:
            raise InvalidAnswer(f"isError: expected a boolean, got {short(raw['isError'])}")
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
        return self.raw.get("_meta", {})

    def __repr__(self):
        return f"CallResult({self.raw!r})"


cdef str short(value):
    return f"{value!r:.80}"
