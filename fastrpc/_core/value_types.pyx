"""What the values of an annotation look like at a glance: arguments that may be passed on as they are, and
results that are, or become, plain JSON values.

A `ValueType` decides by exact types, in some ten nanoseconds a value, and never runs code of an author. It is
right about what it accepts; what it does not, the annotation's converter has to look at, which has the words
(`fastrpc.schema.converters`). `fastrpc.schema.value_types` makes them from annotations.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport (
    Py_GE,
    Py_GT,
    Py_LE,
    Py_LT,
    PyObject,
    PyObject_Call,
    PyObject_RichCompareBool,
)
from cpython.unicode cimport PyUnicode_GET_LENGTH

cdef object EXACT_FLOAT = 2**53  # integers below survive the way through a double


cdef class ValueType:
    """One type. `load` returns the value of a parameter for a JSON value, `plain` the JSON value of a result,
    which the JSON writer still has to accept; either returns NotImplemented for what the
    converter has to look at.
    `passes` says whether a JSON value is that of the parameter, and that of a result, as it is."""

    cdef bint passes(self, object value) except -1:
        return False

    cpdef object load(self, object value):
        return value if self.passes(value) else NotImplemented

    cpdef object plain(self, object value):
        return value if self.passes(value) else NotImplemented


cdef class AnyValue(ValueType):
    """Any JSON value."""

    cdef bint passes(self, object value) except -1:
        return True


cdef class Exact(ValueType):
    """An instance of one class, of no subclass; as a result also of `other`: an integer where a number is
    expected."""

    def __init__(self, kind, other=None):
        self.kind = kind
        self.other = kind if other is None else other

    cdef bint passes(self, object value) except -1:
        return type(value) is self.kind

    cpdef object load(self, object value):
        if type(value) is self.kind:
            return value
        if self.kind is float and type(value) is int and -EXACT_FLOAT < value < EXACT_FLOAT:
            return <double> value
        return NotImplemented

    cpdef object plain(self, object value):
        return value if type(value) is self.kind or type(value) is self.other else NotImplemented


cdef class Bounded(ValueType):
    """A number, or a text of so many characters, from `least` to `most`; `beyond` and `below` are not
    included. None: no bound."""

    def __init__(self, Exact inner, *, least=None, most=None, beyond=None, below=None):
        self.inner = inner
        self.is_text = inner.kind is str
        self.least, self.most, self.beyond, self.below = least, most, beyond, below

    cdef bint passes(self, object value) except -1:
        return self.inner.passes(value) and self.is_within(value)

    cpdef object load(self, object value):
        cdef object found = self.inner.load(value)
        return found if found is not NotImplemented and self.is_within(found) else NotImplemented

    cpdef object plain(self, object value):
        return value if self.inner.plain(value) is value and self.is_within(value) else NotImplemented

    cdef bint is_within(self, object value) except -1:
        cdef object size = PyUnicode_GET_LENGTH(value) if self.is_text else value
        return not (  # of NaN nothing is true: it is left to the converter
            (self.least is not None and not PyObject_RichCompareBool(size, self.least, Py_GE))
            or (self.most is not None and not PyObject_RichCompareBool(size, self.most, Py_LE))
            or (self.beyond is not None and not PyObject_RichCompareBool(size, self.beyond, Py_GT))
            or (self.below is not None and not PyObject_RichCompareBool(size, self.below, Py_LT))
        )


cdef class ChoiceType(ValueType):
    """One of some texts."""

    def __init__(self, texts):
        self.texts = frozenset(texts)

    cdef bint passes(self, object value) except -1:
        return type(value) is str and value in self.texts


cdef class OneOf(ValueType):
    """A value of one of several types, the first that accepts it."""

    def __init__(self, types):
        self.types = tuple(types)

    cpdef object load(self, object value):
        # A number may be a value of several: only as it is.
        for each in self.types:
            if (<ValueType> each).load(value) is value:
                return value
        return NotImplemented

    cpdef object plain(self, object value):
        cdef object found
        for each in self.types:
            found = (<ValueType> each).plain(value)
            if found is not NotImplemented:
                return found
        return NotImplemented


cdef class ListOf(ValueType):
    """A list whose items are of one type."""

    def __init__(self, ValueType items):
        self.items = items

    cpdef object load(self, object value):
        return each_item(self.items, <list> value, True) if type(value) is list else NotImplemented

    cpdef object plain(self, object value):
        return each_item(self.items, <list> value, False) if type(value) is list else NotImplemented


cdef object each_item(ValueType items, list values, bint loads):
    """Return the loaded or the plain items; the list itself if nothing in it has to change."""
    cdef list made = None
    cdef object found
    cdef Py_ssize_t at
    for at in range(len(values)):
        found = items.load(values[at]) if loads else items.plain(values[at])
        if found is NotImplemented:
            return NotImplemented
        if made is not None:
            made.append(found)
        elif found is not values[at]:
            made = values[:at]
            made.append(found)
    return values if made is None else made


cdef object each_value(ValueType values, dict members, bint loads):
    """The same for the values of a dict from texts."""
    cdef dict made = {}
    cdef bint is_same = True
    cdef object found
    for key, each in members.items():
        found = NotImplemented
        if type(key) is str:
            found = values.load(each) if loads else values.plain(each)
        if found is NotImplemented:
            return NotImplemented
        is_same = is_same and found is each
        made[key] = found
    return members if is_same else made


cdef class TupleOf(ValueType):
    """A tuple of a class with a type for each member, which is an array in JSON."""

    def __init__(self, kind, types):
        self.kind = kind
        self.types = tuple(types)

    cpdef object load(self, object value):
        cdef list made = []
        cdef object found
        cdef Py_ssize_t at
        if self.kind is not tuple or type(value) is not list or len(<list> value) != len(self.types):
            return NotImplemented
        for at in range(len(self.types)):
            found = (<ValueType> self.types[at]).load((<list> value)[at])
            if found is NotImplemented:
                return NotImplemented
            made.append(found)
        return tuple(made)

    cpdef object plain(self, object value):
        cdef list made = []
        cdef object found
        cdef Py_ssize_t at
        if type(value) is not self.kind or len(<tuple> value) != len(self.types):
            return NotImplemented
        for at in range(len(self.types)):
            found = (<ValueType> self.types[at]).plain((<tuple> value)[at])
            if found is NotImplemented:
                return NotImplemented
            made.append(found)
        return made


cdef class DictOf(ValueType):
    """A dict from texts to values of one type."""

    def __init__(self, ValueType values):
        self.values = values

    cpdef object load(self, object value):
        return each_value(self.values, <dict> value, True) if type(value) is dict else NotImplemented

    cpdef object plain(self, object value):
        return each_value(self.values, <dict> value, False) if type(value) is dict else NotImplemented


cdef class Members(ValueType):
    """A dict whose members have types by name, some of them optional, and no others."""

    def __init__(self, dict types, required):
        self.types = types
        self.required = tuple(required)

    cpdef object load(self, object value):
        return self.each_member(value, True)

    cpdef object plain(self, object value):
        return self.each_member(value, False)

    cdef object each_member(self, object value, bint loads):
        cdef PyObject* known
        cdef object found
        cdef dict made = {}
        cdef bint is_same = True
        if type(value) is not dict or not self.is_whole(<dict> value):
            return NotImplemented
        for key, each in (<dict> value).items():
            known = PyDict_GetItem(self.types, key)
            found = NotImplemented
            if known != NULL:
                found = (<ValueType> known).load(each) if loads else (<ValueType> known).plain(each)
            if found is NotImplemented:
                return NotImplemented
            is_same = is_same and found is each
            made[key] = found
        return value if is_same else made

    cdef bint is_whole(self, dict value) except -1:
        for name in self.required:
            if name not in value:
                return False
        return True


cdef class RecordType(ValueType):
    """An instance of a class, which is an object of its attributes in JSON."""

    def __init__(self, kind, members, bint is_made, required=()):
        """`members`: an attribute, its key in JSON and the type of its value, for each. `is_made`: one
        is made by calling the class with its attributes by name, of which these are required."""
        self.kind = kind
        self.attributes = tuple([attribute for attribute, _, _ in members])
        self.keys = tuple([key for _, key, _ in members])
        self.types = tuple([value for _, _, value in members])
        self.places = {key: at for at, key in enumerate(self.keys)} if is_made else None
        self.required = frozenset(required)

    cpdef object load(self, object value):
        cdef PyObject* place
        cdef dict made = {}
        cdef object found
        cdef Py_ssize_t at
        cdef Py_ssize_t missing = len(self.required)
        if self.places is None or type(value) is not dict:
            return NotImplemented
        for key, each in (<dict> value).items():
            place = PyDict_GetItem(self.places, key)
            if place == NULL:
                return NotImplemented
            at = <object> place
            found = (<ValueType> self.types[at]).load(each)
            if found is NotImplemented:
                return NotImplemented
            made[self.attributes[at]] = found
            missing -= key in self.required
        return PyObject_Call(self.kind, (), made) if missing == 0 else NotImplemented

    cpdef object plain(self, object value):
        cdef dict made = {}
        cdef object found
        cdef Py_ssize_t at
        if type(value) is not self.kind:
            return NotImplemented
        for at in range(len(self.attributes)):
            found = getattr(value, self.attributes[at], NotImplemented)  # one that was deleted is none
            if found is not NotImplemented:
                found = (<ValueType> self.types[at]).plain(found)
            if found is NotImplemented:
                return NotImplemented
            made[self.keys[at]] = found
        return made


cdef class Converted(ValueType):
    """As a result, an instance of a class of which a function makes a plain value: a date."""

    def __init__(self, kind, function):
        self.kind = kind
        self.function = function

    cpdef object plain(self, object value):
        return self.function(value) if type(value) is self.kind else NotImplemented


cdef class EnumMember(ValueType):
    """A member of an enum whose values are all texts, or all integers; in JSON its value."""

    def __init__(self, kind):
        self.kind = kind
        self.members = {member.value: member for member in kind}
        self.value_kind = {type(value) for value in self.members}.pop()

    cpdef object load(self, object value):
        cdef PyObject* found = NULL
        if type(value) is self.value_kind:
            found = PyDict_GetItem(self.members, value)
        return NotImplemented if found == NULL else <object> found

    cpdef object plain(self, object value):
        return value._value_ if type(value) is self.kind else NotImplemented
