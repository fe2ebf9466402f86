# What the values of an annotation look like at a glance: `value_types.pyx`.

cdef class ValueType:
    cdef bint passes(self, object value) except -1
    cpdef object load(self, object value)
    cpdef object plain(self, object value)

cdef class AnyValue(ValueType):
    pass

cdef class Exact(ValueType):
    cdef object kind, other

cdef class Bounded(ValueType):
    cdef Exact inner
    cdef bint is_text
    cdef object least, most, beyond, below

    cdef bint is_within(self, object value) except -1

cdef class ChoiceType(ValueType):
    cdef frozenset texts

cdef class OneOf(ValueType):
    cdef tuple types

cdef class ListOf(ValueType):
    cdef ValueType items

cdef class TupleOf(ValueType):
    cdef object kind
    cdef tuple types

cdef class DictOf(ValueType):
    cdef ValueType values

cdef class Members(ValueType):
    cdef dict types
    cdef tuple required

    cdef bint is_whole(self, dict value) except -1
    cdef object each_member(self, object value, bint loads)

cdef class RecordType(ValueType):
    cdef object kind
    cdef tuple attributes
    cdef tuple keys
    cdef tuple types
    cdef dict places
    cdef frozenset required

cdef class Converted(ValueType):
    cdef object kind
    cdef object function

cdef class EnumMember(ValueType):
    cdef object kind, value_kind
    cdef dict members
