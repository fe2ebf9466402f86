"""Moves bytes between two descriptors and a connection: the one compiled file that does I/O.

It pumps: read until the descriptor would block, answer every complete line, one write; then yield the
processor and look again for a moment before going to sleep, as long as nothing asynchronous is in
flight. A full output stops the reading until it has drained. There are two ways to sleep and one pump
for both: `run()` waits in poll(2) and needs no event loop, so that the first messages are answered
before asyncio is imported; `attach()` hands the same stream, with whatever it has read, to a loop.
The connection interprets the lines; the transport opens and restores the descriptors.

No exception of a callback stops the stream. The dispatcher answers an exception that a line raises, and the
next line is served; an exception of a trace, or of a function for the loop, is logged.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t
from libc.stdio cimport fflush
from posix.unistd cimport read, write

from fastrpc import forks

from fastrpc._core.clock cimport clock
from fastrpc._core.connection cimport Connection
from fastrpc._core.contained cimport contained
from fastrpc._core.encoder cimport OutputBuffer
from fastrpc._core.framer cimport LINE, NOTHING, Framer
from fastrpc._core.polling cimport (
    LOOK_AGAIN_NANOSECONDS,
    POLLIN,
    POLLOUT,
    SHARED_NANOSECONDS,
    poll,
    pollfd,
    sched_yield,
)

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <signal.h>
    #include <unistd.h>
    #include "pipes.h"

    /* Ending signals, seen. Handled in C, so that they are noticed in poll(2) as well as in a loop. */
    static volatile sig_atomic_t fastrpc_signal_seen = 0;
    static int fastrpc_signal_pipe[2] = {-1, -1};
    static const int fastrpc_signals[3] = {SIGTERM, SIGINT, SIGHUP};
    static struct sigaction fastrpc_former[3];

    static void fastrpc_on_signal(int number) {
        int kept = errno;
        fastrpc_signal_seen = number;
        if (write(fastrpc_signal_pipe[1], "", 1) < 0) { /* a full pipe has woken the reader already */ }
        errno = kept;
    }

    static int fastrpc_catch_signals(void) {
        struct sigaction action;
        if (fastrpc_signal_pipe[0] < 0) {
            if (fastrpc_make_pipe(fastrpc_signal_pipe, 0) < 0) { return -1; }
        }
        action.sa_handler = fastrpc_on_signal;
        action.sa_flags = 0;
        sigemptyset(&action.sa_mask);
        for (int at = 0; at < 3; ++at) {
            struct sigaction now;
            sigaction(fastrpc_signals[at], NULL, &now);
            if (now.sa_handler == fastrpc_on_signal) { continue; }
            fastrpc_former[at] = now;
            if (now.sa_handler == SIG_IGN) { continue; }  /* nohup and the like mean it */
            sigaction(fastrpc_signals[at], &action, NULL);
        }
        return fastrpc_signal_pipe[0];
    }

    /* A pipe holds 64 KiB by default: too little for large messages. Not everywhere, not for
       every descriptor, and beyond the user's share refused: then it stays as it is. */
    static void fastrpc_widen(int descriptor, int size) {
    #ifdef F_SETPIPE_SZ
        if (fcntl(descriptor, F_GETPIPE_SZ) < size) (void)fcntl(descriptor, F_SETPIPE_SZ, size);
    #else
        (void)descriptor;
        (void)size;
    #endif
    }

    /* In a child process: the pipe is the parent's, which would take a signal of the child for its own. */
    static void fastrpc_forget_pipe(void) {
        fastrpc_close_pipe(fastrpc_signal_pipe);
        fastrpc_signal_seen = 0;
    }

    static void fastrpc_release_signals(void) {
        for (int at = 0; at < 3; ++at) {
            sigaction(fastrpc_signals[at], &fastrpc_former[at], NULL);
        }
    }
    """
    int signal_seen "fastrpc_signal_seen"
    int make_pipe "fastrpc_make_pipe"(int* ends, bint waits) nogil
    void close_pipe "fastrpc_close_pipe"(int* ends) nogil
    int c_catch_signals "fastrpc_catch_signals"() nogil
    void forget_pipe "fastrpc_forget_pipe"() nogil
    void c_release_signals "fastrpc_release_signals"() nogil
    void widen "fastrpc_widen"(int descriptor, int size) nogil

cdef extern from "heap_limits.h":
    void set_thresholds "fastrpc_set_thresholds"(int mapped, int trimmed) noexcept

cdef str FAILED = "a function called by the stream failed"

# Pipes are enlarged, and free memory is kept, once a read has filled its buffer: without that, a megabyte of
# mixed text costs three times as much, in page faults. With 64 KiB for many answers, client and server on two
# cores wait for each other each time the pipe is full: 256 KiB made the list of thirteen tools with 256 in
# flight 1.2 to 1.3 times as fast; 1 MiB costs 1.4 times the CPU time on one core, since it exceeds the cache.
cdef enum:
    READ_SIZE = 64 * 1024
    KEPT_BYTES = 32 * 1024 * 1024     # of free memory
    FOR_LARGE_MESSAGES = 1024 * 1024  # bytes of a pipe
    FOR_MANY_ANSWERS = 256 * 1024     # a processor keeps so much in its cache, beside what it does with it
    FLUSH_ABOVE = 1024 * 1024            # answers held back before a write in the middle of a batch
    MOST_FAILED_SPINS = 8                # in a row: then the stream sleeps at once,
    TRY_SPINNING_AFTER = 64              # but for every 64th time
    TURN_NANOSECONDS = 1_000_000         # the loop has its turn after this
    QUIET_MILLISECONDS = 3
    LINES_BETWEEN_CLOCKS = 32

# Why a pump, or run(), came back.
IDLE = 0       # nothing to read
MORE = 1       # its time is up; there may be more
BLOCKED = 2    # the output is full
END = 3        # the input has ended and everything is sent
BROKEN = 4     # the reader has closed the output, or a descriptor failed
LOOP = 5       # something needs the event loop
SIGNAL = 6     # SIGTERM, SIGINT or SIGHUP


cdef class Stream:
    """Both directions of one connection; see the module's text.

    `call_in_loop` queues a function for the event loop, which is asked for if there is none yet.
    """

    cdef Connection connection
    cdef Framer framer
    cdef OutputBuffer output
    cdef int input
    cdef int sink
    cdef readonly bint at_end            # the input has ended
    cdef bint wants_loop
    cdef bint heard                      # the client has sent something
    cdef int quiet_moments               # that have been made use of
    cdef int failed_spins                # in a row
    cdef int skipped_spins
    cdef bint flush_is_due
    cdef bint reading                    # the loop watches the input
    cdef bint writing                    # the loop watches the output, which is full
    cdef bint over
    cdef bint abandoned                  # this is a child process, forked in a call that came from here
    cdef bint wide                       # room has been made for large messages
    cdef bint sink_is_wide               # room has been made for many answers
    cdef object loop
    cdef object on_end                   # called in the loop phase: once with END, once with BROKEN
    cdef bint end_is_told
    cdef list waiting                    # functions for the loop that is not there yet
    cdef int waker[2]                    # a pipe: another thread has added one
    cdef object trace                    # called with b"<" or b">" and a line, or None
    cdef Py_ssize_t line_at              # where the line begins that is being handled, in the framer's buffer
    cdef long long written               # before it was answered

    def __init__(self, Connection connection, int input, int output, Py_ssize_t max_line, trace=None):
        self.connection = connection
        self.framer = Framer(max_line)
        self.output = connection.output
        self.input = input
        self.sink = output
        self.waiting = []
        self.trace = trace
        if make_pipe(self.waker, False) < 0:
            raise OSError(errno, "no pipe can be made")
        connection.call_in_loop = self.call_in_loop
        connection.flush = self.flush_soon
        connection.send = self.flush

    def __cinit__(self):
        self.waker[0] = self.waker[1] = -1

    def __dealloc__(self):
        close_pipe(self.waker)

    # --- the pump ---------------------------------------------------------------------------------

    cdef int pump(self, bint in_loop) except -1:
        """Read and answer until there is a reason to stop, and return it.

        With nothing to read it polls for a moment before the caller sleeps: a client that waits for each
        answer sends the next call soon. Answers to forwarded calls are looked for, too.
        """
        cdef int64_t until = clock() + TURN_NANOSECONDS if in_loop else 0
        cdef int64_t look_until = 0
        cdef int64_t now
        cdef int64_t before = 0
        cdef Py_ssize_t count
        cdef int outcome
        cdef Py_ssize_t available
        cdef char* room
        while True:
            outcome = self.answer_lines(until)
            if outcome != IDLE:
                return outcome
            if self.connection.forwarded and self.poll_upstream():
                self.failed_spins = look_until = 0
                if until and clock() > until:
                    return self.send() or MORE
                continue
            room = self.framer.room(READ_SIZE, &available)
            count = read(self.input, room, available)
            if count > 0:
                self.framer.filled(count)
                self.heard = True
                if look_until:
                    self.failed_spins = look_until = 0
                if count >= READ_SIZE and self.has_read_much(until):
                    return self.send() or MORE
                continue
            if count == 0:
                return self.input_ended()
            if errno == EINTR:
                continue
            if errno != EAGAIN:
                return self.input_ended()
            if self.connection.forwarded != len(self.connection.in_flight):
                return IDLE
            now = clock()
            if look_until == 0:
                if self.failed_spins >= MOST_FAILED_SPINS and not self.may_spin_again():
                    return IDLE
                look_until = now + LOOK_AGAIN_NANOSECONDS
                before = 0
            if now > look_until or (until and now > until) or signal_seen or (
                before and now - before > SHARED_NANOSECONDS
            ):
                self.failed_spins += 1
                return IDLE
            before = now
            with nogil:
                sched_yield()

    cdef bint may_spin_again(self) noexcept:
        """Spinning has failed: the client is slow, or needs this core. Try once in a while."""
        self.skipped_spins = (self.skipped_spins + 1) % TRY_SPINNING_AFTER
        return self.skipped_spins == 0

    cdef bint has_read_much(self, int64_t until) noexcept:
        """A read was full. Say whether the pump has to stop: a client that sends faster than it is answered
        never leaves nothing to read, and blank lines or a part of a line count as none."""
        if not self.wide:  # messages are large or many: give the pipes and the heap room for them
            self.wide = True
            # A text of a megabyte is a str of up to four: glibc would give each back to the system, and fault
            # it in page by page for the next message, at three times the cost of all else.
            set_thresholds(KEPT_BYTES, KEPT_BYTES)
            widen(self.input, FOR_LARGE_MESSAGES)
            widen(self.sink, FOR_LARGE_MESSAGES)
        return signal_seen or (until and clock() > until)

    cdef int answer_lines(self, int64_t until) except -1:
        """Answer every complete line that has been read, and send the answers."""
        self.connection.pumping = True
        self.connection.now = 0
        self.connection.keep_context()
        try:
            while True:
                try:
                    return self.answer_each(until)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    self.line_failed(error)
        finally:
            self.connection.pumping = False

    cdef int answer_each(self, int64_t until) except -1:
        """The same until a line raises."""
        cdef char* line
        cdef Py_ssize_t size
        cdef Connection connection = self.connection
        cdef OutputBuffer output = self.output
        cdef int found
        cdef int lines = 0
        while True:
            self.line_at = self.framer.start
            self.written = output.written()
            if connection.known and self.take_known():
                connection.answer_known()
            else:
                found = self.framer.next_line(&line, &size)
                if found == NOTHING:
                    return self.send()
                if self.trace is not None:
                    self.tell_trace(b"<", line[:size] if found == LINE else b"(a line over the limit)")
                if found == LINE:
                    connection.handle(line, size)
                else:
                    connection.now = 0
                    connection.dispatcher.responses.line_too_long()
            lines += 1
            if self.wants_loop:
                if self.abandoned:
                    forks.leave()
                return self.send() or LOOP
            if output.waiting() > FLUSH_ABOVE:
                found = self.send()
                if found != IDLE:
                    return found
            if lines % LINES_BETWEEN_CLOCKS == 0 and until and clock() > until:
                return self.send() or MORE

    cdef int line_failed(self, object error) except -1:
        """The line that was being handled has raised."""
        cdef Framer framer = self.framer
        cdef bytes line = b""
        if self.line_at < framer.start:
            line = framer.buffer[self.line_at : framer.start]
        self.connection.now = 0
        self.connection.known = False
        responses = self.connection.dispatcher.responses
        return contained(FAILED, responses.line_failed, (line, self.written, error))

    cdef int tell_trace(self, bytes direction, bytes data) except -1:
        return contained(FAILED, self.trace, (direction, data))

    cdef bint poll_upstream(self) except -1:
        """Take answers of forwarded calls; False: there are none. Between two batches of lines alone."""
        self.connection.pumping = True
        try:
            return self.connection.forwarder.poll()
        finally:
            self.connection.pumping = False

    cdef bint take_known(self) noexcept:
        """Take the next line if it is like the one before it: reading it finds its end."""
        cdef Framer framer = self.framer
        cdef const char* limit
        cdef Py_ssize_t size
        if framer.skipping or self.trace is not None:
            return False
        limit = framer.buffer + framer.end
        if framer.end - framer.start > framer.max_line:
            limit = framer.buffer + framer.start + framer.max_line + 1
        size = self.connection.message.read_known(framer.buffer + framer.start, limit)
        if size == 0:
            return False
        framer.start += size + 1
        framer.searched = framer.start
        return True

    cdef int input_ended(self) except -1:
        """Serve a last line that has no newline, and say that the input is over."""
        cdef char* line
        cdef Py_ssize_t size
        self.at_end = True
        self.line_at = self.framer.start
        self.written = self.output.written()
        if self.framer.last_line(&line, &size) == LINE:
            if self.trace is not None:
                self.tell_trace(b"<", line[:size])
            try:
                self.connection.handle(line, size)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self.line_failed(error)
            if self.abandoned:
                forks.leave()
        return END if self.send() == IDLE else BLOCKED

    cdef int send(self) except -1:
        """Write what waits in the output: IDLE if all of it went, else BLOCKED or BROKEN."""
        cdef Py_ssize_t count
        while self.output.waiting():
            count = write(self.sink, self.output.buffer + self.output.start, self.output.waiting())
            if count >= 0:
                if self.trace is not None:
                    self.tell_trace(b">", self.output.buffer[self.output.start : self.output.start + count])
                self.output.taken(count)
            elif errno == EAGAIN:
                if self.sink_is_wide or self.output.waiting() < READ_SIZE:
                    return BLOCKED
                # Client and server would wait for each other after each pipe that is full.
                self.sink_is_wide = True
                widen(self.sink, FOR_MANY_ANSWERS)
            elif errno != EINTR:
                return BROKEN
        return IDLE

    # --- without a loop -----------------------------------------------------------------------------

    def run(self):
        """Serve until the input ends, the output breaks, a signal comes or the loop is needed."""
        cdef int outcome
        cdef int signals = c_catch_signals()
        while True:
            outcome = self.send() if self.output.waiting() else IDLE
            if outcome == IDLE:
                outcome = END if self.at_end else self.pump(False)
            if signal_seen:
                return SIGNAL
            if outcome == END and self.waiting:
                return LOOP
            if outcome != IDLE and outcome != BLOCKED:
                return outcome
            if self.sleep(outcome == BLOCKED, signals) == LOOP:
                return LOOP

    cdef int sleep(self, bint blocked, int signals) except -1:
        """Wait for the descriptors. An idle moment before any input prepares for the first request;
        the first one after input has come begins the loop, if it will be needed."""
        cdef pollfd watched[3]
        cdef int count
        cdef int moments = 2 if self.heard else 1
        cdef int timeout = QUIET_MILLISECONDS if self.quiet_moments < moments and not blocked else -1
        watched[0].fd = self.sink if blocked else self.input
        watched[0].events = POLLOUT if blocked else POLLIN
        watched[1].fd = signals
        watched[1].events = POLLIN
        watched[2].fd = self.waker[0]
        watched[2].events = POLLIN
        with nogil:
            count = poll(watched, 3, timeout)
        if count < 0:
            PyErr_CheckSignals()
        if self.waiting:
            return LOOP
        if count == 0:
            self.quiet_moments = moments
            if self.is_loop_needed() and self.heard:
                return LOOP
        return IDLE

    cdef bint is_loop_needed(self) except -1:
        """Have the dispatcher get ready, and say whether the loop will be needed."""
        try:
            return self.connection.delegate.on_client_idle()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            from fastrpc import tracebacks

            tracebacks.report(FAILED, error)
            return False

    def call_in_loop(self, function):
        """Call `function` on the event loop: now if it runs, else as soon as it has been attached.

        Before there is a loop any thread may ask for it.
        """
        if self.loop is not None:
            function()
            return
        self.waiting.append(function)
        self.wants_loop = True
        write(self.waker[1], b"", 1)  # a full pipe has woken the reader already

    def abandon(self):
        """Read and answer nothing any more: this is a child process, and the lines are its parent's.

        The call in which it was forked ends the process when it comes back.
        """
        self.abandoned = self.wants_loop = self.over = True
        self.connection.known = False
        self.framer.start = self.framer.searched = self.framer.end
        self.output.taken(self.output.waiting())
        close_pipe(self.waker)

    # --- in a loop ------------------------------------------------------------------------------------

    def attach(self, loop, on_end):
        """Go on in `loop`, which runs; call `on_end(END)` once when the input is over and all is answered and
        sent that could be at once, `on_end(BROKEN)` once when the reader has closed the output."""
        self.loop = loop
        self.on_end = on_end
        self.wants_loop = False
        waiting, self.waiting = self.waiting, []
        for function in waiting:
            contained(FAILED, function)
        self.turn()

    def turn(self):
        """One turn of the pump in the loop."""
        cdef int outcome
        if self.over or self.writing:
            return
        outcome = self.send() if self.output.waiting() else IDLE
        if outcome == IDLE:
            outcome = END if self.at_end else self.pump(True)
        self.follow(outcome)

    cdef int follow(self, int outcome) except -1:
        """Arrange for what comes after a turn that ended like this."""
        if outcome == IDLE:
            self.watch_input(True)
        elif outcome == MORE:
            self.loop.call_soon(self.turn)
        elif outcome == BLOCKED:
            self.watch_input(False)
            if not self.writing:
                self.writing = True
                self.loop.add_writer(self.sink, self.drained)
        else:
            self.finish(outcome)
        return 0

    cdef int watch_input(self, bint wanted) except -1:
        if wanted and not self.reading:
            self.loop.add_reader(self.input, self.turn)
        elif self.reading and not wanted:
            self.loop.remove_reader(self.input)
        self.reading = wanted
        return 0

    def drained(self):
        """The output takes bytes again."""
        self.writing = False
        self.loop.remove_writer(self.sink)
        self.turn()

    cdef int finish(self, int reason) except -1:
        """The input has ended or the output is broken: stop watching and say so, each once.

        The output may break after the end of the input; no event follows that.
        """
        self.watch_input(False)
        if reason == BROKEN:
            self.over = True
            if self.writing:
                self.writing = False
                self.loop.remove_writer(self.sink)
        on_end = self.on_end
        if on_end is None or (reason == END and self.end_is_told):
            return 0
        if reason == BROKEN:
            self.on_end = None
        else:
            self.end_is_told = True
        return contained(FAILED, on_end, (reason,))

    def flush_soon(self):
        """Send what was written outside of a pump, once for all that is written in this turn."""
        if self.loop is not None and not self.flush_is_due:
            self.flush_is_due = True
            self.loop.call_soon(self.flush)

    def flush(self):
        """Send what waits; with a full output, stop reading until it has drained."""
        cdef int outcome
        self.flush_is_due = False
        if self.over or self.writing:
            return
        outcome = self.send()
        if outcome == BLOCKED or outcome == BROKEN:
            self.follow(outcome)

    @property
    def unsent(self):
        """How many bytes wait to be written."""
        return self.output.waiting()

    def send_rest(self, int timeout_ms):
        """Write what waits, without a loop, waiting at most this long for the reader."""
        cdef pollfd watched
        cdef int64_t until = clock() + <int64_t> timeout_ms * 1_000_000
        cdef int outcome = self.send()
        watched.fd = self.sink
        watched.events = POLLOUT
        while outcome == BLOCKED and clock() < until:
            with nogil:
                poll(&watched, 1, 10)
            outcome = self.send()
        return outcome


def catch_signals():
    """Note SIGTERM, SIGINT and SIGHUP from now on; return a descriptor that turns readable with one."""
    return c_catch_signals()


def forget_signals():
    """Take signals as before catch_signals(), in a child process: they are not its parent's."""
    c_release_signals()
    forget_pipe()


def release_signals():
    """Put back the handlers that were there before catch_signals()."""
    c_release_signals()


def flush_c_output():
    """Write what C code has printed and C's standard I/O still holds back."""
    fflush(NULL)
