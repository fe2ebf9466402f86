"""Writes results that are content: None, `fastrpc.Text` and `fastrpc.Image` without hints, lists of them and
of texts, and a `ToolResult` of these. Other content, with hints, or in a form that not every version has, is
left to the dispatcher (`fastrpc.engine.results`).

Imported by the first result that may be content.
"""

from binascii import b2a_base64

from fastrpc._core cimport connection as serving
from fastrpc._core.connection cimport FORM_ERROR, FORMS, Connection
from fastrpc._core.encoder cimport FORM_OBJECT, FORM_TEXT, FORM_WRAPPED, OutputBuffer, append
from fastrpc._core.encoder cimport put_quoted
from fastrpc._core.plan cimport Plan
from fastrpc._core.slices cimport Slice

from fastrpc.content import Image, Text, ToolResult

cdef object TEXT = Text
cdef object IMAGE = Image
cdef object TOOL_RESULT = ToolResult
cdef object base64 = b2a_base64

cdef enum:
    CONTENT_END_SIZE = 3         # "}] closes a text block, and begins every tail


cdef bint put(
    Connection connection, Plan plan, Slice id, object result, bint stateless
) except -1:
    """Answer with content; False, with nothing written, if the result is none, or there is more to it."""
    cdef object kind = type(result)
    cdef int form = FORM_TEXT
    if kind is list or kind is tuple:
        if not holds_block(result):
            return False
        if plan.form != FORM_TEXT and (stateless or connection.structured):
            form = plan.form
        return put_parts(connection, id, result, form, stateless)
    if plan.form != FORM_TEXT:
        return False
    if result is None:
        return put_parts(connection, id, (), FORM_TEXT, stateless)
    if kind is TEXT or kind is IMAGE:
        return put_parts(connection, id, (result,), FORM_TEXT, stateless)
    return kind is TOOL_RESULT and put_tool_result(connection, id, result, stateless)


cdef bint put_tool_result(Connection connection, Slice id, object result, bint stateless) except -1:
    """Answer with what a `ToolResult` holds, if that is blocks or an object alone."""
    cdef object content = result.content
    if result.meta is not None:
        return False
    if result.structured is not None:
        if content is not None or result.is_error or type(result.structured) is not dict:
            return False
        return connection.put_value(id, result.structured, FORM_OBJECT, stateless, False)
    if content is None:
        content = ()
    elif type(content) is not list and type(content) is not tuple:
        content = (content,)
    form = FORM_ERROR if result.is_error else FORM_TEXT
    if not put_parts(connection, id, content, form, stateless):
        return False
    if result.is_error:
        connection.last_outcome = "tool_error"
    return True


cdef bint holds_block(object parts) except -1:
    """Is there a block among these? A list of texts alone is a value."""
    cdef object kind
    for part in parts:
        kind = type(part)
        if kind is not str:
            return kind is TEXT or kind is IMAGE
    return False


cdef bint put_parts(Connection connection, Slice id, object parts, int form, bint stateless) except -1:
    """Answer with a block for each part; in the wrapped form they are structured content, too."""
    cdef OutputBuffer output = connection.output
    cdef Py_ssize_t held = output.end - output.start
    cdef Py_ssize_t begin        # of the array
    cdef Py_ssize_t size
    cdef Slice tail = connection.tails[FORMS * stateless + form]
    cdef bint written = False
    for part in parts:
        if not is_simple(part):
            return False
    try:
        append(output, b'{"jsonrpc":"2.0","id":')
        output.put(id.data, id.size)
        append(output, b',"result":{"content":[')
        begin = output.end - output.start - 1
        for part in parts:
            put_block(output, part)
            append(output, b",")
        if parts:
            output.end -= 1
        append(output, b"]")
        if form == FORM_WRAPPED:
            size = output.end - output.start - begin
            append(output, b',"structuredContent":{"result":')
            output.reserve(size)  # now: it may move what is copied
            output.put(output.buffer + output.start + begin, size)
            append(output, b"}")
        output.put(tail.data + CONTENT_END_SIZE, tail.size - CONTENT_END_SIZE)
        written = True
    except UnicodeEncodeError:
        return False
    finally:
        if not written:
            output.end = output.start + held
    return True


cdef bint is_simple(object part) except -1:
    """Is this a text, a `Text` or an `Image`, without hints?"""
    cdef object kind = type(part)
    if kind is str:
        return True
    if kind is TEXT:
        return type(part.text) is str and part.annotations is None and part.meta is None
    return (
        kind is IMAGE
        and type(part.data) is bytes
        and type(part.mime_type) is str
        and part.annotations is None
        and part.meta is None
    )


cdef int put_block(OutputBuffer output, object part) except -1:
    """Write the block of a part that is_simple()."""
    cdef bytes data
    if type(part) is str:
        append(output, b'{"type":"text","text":')
        put_quoted(output, <str> part)
    elif type(part) is TEXT:
        append(output, b'{"type":"text","text":')
        put_quoted(output, part.text)
    else:
        data = base64(part.data, newline=False)
        append(output, b'{"type":"image","data":"')
        output.put(<char*> data, len(data))
        append(output, b'","mimeType":')
        put_quoted(output, part.mime_type)
    return append(output, b"}")


serving.put_content = put
