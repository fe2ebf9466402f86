# Makes Python objects of what has been read: str of valid UTF-8, any value of simdjson's.
#
# Inline, for the message reader. A str of ASCII costs an allocation and a copy; other texts are decoded by
# string_decode.h. The names of members are remembered, 128 of them, since records repeat theirs.

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy

cimport fastrpc._core.simdjson as simdjson
from fastrpc._core.collector cimport LARGE, PyGC_Disable, PyGC_Enable
from fastrpc._core.slices cimport Slice

cdef extern from "Python.h":
    str PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject* text)
    object PyLong_FromString(const char* digits, char** end, int base)

cdef extern from "string_decode.h":
    str make_text "fastrpc_make_text"(
        const char* data, Py_ssize_t size, bint beyond_ascii, bint escaped
    )

cdef extern from *:
    """
    #define FASTRPC_LONGEST_NAME 32
    static PyObject *fastrpc_names[128];  // ASCII
    """
    enum:
        LONGEST_NAME "FASTRPC_LONGEST_NAME"
    PyObject** names "fastrpc_names"


cdef enum:
    SHORTEST_LIMIT = 640  # digits: no interpreter's limit is lower

cdef inline bint is_ascii(const char* data, Py_ssize_t size) noexcept:
    cdef Py_ssize_t at = 0
    cdef uint64_t eight
    cdef uint64_t seen = 0
    while at + 8 <= size:
        memcpy(&eight, data + at, 8)
        seen |= eight
        at += 8
    while at < size:
        seen |= <unsigned char> data[at]
        at += 1
    return seen & <uint64_t> 0x8080808080808080 == 0


cdef inline str make_str(const char* data, Py_ssize_t size):
    """Make a str of UTF-8 that the parser has validated."""
    return make_ascii(data, size) if is_ascii(data, size) else make_text(data, size, True, False)


cdef inline str make_ascii(const char* data, Py_ssize_t size):
    cdef str text = PyUnicode_New(size, 127)
    memcpy(PyUnicode_DATA(text), data, size)
    return text


cdef inline object to_python(simdjson.Element value):
    """Make Python objects of a value; of two equal keys the last one wins."""
    cdef Slice text
    cdef char kind = simdjson.kind_of(value)
    if kind == c'"':
        simdjson.text_of(value, &text)
        return make_str(text.data, text.size)
    if kind == c"l":
        return simdjson.integer_of(value)
    if kind == c"{":
        return object_to_python(value)
    if kind == c"[":
        return array_to_python(value)
    if kind == c"d":
        return simdjson.real_of(value)
    if kind == c"t":
        return simdjson.truth_of(value)
    if kind == c"u":
        return simdjson.large_integer_of(value)
    if kind == c"#":
        simdjson.text_of(value, &text)
        return integer_of_digits(text.data + 1, text.size - 1)
    return None


cdef inline object integer_of_digits(const char* digits, Py_ssize_t size):
    """Make an integer of up to 4,300 digits, which a NUL follows."""
    try:
        return PyLong_FromString(digits, NULL, 10)
    except ValueError:  # the interpreter's own limit is set lower than 4,300
        return integer_of_parts(digits, size)


cdef inline object integer_of_parts(const char* digits, Py_ssize_t size):
    cdef char part[SHORTEST_LIMIT + 1]
    cdef bint negative = digits[0] == c"-"
    cdef Py_ssize_t at = negative
    cdef Py_ssize_t length = (size - at) % SHORTEST_LIMIT or SHORTEST_LIMIT
    cdef object number = 0
    cdef object scale = 10
    scale = scale**SHORTEST_LIMIT
    while at < size:
        memcpy(part, digits + at, length)
        part[length] = 0
        number = number * scale + PyLong_FromString(part, NULL, 10)
        at += length
        length = SHORTEST_LIMIT
    return -number if negative else number


cdef inline dict object_to_python(simdjson.Element value):
    cdef simdjson.Members member
    cdef dict members = {}
    member.begin(value)
    while member.next():
        members[key_str(member.key, member.key_size)] = to_python(member.value)
    return members


cdef inline str key_str(const char* data, Py_ssize_t size):
    """Make a str of a member's name, the same one as before if it is remembered: records repeat theirs.

    It lies in the parser's memory, where eight bytes can always be read.
    """
    cdef uint64_t mark
    cdef PyObject** slot
    cdef str name
    if size > LONGEST_NAME or size == 0:
        return make_str(data, size)
    memcpy(&mark, data, 8)
    if size < 8:
        mark &= ((<uint64_t> 1) << (8 * size)) - 1
    mark = (mark ^ <uint64_t> size ^ <unsigned char> data[size - 1]) * <uint64_t> 0x9E3779B97F4A7C15
    slot = &names[mark >> 57]
    if slot[0] != NULL and is_text(slot[0], data, size):
        return <str> slot[0]
    name = make_str(data, size)
    if len(name) == size:
        Py_INCREF(name)
        Py_XDECREF(slot[0])
        slot[0] = <PyObject*> name
    return name


cdef inline bint is_text(PyObject* ascii, const char* data, Py_ssize_t size) noexcept:
    return PyUnicode_GET_LENGTH(ascii) == size and memcmp(PyUnicode_DATA(<object> ascii), data, size) == 0


cdef inline list array_to_python(simdjson.Element value):
    cdef simdjson.Elements element
    cdef object made
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t size = simdjson.size_of(value)
    if size == simdjson.UNCOUNTED:
        return uncounted_to_python(value)
    cdef list elements = PyList_New(size)
    element.begin(value)
    while element.next():
        made = to_python(element.value)
        Py_INCREF(made)
        PyList_SET_ITEM(elements, at, made)
        at += 1
    return elements


cdef inline list uncounted_to_python(simdjson.Element value):
    cdef simdjson.Elements element
    cdef list elements = []
    element.begin(value)
    while element.next():
        elements.append(to_python(element.value))
    return elements


cdef inline object large_to_python(simdjson.Element value, Py_ssize_t size):
    """Make Python objects of a value in a line of so many bytes.

    The collector of cycles would look at the growing tree again and again. There are none in it: it waits.
    """
    cdef bint collecting
    if size < LARGE:
        return to_python(value)
    collecting = PyGC_Disable()
    try:
        return to_python(value)
    finally:
        if collecting:
            PyGC_Enable()


cdef inline object member_of(simdjson.Element value, bytes key, Py_ssize_t size):
    """Make Python objects of one member of an object; None where it has none, or is none."""
    cdef simdjson.Element found
    return large_to_python(found, size) if find_member(value, key, len(key), &found) else None


cdef inline bint find_member(
    simdjson.Element value, const char* key, Py_ssize_t size, simdjson.Element* found
) noexcept:
    """Find the last member of an object that has this key."""
    cdef simdjson.Members member
    cdef bint present = False
    member.begin(value)
    while member.next():
        if member.key_size == size and memcmp(member.key, key, size) == 0:
            found[0] = member.value
            present = True
    return present


cdef inline bint has_object(simdjson.Element value, bytes key, simdjson.Element* found) noexcept:
    """Find the last member of an object that has this key; False unless it is an object, too."""
    return find_member(value, key, len(key), found) and simdjson.kind_of(found[0]) == c"{"
