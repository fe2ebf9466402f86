# Waiting for descriptors: poll(2), and sched_yield(2) for a moment before it.

cdef enum:
    LOOK_AGAIN_NANOSECONDS = 30_000  # how long a stream yields and reads again before it sleeps
    SHARED_NANOSECONDS = 2_000       # a yield that takes longer has let other processes use the core
    SIGNAL_MILLISECONDS = 500        # the longest sleep of a client: a signal just before poll(2) ends none

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef extern from "poll.h" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* descriptors, unsigned long count, int timeout)
    short POLLIN, POLLOUT
