"""One call, as a guard and hooks see it: who calls what, with which arguments.

The connection creates a `CallInfo` for each call of a plan that has a guard or hooks, and hands it the bound
values as they lie in its own call vector: reading nothing costs nothing. The arguments become a dict when
a function reads them. What is decided and changed is left to the functions that get it. A `HookChain` calls
those that are synchronous.
"""

from cpython.object cimport PyObject

from fastrpc._core.python_api cimport owned, reraise

from fastrpc._core.recorder import DecidedLine

cdef object MISSING = object()


cdef class CallInfo:
    """A call of a tool, a resource or a prompt, before it runs.

    `kind` is tool, resource or prompt; `name` the tool, the prompt, or the URI; `effect` what a tool says of
    itself; `principal` the authenticated principal; `arguments` a dict of what the function gets, or, where
    that does not fit, of what came; `context` the call's `fastrpc.Context`.
    """

    def __init__(self, Plan plan, str name, str principal, arguments, context):
        """`arguments` are what the plan's handler has bound, in the order of its parameters; or, where they
        do not fit, a dict as it came."""
        self.plan = plan
        self.name = name
        self.principal = principal
        self.context = context
        self.kind = plan.kind
        if isinstance(arguments, dict):
            self.given = arguments
        else:
            self.values = arguments

    @property
    def tool(self):
        """`name`."""
        return self.name

    @property
    def effect(self):
        """``read``, ``write``, ``network``, ``exec``; None where the tool does not say."""
        return getattr(self.plan.tool, "effect", None)

    @property
    def risk(self):
        """``none`` to ``critical``; None where the tool does not say."""
        return getattr(self.plan.tool, "risk", None)

    @property
    def arguments(self):
        """The arguments by name. A hook may change them, or put another dict there."""
        cdef Py_ssize_t at
        if self.given is None:
            if self.vector == NULL:
                self.given = self.plan.tool.signature.named(self.values)
            elif self.plan.binds_whole:  # a value may hold several arguments
                self.given = self.plan.tool.signature.named(self.vector_values())
            else:
                self.given = {self.plan.names[at]: self.value_at(at) for at in range(self.plan.count)}
        return self.given

    @arguments.setter
    def arguments(self, dict given):
        self.keep()
        self.given = given

    def bound_values(self):
        """Return the values that were bound, in the order of the parameters; None if they did not fit."""
        self.keep()
        return self.values

    @property
    def decided(self):
        """What a guard has decided about this call, for its record, and what the connection states of its
        calls; None: neither."""
        return self.decision

    @decided.setter
    def decided(self, decided):
        self.keep()  # only in what is kept the connection looks for it, which costs other calls nothing
        self.decision = decided

    cdef int keep(self) except -1:
        """Hold the bound values, which the connection holds only until the function has returned."""
        if self.vector != NULL:
            self.values = self.vector_values()
            self.vector = NULL
        return 0

    cdef bint take_line(self, PyObject* line) except -1:
        """Make `decided_line` of the request's line; False without `decided`, or where no content is kept."""
        if self.decision is None or line == NULL:
            return False
        self.decided_line = DecidedLine(bytes(<object> line), self.decision)  # which has what was stated
        return True

    cdef list vector_values(self):
        cdef Py_ssize_t at
        return [self.value_at(at) for at in range(self.plan.count)]

    cdef object value_at(self, Py_ssize_t at):
        """Return the value of a parameter from the vector, which contains the Context, too."""
        return <object> self.vector[at + (0 <= self.plan.context_at <= at)]

    cpdef object invoke(self):
        """Call the function, with the arguments as they are now; return what it returns.

        Arguments that have been changed are bound again. Raises ArgumentError where they do not fit, and what
        refuses a call that is not any more the one that was allowed.
        """
        cdef PyObject* made
        if self.given is not None or self.vector == NULL:  # a function may have changed them
            if self.confirm is not None:
                self.confirm()
            elif self.plan.recheck is not None:
                self.plan.recheck(self)
        if self.vector != NULL and (self.given is None or self.are_bound()):
            made = self.plan.invoke(self.vector)
            if made == NULL:
                reraise()
            return owned(made)
        return self.plan.tool.signature.call(self.plan.tool.function, self.current_values(), self.context)

    def bound_arguments(self):
        """Return the arguments by name as the function would get them now. Raises ArgumentError where they do
        not fit."""
        return self.plan.tool.signature.named(self.current_values())

    cpdef object current_values(self):
        """Return the values of the arguments as they are now, in the order of the parameters.

        Arguments that have been changed are bound again. Raises ArgumentError where they do not fit.
        """
        self.keep()
        signature = self.plan.tool.signature
        if self.values is None or (
            self.given is not None and is_changed(self.given, signature.named(self.values))
        ):
            return signature.bind(self.given)
        return self.values

    def change(self, dict edited):
        """Bind other values for some arguments; the others stay the objects that they are. What is read from
        now on is what will run.

        Raises ArgumentError where they do not fit.
        """
        signature = self.plan.tool.signature
        self.values = signature.changed(self.current_values(), edited)
        self.given = signature.named(self.values)

    cdef bint are_bound(self) except -1:
        """Are the arguments still those in the vector?"""
        cdef Py_ssize_t at
        if len(self.given) != self.plan.count:
            return False
        for at in range(self.plan.count):
            if self.given.get(self.plan.names[at], MISSING) is not self.value_at(at):
                return False
        return True

    def __repr__(self):
        return f"CallInfo({self.name!r}, {self.arguments!r})"


cdef class HookChain:
    """Calls a tool's function between synchronous hooks; what a plan has in its slot `around` then.

    `name` is the tool's where the hooks are, `inner` the chain of the server that it was mounted from.
    """

    cdef readonly str name
    cdef tuple before
    cdef tuple after
    cdef tuple on_error
    cdef readonly object inner

    is_async = False

    def __init__(self, str name, tuple before, tuple after, tuple on_error, inner):
        self.name = name
        self.before = before
        self.after = after
        self.on_error = on_error
        self.inner = inner

    def __call__(self, CallInfo call):
        if not self.on_error:
            return self.run(call)
        try:
            return self.run(call)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            return self.mend(call, error)

    cdef object run(self, CallInfo call):
        cdef object result
        for function in self.before:
            function(call)
        if self.inner is None:
            result = call.invoke()
        else:
            call.name = self.inner.name
            result = self.inner(call)
            call.name = self.name
        for function in self.after:
            changed = function(call, result)
            if changed is not None:
                result = changed
        return result

    cdef object mend(self, CallInfo call, object error):
        """Ask the hooks for errors, until one has a result. Raises the error that is left."""
        call.name = self.name
        for function in self.on_error:
            try:
                answer = function(call, error)
            except (Exception, SystemExit, KeyboardInterrupt) as other:
                error = other
                continue
            if isinstance(answer, BaseException):
                error = answer
            elif answer is not None:
                return answer
        raise error


cdef CallInfo info_of_call(Plan plan, str principal, object context, PyObject** vector):
    """Return the info of a call whose values are bound in a vector that invoke() takes."""
    cdef CallInfo info = plan.spare_info
    if info is None:
        info = CallInfo.__new__(CallInfo)
        info.plan = plan
        info.kind = plan.kind
    else:
        plan.spare_info = None
    info.name = plan.target
    info.principal = principal
    info.context = context
    info.vector = vector
    return info


cdef bint is_changed(dict given, dict bound) except -1:
    """Are the arguments others than those that were bound?"""
    if len(bound) != len(given):
        return True
    for name, value in bound.items():
        if given.get(name, MISSING) is not value:
            return True
    return False
