# A call plan: what the connection has to know of a tool to call it.

from libc.stdint cimport int64_t, uint8_t

from cpython.object cimport PyObject

from fastrpc._core.call cimport Call
from fastrpc._core.message cimport Argument, Message
from fastrpc._core.recorder cimport Recorder

cdef enum:
    MOST_PARAMETERS = 16

cdef extern from "Python.h":
    ctypedef PyObject* (*vectorcallfunc)(
        PyObject* function, PyObject** arguments, size_t count, PyObject* names
    )
    bint PyUnicode_IS_COMPACT_ASCII(object text)

# Sends the calls of one tool to another server.
cdef class CallForwarder:
    cdef bint forward(self, object connection, Plan plan, bint stateless) except -1
    cdef bint poll(self) except -1

cdef class Plan

# A guard that can decide about a call before anything is made for it: see `fastrpc._core.call_gate`.
cdef class Gate:
    cdef bint allows(self, str principal, str tool, Plan plan, PyObject** values) except -1

cdef class Plan:
    cdef readonly object tool            # what was registered; passed on, never looked into here
    cdef readonly str name
    cdef readonly str kind               # tool, resource, prompt, completion
    cdef int kind_code                   # the recorder's
    cdef readonly str target             # what calls name: the tool or the prompt, or the URI
    cdef readonly object encoder         # makes the results that the connection does not write by itself
    cdef bint texts_only                 # every argument is a string
    cdef bint noted                      # texts may be added to each result: the encoder makes all of them
    cdef bytes name_text
    cdef Py_ssize_t context_at           # the place of its Context among its positional parameters, or -1
    cdef type context_kind               # the class of the Context of its calls; None: they need none
    cdef object function
    cdef vectorcallfunc enter            # how it is called
    cdef Py_ssize_t count                # -1: arguments are not for the compiled binder
    cdef const char* keys[MOST_PARAMETERS]
    cdef Py_ssize_t key_sizes[MOST_PARAMETERS]
    cdef char kinds[MOST_PARAMETERS]
    cdef bint nullable[MOST_PARAMETERS]
    cdef tuple loads                     # make the values of checked parameters, as far as they can, or None
    cdef size_t positional               # how many are passed by position, the Context apart
    cdef tuple keywords                  # the names of the others
    cdef PyObject* keyword_names         # the same, NULL if there are none
    cdef list key_texts                  # owners of `keys`
    cdef tuple names                     # the same as str
    cdef tuple defaults                  # a parameter's default, or REQUIRED
    cdef readonly bint inline            # may run on the loop's thread, now
    cdef readonly bint straight          # and there is nothing but the function: no Context, no slot in use
    cdef bint is_bare                    # it would be, if it ran inline
    cdef bint is_direct                  # what is around its function needs no Context, where a gate allows
    cdef readonly object guard           # the slots, see plan.pyx; None: empty
    cdef Gate gate                       # the guard, if it is one
    cdef readonly bint makes_tasks       # its calls may become tasks, for clients that may get some
    cdef readonly bint conditional       # it may have ceased to exist for its caller: ask before each call
    cdef readonly object around
    cdef readonly object recheck         # validates arguments that `around` has seen; None: no check
    cdef readonly Recorder recorder
    cdef readonly CallForwarder forwarder  # of a tool that another server has, or None
    cdef object spare_context            # of a call that has ended without looking at it, for the next one
    cdef object spare_info
    cdef readonly bint is_async          # calling it gives a coroutine
    cdef readonly bint stepped           # makes a coroutine that the connection may begin
    cdef readonly bint adaptive          # inline or not by its record (run="auto")
    cdef object binder                   # of the tool's signature, once something has not fitted plainly
    cdef readonly bint binds_whole       # no argument may be bound without the others
    cdef readonly int form               # of a plain value that it returns; -1: the dispatcher decides
    cdef object load_content             # imports what writes results that are content; None: they are none
    cdef object plain                    # makes a plain value of a result that conforms, or None
    cdef int plain_form                  # of those values
    cdef object to_text                  # makes the text of a record that no schema describes, or None
    cdef object exact                    # the type of such a value, or None: any
    cdef object check                    # says whether it is what was promised, or None: it is
    cdef readonly int quick              # quick calls in a row
    cdef str refusal_prefix              # of the texts of refusals, or None
    cdef str failure_prefix              # of the texts of failures; None: the class of the exception
    cdef bint hides_failures             # their own texts are left out
    cdef object failed_type              # what an inline call raised last,
    cdef object failed_code              # in which code
    cdef int failed_at                   # at which instruction,
    cdef object failed_place             # and what `fastrpc.tracebacks` knows of it

    cdef bint has_unreadable(self) except -1
    cdef PyObject* call(self, Message message) noexcept
    cdef int bind(self, Message message, const uint8_t* order, PyObject** values) noexcept
    cdef PyObject* invoke(self, PyObject** values) noexcept
    cdef void release(self, PyObject** values) noexcept
    cdef list list_of(self, PyObject** values)
    cdef object bind_leniently(self, dict arguments)
    cdef void fill(self, PyObject** values, list bound) noexcept
    cdef bint order_of(self, const Call* call, uint8_t* order) noexcept
    cdef PyObject* call_known(self, const Call* call, const uint8_t* order) noexcept
    cpdef void record_duration(self, int64_t nanoseconds) noexcept
    cdef str failure_text(self, object error)
    cdef int count_failure(self, object error) except -1
    cdef Py_ssize_t index_of(self, Argument* argument, Py_ssize_t expected) noexcept
    cdef bint is_key(self, Argument* argument, Py_ssize_t at) noexcept

cdef object MISFIT


cdef class FramedPlan:
    # The plan of a resource or a prompt, and the bytes around a text that it returns, in one version.
    cdef Plan plan
    cdef bint stateless
    cdef bytes head              # from the comma after the id to the colon before the text
    cdef bytes tail              # all that follows the text, newline and all


cdef object made_of(object result, object make)

cdef bint is_writable_text(object text) noexcept

cdef inline bint is_ascii_text(object value) noexcept:
    return type(value) is str and PyUnicode_IS_COMPACT_ASCII(value)
