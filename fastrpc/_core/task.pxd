# A coroutine that runs at once, and as a task of the event loop when it waits.

cdef enum State:
    PENDING = 0
    CANCELLED = 1
    FINISHED = 2

cdef class CallTask:
    cdef object __weakref__
    cdef readonly object _coro
    cdef readonly object _loop
    cdef object context
    cdef public object on_done
    cdef readonly object _fut_waiter                   # the future that the coroutine waits for
    cdef readonly object value           # the result, or the exception
    cdef readonly object _cancel_message
    cdef object name
    cdef readonly list _callbacks                  # of others: (function, context), or None
    cdef readonly int state
    cdef int cancel_requests
    cdef readonly bint _must_cancel
    cdef readonly bint failed            # `value` is an exception
    cdef bint registered                 # it is among asyncio.all_tasks()
    cdef public object _asyncio_future_blocking

    cdef int run(self) except -1
    cdef int step(self, object error) except -1
    cdef int wait_for(self, object awaited) except -1
    cdef int refuse(self, str why) except -1
    cdef int end(self, int state, object value, bint failed) except -1
    cdef object cancellation(self)
    cpdef object call_error(self)

cdef CallTask begun(object awaitable, object loop)
cdef int forget(CallTask task) except -1
