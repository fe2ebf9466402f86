"""The hot step: one line in, at most one answer out.

A `tools/call` of a tool that may run inline goes from the parser through its plan into the output
buffer without leaving compiled code but for the tool itself. Every other message, every result that
is no `str`, and every failure go to the dispatcher, in Python. Looks at the processor's counter once a
call of a tool that is judged by its record, at a clock only when that call looks slow. Does no I/O: a
transport feeds lines and sends the output.
"""

from cpython.dict cimport PyDict_Contains, PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.string cimport memchr, memcmp, memcpy

from fastrpc._core.encode cimport ID_ROOM
from fastrpc._core.message cimport LEGACY, MODERN, REQUEST, make_str
from fastrpc._core.plan cimport MISFIT

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>

    static inline int64_t fastrpc_clock(void) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    }

    /* A count that grows evenly with time and costs a third of the clock: the processor's, where it has one
       that every core shares. */
    static inline int64_t fastrpc_ticks(void) {
    #ifdef __x86_64__
        return (int64_t)__builtin_ia32_rdtsc();
    #else
        return fastrpc_clock();
    #endif
    }
    """
    int64_t c_clock "fastrpc_clock"() noexcept nogil
    int64_t ticks "fastrpc_ticks"() noexcept nogil

cdef enum:
    SUSPICIOUS_TICKS = 100_000   # no processor counts a millisecond in fewer
    SHORT_ID = 64                # a longer one is copied to a bytes object


cdef int reraise() except -1:
    """Return as a function does that has raised: somebody else has set the exception."""
    return -1


cdef int64_t clock() noexcept:
    """Return a monotonic time in nanoseconds."""
    return c_clock()


cdef class Connection:
    def __init__(self, bytes legacy_tail, bytes modern_tail):
        """The tails follow the text of a one-text result, by era, with the newline at the end."""
        self.first_clock = c_clock()
        self.first_ticks = ticks()
        self.output = Output()
        self.message = Message()
        self.plans = {}
        self.in_flight = {}
        self.legacy_tail = legacy_tail
        self.modern_tail = modern_tail

    cdef int handle(self, const char* line, Py_ssize_t size) except -1:
        """Answer a line, which has 64 readable bytes behind it, or hand it to the dispatcher."""
        self.message.read_line(line, size)
        return self.handle_message()

    cdef int handle_message(self) except -1:
        cdef Message message = self.message
        cdef Plan plan
        if (
            message.kind_code == REQUEST
            and not message.wants_progress
            and (message.era == MODERN or (message.era == LEGACY and self.open))
            and not (self.in_flight and self.is_in_flight())
        ):
            if message.is_call:
                plan = self.last if message.shape and message.shape == self.shape else self.plan_of()
                if plan is not None and plan.inline and plan.count >= 0:
                    return self.call(plan)
            elif message.is_list:
                ready = self.modern_list if message.era == MODERN else self.legacy_list
                if ready is not None:
                    return self.list(ready)
        self.now = 0
        self.dispatcher.dispatch(message)
        return 0

    cdef int list(self, bytes ready) except -1:
        """Answer with a list that is ready but for the id."""
        return self.output.put_answer(self.message.id.data, self.message.id.size, <char*> ready, len(ready))

    cdef Plan plan_of(self):
        """Return the plan of the tool that the message names, or None."""
        cdef Message message = self.message
        cdef PyObject* found
        self.shape = message.shape
        if (
            self.last is not None
            and len(self.last.name_text) == message.tool_name.size
            and memcmp(<char*> self.last.name_text, message.tool_name.data, message.tool_name.size) == 0
        ):
            return self.last
        found = PyDict_GetItem(self.plans, make_str(message.tool_name.data, message.tool_name.size))
        if found == NULL:
            self.shape = 0
            return None
        self.last = <Plan> found
        return self.last

    cdef bint is_in_flight(self):
        """Is a request with this id being worked on? An id with escapes is left to the dispatcher."""
        cdef Message message = self.message
        if memchr(message.id.data, c"\\", message.id.size) != NULL:
            return True
        return PyDict_Contains(self.in_flight, message.id.data[: message.id.size])

    cdef int call(self, Plan plan) except -1:
        """Call a tool now and write its answer."""
        cdef Message message = self.message
        cdef bint modern = message.era == MODERN
        cdef bytes tail = self.modern_tail if modern else self.legacy_tail
        cdef bytes long_id
        cdef char short_id[SHORT_ID]
        cdef const char* id = short_id
        cdef Py_ssize_t id_size = message.id.size
        cdef PyObject* returned
        cdef int64_t took
        cdef int64_t ended
        # The tool may make the read buffer move; the id lies in it.
        if id_size <= ID_ROOM:
            memcpy(short_id, message.id.data, ID_ROOM)
        elif id_size <= SHORT_ID:
            memcpy(short_id, message.id.data, id_size)
        else:
            long_id = message.id.data[:id_size]
            id = long_id
        if plan.judged and self.now == 0:
            self.now = ticks()
        returned = plan.call(message)
        if returned == NULL:
            return self.fail_call(id[:id_size], plan, modern)
        result = <object> returned
        Py_DECREF(result)
        if plan.judged:
            ended = ticks()
            took = ended - self.now
            self.now = ended
            if took > SUSPICIOUS_TICKS:
                plan.note_call(self.nanoseconds_of(took))
        if type(result) is str:
            try:
                self.output.put_text(id, id_size, <str> result, <char*> tail, len(tail))
                return 0
            except UnicodeEncodeError:
                return self.end_call(id[:id_size], plan, result, modern)
        if result is MISFIT:
            self.now = 0
            self.dispatcher.dispatch(message)
            return 0
        return self.end_call(id[:id_size], plan, result, modern)

    cdef int fail_call(self, bytes id, Plan plan, bint modern) except -1:
        """The tool has raised; its exception is set."""
        self.now = 0
        try:
            reraise()
        except BaseException as error:
            self.dispatcher.call_failed(id, plan.tool, error, modern)
        return 0

    cdef int64_t nanoseconds_of(self, int64_t count) noexcept:
        """Return how long so many ticks are, by what has gone by since the connection was made."""
        cdef double rate = <double> (ticks() - self.first_ticks) / (c_clock() - self.first_clock + 1)
        return <int64_t> (count / rate)

    cdef int end_call(self, bytes id, Plan plan, object result, bint modern) except -1:
        """A result that needs more than escaping."""
        self.now = 0
        self.dispatcher.call_ended(id, plan.tool, result, modern)
        return 0

    cdef int too_long(self) except -1:
        self.now = 0
        self.dispatcher.line_too_long()
        return 0

    # --- for Python -------------------------------------------------------------------------------------

    def answer_text(self, bytes id, str text, bint modern):
        """Answer with one text block. Raises UnicodeEncodeError before anything is written."""
        self.output.text(id, text, self.modern_tail if modern else self.legacy_tail)
        self.wrote()

    def wrote(self):
        """Say that an answer was written outside of a pump, so that somebody sends it."""
        if not self.pumping and self.flush is not None:
            self.flush()

    def take_plans(self, dict plans):
        """Take new plans, after the tools have changed, and forget lists of the old ones."""
        self.plans = plans
        self.last = None
        self.shape = 0
        self.legacy_list = self.modern_list = None

    def take_list(self, bytes result, bint modern):
        """Keep the first page of the tools, to answer with it from now on."""
        if modern:
            self.modern_list = result
        else:
            self.legacy_list = result

    def receive(self, bytes line):
        """Handle one line that came by another way than a stream."""
        self.now = 0
        self.message.read(line)
        self.handle_message()
