"""Runs a coroutine at once, and as a task of the event loop when it waits.

A `CallTask` takes its first step in the turn of the loop in which it is begun, as asyncio's eager tasks
do (Python 3.12); most handlers do not wait, and have ended then. One that waits goes on as any task does:
it is what `asyncio.current_task()` returns from its first step to its last, has one context for its
variables, can be cancelled, and is among `asyncio.all_tasks()` while it waits. Of `asyncio.Task` it has
every public method, but it is no instance of it. SystemExit and KeyboardInterrupt end the task and not
the loop: they are its exception.

Costs no look-up, no handle and no entry in a loop for a coroutine that does not wait. `on_done` handles
the result: it is called once, in the step in which the task ends.
"""

import sys
from asyncio import CancelledError, InvalidStateError, iscoroutine, tasks

from cpython.object cimport PyObject
from cpython.ref cimport Py_REFCNT

from fastrpc._core.python_api cimport (
    PYGEN_ERROR,
    PYGEN_NEXT,
    PYGEN_RETURN,
    PyContext_CopyCurrent,
    PyContext_Enter,
    PyContext_Exit,
    PyIter_Send,
    PySendResult,
    owned,
)

from fastrpc.errors import ToolError

cdef extern from "raised.h":
    object take_raised "fastrpc_take_raised"()

cdef extern from *:
    """
    /* Is there a weak reference to this object, whose type has room for some? */
    static inline int fastrpc_is_referred(PyObject* object) {
        return *(PyObject**)((char*)object + Py_TYPE(object)->tp_weaklistoffset) != NULL;
    }
    """
    bint is_referred "fastrpc_is_referred"(object value) noexcept

cdef extern from "Python.h":
    bint PyCoro_CheckExact(object candidate)
    bint is_of "PyErr_GivenExceptionMatches"(object error, object kind)  # by its type: runs no code of it

cdef object enter_task = tasks._enter_task
cdef object leave_task = tasks._leave_task
cdef object current_task = tasks.current_task
cdef dict current_tasks = None   # what these keep, where that is a dict by loop: cheaper than calling them
cdef object register_task = tasks._register_task
cdef object unregister_task = tasks._unregister_task

# What has not been raised yet is forgotten with the last request for it, from Python 3.13 on.
cdef bint UNCANCEL_FORGETS = sys.version_info >= (3, 13)

cdef int look_for_current_tasks() except -1:
    """Find the dict that enter_task and leave_task keep, in CPythons up to 3.13, by what they do to it.

    From 3.14 on a thread keeps its task, they refuse a loop that does not run, and the dict is another's.
    """
    global current_tasks
    found = getattr(tasks, "_current_tasks", None)
    if sys.version_info >= (3, 14) or type(found) is not dict:
        return 0
    loop = object()
    task = object()
    enter_task(loop, task)
    if found.get(loop) is task:
        current_tasks = found
    leave_task(loop, task)
    if current_tasks is not None and loop in found:
        current_tasks = None
    return 0


look_for_current_tasks()


cdef inline object current_task_of(object loop):
    """Return the task that is running in a loop, or None."""
    if current_tasks is not None:
        return current_tasks.get(loop)
    return current_task(loop)


cdef inline int set_current(object loop, CallTask task) except -1:
    """enter_task(), which raises where a task is running."""
    if current_tasks is not None and loop not in current_tasks:
        current_tasks[loop] = task
    else:
        enter_task(loop, task)
    return 0


cdef inline int unset_current(object loop, CallTask task) except -1:
    """leave_task(), which raises where another task is running."""
    if current_tasks is not None and current_tasks.get(loop) is task:
        del current_tasks[loop]
    else:
        leave_task(loop, task)
    return 0


cdef long long count = 0
cdef CallTask spare = None       # one that has ended in its first step, with no other reference


cdef class CallTask:
    """A coroutine that runs in `loop`; `on_done(task)`, if it is given, is called when it has ended.

    Nothing runs before `begin`. Like `asyncio.Task` it is bound to its loop's thread.
    """

    def __init__(self, coroutine, loop, on_done):
        self._coro = coroutine
        self._loop = loop
        self.on_done = on_done
        self.context = PyContext_CopyCurrent()
        self._asyncio_future_blocking = False

    def begin(self):
        """Take the first step now, inside of whatever task is running."""
        self.run()

    cdef int run(self) except -1:
        cdef object outer = current_task_of(self._loop)
        if outer is not None:
            leave_task(self._loop, outer)
        PyContext_Enter(self.context)
        try:
            self.step(None)
        finally:
            PyContext_Exit(self.context)
            if outer is not None:
                enter_task(self._loop, outer)
        return 0

    # --- steps ------------------------------------------------------------------------------------------

    cdef int step(self, object error) except -1:
        """Run the coroutine, in its context, until it ends or waits; raise an error where it waits."""
        cdef PyObject* sent = NULL
        cdef PySendResult outcome = PYGEN_ERROR
        cdef object result = None
        cdef object raised = None
        if self.state != PENDING:
            return 0
        if self._must_cancel:
            if error is None or not is_of(error, CancelledError):
                error = self.cancellation()
            self._must_cancel = False
        self._fut_waiter = None
        set_current(self._loop, self)
        try:
            if error is None:
                outcome = PyIter_Send(self._coro, None, &sent)
                if outcome == PYGEN_ERROR:
                    raised = take_raised()  # a handler here would cost more than the coroutine
                else:
                    result = owned(sent)
            else:
                result = self._coro.throw(error)
                outcome = PYGEN_NEXT
        except StopIteration as stop:
            outcome, result = PYGEN_RETURN, stop.value
        except BaseException as problem:
            raised = problem
        finally:
            unset_current(self._loop, self)
        if raised is not None:
            if is_of(raised, CancelledError):
                self.end(CANCELLED, raised, True)
            else:
                self.end(FINISHED, raised, True)
        elif outcome == PYGEN_RETURN:
            if self._must_cancel:  # cancelled in its last step
                self._must_cancel = False
                self.end(CANCELLED, self.cancellation(), True)
            else:
                self.end(FINISHED, result, False)
        else:
            try:
                self.wait_for(result)
            except BaseException as problem:  # of what it waits for, which may be anything
                self._fut_waiter = None
                self._loop.call_soon(self._step, problem, context=self.context)
        return 0

    cdef int wait_for(self, object awaited) except -1:
        """Go on when what the coroutine has yielded is done."""
        cdef object blocking
        if not self.registered:
            self.registered = True
            register_task(self)
        if awaited is None:  # a bare yield, as of asyncio.sleep(0)
            self._loop.call_soon(self._step, None, context=self.context)
            return 0
        blocking = getattr(awaited, "_asyncio_future_blocking", None)
        if blocking is None:
            return self.refuse(f"Task got bad yield: {awaited!r}")
        if not blocking:
            return self.refuse(f"yield was used instead of yield from in task {self!r} with {awaited!r}")
        if awaited is self:
            return self.refuse(f"Task cannot await on itself: {self!r}")
        if loop_of(awaited) is not self._loop:
            return self.refuse(f"Task {self!r} got Future {awaited!r} attached to a different loop")
        awaited._asyncio_future_blocking = False
        awaited.add_done_callback(self._wakeup, context=self.context)
        self._fut_waiter = awaited
        if self._must_cancel and awaited.cancel(msg=self._cancel_message):
            self._must_cancel = False
        return 0

    cdef int refuse(self, str why) except -1:
        self._loop.call_soon(self._step, RuntimeError(why), context=self.context)
        return 0

    def _step(self, error):
        self.step(error)

    def _wakeup(self, future):
        try:
            future.result()
        except BaseException as error:
            self.step(error)
        else:
            self.step(None)

    cdef int end(self, int state, object value, bint failed) except -1:
        self.state = state
        self.value = value
        self.failed = failed
        if self.registered:
            unregister_task(self)
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            for function, context in callbacks:
                self._loop.call_soon(function, self, context=context)
        on_done, self.on_done = self.on_done, None
        if on_done is not None:
            on_done(self)
        return 0

    cdef object cancellation(self):
        message = self._cancel_message
        return CancelledError() if message is None else CancelledError(message)

    cpdef object call_error(self):
        """Return the error of the call that it has run, None if that has a result (`value`)."""
        if self.state == CANCELLED:
            return ToolError("the call was cancelled")
        return self.value if self.failed else None

    # --- as asyncio.Task ----------------------------------------------------------------------------------

    def cancel(self, msg=None):
        """Raise CancelledError in the coroutine, soon; False if it has ended."""
        if self.state != PENDING:
            return False
        self.cancel_requests += 1
        if self._fut_waiter is not None and self._fut_waiter.cancel(msg=msg):
            return True
        self._must_cancel = True
        self._cancel_message = msg
        return True

    def cancelling(self):
        """Return how many cancellations have been asked for and not taken back."""
        return self.cancel_requests

    def uncancel(self):
        """Take back one request for cancellation; return how many are left."""
        if self.cancel_requests > 0:
            self.cancel_requests -= 1
            if self.cancel_requests == 0 and UNCANCEL_FORGETS:
                self._must_cancel = False
        return self.cancel_requests

    def done(self):
        """Say whether it has ended."""
        return self.state != PENDING

    def cancelled(self):
        """Say whether it has ended by its cancellation."""
        return self.state == CANCELLED

    def result(self):
        """Return the coroutine's result. Raises its exception, CancelledError, InvalidStateError."""
        if self.state == PENDING:
            raise InvalidStateError("Result is not set.")
        if self.failed:
            raise self.value
        return self.value

    def exception(self):
        """Return the coroutine's exception or None. Raises CancelledError, InvalidStateError."""
        if self.state == PENDING:
            raise InvalidStateError("Exception is not set.")
        if self.state == CANCELLED:
            raise self.value
        return self.value if self.failed else None

    def set_result(self, result):
        raise RuntimeError("Task does not support set_result operation")

    def set_exception(self, exception):
        raise RuntimeError("Task does not support set_exception operation")

    def add_done_callback(self, function, *, context=None):
        """Have a function called with the task, by the loop, once it has ended."""
        if context is None:
            context = PyContext_CopyCurrent()
        if self.state != PENDING:
            self._loop.call_soon(function, self, context=context)
        elif self._callbacks is None:
            self._callbacks = [(function, context)]
        else:
            self._callbacks.append((function, context))

    def remove_done_callback(self, function):
        """Have a function called no more; return how many times it would have been."""
        if self._callbacks is None:
            return 0
        kept = [pair for pair in self._callbacks if pair[0] != function]
        removed = len(self._callbacks) - len(kept)
        self._callbacks = kept or None
        return removed

    def get_loop(self):
        return self._loop

    def get_coro(self):
        return self._coro

    def get_context(self):
        return self.context

    def get_name(self):
        """Return the name that it was given, or one made from a number when it is first asked for."""
        global count
        if self.name is None:
            count += 1
            self.name = f"fastrpc-{count}"
        return self.name

    def set_name(self, value):
        self.name = str(value)

    def get_stack(self, *, limit=None):
        """Return the frames of the coroutine, where it waits."""
        return tasks.base_tasks._task_get_stack(self, limit)

    def print_stack(self, *, limit=None, file=None):
        return tasks.base_tasks._task_print_stack(self, limit, file)

    # What anyio and asyncio's own helpers look at, besides the attributes of the same names.

    def _make_cancelled_error(self):
        return self.value if self.state == CANCELLED else self.cancellation()

    @property
    def _exception(self):
        return self.value if self.failed and self.state == FINISHED else None

    def __await__(self):
        if self.state == PENDING:
            self._asyncio_future_blocking = True
            yield self
        if self.state == PENDING:
            raise RuntimeError("await wasn't used with future")
        return self.result()

    __iter__ = __await__

    def __repr__(self):
        state = ("pending", "cancelled", "finished")[self.state]
        return f"<CallTask {state} name={self.get_name()!r} coro={self._coro!r}>"


def task_of(awaitable, loop, on_done):
    """Return a task that has not begun, of what an asynchronous function has returned: a coroutine or, as
    some decorators leave it, something else that may be awaited."""
    return CallTask(awaitable if is_coroutine(awaitable) else _awaited(awaitable), loop, on_done)


cdef CallTask begun(object awaitable, object loop):
    """Return a task that has taken its first step, and has ended unless the coroutine waits.

    forget() takes one back that has ended.
    """
    global spare
    cdef CallTask task = spare
    spare = None
    if task is None:
        task = CallTask.__new__(CallTask)
        task._asyncio_future_blocking = False
    task._coro = awaitable if is_coroutine(awaitable) else _awaited(awaitable)
    task._loop = loop
    task.context = PyContext_CopyCurrent()
    task.run()
    return task


cdef int forget(CallTask task) except -1:
    """Store a task that has ended in its first step for the next call, unless other code refers to it."""
    global spare
    if Py_REFCNT(task) == 1 and not is_referred(task):
        task._coro = task._loop = task.context = task.value = task.name = task._cancel_message = None
        task.state = PENDING
        task.cancel_requests = 0
        task._must_cancel = task.failed = False
        spare = task
    return 0


cdef inline bint is_coroutine(object awaitable) except -1:
    return PyCoro_CheckExact(awaitable) or iscoroutine(awaitable)


async def _awaited(awaitable):
    return await awaitable


cdef object loop_of(object future):
    """Return the loop of a future, as asyncio itself finds it."""
    get_loop = getattr(future, "get_loop", None)
    return future._loop if get_loop is None else get_loop()
