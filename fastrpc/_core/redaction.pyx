"""Says quickly of most texts that they have no secret to take out: `fastrpc.redaction` asks here first.

A text without the marks that every pattern there needs is not searched with them (some ten µs), and the
environment, which may hold secrets, is read again only when it has changed. Some ten nanoseconds each.
"""

from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.object cimport PyObject

import os

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const unsigned char* PyUnicode_1BYTE_DATA(object text)


cdef inline bint is_word(const unsigned char* at) noexcept:
    """Do these three bytes begin a word that names a secret?"""
    cdef unsigned int word = (at[0] | 32) << 16 | (at[1] | 32) << 8 | (at[2] | 32)
    return (
        word == 0x746F6B      # tok(en)
        or word == 0x736563   # sec(ret)
        or word == 0x706173   # pas(sword)
        or word == 0x617069   # api(key)
        or word == 0x637265   # cre(dential)
        or word == 0x707269   # pri(vate key)
        or word == 0x617574   # aut(horization)
        or word == 0x636F6F   # coo(kie)
    )


def may_match(text):
    """Say whether one of `fastrpc.redaction.PATTERNS` may be found in a text; False is certain."""
    return may_hold_one(text)


cdef bint may_hold_one(text) except -1:
    """may_match() in C.

    All patterns need an address's ``@`` or a word that names a secret, and ``:``, ``=`` or ``--`` beside it;
    but for ``Bearer …`` and ``Basic …``.
    """
    cdef const unsigned char* at
    cdef const unsigned char* end
    cdef bint mark = False
    cdef bint word = False
    cdef unsigned char byte
    if type(text) is not str or not PyUnicode_IS_COMPACT_ASCII(text):  # other letters may be a small s or k
        return True
    at = PyUnicode_1BYTE_DATA(text)  # a NUL is behind it
    end = at + PyUnicode_GET_LENGTH(text)
    while at < end:
        byte = at[0]
        if byte == c":" or byte == c"=" or (byte == c"-" and at[1] == c"-"):
            mark = True
        elif byte == c"@":
            word = True
        elif byte >= c"A" and end - at > 2:
            byte |= 32
            if byte == c"b" and (at[1] | 32) == c"a" and (at[2] | 32) == c"s":
                return True  # Basic …
            if byte == c"b" and (at[1] | 32) == c"e" and (at[2] | 32) == c"a":
                return True  # Bearer …
            if not word and is_word(at):
                word = True
        at += 1
    return mark and word


cdef class Secrets:
    """Values that are secret: of the environment, as it was when it was read, and what was hidden by hand."""

    cdef dict hidden             # its keys are secrets
    cdef dict variables          # what os.environ holds within
    cdef list held               # its keys and values before it was read
    cdef readonly list values    # that are secret

    def __init__(self, dict hidden not None):
        self.hidden = hidden
        self.variables = {}
        self.held = []
        self.values = []

    def take(self, dict variables not None, dict before not None, list values not None):
        """Keep `values`, the secrets among `variables`, which is what ``os.environ`` holds within. `before`
        is a copy of it, made before they were read.
        """
        self.variables = variables
        self.held = []
        self.values = values
        for pair in before.items():
            self.held += pair

    cpdef bint are_current(self) except -1:
        """Is the environment as it was?"""
        cdef Py_ssize_t position = 0
        cdef Py_ssize_t at = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef dict variables = self.variables
        if getattr(os.environ, "_data", None) is not variables:
            return False
        if len(self.held) != 2 * PyDict_Size(variables):
            return False
        while PyDict_Next(variables, &position, &key, &value):
            if <PyObject*> self.held[at] != key or <PyObject*> self.held[at + 1] != value:
                return False
            at += 2
        return True

    def none_in(self, text):
        """Is a text surely without a secret?"""
        if self.hidden or may_hold_one(text) or not self.are_current():
            return False
        for value in self.values:
            if value in text:
                return False
        return True
