"""Says quickly of most texts that they have no secret to take out: `fastrpc.redaction` asks here first.

A text without the marks that every pattern there needs is not searched with them (some ten µs), and the
environment, which may hold secrets, is read again only when it has changed. Some ten nanoseconds each.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.string cimport memchr

import os

cdef extern from "dict_changes.h":
    uint64_t dict_changes "fastrpc_dict_changes"(object variables)

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const unsigned char* PyUnicode_1BYTE_DATA(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size)
    void PyErr_Clear()

cdef extern from "<string.h>":
    void* memmem(const void* text, size_t size, const void* part, size_t part_size)


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
    cdef const unsigned char* at  # a NUL follows it
    cdef Py_ssize_t size
    if type(text) is not str:
        return True
    if PyUnicode_IS_COMPACT_ASCII(text):
        at = PyUnicode_1BYTE_DATA(text)
        size = PyUnicode_GET_LENGTH(text)
    else:
        at = <const unsigned char*> PyUnicode_AsUTF8AndSize(text, &size)
        if at == NULL:
            PyErr_Clear()
            return True
        if has_folded_letter(at, size):
            return True
    if has_scheme(at, size, c"b") or has_scheme(at, size, c"B"):
        return True
    return has_mark(at, size) and (memchr(at, c"@", size) != NULL or has_word(at, size))


cdef inline bint has_folded_letter(const unsigned char* at, Py_ssize_t size) noexcept:
    """Does this UTF-8 hold a letter beyond ASCII that is an i, a k or an s where case is ignored?"""
    return (
        memmem(at, size, b"\xc4\xb0", 2) != NULL          # dotted capital i
        or memmem(at, size, b"\xc4\xb1", 2) != NULL       # dotless small i
        or memmem(at, size, b"\xc5\xbf", 2) != NULL       # long s
        or memmem(at, size, b"\xe2\x84\xaa", 3) != NULL   # kelvin sign
    )


cdef inline bint has_scheme(const unsigned char* at, Py_ssize_t size, char first) noexcept:
    """Is a word that begins with `first` perhaps ``Bearer`` or ``Basic``?"""
    cdef const unsigned char* end = at + size
    while True:
        at = <const unsigned char*> memchr(at, first, end - at)
        if at == NULL:
            return False
        at += 1  # a NUL follows the last letter
        if ((at[0] | 32) == c"a" and (at[1] | 32) == c"s") or ((at[0] | 32) == c"e" and (at[1] | 32) == c"a"):
            return True


cdef inline bint has_mark(const unsigned char* at, Py_ssize_t size) noexcept:
    cdef const unsigned char* end = at + size
    if memchr(at, c":", size) != NULL or memchr(at, c"=", size) != NULL:
        return True
    while True:
        at = <const unsigned char*> memchr(at, c"-", end - at)
        if at == NULL:
            return False
        at += 1
        if at[0] == c"-":
            return True


cdef bint has_word(const unsigned char* at, Py_ssize_t size) noexcept:
    cdef const unsigned char* end = at + size - 2
    while at < end:
        if at[0] >= c"A" and is_word(at):
            return True
        at += 1
    return False


def changes_of(dict variables not None):
    """Return a number that is another one once the dict has changed; 0 where that cannot be said."""
    return dict_changes(variables)


cdef class Secrets:
    """Values that are secret: of the environment, as it was when it was read, and what was hidden by hand."""

    cdef dict hidden             # its keys are secrets
    cdef dict names              # of the module os
    cdef object environ          # os.environ, when it was read
    cdef dict variables          # what it holds within
    cdef uint64_t changes        # changes_of() these, before they were read
    cdef readonly list values    # that are secret

    def __init__(self, dict hidden not None):
        self.hidden = hidden
        self.names = os.__dict__
        self.variables = {}
        self.values = []

    def take(self, environ, dict variables not None, uint64_t changes, list values not None):
        """Keep `values`, the secrets in `environ`, which is ``os.environ`` and holds `variables` within;
        `changes` is what changes_of() these was before they were read, 0 if they are not what it holds.
        """
        self.environ = environ
        self.variables = variables
        self.changes = changes
        self.values = values

    cpdef bint are_current(self) except -1:
        """Is the environment as it was?"""
        return (
            self.changes != 0
            and PyDict_GetItem(self.names, "environ") == <PyObject*> self.environ
            and dict_changes(self.variables) == self.changes
        )

    def none_in(self, text):
        """Is a text surely without a secret?"""
        if self.hidden or may_hold_one(text) or not self.are_current():
            return False
        for value in self.values:
            if value in text:
                return False
        return True
