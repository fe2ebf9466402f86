# Functions of other modules, called by readers and writers that go on whatever these raise. Costs nothing but
# the call where nothing is raised; `fastrpc.tracebacks.call` is the same for Python.

cdef inline int contained(str what, object function, tuple values=()) except -1:
    """Call a function; what it raises is logged as `what`, but for KeyboardInterrupt."""
    try:
        function(*values)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        from fastrpc import tracebacks

        tracebacks.report(what, error)
    return 0
