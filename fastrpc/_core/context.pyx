"""The base class of `fastrpc.Context`: at first it holds the message's text and nothing else.

When a function takes a Context, the connection fills in where the request lies; one that was not looked at
serves the next call. The first read of an attribute parses the text and creates the request, the call and the
channel to the client; most calls read none. The methods by which a tool notifies or asks the client are in
`fastrpc.context`.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_REFCNT

cdef extern from "Python.h":
    ctypedef object (*newfunc)(PyTypeObject* kind, object arguments, PyObject* keywords)

cdef tuple NOTHING = ()


cdef class CallContext:
    """One call. `cancelled`: the client has cancelled it or gone away; `ended`: its function has returned;
    `asks_no_progress`: the request has no progress token."""

    def fill(self, request_id, protocol_version, client_info, link):
        """Set the attributes, once; `link` is the channel to the client, or None."""
        if self.opener is None and self._client_info is not None:
            return
        self._request_id = request_id
        self._protocol_version = protocol_version
        self._client_info = client_info
        self.link = link
        self.opener = self.line = self.plan = None

    cdef int open(self) except -1:
        if self.opener is not None:
            self.keep()
            self.opener.open_call(self, self.line, self.plan)
        return 0

    cdef int keep(self) except -1:
        """Copy the request: the read buffer will be used for something else."""
        if self.text != NULL:
            self.line = self.text[: self.size]
            self.text = NULL
        return 0

    cdef bint is_untouched(self) noexcept:
        """Whether no code has used it or holds a reference: then it may serve another call."""
        return self.text != NULL and not self.cancelled and Py_REFCNT(self) == 1

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
        """The clientInfo of the client: its name and version (MCP: Implementation)."""
        self.open()
        return self._client_info

    @property
    def _tool(self):
        """The tool that is called; None once the request has been looked at, and for one made by hand."""
        return None if self.plan is None else self.plan.tool

    @property
    def _is_recorded(self):
        """Whether a budget may count what the call spends: reading it parses nothing."""
        return self.plan is None or self.plan.recorder is not None

    @property
    def _channel(self):
        self.open()
        return self.link


cdef CallContext new_context(type kind):
    """Return an empty instance of `kind`, a class made of CallContext."""
    cdef PyTypeObject* made_by = <PyTypeObject*> kind
    return <CallContext> (<newfunc> made_by.tp_new)(made_by, NOTHING, NULL)
