"""What `fastrpc.Context` is made of: a call that is known by its message's text alone until somebody asks.

The connection makes one for each call whose function takes a Context, in a tenth of a microsecond. The
request, the call and the way to its client are made by the first look at one of them: most calls end without.
What can be said and asked is left to `fastrpc.context`, which has the methods.
"""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    ctypedef object (*newfunc)(PyTypeObject* kind, object arguments, PyObject* keywords)

cdef tuple NOTHING = ()


cdef class CallContext:
    """One call. `cancelled`: the client has cancelled it or gone away; `ended`: its function has returned;
    `asks_no_progress`: the request has no progress token."""

    def fill(self, request_id, protocol_version, client_info, link):
        """Say what it is the context of; `link` is the way to the client, or None. Only once."""
        if self.opener is None and self._client_info is not None:
            return
        self._request_id = request_id
        self._protocol_version = protocol_version
        self._client_info = client_info
        self.link = link
        self.opener = self.line = self.plan = None

    cdef int open(self) except -1:
        if self.opener is not None:
            self.opener.open_call(self, self.line, self.plan)
        return 0

    @property
    def request_id(self):
        """The JSON-RPC id of the request."""
        self.open()
        return self._request_id

    @property
    def protocol_version(self):
        """The version that the client speaks."""
        self.open()
        return self._protocol_version

    @property
    def client_info(self):
        """What the client has said of itself (MCP: Implementation)."""
        self.open()
        return self._client_info

    @property
    def _link(self):
        self.open()
        return self.link


cdef CallContext context_of_call(
    type kind, object opener, bytes line, object plan, bint asks_no_progress
):
    """Return an instance of `kind`, a class made of CallContext, for the call that a line asks for.

    ``opener.open_call(context, line, plan)`` fills it in.
    """
    cdef PyTypeObject* made_by = <PyTypeObject*> kind
    cdef CallContext context = (<newfunc> made_by.tp_new)(made_by, NOTHING, NULL)
    context.opener = opener
    context.line = line
    context.plan = plan
    context.asks_no_progress = asks_no_progress
    return context
