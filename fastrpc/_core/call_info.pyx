"""One call, as a guard and hooks see it: who calls what, with which arguments.

The connection creates a `CallInfo` for each call of a plan that has a guard or hooks, and hands it the bound
values as they lie in its own call vector: reading nothing costs nothing. The arguments become a dict when
somebody looks at them. What is decided and changed is left to the functions that get it.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

cdef object MISSING = object()


cdef class CallInfo:
    """A call of a tool, a resource or a prompt, before it runs.

    `kind` is tool, resource or prompt; `name` the tool, the prompt, or the URI; `effect` what a tool says of
    itself; `principal` the authenticated principal; `arguments` a dict of what the function gets, or, where
    that does not fit, of what came; `context` the call's `fastrpc.Context`.
    """

    def __init__(self, Plan plan, str name, str principal, arguments, context, str kind="tool"):
        """`arguments` are what the plan's handler has bound, in the order of its parameters; or, where they
        do not fit, a dict as it came."""
        self.plan = plan
        self.name = name
        self.principal = principal
        self.context = context
        self.kind = kind
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
    def arguments(self):
        """The arguments by name. A hook may change them, or put another dict there."""
        if self.given is None:
            self.given = self.plan.tool.signature.named(self.bound_values())
        return self.given

    @arguments.setter
    def arguments(self, dict given):
        self.keep()
        self.given = given

    def bound_values(self):
        """Return the values that were bound, in the order of the parameters; None if they did not fit."""
        self.keep()
        return self.values

    cdef int keep(self) except -1:
        """Hold the bound values, which the connection holds only until the function has returned."""
        cdef Py_ssize_t at
        if self.vector != NULL:
            self.values = [
                <object> self.vector[at]
                for at in range(self.plan.count + (self.plan.context_at >= 0))
                if at != self.plan.context_at
            ]
            self.vector = NULL
        return 0

    def invoke(self):
        """Call the function, with the arguments as they are now; return what it returns.

        Arguments that have been changed are bound again. Raises ArgumentError where they do not fit.
        """
        cdef PyObject* made
        if self.vector != NULL:
            made = self.plan.invoke(self.vector)
            if made == NULL:
                reraise()
            result = <object> made
            Py_DECREF(result)  # `made` was a reference of ours
            return result
        signature = self.plan.tool.signature
        values = self.values
        if values is None or (self.given is not None and self.is_changed(signature)):
            values = signature.bind(self.given)
        return signature.call(self.plan.tool.function, values, self.context)

    cdef bint is_changed(self, signature) except -1:
        """Are the arguments others than those that were bound?"""
        cdef dict bound = signature.named(self.values)
        if len(bound) != len(self.given):
            return True
        for name, value in bound.items():
            if self.given.get(name, MISSING) is not value:
                return True
        return False

    def __repr__(self):
        return f"CallInfo({self.name!r}, {self.arguments!r})"


cdef CallInfo info_of_call(Plan plan, str principal, object context, PyObject** vector):
    """Return the info of a call whose values are bound in a vector that invoke() takes."""
    cdef CallInfo info = plan.spare_info
    if info is None:
        info = CallInfo.__new__(CallInfo)
        info.plan = plan
        info.kind = "tool"
    else:
        plan.spare_info = None
    info.name = plan.name
    info.principal = principal
    info.context = context
    info.vector = vector
    return info


cdef int reraise() except -1:
    """Return as a function does that has raised."""
    return -1
