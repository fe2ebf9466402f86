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
    converter has to look at."""

    def load(self, value):
        return self.convert(value, True)

    def plain(self, value):
        return self.convert(value, False)

    cdef object convert(self, object value, bint loads):
        """`load` or `plain`."""
        return NotImplemented


cdef class AnyValue(ValueType):
    """Any JSON value."""

    cdef object convert(self, object value, bint loads):
        return value


cdef class Exact(ValueType):
    """An instance of one class, of no subclass; as a result also of `other`: an integer where a number is
    expected."""

    cdef object kind, other

    def __init__(self, kind, other=None):
        self.kind = kind
        self.other = kind if other is None else other

    cdef object convert(self, object value, bint loads):
        if type(value) is self.kind or (type(value) is self.other and not loads):
            return value
        if loads and self.kind is float and type(value) is int and -EXACT_FLOAT < value < EXACT_FLOAT:
            return <double> value
        return NotImplemented


cdef class Bounded(ValueType):
    """A number, or a text of so many characters, from `least` to `most`; `beyond` and `below` are not
    included. None: no bound."""

    cdef Exact inner
    cdef bint is_text
    cdef object least, most, beyond, below

    def __init__(self, Exact inner, *, least=None, most=None, beyond=None, below=None):
        self.inner = inner
        self.is_text = inner.kind is str
        self.least, self.most, self.beyond, self.below = least, most, beyond, below

    cdef object convert(self, object value, bint loads):
        cdef object found = self.inner.convert(value, loads)
        return found if found is not NotImplemented and self.is_within(found) else NotImplemented

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

    cdef frozenset texts

    def __init__(self, texts):
        self.texts = frozenset(texts)

    cdef object convert(self, object value, bint loads):
        return value if type(value) is str and value in self.texts else NotImplemented


cdef class OneOf(ValueType):
    """A value of one of several types, the first that accepts it."""

    cdef tuple types

    def __init__(self, types):
        self.types = tuple(types)

    cdef object convert(self, object value, bint loads):
        cdef object found
        for each in self.types:
            found = (<ValueType> each).convert(value, loads)
            # A number of an argument may be a value of several: only as it is.
            if found is value or not (loads or found is NotImplemented):
                return found
        return NotImplemented


cdef class ListOf(ValueType):
    """Converts the items of a list, which all have one type. Returns the list itself if no item changes."""

    cdef ValueType items

    def __init__(self, ValueType items):
        self.items = items

    cdef object convert(self, object value, bint loads):
        cdef list values
        cdef list made = None
        cdef object found
        cdef Py_ssize_t at
        if type(value) is not list:
            return NotImplemented
        values = <list> value
        for at in range(len(values)):
            found = self.items.convert(values[at], loads)
            if found is NotImplemented:
                return NotImplemented
            if made is not None:
                made.append(found)
            elif found is not values[at]:
                made = values[:at]
                made.append(found)
        return values if made is None else made


cdef class TupleOf(ValueType):
    """A tuple of a class with a type for each member, which is an array in JSON."""

    cdef object kind
    cdef tuple types

    def __init__(self, kind, types):
        self.kind = kind
        self.types = tuple(types)

    cdef object convert(self, object value, bint loads):
        cdef tuple values
        cdef list made = []
        cdef object found
        cdef Py_ssize_t at
        if type(value) is not (list if loads else self.kind) or (loads and self.kind is not tuple):
            return NotImplemented
        values = tuple(<list> value) if loads else <tuple> value
        if len(values) != len(self.types):
            return NotImplemented
        for at in range(len(self.types)):
            found = (<ValueType> self.types[at]).convert(values[at], loads)
            if found is NotImplemented:
                return NotImplemented
            made.append(found)
        return tuple(made) if loads else made


cdef class Members(ValueType):
    """A dict whose members have types by name, some of them optional, and no others."""

    cdef dict types
    cdef tuple required
    cdef ValueType others        # of a `DictOf`: the type of each member

    def __init__(self, dict types, required):
        self.types = types
        self.required = tuple(required)

    cdef object convert(self, object value, bint loads):
        cdef PyObject* known
        cdef object found
        cdef dict made = {}
        cdef bint is_same = True
        if type(value) is not dict:
            return NotImplemented
        for name in self.required:
            if name not in <dict> value:
                return NotImplemented
        for key, each in (<dict> value).items():
            known = NULL
            if type(key) is str:
                known = PyDict_GetItem(self.types, key) if self.others is None else <PyObject*> self.others
            if known == NULL:
                return NotImplemented
            found = (<ValueType> known).convert(each, loads)
            if found is NotImplemented:
                return NotImplemented
            is_same = is_same and found is each
            made[key] = found
        return value if is_same else made


cdef class DictOf(Members):
    """A dict from texts to values of one type."""

    def __init__(self, ValueType values):
        Members.__init__(self, {}, ())
        self.others = values


cdef class RecordType(ValueType):
    """An instance of a class, which is an object of its attributes in JSON."""

    cdef object kind
    cdef tuple attributes
    cdef tuple keys
    cdef tuple types
    cdef dict places
    cdef frozenset required

    def __init__(self, kind, members, bint is_made, required=()):
        """`members`: an attribute, its key in JSON and the type of its value, for each. `is_made`: one
        is made by calling the class with its attributes by name, of which these are required."""
        self.kind = kind
        self.attributes = tuple([attribute for attribute, _, _ in members])
        self.keys = tuple([key for _, key, _ in members])
        self.types = tuple([value for _, _, value in members])
        self.places = {key: at for at, key in enumerate(self.keys)} if is_made else None
        self.required = frozenset(required)

    cdef object convert(self, object value, bint loads):
        return self.loaded(value) if loads else self.plain_members(value)

    cdef object loaded(self, object value):
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
            found = (<ValueType> self.types[at]).convert(each, True)
            if found is NotImplemented:
                return NotImplemented
            made[self.attributes[at]] = found
            missing -= key in self.required
        return PyObject_Call(self.kind, (), made) if missing == 0 else NotImplemented

    cdef object plain_members(self, object value):
        cdef dict made = {}
        cdef object found
        cdef Py_ssize_t at
        if type(value) is not self.kind:
            return NotImplemented
        for at in range(len(self.attributes)):
            found = getattr(value, self.attributes[at], NotImplemented)  # one that was deleted is none
            if found is not NotImplemented:
                found = (<ValueType> self.types[at]).convert(found, False)
            if found is NotImplemented:
                return NotImplemented
            made[self.keys[at]] = found
        return made


cdef class Converted(ValueType):
    """As a result, an instance of a class of which a function makes a plain value: a date."""

    cdef object kind
    cdef object function

    def __init__(self, kind, function):
        self.kind = kind
        self.function = function

    cdef object convert(self, object value, bint loads):
        return self.function(value) if type(value) is self.kind and not loads else NotImplemented


cdef class EnumMember(ValueType):
    """A member of an enum whose values are all texts, or all integers; in JSON its value."""

    cdef object kind, value_kind
    cdef dict members

    def __init__(self, kind):
        self.kind = kind
        self.members = {member.value: member for member in kind}
        self.value_kind = {type(value) for value in self.members}.pop()

    cdef object convert(self, object value, bint loads):
        cdef PyObject* found = NULL
        if not loads:
            return value._value_ if type(value) is self.kind else NotImplemented
        if type(value) is self.value_kind:
            found = PyDict_GetItem(self.members, value)
        return NotImplemented if found == NULL else <object> found
