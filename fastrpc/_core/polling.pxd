# Waiting for descriptors: poll(2), and sched_yield(2) for a moment before it.

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef extern from "poll.h" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* descriptors, unsigned long count, int timeout)
    short POLLIN, POLLOUT
