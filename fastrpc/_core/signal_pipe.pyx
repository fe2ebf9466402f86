"""Turns one signal into bytes in a pipe, for a thread that reads it.

The handler is C: nothing of Python runs on the thread that is interrupted, whether that is in poll(2), in an
event loop or in a handler's code, and no wakeup descriptor of asyncio or uvloop is touched. System calls that
can be restarted are (SA_RESTART). The signal is never blocked or ignored, and exec resets handlers: programs
that are started meanwhile take it as a new program does. The caller decides who reads it and what follows.
"""

from libc.errno cimport errno

cdef extern from *:
    """
    #include <errno.h>
    #include <signal.h>
    #include "pipes.h"

    static int fastrpc_noted = 0;  /* the signal that is caught, 0 for none */
    static struct sigaction fastrpc_before;
    static int fastrpc_note_pipe[2] = {-1, -1};  /* kept once it is made: a handler may be about to write */

    static void fastrpc_note_byte(int number) {
        int kept = errno;
        (void)number;
        if (write(fastrpc_note_pipe[1], "", 1) < 0) { /* a full pipe has woken the reader already */ }
        errno = kept;
    }

    static int fastrpc_note_signal(int number) {
        struct sigaction action;
        if (fastrpc_note_pipe[0] < 0) {
            if (fastrpc_make_pipe(fastrpc_note_pipe, 1) < 0) { return -1; }
        }
        if (number != 0) {
            action.sa_handler = fastrpc_note_byte;
            action.sa_flags = SA_RESTART;
            sigemptyset(&action.sa_mask);
            if (sigaction(number, &action, &fastrpc_before) < 0) { return -1; }
        }
        fastrpc_noted = number;
        return fastrpc_note_pipe[0];
    }

    /* Only if the handler is still this one: the program may have set another. */
    static void fastrpc_release_signal(void) {
        struct sigaction now;
        if (fastrpc_noted == 0) { return; }
        sigaction(fastrpc_noted, NULL, &now);
        if (now.sa_handler == fastrpc_note_byte) { sigaction(fastrpc_noted, &fastrpc_before, NULL); }
        fastrpc_noted = 0;
    }

    /* In a child process: the pipe is the parent's, which would take a signal of the child for its own. */
    static void fastrpc_leave_notes(void) {
        fastrpc_release_signal();
        fastrpc_close_pipe(fastrpc_note_pipe);
    }
    """
    int note_signal "fastrpc_note_signal"(int number) nogil
    void note_byte "fastrpc_note_byte"(int number) nogil
    void release_signal "fastrpc_release_signal"() nogil
    void leave_notes "fastrpc_leave_notes"() nogil


def catch(int number):
    """Write a byte for each signal of this number from now on; return the descriptor to read them from.

    One signal at a time; 0 catches none, and there is only `wake`. Raises OSError.
    """
    cdef int found
    release_signal()
    found = note_signal(number)
    if found < 0:
        raise OSError(errno, "signals of this number cannot be caught")
    return found


def wake():
    """Write a byte as the signal does, for the reader to look up."""
    note_byte(0)


def release():
    """Take the signal as before `catch`. The descriptor stays, for the next `catch`."""
    release_signal()


def forget():
    """Take the signal as before, and let go of the pipe, in a child process: it is its parent's."""
    leave_notes()
